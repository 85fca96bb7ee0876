//! The part of a run that decisions read: its nodes, edges, open approvals and rules.
//!
//! Nodes and approvals are shared behind `Arc`, so that a copy costs one count for each of them; a
//! change copies only the node that it is about. This file applies what concerns more than one node;
//! `node_events` applies what concerns a single one.

mod node_events;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use turnkeep_types::Timestamp;

use crate::approval::{Approval, Rule};
use crate::artifact::Artifact;
use crate::edge::Edge;
use crate::fact::{Event, Fact, NodeChange, TurnStep};
use crate::ids::{ApprovalId, EdgeId, EnvelopeId, NodeId, RunId, ToolId, VerificationId};
use crate::input::{Envelope, Input, InputId, Message};
use crate::node::Node;
use crate::run::{RunLimits, RunSettings};
use crate::stall::{StallHistory, sign_call};
use crate::tool::{OpenTool, ToolCall, ToolOutcome};
use crate::turn::OpenTurn;
use crate::usage::{Budget, BudgetLevel, Usage, UsageReport};
use crate::verification::{CallPlace, HeldEnvelope, Verification};
use crate::words::{
    ArtifactKind, Expectation, GlobalMode, MessageRole, Mode, PausedReason, Phase, RunStatus,
};

/// The part of a run that decisions read.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveRun {
    pub id: RunId,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The number of the last event.
    pub last_seq: u64,
    pub settings: Arc<RunSettings>,
    pub status: RunStatus,
    /// Since when it has this status.
    pub status_since: Timestamp,
    pub paused_reason: Option<PausedReason>,
    /// Whether a person has seen how the run ended. A run that goes on may end again.
    pub is_end_seen: bool,
    pub phase: Phase,
    /// The verification of the run that is under way.
    pub verification: Option<Verification>,
    /// Envelopes that wait for the verification of their sender's work.
    pub gates: BTreeMap<EnvelopeId, Arc<HeldEnvelope>>,
    pub mode: Mode,
    pub global_mode: GlobalMode,
    /// In the order of their creation.
    nodes: Vec<Arc<Node>>,
    /// Since when it has no node, while it has none.
    pub empty_since: Timestamp,
    pub edges: BTreeMap<EdgeId, Edge>,
    pub approvals: BTreeMap<ApprovalId, Arc<Approval>>,
    pub rules: Vec<Rule>,
    pub usage: Usage,
    /// Since when most of its budget is used.
    pub budget_low_since: Option<Timestamp>,
    pub is_deleted: bool,
}

impl LiveRun {
    /// Makes the state before the first event.
    pub fn new(id: RunId) -> Self {
        let settings = RunSettings {
            title: String::new(),
            goal: None,
            cwd: None,
            mode: Mode::Interactive,
            global_mode: GlobalMode::Implementation,
            world: None,
            verify: Vec::new(),
            setup: Vec::new(),
            docs_node: None,
            budget: Budget::default(),
            limits: RunLimits::default(),
        };
        Self {
            id,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
            last_seq: 0,
            status: RunStatus::Queued,
            status_since: Timestamp(0),
            paused_reason: None,
            is_end_seen: false,
            phase: Phase::Boot,
            verification: None,
            gates: BTreeMap::new(),
            mode: settings.mode,
            global_mode: settings.global_mode,
            settings: Arc::new(settings),
            nodes: Vec::new(),
            empty_since: Timestamp(0),
            edges: BTreeMap::new(),
            approvals: BTreeMap::new(),
            rules: Vec::new(),
            usage: Usage::default(),
            budget_low_since: None,
            is_deleted: false,
        }
    }

    /// Whether a reply to this question waits at a gate.
    pub fn holds_reply_to(&self, question: EnvelopeId) -> bool {
        let mut held = self.gates.values();
        held.any(|held| held.envelope.reply_to == Some(question))
    }

    /// Whether a reply of one node to another waits at a gate.
    pub fn holds_reply(&self, from: NodeId, to: NodeId) -> bool {
        let mut held = self.gates.values().map(|held| &held.envelope);
        held.any(|held| held.from == from && held.to == to && held.reply_to.is_some())
    }

    /// Whether it is completed or has failed.
    pub fn has_ended(&self) -> bool {
        matches!(self.status, RunStatus::Completed | RunStatus::Failed)
    }

