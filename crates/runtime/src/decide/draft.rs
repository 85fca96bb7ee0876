//! A decision in the making.

use bytes::Bytes;
use turnkeep_types::{BlobHash, Timestamp};

use super::{Capacity, Decision, LastHeard, Surroundings};
use crate::artifact::{Artifact, DiffSummary};
use crate::effect::Effect;
use crate::fact::{Event, Fact, NodeChange, ShownNode, TurnStep};
use crate::ids::{AgentTurnId, ArtifactId, IdSource, NodeId, Uuid};
use crate::live::LiveRun;
use crate::request::MadeId;
use crate::run::{Archive, Run};
use crate::words::ArtifactKind;

/// The state with the events of a decision so far.
pub(crate) struct Draft<'a> {
    /// The live state after the recorded events.
    pub(crate) run: LiveRun,
    /// The rest of the state, before the decision.
    pub(crate) archive: &'a Archive,
    pub(crate) around: Surroundings<'a>,
    events: Vec<Event>,
    blobs: Vec<Bytes>,
    effects: Vec<Effect>,
    /// The id that a repeated request gets as its answer.
    made: Option<MadeId>,
}

/// Whose file it is. A verification on request belongs to no node.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ArtifactOwner {
    pub(crate) node: Option<NodeId>,
    pub(crate) turn: Option<AgentTurnId>,
}

impl ArtifactOwner {
    /// The file belongs to a turn of a node.
    pub(crate) fn turn(node: NodeId, turn: AgentTurnId) -> Self {
        let (node, turn) = (Some(node), Some(turn));
        Self { node, turn }
    }
}

/// A file to record.
pub(crate) struct NewArtifact<'a> {
    pub(crate) kind: ArtifactKind,
    pub(crate) name: &'a str,
    pub(crate) content: Bytes,
    pub(crate) diff: Option<DiffSummary>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(run: &'a Run, around: Surroundings<'a>) -> Self {
        Self {
            run: run.live.clone(),
            archive: &run.archive,
            around,
            events: Vec::new(),
            blobs: Vec::new(),
            effects: Vec::new(),
            made: None,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.around.now
    }

    pub(crate) fn capacity(&self) -> Capacity<'a> {
        self.around.capacity
    }

    pub(crate) fn heard(&self) -> &'a LastHeard {
        self.around.heard
    }

    pub(crate) fn draw_id<T: Uuid>(&mut self) -> T {
        IdSource::draw(self.around.ids)
    }

    /// Records an event of the run as a whole.
    pub(crate) fn record(&mut self, fact: Fact) {
        self.record_event(None, None, fact);
    }

    /// Records an event of a node.
    pub(crate) fn record_for(&mut self, node: NodeId, fact: Fact) {
        self.record_event(Some(node), None, fact);
    }

    /// Records an event of a node's turn.
    pub(crate) fn record_in(&mut self, node: NodeId, turn: AgentTurnId, fact: Fact) {
        self.record_event(Some(node), Some(turn), fact);
    }

    pub(crate) fn change_node(&mut self, node: NodeId, change: NodeChange) {
        let Some(before) = self.run.node(node).map(ShownNode::of) else {
            return;
        };
        let shown = before;
        self.record_for(node, Fact::NodeChanged { change, shown });
        // The change itself decides what clients show, so this is known only now.
        let after = self.run.node(node).map(ShownNode::of);
        if let (Some(after), Some(Fact::NodeChanged { shown, .. })) =
            (after, self.events.last_mut().map(|event| &mut event.fact))
        {
            *shown = after;
        }
    }

    /// Drops the session of a node's program.
    pub(crate) fn drop_session(&mut self, node: NodeId, lost: bool) {
        let reset_commands = self.reset_commands(node);
        let change = NodeChange::SessionDropped {
            lost,
            reset_commands,
        };
        self.change_node(node, change);
    }

    /// Records the program's own name of its session.
    pub(crate) fn name_session(&mut self, node: NodeId, id: String) {
        let reset_commands = self.reset_commands(node);
        self.change_node(node, NodeChange::SessionNamed { id, reset_commands });
    }

    fn reset_commands(&self, node: NodeId) -> Vec<String> {
        let node = self.run.node(node);
        node.map_or_else(Vec::new, |node| node.settings.reset_commands.clone())
    }

    pub(crate) fn step_turn(&mut self, node: NodeId, turn: AgentTurnId, step: TurnStep) {
        self.record_in(node, turn, Fact::TurnStepped(step));
    }

    fn record_event(&mut self, node: Option<NodeId>, turn: Option<AgentTurnId>, fact: Fact) {
        let event = Event {
            id: self.draw_id(),
            seq: self.run.last_seq + 1,
            at: self.now(),
            node,
            turn,
            // Only the first event carries the key: it is enough to find the request again.
            request: self.around.request.take(),
            made: None,
            fact,
        };
        // Before it is applied: the state must be the one that a replay gives.
        let event = self.around.secrets.mask_event(event);
        self.run.apply(&event);
        self.events.push(event);
    }

    /// A text with every secret masked.
    pub(crate) fn mask(&self, text: String) -> String {
        let masked = self.around.secrets.mask(Bytes::from(text));
        String::from_utf8_lossy(&masked).into_owned()
    }

    /// Records a file with its content.
    pub(crate) fn create_artifact(
        &mut self,
        owner: ArtifactOwner,
        new: NewArtifact<'_>,
    ) -> ArtifactId {
        let content = self.around.secrets.mask(new.content);
        let artifact = Artifact {
            id: self.draw_id(),
            node: owner.node,
            kind: new.kind,
            name: new.name.to_owned(),
            content: BlobHash::of(&content),
            bytes: content.len() as u64,
            created_at: self.now(),
            diff: new.diff,
        };
        let id = artifact.id;
        // In the batch of the event: an artifact without its bytes could not be shown.
        self.blobs.push(content);
        let created = Fact::ArtifactCreated(Box::new(artifact));
        self.record_event(owner.node, owner.turn, created);
        id
    }

    /// Records a file with the content of another one, which the store has already.
    pub(crate) fn copy_artifact(
        &mut self,
        owner: ArtifactOwner,
        source: &Artifact,
        kind: ArtifactKind,
    ) -> ArtifactId {
        let copy = Artifact {
            id: self.draw_id(),
            node: owner.node,
            kind,
            created_at: self.now(),
            diff: None,
            ..source.clone()
        };
        let id = copy.id;
        let created = Fact::ArtifactCreated(Box::new(copy));
        self.record_event(owner.node, owner.turn, created);
        id
    }

    /// Says what the request made, for a caller who repeats it.
    pub(crate) fn note_made(&mut self, made: MadeId) {
        self.made = Some(made);
    }

    /// Adds an effect. It is carried out after all events of the decision are durable.
    pub(crate) fn perform(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Ends the decision.
    pub(crate) fn finish<T>(mut self, answer: T) -> Decision<T> {
        // A key is kept also if nothing else happened: the same request later must not do something
        // because the run has changed meanwhile.
        if self.around.request.is_some() {
            self.record(Fact::RequestNoted);
        }
        let keyed = self
            .events
            .first_mut()
            .filter(|event| event.request.is_some());
        // Known only now. The live state does not have requests, so it need not be applied again.
        if let Some(keyed) = keyed {
            keyed.made = self.made;
        }
        Decision {
            events: self.events,
            blobs: self.blobs,
            effects: self.effects,
            answer,
        }
    }
}
