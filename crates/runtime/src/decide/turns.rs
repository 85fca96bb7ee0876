//! A turn from its first output to its end.
//!
//! Worked example, a turn that a person interrupted while a tool ran. The events are, in this
//! order: the answer so far as an interrupted final message, the tool completed with an error, the
//! diff, `turn.interrupted`, and the node at rest. If the node owed another node a reply, the
//! daemon sends one before the node rests.

use bytes::Bytes;
use turnkeep_types::{BlobHash, Timestamp};

use crate::approval::{ApprovalSubject, Resolution};
use crate::artifact::DiffSummary;
use crate::effect::Effect;
use crate::fact::{Fact, NodeChange, StallEvidence, TurnStep};
use crate::ids::{AgentTurnId, ApprovalId, ArtifactId, NodeId, ToolId};
use crate::input::{Envelope, EnvelopeStatus, Input, InputId, Message};
use crate::node::{BlockReason, Node};
use crate::rejection::Rejection;
use crate::run::Run;
use crate::stall::{TurnSignature, mask_output};
use crate::tool::ToolOutcome;
use crate::turn::{OpenTurn, TurnCause, TurnEnd, TurnStage};
use crate::usage::{BudgetLevel, UsageReport};
use crate::words::{
    ArtifactKind, Expectation, MessageRole, NodeStatus, PausedReason, RunStatus, Verdict,
    WorkspaceKind,
};

use super::draft::NewArtifact;
use super::{Decision, Draft, Surroundings, approvals, schedule, verification};

/// A synthesized reply quotes at most so many characters of the final message.
const REPLY_CHARACTERS_MAX: usize = 2000;
/// A node's summary has at most so many characters.
const SUMMARY_CHARACTERS_MAX: usize = 140;
/// The pauses before an unavailable provider is tried again.
const RETRY_PAUSES_MS: [u64; 3] = [2_000, 8_000, 30_000];
const CONTINUE_NOTE: &str = "Your last turn was interrupted. Continue where you stopped.";
/// How long a provider is left alone that did not say when it takes more.
const PARKED_MS: u64 = 15 * 60 * 1000;

/// Something that a program printed in a turn.
#[derive(Debug, Clone)]
pub enum Output {
    /// More text of the answer.
    Answer(String),
    /// A whole message of the answer.
    AnswerFinal(String),
    /// More text of a thought.
    Thinking(String),
    /// A whole thought.
    ThinkingFinal(String),
    /// A tool that the program runs without asking.
    ToolStarted(crate::tool::ToolCall),
    /// The result of a tool.
    ToolCompleted {
        /// The program's own id of the call.
        provider_id: String,
        /// The result.
        outcome: ToolOutcome,
    },
    /// What the turn has used.
    Usage(UsageReport),
    /// The name of the session.
    Session(String),
    /// What the program does, in a few words.
    Progress(String),
    /// A line of the error output.
    Log(String),
}

/// The end of the program's part of a turn, with the changes that the server found.
#[derive(Debug, Clone)]
pub struct ProgramEnd {
    pub node: NodeId,
    pub turn: AgentTurnId,
    pub end: TurnEnd,
    pub diff: DiffTaken,
    /// Whether the turn only waited for a command that still runs.
    pub only_waited: bool,
}

/// The changes of a workspace during a turn.
#[derive(Debug, Clone, Default)]
pub struct DiffTaken {
    /// The patch; empty if nothing changed.
    pub patch: Bytes,
    pub summary: DiffSummary,
}

/// Rejects a report about a turn that is not open any more.
pub(super) fn check_open(
    draft: &Draft<'_>,
    node: NodeId,
    turn: AgentTurnId,
) -> Result<(), Rejection> {
    let node = draft.run.node(node).ok_or(Rejection::NodeGone(node))?;
    let open = node.turn.as_ref().is_some_and(|open| open.id == turn);
    if open && !draft.run.is_deleted {
        Ok(())
    } else {
        Err(Rejection::TurnOver)
    }
}

