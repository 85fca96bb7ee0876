//! A run: the state that all of its events make.
//!
//! [`Run::apply`] is the only mutator, live and in replay, and cannot fail. The state has two parts.
//! [`LiveRun`] is what decisions read and is small: it grows with the nodes, not with the history.
//! [`Archive`] is what only lookups by id read. A decision works on a copy of the live part, so its
//! cost does not depend on the history either.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use turnkeep_types::Timestamp;

use crate::approval::Resolution;
use crate::artifact::Artifact;
use crate::fact::{Event, Fact, TurnStep};
use crate::ids::{AgentTurnId, ApprovalId, ArtifactId, EventId, NodeId, RunId};
use crate::input::InputId;
use crate::live::LiveRun;
use crate::node::NewNode;
use crate::request::{KeyUse, KeyedRequest, RequestKey};
use crate::usage::Budget;
use crate::words::{ArtifactKind, GlobalMode, Mode, RunStatus};

/// What a person chooses for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSettings {
    pub title: String,
    pub goal: Option<String>,
    /// The directory in which its nodes work.
    pub cwd: Option<String>,
    /// The modes at its start.
    pub mode: Mode,
    pub global_mode: GlobalMode,
    /// The world whose persons its nodes are.
    pub world: Option<String>,
    /// The commands that must pass before the run may be completed.
    pub verify: Vec<String>,
    /// The commands that run once in each new worktree.
    pub setup: Vec<String>,
    /// The node that brings the documents up to date at the end.
    pub docs_node: Option<NodeId>,
    pub budget: Budget,
    pub limits: RunLimits,
}

/// The limits of a run. The server's configuration has their defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// How many turns may be open at once.
    pub open_turns_max: u32,
    /// How many nodes it may have.
    pub nodes_max: u32,
    /// How many spawns may lie between a person and a node.
    pub spawn_depth_max: u32,
    /// After how many equal turns a node counts as stalled; zero turns that off.
    pub stall_after: u32,
    /// How long a node that was woken by an envelope waits for others.
    pub fan_in_ms: u64,
    /// A warning after so much silence in a turn; zero turns it off.
    pub silence_warn_ms: u64,
    /// The end of a turn after so much silence; zero turns it off.
    pub silence_end_ms: u64,
    /// The end of a turn after so much time; zero turns it off.
    pub turn_end_ms: u64,
    /// How long an approval waits before it is denied; zero means for ever.
    pub approval_ms: u64,
}

impl RunLimits {
    /// The longest wait for further envelopes.
    pub const FAN_IN_MS_MAX: u64 = 5_000;
}

impl Default for RunLimits {
    fn default() -> Self {
        const SECOND_MS: u64 = 1000;
        const MINUTE_MS: u64 = 60 * SECOND_MS;
        Self {
            open_turns_max: 4,
            nodes_max: 24,
            spawn_depth_max: 3,
            stall_after: 5,
            fan_in_ms: 300,
            silence_warn_ms: 3 * MINUTE_MS,
            silence_end_ms: 15 * MINUTE_MS,
            turn_end_ms: 120 * MINUTE_MS,
            approval_ms: 0,
        }
    }
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub live: LiveRun,
    pub archive: Archive,
}

/// What only lookups by id read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Archive {
    artifacts: HashMap<ArtifactId, Arc<Artifact>>,
    diff_of_turn: HashMap<AgentTurnId, ArtifactId>,
    conflicts: HashMap<AgentTurnId, TurnConflicts>,
    /// The files of turns that a person took back.
    reverted: HashMap<AgentTurnId, BTreeSet<String>>,
    resolutions: HashMap<ApprovalId, Resolution>,
    requests: HashMap<String, KeyedRequest>,
    /// The numbers of the events that put inputs into inboxes.
    inputs: HashMap<InputId, u64>,
    turns: HashMap<AgentTurnId, TurnTrace>,
    /// The turns of each node with the numbers of their first events, in their order.
    turns_of_node: HashMap<NodeId, Vec<(u64, AgentTurnId)>>,
    turn_of_artifact: HashMap<ArtifactId, AgentTurnId>,
    /// All nodes that there ever were, as they were added.
    nodes: HashMap<NodeId, Arc<NewNode>>,
    milestones: Vec<Milestone>,
}

