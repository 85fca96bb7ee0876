//! The part of a run that decisions read: its nodes, edges, open approvals and rules.
//!
//! Nodes and approvals are shared behind `Arc`, so that a copy costs one count for each of them; a
//! change copies only the node that it is about.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnkeep_types::Timestamp;

use crate::approval::{Approval, Rule};
use crate::edge::Edge;
use crate::fact::{Event, Fact, NodeChange, TurnStep};
use crate::ids::{AgentTurnId, ApprovalId, EdgeId, NodeId, RunId, ToolId};
use crate::input::{Envelope, Input, InputId, Message};
use crate::node::{BlockReason, Node, Session};
use crate::run::{RunLimits, RunSettings};
use crate::stall::StallHistory;
use crate::tool::{OpenTool, ToolCall};
use crate::turn::{EndedTurn, OpenTurn, TurnCause, TurnProgress, TurnStage};
use crate::usage::{Budget, Usage, UsageReport};
use crate::words::{
    ArtifactKind, Expectation, GlobalMode, MessageRole, Mode, NodeStatus, PausedReason, Phase,
    RunStatus,
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
    pub paused_reason: Option<PausedReason>,
    pub phase: Phase,
    /// The claim of completion that is being verified.
    pub claim: Option<Claim>,
    pub mode: Mode,
    pub global_mode: GlobalMode,
    /// In the order of their creation.
    nodes: Vec<Arc<Node>>,
    pub edges: BTreeMap<EdgeId, Edge>,
    pub approvals: BTreeMap<ApprovalId, Arc<Approval>>,
    pub rules: Vec<Rule>,
    pub usage: Usage,
    pub is_deleted: bool,
}