/// Records what a program printed.
pub fn add_output(
    run: &Run,
    around: Surroundings<'_>,
    node: NodeId,
    turn: AgentTurnId,
    output: Output,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    check_open(&draft, node, turn)?;
    match output {
        Output::Answer(text) => draft.record_in(node, turn, Fact::AnswerDelta(text)),
        Output::AnswerFinal(content) => {
            let interrupted = false;
            let fact = Fact::AnswerFinal {
                content,
                interrupted,
            };
            draft.record_in(node, turn, fact);
        }
        Output::Thinking(text) => draft.record_in(node, turn, Fact::ThinkingDelta(text)),
        Output::ThinkingFinal(text) => draft.record_in(node, turn, Fact::ThinkingFinal(text)),
        Output::ToolStarted(call) => {
            let id = call.id;
            draft.record_in(node, turn, Fact::ToolProposed(call));
            draft.record_in(node, turn, Fact::ToolStarted(id));
        }
        Output::ToolCompleted {
            provider_id,
            outcome,
        } => complete_provider_tool(&mut draft, node, turn, &provider_id, outcome),
        Output::Usage(report) => draft.record_in(node, turn, Fact::UsageReported(report)),
        Output::Session(id) => name_session(&mut draft, node, id),
        Output::Progress(text) => {
            draft.record_in(node, turn, Fact::NodeProgressed(shorten(&text)));
        }
        Output::Log(text) => draft.record_in(node, turn, Fact::NodeLogged(text)),
    }
    Ok(draft.finish(()))
}

/// Completes the call that the program names. A result for an unknown call is dropped: its call was
/// completed before, by an interrupt or a denial.
fn complete_provider_tool(
    draft: &mut Draft<'_>,
    node: NodeId,
    turn: AgentTurnId,
    provider_id: &str,
    outcome: ToolOutcome,
) {
    let open = draft.run.node(node).and_then(|node| node.turn.as_ref());
    let mut tools = open.into_iter().flat_map(|turn| turn.open_tools.values());
    let known = tools.find(|tool| tool.call.provider_id.as_deref() == Some(provider_id));
    if let Some(tool) = known.map(|known| known.call.id) {
        draft.record_in(node, turn, Fact::ToolCompleted { tool, outcome });
    }
}

fn name_session(draft: &mut Draft<'_>, node: NodeId, id: String) {
    // A program that is being stopped may name a session that was dropped.
    let node_state = draft.run.node(node).and_then(|node| node.turn.as_ref());
    if node_state.is_some_and(|turn| matches!(turn.stage, TurnStage::Interrupting { .. })) {
        return;
    }
    // Programs repeat the name in every turn.
    let known = draft
        .run
        .node(node)
        .and_then(|node| node.session.id.as_ref());
    if known != Some(&id) {
        draft.change_node(node, NodeChange::SessionNamed(id));
    }
}

/// Stops the open turn of a node. Its end is reported later.
pub(super) fn interrupt(draft: &mut Draft<'_>, node: NodeId, reason: &str) {
    stop_turn(draft, node, reason, false);
}

/// Stops the open turn of a node until the run goes on.
pub(super) fn interrupt_for_pause(draft: &mut Draft<'_>, node: NodeId) {
    stop_turn(draft, node, "paused by the user", true);
}

fn stop_turn(draft: &mut Draft<'_>, node: NodeId, reason: &str, continues: bool) {
    let reason = reason.to_owned();
    draft.change_node(node, NodeChange::Interrupting { reason, continues });
    draft.perform(Effect::Interrupt(node));
}

/// Asks an agent to continue the turn in which it was stopped.
pub(super) fn send_continue_note(draft: &mut Draft<'_>, node: NodeId) {
    send_message(draft, node, MessageRole::System, CONTINUE_NOTE.to_owned());
}

