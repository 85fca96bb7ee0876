//! A node: one agent of a run, with its inbox, its open turn and its counters.
//!
//! A node has at most one open turn. Everything here is made by [`crate::live::LiveRun::apply`] from
//! events and can be rebuilt from them.

use std::collections::BTreeSet;

use turnkeep_types::{BlobHash, Timestamp};

use crate::artifact::Workspace;
use crate::ids::{AgentTurnId, ApprovalId, EnvelopeId, NodeId};
use crate::input::{Envelope, Inbox, Input};
use crate::replay::CallMemory;
use crate::stall::StallHistory;
use crate::turn::{EndedTurn, OpenTurn};
use crate::usage::{Budget, BudgetLevel, Usage};
use crate::words::{CliPermissions, NodeStatus, Provider, WakeOn};

/// The role that leads a run.
const ORCHESTRATOR: &str = "orchestrator";

/// The part of a node that a person or a parent node chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSettings {
    pub label: String,
    /// The name of the role template, such as `implementer`.
    pub role: String,
    pub provider: Provider,
    /// The entry of the configuration, for a custom provider.
    pub provider_name: Option<String>,
    /// A short name, unique in the run.
    pub alias: Option<String>,
    /// The person of the run's world in whose name the node reads and writes.
    pub person: Option<String>,
    pub capabilities: Capabilities,
    pub permissions: Permissions,
    /// Replaces the text of the role template.
    pub custom_system_prompt: Option<String>,
    pub wake_on: WakeOn,
    /// Where a user interface shows the node.
    pub position: Option<Position>,
    /// What a program is typed to begin a new session, where no protocol has a way.
    pub reset_commands: Vec<String>,
    /// What its turns may use; the run's budget counts as well.
    pub budget: Option<Budget>,
}

/// What a node may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "these are independent rights"
)]
pub struct Capabilities {
    pub spawn_nodes: bool,
    pub write_code: bool,
    pub write_docs: bool,
    pub run_commands: bool,
    pub delegate_only: bool,
}

impl Capabilities {
    /// The rights that hold: a node that only delegates writes nothing.
    #[must_use]
    pub fn effective(self) -> Self {
        Self {
            write_code: self.write_code && !self.delegate_only,
            write_docs: self.write_docs && !self.delegate_only,
            ..self
        }
    }
}

/// Who decides about what a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permissions {
    pub cli: CliPermissions,
    pub spawn_requires_approval: bool,
}

impl Permissions {
    /// The stricter of both in each part, so that a child is never freer than its parent.
    #[must_use]
    pub fn tightened_by(self, parent: Self) -> Self {
        Self {
            cli: self.cli.max(parent.cli),
            spawn_requires_approval: self.spawn_requires_approval || parent.spawn_requires_approval,
        }
    }
}

/// A place on the canvas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    pub x: f64,
    pub y: f64,
}

/// Why a node waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockReason {
    /// For the answers to its open approvals.
    Approvals,
    /// It repeats itself.
    Stall,
    /// It wrote files that it may not write, and a person decides what becomes of them.
    Violation {
        /// The turn that wrote them.
        turn: AgentTurnId,
        /// The files that are not decided yet.
        paths: BTreeSet<String>,
    },
}

/// The session of a node's program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// The program's own name of it, absent until the program has said one.
    pub id: Option<String>,
    /// The hash of the system, role and override blocks that the session has seen.
    pub prompt_hash: Option<BlobHash>,
    /// Whether an earlier session was lost, so that the next prompt recalls the last turns.
    pub was_lost: bool,
}

impl Session {
    /// Whether the next prompt is the first one that it reads.
    pub fn has_read_nothing(&self) -> bool {
        self.id.is_none() || self.prompt_hash.is_none()
    }
}