/// A claim that the run has reached its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub node: NodeId,
    pub turn: AgentTurnId,
    /// The call that waits for the verification.
    pub tool: ToolId,
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
            paused_reason: None,
            phase: Phase::Boot,
            claim: None,
            mode: settings.mode,
            global_mode: settings.global_mode,
            settings: Arc::new(settings),
            nodes: Vec::new(),
            edges: BTreeMap::new(),
            approvals: BTreeMap::new(),
            rules: Vec::new(),
            usage: Usage::default(),
            is_deleted: false,
        }
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
            Fact::RunConfigured(settings) => self.settings = Arc::new((**settings).clone()),
            Fact::RunStatusChanged {
                status,
                paused_reason,
            } => self.change_status(*status, *paused_reason),
            Fact::PhaseChanged(phase) => self.change_phase(*phase),
            Fact::CompletionClaimed { tool, summary } => self.claim(event, *tool, summary),
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
            Fact::NodeChanged(change) => self.change_node(event, change),
            Fact::NodeProgressed(summary) => self.set_summary(event, summary),
            Fact::SilenceNoticed => self.note_silence(event),
            Fact::NodeDeleted => self.nodes.retain(|node| Some(node.id) != event.node),
            Fact::EdgeCreated(edge) => drop(self.edges.insert(edge.id, edge.clone())),
            Fact::EdgeDeleted(edge) => drop(self.edges.remove(edge)),
            Fact::EnvelopeSent(envelope) => self.send_envelope(event, envelope),
            Fact::MessageSent(message) => self.send_message(message),
            Fact::AnswerDelta(text) => self.add_text(event, text),
            Fact::AnswerFinal { content, .. } => self.finish_text(event, content),
            Fact::ThinkingDelta(_) | Fact::ThinkingFinal(_) => self.note_output(event),
            Fact::ToolProposed(call) => self.propose_tool(event, call),
            Fact::ToolStarted(tool) => self.start_tool(event, *tool),
            Fact::ToolCompleted { tool, .. } => self.complete_tool(event, *tool),
            Fact::ApprovalRequested(approval) => self.open_approval(approval),
            Fact::ApprovalResolved { approval, .. } => self.close_approval(event.at, *approval),
            Fact::ArtifactCreated(artifact) => self.note_artifact(event, artifact.kind),
            Fact::TurnStepped(step) => self.step_turn(event, step),
            Fact::UsageReported(report) => self.add_usage(event, report),
            Fact::Stalled(_) | Fact::NodeLogged(_) => {}
        }
    }

    fn create(&mut self, at: Timestamp, settings: &RunSettings) {
        self.created_at = at;
        self.mode = settings.mode;
        self.global_mode = settings.global_mode;
        self.settings = Arc::new(settings.clone());
    }

    fn change_status(&mut self, status: RunStatus, paused_reason: Option<PausedReason>) {
        // Going on after a stall gives every node a new start.
        if status == RunStatus::Running && self.paused_reason == Some(PausedReason::Stall) {
            for node in &mut self.nodes {
                Arc::make_mut(node).stalls = StallHistory::default();
            }
        }
        self.status = status;
        self.paused_reason = paused_reason;
    }

    fn change_phase(&mut self, phase: Phase) {
        self.phase = phase;
        // A claim is open only while it is verified.
        if phase != Phase::Verify {
            self.claim = None;
        }
    }

    fn claim(&mut self, event: &Event, tool: ToolId, summary: &str) {
        self.set_summary(event, summary);
        if let Some(turn) = self.turn_mut(event) {
            turn.progress.claimed_completion = true;
        }
        if let (Some(node), Some(turn)) = (event.node, event.turn) {
            self.claim = Some(Claim { node, turn, tool });
        }
    }

    fn fail_verification(&mut self, event: &Event, signature: &str) {
        self.phase = Phase::Execute;
        let turn = self.claim.take().map(|claim| claim.turn);
        if let Some(node) = self.node_mut(event.node) {
            node.stalls.add_verification_failure(signature, turn);
        }
    }

    fn change_node(&mut self, event: &Event, change: &NodeChange) {
        let Some(node) = self.node_mut(event.node) else {
            return;
        };
        node.last_activity_at = event.at;
        match change {
            NodeChange::Configured(settings) => node.settings = (**settings).clone(),
            // The event exists for clients, which do not fold inboxes themselves.
            NodeChange::InboxCounted => {}
            NodeChange::InboxCleared => drop(node.inbox.remove_all()),
            NodeChange::Retried => retry(node),
            NodeChange::TurnOpened => node.status = NodeStatus::Running,
            NodeChange::Blocked { reason, summary } => {
                node.status = NodeStatus::Blocked;
                node.block = Some(reason.clone());
                node.summary.clone_from(summary);
            }
            NodeChange::Unblocked => unblock(node),
            NodeChange::Rested { status, summary } => {
                // Approvals may stay open behind a completed turn, but nothing waits for them.
                node.block = None;
                node.status = *status;
                node.summary.clone_from(summary);
            }
            NodeChange::Parked { retry_at, summary } => {
                // Not failed: nothing is wrong with the node, and a person need not act.
                node.status = NodeStatus::Idle;
                node.retry_at = Some(*retry_at);
                node.summary.clone_from(summary);
            }
            NodeChange::Interrupting { reason, continues } => {
                if let Some(turn) = &mut node.turn {
                    turn.stage = TurnStage::Interrupting {
                        since: event.at,
                        reason: reason.clone(),
                        continues: *continues,
                    };
                }
                node.summary.clone_from(reason);
            }
            NodeChange::SessionNamed(id) => {
                node.session.id = Some(id.clone());
                node.session.was_lost = false;
            }
            NodeChange::SessionDropped { lost } => {
                node.session = Session {
                    was_lost: *lost,
                    ..Session::default()
                };
                // The old session's repetitions say nothing about the new one.
                node.stalls = StallHistory::default();
                // The pause was the old provider's.
                node.retry_at = None;
            }
            NodeChange::WorkspaceFixed(workspace) => node.workspace = Some(workspace.clone()),
        }
    }

    fn set_summary(&mut self, event: &Event, summary: &str) {
        if let Some(node) = self.node_mut(event.node) {
            summary.clone_into(&mut node.summary);
            node.last_activity_at = event.at;
        }
    }

    fn send_envelope(&mut self, event: &Event, envelope: &Envelope) {
        // A reply settles the question of the other node. A question counts for its sender.
        if let Some(sender) = self.node_mut(Some(envelope.from)) {
            sender
                .stalls
                .add_envelope(envelope.to, &envelope.message, event.turn);
            if envelope.expectation == Expectation::Required {
                sender.unanswered.insert(envelope.id);
                sender.awaited_replies.insert(envelope.id);
            }
            if let Some(turn) = &mut sender.turn {
                turn.progress.sent_envelope = true;
            }
        }
        if let Some(receiver) = self.node_mut(Some(envelope.to)) {
            if let Some(answered) = envelope.reply_to {
                receiver.unanswered.remove(&answered);
                receiver.awaited_replies.remove(&answered);
            }
            // The first envelope sets the time: later ones must not put the turn off again and again.
            receiver.woken_at.get_or_insert(envelope.created_at);
            receiver
                .inbox
                .push(Input::Envelope(Box::new(envelope.clone())));
        }
    }

    fn send_message(&mut self, message: &Message) {
        if let Some(node) = self.node_mut(Some(message.node)) {
            // A person's message is new guidance, so earlier repetitions do not count.
            if message.role == MessageRole::User {
                node.stalls = StallHistory::default();
            }
            node.inbox.push(Input::Message(message.clone()));
        }
    }

    /// Every turn makes prompts and a diff; anything else is the agent's own work.
    fn note_artifact(&mut self, event: &Event, kind: ArtifactKind) {
        let is_own = !matches!(kind, ArtifactKind::Diff | ArtifactKind::Prompt);
        if let Some(turn) = self.turn_mut(event).filter(|_| is_own) {
            turn.progress.made_artifact = true;
        }
    }

    fn note_silence(&mut self, event: &Event) {
        if let Some(turn) = self.turn_mut(event) {
            turn.silence_warned = true;
        }
    }

    fn note_output(&mut self, event: &Event) {
        if let Some(turn) = self.turn_mut(event) {
            turn.last_output_at = event.at;
            // The next silence is warned about again.
            turn.silence_warned = false;
        }
    }

    fn add_text(&mut self, event: &Event, text: &str) {
        self.note_output(event);
        if let Some(turn) = self.turn_mut(event) {
            turn.unfinished_text.push_str(text);
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

    fn complete_tool(&mut self, event: &Event, tool: ToolId) {
        self.note_output(event);
        if let Some(turn) = self.turn_mut(event) {
            turn.open_tools.remove(&tool);
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

    fn close_approval(&mut self, at: Timestamp, id: ApprovalId) {
        let node = self.approvals.remove(&id).map(|approval| approval.node);
        if let Some(node) = self.node_mut(node) {
            node.open_approvals.remove(&id);
            // The program was silent because it waited; its silence begins now.
            if let Some(turn) = &mut node.turn {
                turn.last_output_at = at;
            }
        }
    }

    fn step_turn(&mut self, event: &Event, step: &TurnStep) {
        let Some(node) = self.node_mut(event.node) else {
            return;
        };
        let Some(turn) = event.turn else {
            return;
        };
        match step {
            TurnStep::Started { .. } => open_turn(node, event.at, turn, step),
            TurnStep::WaitingForModel {
                prompt,
                prompt_hash,
            } => {
                // Recorded when the prompt is sent, so that the next turn can send only what is new.
                node.session.prompt_hash = Some(*prompt_hash);
                if let Some(open) = &mut node.turn {
                    open.stage = TurnStage::Working;
                    open.prompt = Some(*prompt);
                    open.last_output_at = event.at;
                }
            }
            TurnStep::ToolPending | TurnStep::AwaitingApproval => {}
            TurnStep::Completed { signature } => {
                node.failed_attempts = 0;
                node.owed.clear();
                node.stalls.add_turn(turn, signature);
                end_turn(node, event.at, &[], false);
            }
            TurnStep::Interrupted { requeued, .. } => {
                count_idle_auto_turn(node);
                keep_owed_questions(node, requeued);
                end_turn(node, event.at, requeued, false);
            }
            TurnStep::Failed { requeued, .. } => {
                count_idle_auto_turn(node);
                // Only a turn that is tried again counts as an attempt.
                node.failed_attempts = if requeued.is_empty() {
                    0
                } else {
                    node.failed_attempts + 1
                };
                end_turn(node, event.at, requeued, true);
            }
        }
    }

    fn add_usage(&mut self, event: &Event, report: &UsageReport) {
        self.usage.add(&report.usage);
        if let Some(node) = self.node_mut(event.node) {
            node.usage.add(&report.usage);
        }
    }
}

/// Ends a block. An open turn goes on.
fn unblock(node: &mut Node) {
    if node.block.take() == Some(BlockReason::Stall) {
        node.stalls = StallHistory::default();
    }
    node.status = if node.turn.is_some() {
        NodeStatus::Running
    } else {
        NodeStatus::Idle
    };
}

/// Counts an automatic turn that did not complete. Without this, a program that always fails would
/// be prompted for ever.
fn count_idle_auto_turn(node: &mut Node) {
    let open = node.turn.as_ref();
    if open.is_some_and(|turn| turn.cause == TurnCause::Auto) {
        node.stalls.idle_auto_turns += 1;
    }
}

/// Remembers the questions of an interrupted turn that are not put back: the agent has read them,
/// and owes answers when it continues.
fn keep_owed_questions(node: &mut Node, requeued: &[InputId]) {
    let Some(turn) = &node.turn else {
        return;
    };
    node.continue_note_due = turn.continues_later() && requeued.is_empty();
    for input in &turn.consumed {
        if let Input::Envelope(question) = input
            && question.expectation == Expectation::Required
            && !requeued.contains(&input.id())
        {
            node.owed.push((**question).clone());
        }
    }
}

/// Puts the inputs of the failed turn back.
fn retry(node: &mut Node) {
    if let Some(last) = &mut node.last_turn {
        last.failed = false;
        node.inbox.put_back(std::mem::take(&mut last.consumed));
    }
}

fn open_turn(node: &mut Node, at: Timestamp, id: AgentTurnId, step: &TurnStep) {
    let TurnStep::Started {
        cause,
        consumed,
        mode,
        global_mode,
        attempt,
    } = step
    else {
        return;
    };
    node.continue_note_due = false;
    node.woken_at = None;
    node.retry_at = None;
    // Late replies to older questions still settle `unanswered`, but nothing waits for them.
    node.awaited_replies.clear();
    node.turn = Some(OpenTurn {
        id,
        cause: *cause,
        stage: TurnStage::Preparing,
        started_at: at,
        last_output_at: at,
        consumed: node.inbox.remove(consumed),
        mode: *mode,
        global_mode: *global_mode,
        prompt: None,
        attempt: *attempt,
        unfinished_text: String::new(),
        final_text: None,
        open_tools: BTreeMap::new(),
        progress: TurnProgress::default(),
        silence_warned: false,
    });
}

/// Ends the open turn and puts the named inputs back into the inbox.
fn end_turn(node: &mut Node, at: Timestamp, requeued: &[InputId], failed: bool) {
    let Some(turn) = node.turn.take() else {
        return;
    };
    let is_requeued = |input: &Input| requeued.contains(&input.id());
    // The others stay with the ended turn, for a retry by a person.
    let (back, consumed) = turn.consumed.into_iter().partition(is_requeued);
    node.inbox.put_back(back);
    node.last_turn = Some(EndedTurn {
        id: turn.id,
        ended_at: at,
        consumed,
        failed,
        final_text: turn.final_text,
    });
}
