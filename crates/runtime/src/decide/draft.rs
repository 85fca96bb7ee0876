//! A decision in the making.

use bytes::Bytes;
use turnkeep_types::{BlobHash, Timestamp};

use super::{Capacity, Decision, Surroundings};
use crate::artifact::{Artifact, DiffSummary};
use crate::effect::Effect;
use crate::fact::{Event, Fact, NodeChange, TurnStep};
use crate::ids::{AgentTurnId, ArtifactId, IdSource, NodeId, Uuid};
use crate::live::LiveRun;
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
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.around.now
    }

    pub(crate) fn capacity(&self) -> Capacity<'a> {
        self.around.capacity
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
        self.record_for(node, Fact::NodeChanged(change));
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
            fact,
        };
        self.run.apply(&event);
        self.events.push(event);
    }

    /// Records a file of a turn with its content.
    pub(crate) fn create_artifact(
        &mut self,
        node: NodeId,
        turn: AgentTurnId,
        new: NewArtifact<'_>,
    ) -> ArtifactId {
        let artifact = Artifact {
            id: self.draw_id(),
            node: Some(node),
            kind: new.kind,
            name: new.name.to_owned(),
            content: BlobHash::of(&new.content),
            bytes: new.content.len() as u64,
            created_at: self.now(),
            diff: new.diff,
        };
        let id = artifact.id;
        self.blobs.push(new.content);
        self.record_in(node, turn, Fact::ArtifactCreated(Box::new(artifact)));
        id
    }

    /// Adds an effect. It is carried out after all events of the decision are durable.
    pub(crate) fn perform(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(crate) fn finish<T>(self, answer: T) -> Decision<T> {
        Decision {
            events: self.events,
            blobs: self.blobs,
            effects: self.effects,
            answer,
        }
    }
}