/// A node of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub id: NodeId,
    pub settings: NodeSettings,
    /// The node that spawned it.
    pub parent: Option<NodeId>,
    /// How many spawns lie between it and a node that a person made.
    pub depth: u32,
    pub created_at: Timestamp,
    pub status: NodeStatus,
    /// Since when it has this status.
    pub status_since: Timestamp,
    /// Why it is blocked, while it is.
    pub block: Option<BlockReason>,
    pub summary: String,
    pub last_activity_at: Timestamp,
    pub session: Session,
    /// Fixed at the first turn.
    pub workspace: Option<Workspace>,
    pub inbox: Inbox,
    /// Whether a person stopped a turn before its program had seen the inputs. They wait until
    /// something new arrives.
    pub inputs_held: bool,
    /// When an idle node was first woken by an envelope that nothing consumed yet.
    pub woken_at: Option<Timestamp>,
    pub turn: Option<OpenTurn>,
    pub last_turn: Option<EndedTurn>,
    /// Whether its last turn was stopped by a pause, so that it gets a note to continue.
    pub continue_note_due: bool,
    /// The inputs of the turns that the agent was asked to continue. Its session remembers them. A
    /// turn that continues in another session reads them again.
    pub unfinished: Vec<Input>,
    /// What the turns did that read the inputs of the last one, as far as another turn may do it again.
    pub made_calls: CallMemory,
    /// The questions of interrupted turns, which the next completed turn answers.
    pub owed: Vec<Envelope>,
    /// No turn starts before this time.
    pub retry_at: Option<Timestamp>,
    /// How many turns in a row failed before a tool ran.
    pub failed_attempts: u32,
    /// How many turns in a row its provider stopped, because it takes no more for a while.
    pub rate_limits: u32,
    /// Its questions that have no reply yet.
    pub unanswered: BTreeSet<EnvelopeId>,
    /// Those of them that it sent since its last turn began. With `wakeOn: all` it waits for them.
    pub awaited_replies: BTreeSet<EnvelopeId>,
    /// The approvals that its open turn waits for. Questions are not among them: they do not block.
    pub open_approvals: BTreeSet<ApprovalId>,
    pub stalls: StallHistory,
    pub usage: Usage,
    /// Since when most of its budget is used.
    pub budget_low_since: Option<Timestamp>,
}

impl Node {
    /// Makes a node that has done nothing yet.
    pub fn new(new: NewNode, now: Timestamp) -> Self {
        Self {
            id: new.id,
            settings: new.settings,
            parent: new.parent,
            depth: new.depth,
            created_at: now,
            status: NodeStatus::Idle,
            status_since: now,
            block: None,
            summary: String::new(),
            last_activity_at: now,
            session: Session::default(),
            workspace: None,
            inbox: Inbox::default(),
            inputs_held: false,
            woken_at: None,
            turn: None,
            last_turn: None,
            continue_note_due: false,
            unfinished: Vec::new(),
            made_calls: CallMemory::default(),
            owed: Vec::new(),
            retry_at: None,
            failed_attempts: 0,
            rate_limits: 0,
            unanswered: BTreeSet::new(),
            awaited_replies: BTreeSet::new(),
            open_approvals: BTreeSet::new(),
            stalls: StallHistory::default(),
            usage: Usage::default(),
            budget_low_since: None,
        }
    }

    /// Whether it leads the run.
    pub fn is_orchestrator(&self) -> bool {
        self.settings.role.eq_ignore_ascii_case(ORCHESTRATOR)
    }

    /// The permissions that hold for it. A node that does not lead always needs approval to spawn,
    /// whatever its settings say, so a child must not inherit more than that.
    pub fn effective_permissions(&self) -> Permissions {
        let own = self.settings.permissions;
        Permissions {
            spawn_requires_approval: own.spawn_requires_approval || !self.is_orchestrator(),
            ..own
        }
    }

    /// How much of its budget is used.
    pub fn budget_level(&self) -> BudgetLevel {
        let budget = self.settings.budget.unwrap_or_default();
        budget.level(&self.usage)
    }

    /// The name for people: its alias, else its label.
    pub fn name(&self) -> &str {
        self.settings
            .alias
            .as_deref()
            .unwrap_or(&self.settings.label)
    }

    /// The program behind it: the kind, or the configured name of a custom one.
    pub fn program(&self) -> &str {
        match &self.settings.provider_name {
            Some(name) if self.settings.provider == Provider::Custom => name,
            _ => self.settings.provider.word(),
        }
    }
}

/// The part of a node that is fixed when it is made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNode {
    pub id: NodeId,
    pub settings: NodeSettings,
    pub parent: Option<NodeId>,
    pub depth: u32,
}
