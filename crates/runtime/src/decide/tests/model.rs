//! A model of a run that reads only the events of its log, and checks each by the tables of legal
//! moves.
//!
//! It shares no code with the state that [`Run::apply`] makes, so both must be wrong in the same way
//! to hide a fault.

use super::legal_moves::{NODE_EVENTS, PHASES, STATUS_EVENTS, TURN_STEPS, cell, check_allowed};
use super::*;
use crate::approval::{Approval, ApprovalSubject, RuleMatcher};
use crate::ids::{EdgeId, RuleId, VerificationId};
use crate::node::BlockReason;

/// What the log says about a run.
#[derive(Debug)]
pub(super) struct Model {
    /// The word of the status, `new` before the first.
    pub(super) status: &'static str,
    pub(super) phase: &'static str,
    /// The verification of the run that is under way.
    pub(super) verification: Option<VerificationId>,
    pub(super) held: BTreeSet<EnvelopeId>,
    /// In the order of their creation.
    pub(super) nodes: Vec<ModelNode>,
    pub(super) edges: Vec<(EdgeId, NodeId, NodeId)>,
    /// The open approvals with the columns of their answers, and the resolutions of the others.
    pub(super) open_approvals: BTreeMap<ApprovalId, &'static str>,
    pub(super) resolutions: BTreeMap<ApprovalId, Resolution>,
    /// The rules with the commands that they allow.
    pub(super) rules: BTreeMap<RuleId, String>,
    /// Everything that there ever was, so that commands can name what is gone.
    pub(super) known_nodes: Vec<NodeId>,
    pub(super) known_edges: Vec<EdgeId>,
    pub(super) known_approvals: Vec<ApprovalId>,
    pub(super) known_checks: Vec<VerificationTarget>,
    read: usize,
}

/// What the log says about a node.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own that the log states"
)]
#[derive(Debug)]
pub(super) struct ModelNode {
    pub(super) id: NodeId,
    pub(super) name: String,
    pub(super) leads: bool,
    pub(super) takes_other_args: bool,
    pub(super) may_spawn: bool,
    status: NodeStatus,
    pub(super) turn: Option<ModelTurn>,
    /// The turn that ended last.
    pub(super) last_turn: Option<AgentTurnId>,
    /// The waiting inputs. The value says whether a person wrote it.
    inbox: BTreeMap<InputId, bool>,
    /// The inputs of the last turn that were not put back.
    consumed: BTreeMap<InputId, bool>,
    pub(super) has_failed: bool,
    pub(super) holds_inputs: bool,
    /// The turn whose forbidden files a person must decide about.
    pub(super) violation: Option<AgentTurnId>,
}

/// What the log says about an open turn.
#[derive(Debug)]
pub(super) struct ModelTurn {
    pub(super) id: AgentTurnId,
    step: &'static str,
    is_sent: bool,
    is_stopping: bool,
}

impl ModelTurn {
    /// The column of the commands about its node.
    pub(super) fn stage(&self) -> &'static str {
        match (self.is_stopping, self.is_sent) {
            (false, false) => "preparing",
            (false, true) => "working",
            (true, false) => "unsent",
            (true, true) => "stopping",
        }
    }
}