/// An event that the server reports to the run's world: a handoff, or the beginning or an end of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Milestone {
    pub seq: u64,
    pub event: EventId,
}

/// Files that the nodes of several turns wrote at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnConflicts {
    /// When the first of them was found.
    pub since: Timestamp,
    /// Each file with the nodes of the other turns.
    pub files: BTreeMap<String, BTreeSet<NodeId>>,
}

/// Where the log has a turn, for those who ask why something is as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnTrace {
    pub node: NodeId,
    /// The number of the event that started it, which names its inputs.
    pub started: u64,
    /// The whole prompt.
    pub prompt: Option<ArtifactId>,
}

impl Run {
    /// Makes the state before the first event.
    pub fn new(id: RunId) -> Self {
        Self {
            live: LiveRun::new(id),
            archive: Archive::default(),
        }
    }

    /// Applies one event.
    pub fn apply(&mut self, event: &Event) {
        self.live.apply(event);
        self.archive.apply(event);
    }

    /// When the run was created.
    pub fn created_at(&self) -> Timestamp {
        self.live.created_at
    }
}

impl Archive {
    fn apply(&mut self, event: &Event) {
        if let Some(request) = &event.request {
            let answered = KeyedRequest {
                fingerprint: request.fingerprint,
                seq: event.seq,
                made: event.made,
            };
            self.requests.insert(request.key.clone(), answered);
        }
        if is_milestone(&event.fact) {
            let (seq, event) = (event.seq, event.id);
            self.milestones.push(Milestone { seq, event });
        }
        match &event.fact {
            Fact::ArtifactCreated(artifact) => self.add_artifact(event.turn, artifact),
            Fact::NodeAdded(new) => {
                self.nodes.insert(new.id, Arc::new((**new).clone()));
            }
            Fact::EnvelopeSent(envelope) => {
                self.inputs
                    .insert(InputId::Envelope(envelope.id), event.seq);
            }
            Fact::MessageSent(message) => {
                self.inputs.insert(InputId::Message(message.id), event.seq);
            }
            Fact::TurnStepped(TurnStep::Started { .. }) => self.add_turn(event),
            Fact::ApprovalResolved {
                approval,
                resolution,
            } => {
                self.resolutions.insert(*approval, resolution.clone());
            }
            _ => {}
        }
    }

    fn add_turn(&mut self, event: &Event) {
        if let (Some(node), Some(turn)) = (event.node, event.turn) {
            let trace = TurnTrace {
                node,
                started: event.seq,
                prompt: None,
            };
            self.turns.insert(turn, trace);
            let of_node = self.turns_of_node.entry(node).or_default();
            of_node.push((event.seq, turn));
        }
    }

    fn add_artifact(&mut self, turn: Option<AgentTurnId>, artifact: &Artifact) {
        if let Some(turn) = turn {
            self.turn_of_artifact.insert(artifact.id, turn);
        }
        if let Some(trace) = turn.and_then(|turn| self.turns.get_mut(&turn))
            && artifact.kind == ArtifactKind::Prompt
        {
            // The whole prompt is recorded first; its parts and a delta come behind it.
            trace.prompt.get_or_insert(artifact.id);
        }
        if let Some(turn) = turn.filter(|_| artifact.kind == ArtifactKind::Diff) {
            self.diff_of_turn.insert(turn, artifact.id);
            self.add_conflicts(turn, artifact);
        }
        if let Some((turn, files)) = artifact.as_revert() {
            let known = self.reverted.entry(turn).or_default();
            known.extend(files.iter().cloned());
        }
        self.artifacts
            .insert(artifact.id, Arc::new(artifact.clone()));
    }

    /// Notes the conflicts of a diff for both turns. The other one may have ended before the file was
    /// written a second time.
    fn add_conflicts(&mut self, turn: AgentTurnId, artifact: &Artifact) {
        let (Some(node), Some(diff)) = (artifact.node, &artifact.diff) else {
            return;
        };
        for conflict in &diff.conflicts {
            for (of, other) in [(turn, conflict.node), (conflict.turn, node)] {
                let known = self.conflicts.entry(of).or_insert_with(|| TurnConflicts {
                    since: artifact.created_at,
                    files: BTreeMap::new(),
                });
                let nodes = known.files.entry(conflict.path.clone()).or_default();
                nodes.insert(other);
            }
        }
    }