/// Ends a turn whose prompt was never sent. Its inputs go back.
pub(super) fn end_unsent(draft: &mut Draft<'_>, node: NodeId, turn: AgentTurnId, reason: String) {
    let open = draft.run.node(node).and_then(|node| node.turn.as_ref());
    let requeued = open.map_or_else(Vec::new, |turn| ids_of(&turn.consumed));
    let summary = shorten(&reason);
    let detail = reason;
    draft.step_turn(node, turn, TurnStep::Interrupted { detail, requeued });
    let status = NodeStatus::Idle;
    draft.change_node(node, NodeChange::Rested { status, summary });
    schedule::start_ready_turns(draft);
}

/// Delivers the answer to a question as a message of the person who answered.
pub(super) fn deliver_answer(draft: &mut Draft<'_>, node: NodeId, resolution: &Resolution) {
    let answer = resolution
        .modified_args
        .as_ref()
        .and_then(|args| args.get("answer")?.as_str());
    let content = match (answer, resolution.verdict, &resolution.reason) {
        (Some(answer), _, _) => answer.to_owned(),
        (None, Verdict::Denied, Some(reason)) => format!("No answer: {reason}"),
        (None, Verdict::Denied, None) => "No answer.".to_owned(),
        (None, _, Some(reason)) => reason.clone(),
        (None, _, None) => "Yes.".to_owned(),
    };
    send_message(draft, node, MessageRole::User, content);
}

/// Puts a message into a node's inbox.
pub(super) fn send_message(
    draft: &mut Draft<'_>,
    node: NodeId,
    role: MessageRole,
    content: String,
) {
    let message = Message {
        id: draft.draw_id(),
        node,
        role,
        content,
        interrupt: false,
        created_at: draft.now(),
    };
    draft.record_for(node, Fact::MessageSent(message));
    draft.change_node(node, NodeChange::InboxCounted);
}

/// Ends a turn.
pub fn end_turn(
    run: &Run,
    around: Surroundings<'_>,
    end: &ProgramEnd,
) -> Result<Decision<()>, Rejection> {
    let mut draft = Draft::new(run, around);
    check_open(&draft, end.node, end.turn)?;
    let failure = failure_of(&end.end);
    // In this order: clients expect no tool, text or approval of a turn behind its diff, and the diff
    // before the end.
    close_open_parts(&mut draft, end, failure.as_deref());
    let changes = !end.diff.patch.is_empty();
    let diff = record_diff(&mut draft, end);
    let plan = plan_rest(&draft, end, changes);
    send_owed_replies(&mut draft, end, diff, &plan);
    draft.step_turn(end.node, end.turn, plan.step.clone());
    rest(&mut draft, end, plan);
    continue_if_resumed(&mut draft, end.node);
    after_turn(&mut draft, end.node);
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(()))
}

/// The run may have gone on before the turn that its pause stopped had ended.
fn continue_if_resumed(draft: &mut Draft<'_>, id: NodeId) {
    let is_due = draft
        .run
        .node(id)
        .is_some_and(|node| node.continue_note_due);
    if is_due && draft.run.status == RunStatus::Running {
        send_continue_note(draft, id);
    }
}

/// Why open tools and approvals of a turn are given up; `None` if it completed.
fn failure_of(end: &TurnEnd) -> Option<String> {
    match end {
        TurnEnd::Completed => None,
        TurnEnd::Interrupted { reason, .. }
        | TurnEnd::Failed { reason }
        | TurnEnd::Unavailable { reason } => Some(reason.clone()),
        TurnEnd::RateLimited { .. } => Some("the provider takes no more for now".to_owned()),
    }
}

/// Ends what the program left open: text, tools and approvals.
fn close_open_parts(draft: &mut Draft<'_>, end: &ProgramEnd, failure: Option<&str>) {
    let Some(open) = draft.run.node(end.node).and_then(|node| node.turn.clone()) else {
        return;
    };
    let reason = failure.unwrap_or("the turn ended before the tool did");
    close_text(draft, end.node, &open, failure.is_some());
    for approval in approvals_to_close(draft, end) {
        approvals::close(draft, approval, Resolution::denied(reason));
    }
    close_tools(draft, end.node, open.id, reason);
}