impl ModelNode {
    /// Whether a message of a person waits that the person has not stopped.
    pub(super) fn has_waiting_chat(&self) -> bool {
        !self.holds_inputs && self.inbox.values().any(|is_chat| *is_chat)
    }
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            status: "new",
            phase: "BOOT",
            verification: None,
            held: BTreeSet::new(),
            nodes: Vec::new(),
            edges: Vec::new(),
            open_approvals: BTreeMap::new(),
            resolutions: BTreeMap::new(),
            rules: BTreeMap::new(),
            known_nodes: Vec::new(),
            known_edges: Vec::new(),
            known_approvals: Vec::new(),
            known_checks: Vec::new(),
            read: 0,
        }
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&ModelNode> {
        self.nodes.iter().find(|node| node.id == id)
    }

    fn node_mut(&mut self, id: NodeId) -> Option<&mut ModelNode> {
        self.nodes.iter_mut().find(|node| node.id == id)
    }

    /// Whether an edge carries envelopes from one node to another. All edges of these tests lead in
    /// both directions.
    pub(super) fn is_connected(&self, a: NodeId, b: NodeId) -> bool {
        let mut edges = self.edges.iter();
        edges.any(|(_, from, to)| (*from, *to) == (a, b) || (*from, *to) == (b, a))
    }

    /// Reads the events that were added to a log, and panics at the first that is no legal move.
    pub(super) fn follow(&mut self, log: &[Event]) {
        let new = log.get(self.read..).unwrap_or_default();
        self.read = log.len();
        for event in new {
            self.add(event);
        }
    }

    fn add(&mut self, event: &Event) {
        match &event.fact {
            Fact::RunStatusChanged { status, .. } => self.change_status(*status),
            Fact::PhaseChanged(phase) => self.change_phase(phase.word()),
            Fact::VerificationStarted { verification, .. } => {
                self.change_phase("VERIFY");
                self.verification = Some(*verification);
                self.known_checks
                    .push(VerificationTarget::Run(*verification));
            }
            Fact::VerificationFailed { .. } => self.change_phase("EXECUTE"),
            Fact::NodeAdded(new) => self.add_node(new.id, &new.settings),
            Fact::NodeDeleted { .. } => self.nodes.retain(|node| Some(node.id) != event.node),
            Fact::EdgeCreated(edge) => {
                self.edges.push((edge.id, edge.from, edge.to));
                self.known_edges.push(edge.id);
            }
            Fact::EdgeDeleted(id) => self.edges.retain(|(edge, ..)| edge != id),
            Fact::EnvelopeHeld { envelope, .. } => {
                self.held.insert(envelope.id);
                self.known_checks
                    .push(VerificationTarget::Gate(envelope.id));
            }
            Fact::EnvelopeRefused { envelope, .. } => drop(self.held.remove(envelope)),
            Fact::EnvelopeSent(envelope) => {
                self.held.remove(&envelope.id);
                self.receive(envelope.to, InputId::Envelope(envelope.id), false);
            }
            Fact::MessageSent(message) => {
                let is_chat = message.role == MessageRole::User;
                self.receive(message.node, InputId::Message(message.id), is_chat);
            }
            Fact::ApprovalRequested(approval) => self.open_approval(approval),
            Fact::ApprovalResolved {
                approval,
                resolution,
            } => {
                let open = self.open_approvals.remove(approval);
                assert!(open.is_some(), "an open approval is resolved, and once");
                self.resolutions.insert(*approval, resolution.clone());
            }
            Fact::RuleAdded(rule) => {
                let RuleMatcher::CommandPrefix(command) = &rule.matcher else {
                    panic!("a rule for something else than a command: {rule:?}");
                };
                self.rules.insert(rule.id, command.clone());
            }
            Fact::RuleDeleted(id) => drop(self.rules.remove(id)),
            Fact::TurnStepped(step) => {
                let node = self.node_mut(event.node.unwrap()).unwrap();
                node.step(event.turn.unwrap(), step);
            }
            Fact::NodeChanged { change, shown } => {
                let node = self.node_mut(event.node.unwrap()).unwrap();
                node.change(change);
                assert_eq!(node.status, shown.status, "{change:?}");
                assert_eq!(node.inbox.len() as u64, shown.inbox_count, "{change:?}");
            }
            _ => {}
        }
    }

    fn change_status(&mut self, to: RunStatus) {
        check_allowed(STATUS_EVENTS, self.status, to.word());
        self.status = to.word();
        if to == RunStatus::Running {
            for node in &mut self.nodes {
                node.holds_inputs = false;
            }
        }
    }

    fn change_phase(&mut self, to: &'static str) {
        check_allowed(PHASES, self.phase, to);
        self.phase = to;
        self.verification = None;
    }

    fn add_node(&mut self, id: NodeId, settings: &NodeSettings) {
        assert!(!self.known_nodes.contains(&id), "a node is added once");
        self.known_nodes.push(id);
        self.nodes.push(ModelNode {
            id,
            name: settings.alias.clone().unwrap(),
            leads: settings.role == "orchestrator",
            takes_other_args: settings.provider == Provider::Claude,
            may_spawn: settings.capabilities.spawn_nodes,
            status: NodeStatus::Idle,
            turn: None,
            last_turn: None,
            inbox: BTreeMap::new(),
            consumed: BTreeMap::new(),
            has_failed: false,
            holds_inputs: false,
            violation: None,
        });
    }

    fn receive(&mut self, to: NodeId, input: InputId, is_chat: bool) {
        let node = self.node_mut(to).unwrap();
        node.inbox.insert(input, is_chat);
        node.holds_inputs = false;
    }

    fn open_approval(&mut self, approval: &Approval) {
        let node = self.node(approval.node).unwrap();
        let has_command = approval.tool.args.get("cmd").is_some();
        let column = match &approval.subject {
            ApprovalSubject::Question { .. } => "question",
            ApprovalSubject::OrchestrationTool(_) => "graph-call",
            ApprovalSubject::ProviderTool { .. } if !has_command => "other-call",
            ApprovalSubject::ProviderTool { .. } if node.takes_other_args => "command",
            ApprovalSubject::ProviderTool { .. } => "fixed-command",
        };
        assert!(!self.known_approvals.contains(&approval.id));
        self.known_approvals.push(approval.id);
        self.open_approvals.insert(approval.id, column);
    }
}