    /// Whether a person took this file of a turn back.
    pub fn was_reverted(&self, turn: AgentTurnId, file: &str) -> bool {
        let files = self.reverted.get(&turn);
        files.is_some_and(|files| files.contains(file))
    }

    /// The conflicts of a turn with others.
    pub fn conflicts_of_turn(&self, turn: AgentTurnId) -> Option<&TurnConflicts> {
        self.conflicts.get(&turn)
    }

    /// The artifact of this id.
    pub fn artifact(&self, id: ArtifactId) -> Option<&Arc<Artifact>> {
        self.artifacts.get(&id)
    }

    /// All artifacts, in no order.
    pub fn artifacts(&self) -> impl Iterator<Item = &Arc<Artifact>> {
        self.artifacts.values()
    }

    /// The diff of a turn.
    pub fn diff_of_turn(&self, turn: AgentTurnId) -> Option<&Arc<Artifact>> {
        self.artifact(*self.diff_of_turn.get(&turn)?)
    }

    /// The tree before the first turn of which a diff is known.
    pub fn first_tree(&self) -> Option<&str> {
        let started = |turn: &AgentTurnId| self.turns.get(turn).map(|trace| trace.started);
        let diffs = self.diff_of_turn.iter().filter_map(|(turn, artifact)| {
            let diff = self.artifacts.get(artifact)?.diff.as_ref()?;
            // A turn that failed before its workspace was ready has none.
            (!diff.base_tree.is_empty()).then_some((started(turn)?, diff))
        });
        let (_, first) = diffs.min_by_key(|(started, _)| *started)?;
        Some(&first.base_tree)
    }

    /// The milestones behind the event of this number, oldest first.
    pub fn milestones_after(&self, seq: u64) -> &[Milestone] {
        let begin = self.milestones.partition_point(|known| known.seq <= seq);
        self.milestones.get(begin..).unwrap_or_default()
    }

    /// The turn in which an artifact was made.
    pub fn turn_of_artifact(&self, artifact: ArtifactId) -> Option<AgentTurnId> {
        self.turn_of_artifact.get(&artifact).copied()
    }

    /// Where the log has a turn.
    pub fn turn(&self, turn: AgentTurnId) -> Option<TurnTrace> {
        self.turns.get(&turn).copied()
    }

    /// The newest turn of a node that had begun before the event of this number.
    pub fn turn_before(&self, node: NodeId, seq: u64) -> Option<AgentTurnId> {
        let turns = self.turns_of_node.get(&node)?;
        let begun = turns.partition_point(|(started, _)| *started < seq);
        let (_, newest) = turns.get(begun.checked_sub(1)?)?;
        Some(*newest)
    }

    /// The number of the event that put an input into an inbox.
    pub fn input_seq(&self, input: InputId) -> Option<u64> {
        self.inputs.get(&input).copied()
    }

    /// A node as it was added. Deleted ones are here too.
    pub fn added_node(&self, node: NodeId) -> Option<&Arc<NewNode>> {
        self.nodes.get(&node)
    }

    /// The decision about an approval that is not open any more.
    pub fn resolution(&self, approval: ApprovalId) -> Option<&Resolution> {
        self.resolutions.get(&approval)
    }

    /// The request that had this key.
    pub fn request(&self, key: &str) -> Option<&KeyedRequest> {
        self.requests.get(key)
    }

    /// Whether a request is new, repeats an earlier one, or takes a key that another one had.
    pub fn find_request(&self, request: &RequestKey) -> KeyUse {
        match self.request(&request.key) {
            None => KeyUse::New,
            Some(known) if known.fingerprint == request.fingerprint => KeyUse::Repeated(*known),
            Some(_) => KeyUse::Reused,
        }
    }
}

fn is_milestone(fact: &Fact) -> bool {
    match fact {
        Fact::RunCreated(_) | Fact::EnvelopeSent(_) => true,
        Fact::RunStatusChanged { status, .. } => {
            matches!(status, RunStatus::Completed | RunStatus::Failed)
        }
        _ => false,
    }
}