/// Records the text of an answer that has no end.
pub(super) fn close_text(draft: &mut Draft<'_>, node: NodeId, open: &OpenTurn, interrupted: bool) {
    if open.unfinished_text.is_empty() {
        return;
    }
    let fact = Fact::AnswerFinal {
        content: open.unfinished_text.clone(),
        interrupted,
    };
    draft.record_in(node, open.id, fact);
}

/// Completes the tools that a turn left open.
pub(super) fn close_tools(draft: &mut Draft<'_>, node: NodeId, turn: AgentTurnId, reason: &str) {
    let tools: Vec<ToolId> = draft
        .run
        .node(node)
        .and_then(|node| node.turn.as_ref())
        .map_or_else(Vec::new, |turn| turn.open_tools.keys().copied().collect());
    for tool in tools {
        let outcome = ToolOutcome::abandoned(reason);
        draft.record_in(node, turn, Fact::ToolCompleted { tool, outcome });
    }
}

/// The approvals that end with a turn. Questions stay open, and so do calls of the daemon's tools
/// behind a completed turn: their outcomes come as messages.
fn approvals_to_close(draft: &Draft<'_>, end: &ProgramEnd) -> Vec<ApprovalId> {
    let has_completed = end.end == TurnEnd::Completed;
    let of_turn = draft
        .run
        .approvals
        .values()
        .filter(|approval| approval.turn == end.turn);
    of_turn
        .filter(|approval| match approval.subject {
            ApprovalSubject::ProviderTool => true,
            ApprovalSubject::OrchestrationTool(_) => !has_completed,
            ApprovalSubject::Question { .. } => false,
        })
        .map(|approval| approval.id)
        .collect()
}

/// Every turn has a diff, also one that changed nothing.
fn record_diff(draft: &mut Draft<'_>, end: &ProgramEnd) -> ArtifactId {
    let summary = DiffSummary {
        turn: Some(end.turn),
        ..end.diff.summary.clone()
    };
    let new = NewArtifact {
        kind: ArtifactKind::Diff,
        name: "diff.patch",
        content: end.diff.patch.clone(),
        diff: Some(summary),
    };
    draft.create_artifact(end.node, end.turn, new)
}

/// How a turn is recorded as ended, and what becomes of its node.
#[derive(Debug, Clone)]
struct RestPlan {
    step: TurnStep,
    change: NodeChange,
    /// Whether the turn will be tried again. Then the node owes no reply yet.
    tries_again: bool,
}

fn plan_rest(draft: &Draft<'_>, end: &ProgramEnd, changed_files: bool) -> RestPlan {
    let Some(open) = draft.run.node(end.node).and_then(|node| node.turn.as_ref()) else {
        return plan_failure("the turn is gone".to_owned());
    };
    match &end.end {
        TurnEnd::Completed => RestPlan {
            step: TurnStep::Completed {
                signature: sign(end, open, changed_files),
            },
            change: NodeChange::Rested {
                status: NodeStatus::Idle,
                summary: shorten(open.final_text.as_deref().unwrap_or_default()),
            },
            tries_again: false,
        },
        TurnEnd::Interrupted { reason, requeue } => plan_interrupt(open, reason, *requeue),
        TurnEnd::Failed { reason } => plan_failure(reason.clone()),
        TurnEnd::Unavailable { reason } => plan_retry(draft.now(), open, reason),
        TurnEnd::RateLimited { until } => {
            let retry_at = until.unwrap_or(Timestamp(draft.now().0 + PARKED_MS));
            RestPlan {
                step: TurnStep::Interrupted {
                    detail: "rate limited".to_owned(),
                    requeued: ids_of(&open.consumed),
                },
                change: NodeChange::Parked {
                    retry_at,
                    summary: "waits until its provider takes more".to_owned(),
                },
                tries_again: true,
            }
        }
    }
}

