//! A run: the state that all of its events make.
//!
//! [`Run::apply`] is the only mutator, live and in replay, and cannot fail. The state has two parts.
//! [`LiveRun`] is what decisions read and is small: it grows with the nodes, not with the history.
//! [`Archive`] is what only lookups by id read. A decision works on a copy of the live part, so its
//! cost does not depend on the history either.

use std::collections::HashMap;
use std::sync::Arc;

use turnkeep_types::{BlobHash, Timestamp};

use crate::approval::Resolution;
use crate::artifact::Artifact;
use crate::fact::{Event, Fact};
use crate::ids::{AgentTurnId, ApprovalId, ArtifactId, NodeId, RunId};
use crate::live::LiveRun;
use crate::usage::Budget;
use crate::words::{ArtifactKind, GlobalMode, Mode};

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
    resolutions: HashMap<ApprovalId, Resolution>,
    requests: HashMap<String, KeyedRequest>,
}

/// A request that was answered before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyedRequest {
    /// The hash of the request.
    pub fingerprint: BlobHash,
    /// The first event that it caused. The answer is made from it again.
    pub seq: u64,
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
            };
            self.requests.insert(request.key.clone(), answered);
        }
        match &event.fact {
            Fact::ArtifactCreated(artifact) => self.add_artifact(event.turn, artifact),
            Fact::ApprovalResolved {
                approval,
                resolution,
            } => {
                self.resolutions.insert(*approval, resolution.clone());
            }
            _ => {}
        }
    }

    fn add_artifact(&mut self, turn: Option<AgentTurnId>, artifact: &Artifact) {
        if let Some(turn) = turn.filter(|_| artifact.kind == ArtifactKind::Diff) {
            self.diff_of_turn.insert(turn, artifact.id);
        }
        self.artifacts
            .insert(artifact.id, Arc::new(artifact.clone()));
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

    /// The decision about an approval that is not open any more.
    pub fn resolution(&self, approval: ApprovalId) -> Option<&Resolution> {
        self.resolutions.get(&approval)
    }

    /// The request that had this key.
    pub fn request(&self, key: &str) -> Option<&KeyedRequest> {
        self.requests.get(key)
    }
}