    /// How much of the run's budget is used.
    pub fn budget_level(&self) -> BudgetLevel {
        self.settings.budget.level(&self.usage)
    }

    /// The nodes in the order of their creation.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.nodes.iter().map(AsRef::as_ref)
    }

    /// The node of this id.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes().find(|node| node.id == id)
    }

    fn node_mut(&mut self, id: Option<NodeId>) -> Option<&mut Node> {
        // A run has a few dozen nodes, so a linear search is faster than a map.
        let found = self.nodes.iter_mut().find(|node| Some(node.id) == id)?;
        Some(Arc::make_mut(found))
    }

    /// The open turn of a node, if it is this one.
    fn turn_mut(&mut self, event: &Event) -> Option<&mut OpenTurn> {
        let turn = self.node_mut(event.node)?.turn.as_mut()?;
        // A late event of an ended turn must not change the next one.
        (Some(turn.id) == event.turn).then_some(turn)
    }

    /// Applies one event.
    pub fn apply(&mut self, event: &Event) {
        self.last_seq = event.seq;
        self.updated_at = event.at;
        match &event.fact {
            Fact::RunCreated(settings) => self.create(event.at, settings),
            Fact::RunConfigured(settings) => self.configure(event.at, settings),
            Fact::RunStatusChanged {
                status,
                paused_reason,
            } => self.change_status(event.at, *status, *paused_reason),
            Fact::EndSeen => self.is_end_seen = true,
            Fact::PhaseChanged(phase) => self.change_phase(*phase),
            Fact::CompletionClaimed { summary, .. } => self.claim(event, summary),
            Fact::VerificationStarted { verification, tool } => {
                self.start_verification(event, *verification, *tool);
            }
            Fact::VerificationFailed { signature } => self.fail_verification(event, signature),
            Fact::ModesChanged { mode, global_mode } => {
                self.mode = *mode;
                self.global_mode = *global_mode;
            }
            Fact::RunDeleted => self.is_deleted = true,
            Fact::RuleAdded(rule) => self.rules.push(rule.clone()),
            Fact::RuleDeleted(rule) => self.rules.retain(|known| known.id != *rule),
            Fact::NodeAdded(new) => self
                .nodes
                .push(Arc::new(Node::new((**new).clone(), event.at))),
            Fact::NodeChanged { change, .. } => self.change_node(event, change),
            Fact::NodeProgressed { summary, .. } => self.set_summary(event, summary),
            Fact::SilenceNoticed => self.note_silence(event),
            Fact::NodeDeleted { .. } => self.delete_node(event),
            Fact::EdgeCreated(edge) | Fact::EdgeChanged(edge) => {
                drop(self.edges.insert(edge.id, edge.clone()));
            }
            Fact::EdgeDeleted(edge) => drop(self.edges.remove(edge)),
            Fact::EnvelopeSent(envelope) => self.send_envelope(event, envelope),
            Fact::EnvelopeHeld { envelope, tool } => self.hold_envelope(event, envelope, *tool),
            Fact::EnvelopeRefused { envelope, .. } => self.refuse_envelope(event, *envelope),
            Fact::MessageSent(message) => self.send_message(message),
            Fact::AnswerDelta(text) => self.add_text(event, text),
            Fact::AnswerFinal { content, .. } => self.finish_text(event, content),
            Fact::ThinkingDelta(_) | Fact::ThinkingFinal(_) => self.note_output(event),
            Fact::ToolProposed(call) => self.propose_tool(event, call),
            Fact::ToolStarted(call) => self.start_tool(event, call.id),
            Fact::ToolCompleted { tool, outcome } => self.complete_tool(event, *tool, outcome),
            Fact::ApprovalRequested(approval) => self.open_approval(approval),
            Fact::ApprovalResolved { approval, .. } => self.close_approval(event, *approval),
            Fact::ArtifactCreated(artifact) => self.note_artifact(event, artifact),
            Fact::TurnStepped(step) => self.step_turn(event, step),
            Fact::UsageReported(report) => self.add_usage(event, report),
            // These are for clients and for the archive.
            Fact::Stalled(_) | Fact::NodeLogged(_) | Fact::RequestNoted => {}
        }
    }

    fn create(&mut self, at: Timestamp, settings: &RunSettings) {
        self.created_at = at;
        self.status_since = at;
        self.empty_since = at;
        self.mode = settings.mode;
        self.global_mode = settings.global_mode;
        self.settings = Arc::new(settings.clone());
    }

    fn configure(&mut self, at: Timestamp, settings: &RunSettings) {
        self.settings = Arc::new(settings.clone());
        // A raised budget may be fine again.
        self.budget_low_since = low_since(self.budget_level(), self.budget_low_since, at);
    }

    fn change_status(
        &mut self,
        at: Timestamp,
        status: RunStatus,
        paused_reason: Option<PausedReason>,
    ) {
        let ends_stall = self.paused_reason == Some(PausedReason::Stall);
        if status == RunStatus::Running {
            for node in &mut self.nodes {
                // A person lets the run go on, so inputs that a person stopped may start again.
                if node.inputs_held {
                    Arc::make_mut(node).inputs_held = false;
                }
                // Going on after a stall gives every node a new start.
                if ends_stall {
                    Arc::make_mut(node).stalls = StallHistory::default();
                }
            }
        }
        self.status = status;
        self.status_since = at;
        self.paused_reason = paused_reason;
        self.is_end_seen = false;
    }

    fn change_phase(&mut self, phase: Phase) {
        self.phase = phase;
        // A verification is the phase VERIFY, so it ends with it.
        if phase != Phase::Verify {
            self.verification = None;
        }
    }

    fn claim(&mut self, event: &Event, summary: &str) {
        self.set_summary(event, summary);
        if let Some(turn) = self.turn_mut(event) {
            turn.progress.claimed_completion = true;
        }
    }

    fn start_verification(&mut self, event: &Event, id: VerificationId, tool: Option<ToolId>) {
        self.phase = Phase::Verify;
        self.verification = Some(Verification {
            id,
            since: event.at,
            claim: call_place(event, tool),
        });
    }

    fn fail_verification(&mut self, event: &Event, signature: &str) {
        self.phase = Phase::Execute;
        let claim = self.verification.take().and_then(|ended| ended.claim);
        let turn = claim.map(|claim| claim.turn);
        if let Some(node) = self.node_mut(event.node) {
            node.stalls.add_verification_failure(signature, turn);
        }
    }

    fn delete_node(&mut self, event: &Event) {
        self.nodes.retain(|node| Some(node.id) != event.node);
        if self.nodes.is_empty() {
            self.empty_since = event.at;
        }
    }

    fn change_node(&mut self, event: &Event, change: &NodeChange) {
        if let Some(node) = self.node_mut(event.node) {
            node_events::change_node(node, event.at, change);
        }
    }

    fn step_turn(&mut self, event: &Event, step: &TurnStep) {
        self.settle_questions_of_turn(event, step);
        // A question whose reply waits at a gate stays owed: the gate may refuse the reply.
        let held = self.gates.values().map(|held| &held.envelope);
        let held = held.filter(|held| Some(held.from) == event.node && held.reply_to.is_some());
        let held_to: BTreeSet<NodeId> = held.map(|held| held.to).collect();
        if let (Some(node), Some(turn)) = (self.node_mut(event.node), event.turn) {
            node_events::step_turn(node, event.at, turn, step, &held_to);
        }
    }

    /// An envelope to a node answers all of its questions that the turn has read. They are settled at
    /// the end of the turn: until then the agent may answer each of them by itself.
    fn settle_questions_of_turn(&mut self, event: &Event, step: &TurnStep) {
        let requeued: &[InputId] = match step {
            TurnStep::Completed { .. } => &[],
            TurnStep::Interrupted { requeued, .. } | TurnStep::Failed { requeued, .. } => requeued,
            _ => return,
        };
        let node = event.node.and_then(|id| self.node(id));
        let Some((node, open)) = node.and_then(|node| Some((node, node.turn.as_ref()?))) else {
            return;
        };
        let read = open.consumed.iter().filter_map(Input::as_envelope);
        let is_answered = |question: &&Envelope| {
            // A question that a later turn reads again is answered then.
            let is_requeued = requeued.contains(&InputId::Envelope(question.id));
            open.sent_to.contains(&question.from) && !is_requeued
        };
        let answered = read.chain(&node.owed).filter(is_answered);
        let answered: Vec<AskedQuestion> = answered.map(AskedQuestion::of).collect();
        self.settle(&answered);
    }

    fn settle(&mut self, answered: &[AskedQuestion]) {
        for question in answered {
            if let Some(asker) = self.node_mut(Some(question.asker)) {
                asker.unanswered.remove(&question.id);
                asker.awaited_replies.remove(&question.id);
            }
        }
    }

    fn hold_envelope(&mut self, event: &Event, envelope: &Envelope, tool: Option<ToolId>) {
        let held = HeldEnvelope {
            envelope: envelope.clone(),
            since: event.at,
            turn: event.turn,
            call: call_place(event, tool),
        };
        self.gates.insert(envelope.id, Arc::new(held));
        if let Some(sender) = self.node_mut(Some(envelope.from)) {
            node_events::note_sent(sender, event.turn, envelope);
            if let Some(tool) = tool {
                sender.made_calls.note_held(tool, envelope.id);
            }
        }
    }

    fn refuse_envelope(&mut self, event: &Event, envelope: EnvelopeId) {
        self.gates.remove(&envelope);
        if let Some(sender) = self.node_mut(event.node) {
            sender.made_calls.note_refused(envelope);
        }
    }

    fn set_summary(&mut self, event: &Event, summary: &str) {
        if let Some(node) = self.node_mut(event.node) {
            summary.clone_into(&mut node.summary);
            node.last_activity_at = event.at;
        }
    }

    fn send_envelope(&mut self, event: &Event, envelope: &Envelope) {
        let was_held = self.gates.remove(&envelope.id).is_some();
        if was_held {
            self.settle_owed_questions(event, envelope);
        }
        // A reply settles the question of the other node. A question counts for its sender.
        if let Some(sender) = self.node_mut(Some(envelope.from)) {
            if !was_held {
                node_events::note_sent(sender, event.turn, envelope);
            }
            if envelope.expectation == Expectation::Required {
                sender.unanswered.insert(envelope.id);
                sender.awaited_replies.insert(envelope.id);
            }
            if let Some(turn) = sender.turn.as_mut().filter(|_| !envelope.is_note()) {
                turn.progress.sent_envelope = true;
                if Some(turn.id) == event.turn {
                    turn.sent_to.insert(envelope.to);
                }
            }
        }
        if let Some(receiver) = self.node_mut(Some(envelope.to)) {
            if let Some(answered) = envelope.reply_to {
                receiver.unanswered.remove(&answered);
                receiver.awaited_replies.remove(&answered);
            }
            receiver.inputs_held = false;
            // The first envelope sets the time: later ones must not put the turn off again and again.
            receiver.woken_at.get_or_insert(envelope.created_at);
            receiver
                .inbox
                .push(Input::Envelope(Box::new(envelope.clone())));
        }
    }

    /// A reply that passed its gate behind the end of its turn answers what that turn has read.
    fn settle_owed_questions(&mut self, event: &Event, reply: &Envelope) {
        let Some(sender) = self.node(reply.from) else {
            return;
        };
        let is_open = sender.turn.as_ref().map(|turn| turn.id) == event.turn;
        let owed = sender.owed.iter();
        let answered = owed.filter(|owed| owed.from == reply.to && reply.reply_to.is_some());
        let answered: Vec<AskedQuestion> = answered.map(AskedQuestion::of).collect();
        if !is_open {
            self.settle(&answered);
        }
    }

    fn send_message(&mut self, message: &Message) {
        if let Some(node) = self.node_mut(Some(message.node)) {
            // A person's message is new guidance, so earlier repetitions do not count.
            if message.role == MessageRole::User {
                node.stalls = StallHistory::default();
            }
            // Once is enough, also if the run is paused again before a turn reads it.
            if message.asks_to_continue() {
                node.continue_note_due = false;
                node_events::keep_unfinished(node);
            }
            node.inputs_held = false;
            node.inbox.push(Input::Message(message.clone()));
        }
    }

    /// Notes whether an artifact is progress. The server makes prompts, diffs and logs for any turn;
    /// all other kinds are the agent's own work.
    fn note_artifact(&mut self, event: &Event, artifact: &Artifact) {
        let Some(turn) = self.turn_mut(event) else {
            return;
        };
        match artifact.kind {
            ArtifactKind::Diff => turn.diff = Some(artifact.content),
            ArtifactKind::Prompt | ArtifactKind::Log => {}
            _ => turn.progress.made_artifact = true,
        }
    }

    fn note_silence(&mut self, event: &Event) {
        if let Some(turn) = self.turn_mut(event) {
            turn.silence_warned_at = Some(event.at);
        }
    }

    fn note_output(&mut self, event: &Event) {
        if let Some(turn) = self.turn_mut(event) {
            turn.last_output_at = event.at;
            turn.has_output = true;
        }
    }

    fn add_text(&mut self, event: &Event, text: &str) {
        self.note_output(event);
        if let Some(turn) = self.turn_mut(event) {
            turn.add_text(text);
        }
    }

    fn finish_text(&mut self, event: &Event, content: &str) {
        self.note_output(event);
        if let Some(turn) = self.turn_mut(event) {
            turn.unfinished_text.clear();
            turn.final_text = Some(content.to_owned());
        }
    }

    fn propose_tool(&mut self, event: &Event, call: &ToolCall) {
        self.note_output(event);
        if let Some(turn) = self.turn_mut(event) {
            let open = OpenTool {
                call: call.clone(),
                proposed_at: event.at,
                started_at: None,
            };
            turn.open_tools.insert(call.id, open);
            turn.tools_signature = Some(sign_call(turn.tools_signature, call));
            if let Some(node) = self.node_mut(event.node) {
                node.made_calls.note_call(call);
            }
        }
    }

    fn start_tool(&mut self, event: &Event, tool: ToolId) {
        if let Some(turn) = self.turn_mut(event) {
            turn.progress.ran_tool = true;
            if let Some(open) = turn.open_tools.get_mut(&tool) {
                open.started_at = Some(event.at);
            }
        }
    }

    fn complete_tool(&mut self, event: &Event, tool: ToolId, outcome: &ToolOutcome) {
        self.note_output(event);
        if let Some(turn) = self.turn_mut(event) {
            let open = turn.open_tools.remove(&tool);
            if let Some(done) = open.filter(|_| outcome.ok) {
                turn.note_written(&done.call);
            }
        }
        if let Some(node) = self.node_mut(event.node) {
            node.made_calls.note_result(tool, outcome);
        }
    }

    fn open_approval(&mut self, approval: &Approval) {
        self.approvals
            .insert(approval.id, Arc::new(approval.clone()));
        if let Some(node) = self.node_mut(Some(approval.node)) {
            if approval.blocks_node() {
                node.open_approvals.insert(approval.id);
            } else if let Some(turn) = &mut node.turn {
                turn.progress.asked_user = true;
            }
        }
    }

    fn close_approval(&mut self, event: &Event, id: ApprovalId) {
        let node = self.approvals.remove(&id).map(|approval| approval.node);
        if let Some(node) = self.node_mut(node) {
            node.open_approvals.remove(&id);
        }
        // The program was silent because it waited; its silence begins now.
        if let Some(turn) = self.turn_mut(event) {
            turn.last_output_at = event.at;
        }
    }

    fn add_usage(&mut self, event: &Event, report: &UsageReport) {
        self.usage.add(&report.usage);
        self.budget_low_since = low_since(self.budget_level(), self.budget_low_since, event.at);
        if let Some(node) = self.node_mut(event.node) {
            node.usage.add(&report.usage);
            let level = node.budget_level();
            node.budget_low_since = low_since(level, node.budget_low_since, event.at);
        }
    }
}

/// A question that an envelope answered.
struct AskedQuestion {
    asker: NodeId,
    id: EnvelopeId,
}

impl AskedQuestion {
    fn of(question: &Envelope) -> Self {
        Self {
            asker: question.from,
            id: question.id,
        }
    }
}

/// The call that an event is about.
fn call_place(event: &Event, tool: Option<ToolId>) -> Option<CallPlace> {
    Some(CallPlace {
        node: event.node?,
        turn: event.turn?,
        tool: tool?,
    })
}

/// Since when a budget is low: since it first was, until it is fine again.
fn low_since(level: BudgetLevel, known: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    match level {
        BudgetLevel::Fine => None,
        BudgetLevel::Low | BudgetLevel::UsedUp => known.or(Some(now)),
    }
}