fn ids_of(inputs: &[Input]) -> Vec<InputId> {
    inputs.iter().map(Input::id).collect()
}

fn sign(end: &ProgramEnd, open: &OpenTurn, changed_files: bool) -> TurnSignature {
    let text = open.final_text.as_deref().unwrap_or_default();
    // What a person started may repeat itself: they see it, and may want exactly that.
    let is_auto = open.cause == TurnCause::Auto;
    TurnSignature {
        output: BlobHash::of(mask_output(text).as_bytes()),
        diff: changed_files.then(|| BlobHash::of(&end.diff.patch)),
        may_repeat: end.only_waited || open.consumed.iter().any(Input::is_chat),
        made_artifact: open.progress.made_artifact,
        was_idle_auto_turn: is_auto && !changed_files && !open.progress.is_any(),
    }
}

fn plan_interrupt(open: &OpenTurn, reason: &str, requeue: bool) -> RestPlan {
    // Inputs that no program has seen are never consumed.
    let requeue = requeue || open.prompt.is_none();
    let requeued = if requeue {
        ids_of(&open.consumed)
    } else {
        Vec::new()
    };
    RestPlan {
        step: TurnStep::Interrupted {
            detail: reason.to_owned(),
            requeued,
        },
        change: NodeChange::Rested {
            status: NodeStatus::Idle,
            summary: shorten(reason),
        },
        tries_again: requeue,
    }
}

fn plan_failure(reason: String) -> RestPlan {
    let summary = shorten(&reason);
    RestPlan {
        step: TurnStep::Failed {
            detail: reason,
            requeued: Vec::new(),
        },
        change: NodeChange::Rested {
            status: NodeStatus::Failed,
            summary,
        },
        tries_again: false,
    }
}

/// An unavailable provider is tried again, but not after a tool ran: the tool would run twice.
fn plan_retry(now: Timestamp, open: &OpenTurn, reason: &str) -> RestPlan {
    let attempt = usize::try_from(open.attempt).unwrap_or(usize::MAX);
    let pause = RETRY_PAUSES_MS.get(attempt.saturating_sub(1));
    let Some(pause) = pause.filter(|_| !open.progress.ran_tool) else {
        return plan_failure(reason.to_owned());
    };
    RestPlan {
        step: TurnStep::Failed {
            detail: reason.to_owned(),
            requeued: ids_of(&open.consumed),
        },
        change: NodeChange::Parked {
            retry_at: Timestamp(now.0 + pause),
            summary: shorten(&format!("tries again: {reason}")),
        },
        tries_again: true,
    }
}

/// Sends a reply for every question that the turn consumed and did not answer.
fn send_owed_replies(draft: &mut Draft<'_>, end: &ProgramEnd, diff: ArtifactId, plan: &RestPlan) {
    if plan.tries_again {
        return;
    }
    let Some(node) = draft.run.node(end.node) else {
        return;
    };
    let Some(open) = node.turn.clone().filter(|turn| !turn.continues_later()) else {
        return;
    };
    let consumed = open.consumed.iter().filter_map(|input| match input {
        Input::Envelope(question) => Some((**question).clone()),
        Input::Message(_) => None,
    });
    let questions: Vec<Envelope> = node.owed.iter().cloned().chain(consumed).collect();
    for question in &questions {
        // A reply takes the question off the asker's list, whoever wrote it.
        let asker = draft.run.node(question.from);
        let is_owed = question.expectation == Expectation::Required
            && asker.is_some_and(|asker| asker.unanswered.contains(&question.id));
        if is_owed {
            let reply = synthesize_reply(draft, end, question, &open, diff);
            let to = reply.to;
            draft.record_in(end.node, end.turn, Fact::EnvelopeSent(Box::new(reply)));
            draft.change_node(to, NodeChange::InboxCounted);
        }
    }
}