impl ModelNode {
    fn step(&mut self, turn: AgentTurnId, step: &TurnStep) {
        let before = self.turn.as_ref().map_or("none", |open| open.step);
        check_allowed(TURN_STEPS, before, step.word());
        if let Some(open) = &mut self.turn {
            assert_eq!(open.id, turn, "a step belongs to the open turn");
            open.step = step.word();
        }
        match step {
            TurnStep::Started { consumed, .. } => self.start_turn(turn, consumed),
            TurnStep::WaitingForModel { .. } => self.turn.as_mut().unwrap().is_sent = true,
            TurnStep::ToolPending | TurnStep::AwaitingApproval => {}
            TurnStep::Completed { .. } => self.end_turn(&[], false),
            TurnStep::Failed { requeued, .. } => self.end_turn(requeued, true),
            TurnStep::Interrupted {
                requeued, holds, ..
            } => {
                self.end_turn(requeued, false);
                self.holds_inputs = *holds;
            }
        }
    }

    fn start_turn(&mut self, id: AgentTurnId, consumed: &[InputId]) {
        assert_ne!(
            self.status,
            NodeStatus::Blocked,
            "a blocked node starts nothing"
        );
        self.consumed = BTreeMap::new();
        for input in consumed {
            let is_chat = self.inbox.remove(input);
            self.consumed
                .insert(*input, is_chat.expect("it is consumed once"));
        }
        self.holds_inputs = false;
        self.turn = Some(ModelTurn {
            id,
            step: "turn.started",
            is_sent: false,
            is_stopping: false,
        });
    }

    fn end_turn(&mut self, requeued: &[InputId], has_failed: bool) {
        for input in requeued {
            let is_chat = self.consumed.remove(input);
            self.inbox
                .insert(*input, is_chat.expect("it is put back once"));
        }
        self.last_turn = self.turn.take().map(|open| open.id);
        self.has_failed = has_failed;
    }

    fn change(&mut self, change: &NodeChange) {
        let row = match change {
            NodeChange::TurnOpened => "turn-opened",
            NodeChange::Blocked { reason, .. } => {
                if let BlockReason::Violation { turn, .. } = reason {
                    self.violation = Some(*turn);
                }
                "blocked"
            }
            NodeChange::Unblocked => {
                self.violation = None;
                "unblocked"
            }
            NodeChange::Rested { status, .. } => {
                self.violation = None;
                match status {
                    NodeStatus::Failed => "rested-failed",
                    _ => "rested-idle",
                }
            }
            NodeChange::Parked { .. } => "parked",
            NodeChange::Interrupting { .. } => {
                self.turn.as_mut().unwrap().is_stopping = true;
                return;
            }
            NodeChange::InboxCleared => return self.inbox.clear(),
            NodeChange::Retried => {
                if std::mem::take(&mut self.has_failed) {
                    self.inbox.append(&mut self.consumed);
                }
                self.holds_inputs = false;
                return;
            }
            _ => return,
        };
        self.status = match cell(NODE_EVENTS, row, self.status.word()) {
            "free" if self.turn.is_some() => NodeStatus::Running,
            "free" => NodeStatus::Idle,
            "-" => panic!("{row} of a node that is {}", self.status),
            status => status.parse().unwrap(),
        };
    }
}