fn synthesize_reply(
    draft: &mut Draft<'_>,
    end: &ProgramEnd,
    question: &Envelope,
    open: &OpenTurn,
    diff: ArtifactId,
) -> Envelope {
    let failure = failure_of(&end.end);
    let text = open.final_text.as_deref().unwrap_or("(no message)");
    Envelope {
        id: draft.draw_id(),
        from: end.node,
        to: question.from,
        created_at: draft.now(),
        message: text.chars().take(REPLY_CHARACTERS_MAX).collect(),
        structured: None,
        artifacts: vec![diff],
        status: Some(EnvelopeStatus {
            ok: failure.is_none(),
            reason: failure,
        }),
        expectation: Expectation::None,
        reply_to: Some(question.id),
        context_pack: None,
        synthesized: true,
    }
}

/// Records the node at rest, or blocked when it wrote what it may not write.
fn rest(draft: &mut Draft<'_>, end: &ProgramEnd, plan: RestPlan) {
    draft.change_node(end.node, plan.change);
    let violations = &end.diff.summary.violations;
    let workspace = draft
        .run
        .node(end.node)
        .and_then(|node| node.workspace.as_ref());
    let is_shared = workspace.is_some_and(|workspace| workspace.kind == WorkspaceKind::Shared);
    // In a worktree of its own the server has restored the files already.
    if violations.is_empty() || !is_shared {
        return;
    }
    let summary = shorten(&format!(
        "wrote files that it may not write: {}",
        violations.join(", ")
    ));
    let reason = BlockReason::Violation {
        turn: end.turn,
        paths: violations.iter().cloned().collect(),
    };
    draft.change_node(end.node, NodeChange::Blocked { reason, summary });
}

/// Completes a run whose documents are done, and stops one that goes in circles or has used up its
/// budget.
fn after_turn(draft: &mut Draft<'_>, id: NodeId) {
    verification::finish_docs(draft, id);
    let limits = draft.run.settings.limits;
    let stall = draft
        .run
        .node(id)
        .and_then(|node| node.stalls.find_stall(limits.stall_after));
    // A violation is the older reason, and its files would be forgotten.
    let is_blocked = draft.run.node(id).is_some_and(|node| node.block.is_some());
    if let Some(stall) = stall.filter(|_| !is_blocked) {
        let last = draft
            .run
            .node(id)
            .and_then(|node| node.last_turn.as_ref()?.final_text.clone());
        let evidence = StallEvidence {
            stall,
            summaries: last.iter().map(|text| shorten(text)).collect(),
            verification_failure: None,
        };
        let summary = format!("goes in circles: {}", evidence.stall.reason);
        draft.record_for(id, Fact::Stalled(evidence));
        let reason = BlockReason::Stall;
        draft.change_node(id, NodeChange::Blocked { reason, summary });
        pause(draft, PausedReason::Stall);
    }
    fail_if_all_failed(draft);
    if draft.run.settings.budget.level(&draft.run.usage) == BudgetLevel::UsedUp {
        pause(draft, PausedReason::Budget);
    }
}

/// A run in which every node has failed and nothing waits cannot go on by itself.
fn fail_if_all_failed(draft: &mut Draft<'_>) {
    let has_failed = |node: &Node| node.status == NodeStatus::Failed && node.inbox.is_empty();
    if draft.run.status == RunStatus::Running && draft.run.nodes().all(has_failed) {
        draft.record(Fact::RunStatusChanged {
            status: RunStatus::Failed,
            paused_reason: None,
        });
    }
}

/// Pauses a run that is running.
pub(super) fn pause(draft: &mut Draft<'_>, reason: PausedReason) {
    // A run that was paused for another reason keeps that reason.
    if draft.run.status == RunStatus::Running {
        draft.record(Fact::RunStatusChanged {
            status: RunStatus::Paused,
            paused_reason: Some(reason),
        });
    }
}

/// The first line of a text, cut to the length of a summary.
pub(super) fn shorten(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    line.chars().take(SUMMARY_CHARACTERS_MAX).collect()
}
