//! The end of a turn, and how a turn is stopped.
//!
//! Worked example, a turn that a person interrupted while a tool ran. The events are, in this
//! order: the answer so far as an interrupted final message, the tool completed with an error, the
//! diff, `turn.interrupted`, and the node at rest. If the node owed another node a reply, the
//! server sends one before the node rests.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::Value;
use turnkeep_types::{BlobHash, Timestamp};

use crate::approval::{ApprovalSubject, Resolution};
use crate::artifact::DiffSummary;
use crate::effect::Effect;
use crate::fact::{Fact, NodeChange, TurnStep};
use crate::ids::{AgentTurnId, ApprovalId, ArtifactId, EventId, NodeId, ToolId, Uuid as _};
use crate::input::{CONTINUE_NOTE, Input, InputId, Message};
use crate::node::{BlockReason, Node};
use crate::rejection::Rejection;
use crate::run::Run;
use crate::stall::{TurnSignature, mask_output};
use crate::tool::ToolOutcome;
use crate::turn::{OpenTurn, TurnEnd, TurnStage, shorten};
use crate::words::{
    ArtifactKind, MessageRole, NodeStatus, RunStatus, TurnCause, Verdict, WorkspaceKind,
};

use super::draft::{ArtifactOwner, NewArtifact};
use super::output::{TurnPlace, check_open};
use super::{
    Decision, Draft, Surroundings, approvals, gates, limits, long_texts, replies, schedule,
    verification,
};

/// The pauses before an unavailable provider is tried again. Each is up to a fifth longer, so that
/// nodes that were refused together do not come back together.
const RETRY_PAUSES_MS: [u64; 3] = [2_000, 8_000, 30_000];
/// How long a provider is left alone that did not say when it takes more.
const PARKED_MS: u64 = 15 * 60 * 1000;
/// How long a provider is left alone at least, whatever it says. A time that has passed already would
/// start the turn again at once, and again. The pause doubles each time, up to [`PARKED_MS`].
const PARKED_MS_MIN: u64 = 2_000;

/// The end of the program's part of a turn, with the changes that the server found.
#[derive(Debug, Clone)]
pub struct ProgramEnd {
    pub node: NodeId,
    pub turn: AgentTurnId,
    pub end: TurnEnd,
    pub diff: DiffTaken,
    /// `None` if the program printed nothing.
    pub printed: Option<PrintedLines>,
    /// Whether the turn only waited for a command that still runs.
    pub only_waited: bool,
}

/// The lines that the program printed in a turn, as the server read them.
#[derive(Debug, Clone)]
pub struct PrintedLines {
    /// The name of the file that keeps them.
    pub file: &'static str,
    pub content: Bytes,
}

/// The changes of a workspace during a turn.
#[derive(Debug, Clone, Default)]
pub struct DiffTaken {
    /// The patch; empty if nothing changed.
    pub patch: Bytes,
    pub summary: DiffSummary,
}

/// What becomes of a turn's inputs after it was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterStop {
    /// Inputs that the program has not seen start the next turn.
    Restart,
    /// They wait until something new arrives: a person wants the node to be quiet.
    Hold,
    /// The agent continues when the run goes on.
    Continue,
}

/// Stops the open turn of a node. Its end is reported later. What the turn waits for is given up now,
/// so that nothing happens in its name any more.
pub(super) fn interrupt(draft: &mut Draft<'_>, node: NodeId, reason: &str, after: AfterStop) {
    let open = draft.run.node(node).and_then(|node| node.turn.as_ref());
    let Some(turn) = open.map(|open| open.id) else {
        return;
    };
    let interrupting = NodeChange::Interrupting {
        reason: reason.to_owned(),
        continues: after == AfterStop::Continue,
        holds: after == AfterStop::Hold,
    };
    draft.change_node(node, interrupting);
    verification::cancel_claim_of_turn(draft, turn, reason);
    gates::cancel_calls(draft, turn, reason);
    draft.perform(Effect::Interrupt(node));
}

/// Asks an agent to continue the turn in which it was stopped.
pub(super) fn send_continue_note(draft: &mut Draft<'_>, node: NodeId) {
    send_message(draft, node, MessageRole::System, CONTINUE_NOTE.to_owned());
}

/// Ends a turn whose prompt was never sent. Its inputs go back.
pub(super) fn end_unsent(draft: &mut Draft<'_>, node: NodeId, turn: AgentTurnId) {
    let end = ProgramEnd {
        node,
        turn,
        end: TurnEnd::Interrupted {
            reason: "interrupted".to_owned(),
            requeue: true,
        },
        // No program has worked, so nothing has changed.
        diff: DiffTaken::default(),
        printed: None,
        only_waited: false,
    };
    finish_turn(draft, &end);
}

/// Delivers the answer to a question as a message of the person who answered.
pub(super) fn deliver_answer(draft: &mut Draft<'_>, node: NodeId, resolution: &Resolution) {
    let answer = resolution.modified_args.as_ref().and_then(text_of_answer);
    let content = match (answer, resolution.verdict, &resolution.reason) {
        (Some(answer), _, _) => answer,
        (None, Verdict::Denied, Some(reason)) => format!("No answer: {reason}"),
        (None, Verdict::Denied, None) => "No answer.".to_owned(),
        (None, _, Some(reason)) => reason.clone(),
        (None, _, None) => "Yes.".to_owned(),
    };
    send_message(draft, node, MessageRole::User, content);
}

/// What a person answered. An answer that is no text, such as a number or a list, is given as JSON.
fn text_of_answer(args: &Value) -> Option<String> {
    match args.get("answer")? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
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
    finish_turn(&mut draft, end);
    Ok(draft.finish(()))
}

fn finish_turn(draft: &mut Draft<'_>, end: &ProgramEnd) {
    let end = &explain_interrupt(draft, end);
    let failure = failure_of(&end.end);
    // In this order: clients expect no tool, text or approval of a turn behind its diff, and the diff
    // before the end.
    close_open_parts(draft, end, failure.as_deref());
    record_printed(draft, end);
    let changes = !end.diff.patch.is_empty();
    let diff = record_diff(draft, end.node, end.turn, &end.diff);
    let jitter = draft.draw_id();
    let plan = plan_rest(draft, end, changes, jitter);
    // A turn that is tried again may still answer its questions.
    if !plan.tries_again {
        replies::send_owed_replies(draft, end, diff);
    }
    draft.step_turn(end.node, end.turn, plan.step.clone());
    rest(draft, end, plan);
    continue_if_resumed(draft, end.node);
    verification::finish_docs(draft, end.node);
    limits::check_limits(draft, end.node);
    schedule::start_ready_turns(draft);
}

/// A program only knows that it was interrupted; the turn knows why. A turn that was stopped because
/// it took too long has failed.
fn explain_interrupt(draft: &Draft<'_>, end: &ProgramEnd) -> ProgramEnd {
    let mut explained = end.clone();
    let open = draft.run.node(end.node).and_then(|node| node.turn.as_ref());
    let stage = open.map(|open| &open.stage);
    if let (TurnEnd::Interrupted { requeue, .. }, Some(TurnStage::Interrupting { reason, .. })) =
        (&end.end, stage)
    {
        let (reason, requeue) = (reason.clone(), *requeue);
        explained.end = if reason.starts_with(super::clock::TIMED_OUT) {
            TurnEnd::Failed { reason }
        } else {
            TurnEnd::Interrupted { reason, requeue }
        };
    }
    explained
}

/// The run may have gone on before the turn that its pause stopped had ended.
fn continue_if_resumed(draft: &mut Draft<'_>, id: NodeId) {
    let node = draft.run.node(id);
    let is_due = node.is_some_and(|node| node.continue_note_due);
    if is_due && draft.run.status == RunStatus::Running {
        send_continue_note(draft, id);
    }
}

/// Why open tools and approvals of a turn are given up; `None` if it completed.
pub(super) fn failure_of(end: &TurnEnd) -> Option<String> {
    match end {
        TurnEnd::Completed => None,
        TurnEnd::Interrupted { reason, .. }
        | TurnEnd::Failed { reason }
        | TurnEnd::Unavailable { reason } => Some(reason.clone()),
        TurnEnd::RateLimited { .. } | TurnEnd::RateLimitedFor { .. } => {
            Some("the provider takes no more for now".to_owned())
        }
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
    let turn = open.id;
    let place = TurnPlace { node, turn };
    let fact = Fact::AnswerFinal {
        content: long_texts::cut_answer(draft, place, "answer.txt", open.unfinished_text.clone()),
        interrupted,
    };
    draft.record_in(node, turn, fact);
}

/// Completes the tools that a turn left open.
pub(super) fn close_tools(draft: &mut Draft<'_>, node: NodeId, turn: AgentTurnId, reason: &str) {
    let open = draft.run.node(node).and_then(|node| node.turn.as_ref());
    let tools: Vec<ToolId> =
        open.map_or_else(Vec::new, |turn| turn.open_tools.keys().copied().collect());
    for tool in tools {
        let outcome = ToolOutcome::abandoned(reason);
        draft.record_in(node, turn, Fact::ToolCompleted { tool, outcome });
    }
}

/// The approvals that end with a turn. Questions stay open, and so do calls of the server's tools
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
            ApprovalSubject::ProviderTool { .. } => true,
            ApprovalSubject::OrchestrationTool(_) => !has_completed,
            ApprovalSubject::Question { .. } => false,
        })
        .map(|approval| approval.id)
        .collect()
}

/// Keeps what the program printed. Nothing reads it again: it shows a person what the events leave
/// out.
fn record_printed(draft: &mut Draft<'_>, end: &ProgramEnd) {
    let Some(printed) = &end.printed else {
        return;
    };
    let new = NewArtifact {
        kind: ArtifactKind::Log,
        name: printed.file,
        content: printed.content.clone(),
        diff: None,
    };
    draft.create_artifact(ArtifactOwner::turn(end.node, end.turn), new);
}

/// Every turn has a diff, also one that changed nothing.
pub(super) fn record_diff(
    draft: &mut Draft<'_>,
    node: NodeId,
    turn: AgentTurnId,
    diff: &DiffTaken,
) -> ArtifactId {
    let summary = DiffSummary {
        turn: Some(turn),
        ..diff.summary.clone()
    };
    let new = NewArtifact {
        kind: ArtifactKind::Diff,
        name: "diff.patch",
        content: diff.patch.clone(),
        diff: Some(summary),
    };
    draft.create_artifact(ArtifactOwner::turn(node, turn), new)
}

/// How a turn is recorded as ended, and what becomes of its node.
#[derive(Debug, Clone)]
struct RestPlan {
    step: TurnStep,
    change: NodeChange,
    /// Whether the turn will be tried again. Then the node owes no reply yet.
    tries_again: bool,
}

/// `jitter` is a random number that the plan may use.
fn plan_rest(
    draft: &Draft<'_>,
    end: &ProgramEnd,
    changed_files: bool,
    jitter: EventId,
) -> RestPlan {
    let node = draft.run.node(end.node);
    let Some((node, open)) = node.and_then(|node| Some((node, node.turn.as_ref()?))) else {
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
        TurnEnd::Interrupted { reason, requeue } => plan_interrupt(node, open, reason, *requeue),
        TurnEnd::Failed { reason } => plan_failure(reason.clone()),
        TurnEnd::Unavailable { reason } => plan_retry(draft.now(), open, reason, jitter),
        TurnEnd::RateLimited { until } => {
            let wait_ms = until.map(|until| until.0.saturating_sub(draft.now().0));
            plan_parking(draft.now(), node, open, wait_ms)
        }
        TurnEnd::RateLimitedFor { wait } => {
            let wait_ms = u64::try_from(wait.as_millis()).ok();
            plan_parking(draft.now(), node, open, wait_ms)
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
        tools: open.tools_signature,
        diff: changed_files.then(|| BlobHash::of(&end.diff.patch)),
        may_repeat: end.only_waited || open.consumed.iter().any(Input::is_chat),
        made_artifact: open.progress.made_artifact,
        was_idle_auto_turn: is_auto && !changed_files && !open.progress.is_any(),
    }
}

fn plan_interrupt(node: &Node, open: &OpenTurn, reason: &str, requeue: bool) -> RestPlan {
    // Inputs that no program has seen are never consumed.
    let is_unseen = requeue || open.prompt.is_none();
    // The session went during the turn, with its provider: the next one has read nothing.
    let has_lost_session = node.session.was_lost;
    let is_forgotten = open.continues_later() && open.forgets;
    let begins_again = is_unseen || has_lost_session || is_forgotten;
    let requeued = if begins_again {
        ids_of(&open.consumed)
    } else {
        Vec::new()
    };
    // Something new has arrived already, so there is nothing to wait for.
    let holds = open.holds_inputs() && !requeued.is_empty() && node.inbox.is_empty();
    RestPlan {
        step: TurnStep::Interrupted {
            detail: reason.to_owned(),
            requeued,
            holds,
        },
        change: NodeChange::Rested {
            status: NodeStatus::Idle,
            summary: shorten(reason),
        },
        tries_again: begins_again,
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
fn plan_retry(now: Timestamp, open: &OpenTurn, reason: &str, jitter: EventId) -> RestPlan {
    let attempt = usize::try_from(open.attempt).unwrap_or(usize::MAX);
    let pause = RETRY_PAUSES_MS.get(attempt.saturating_sub(1));
    let Some(pause) = pause.filter(|_| !open.progress.ran_tool) else {
        return plan_failure(reason.to_owned());
    };
    // Up to a fifth longer: nodes that failed together must not come back together.
    let longer = jitter.bits() % u128::from(pause / 5 + 1);
    let pause = pause + u64::try_from(longer).unwrap_or(0);
    RestPlan {
        step: TurnStep::Failed {
            detail: reason.to_owned(),
            requeued: ids_of(&open.consumed),
        },
        change: NodeChange::Parked {
            retry_at: Timestamp(now.0.saturating_add(pause)),
            summary: shorten(&format!("tries again: {reason}")),
        },
        tries_again: true,
    }
}

/// A rate limit is no failure: the inputs wait until the provider takes more. `wait_ms` is what the
/// provider says.
fn plan_parking(now: Timestamp, node: &Node, open: &OpenTurn, wait_ms: Option<u64>) -> RestPlan {
    // A provider may name a time that is too short, again and again. So the least time doubles with
    // each rate limit in a row.
    let doubled = 2_u64.saturating_pow(node.rate_limits);
    let wait_ms_min = PARKED_MS_MIN.saturating_mul(doubled).min(PARKED_MS);
    let wait_ms = wait_ms.unwrap_or(PARKED_MS).max(wait_ms_min);
    let retry_at = Timestamp(now.0.saturating_add(wait_ms));
    RestPlan {
        step: TurnStep::Interrupted {
            detail: "rate limited".to_owned(),
            requeued: ids_of(&open.consumed),
            holds: false,
        },
        change: NodeChange::Parked {
            retry_at,
            summary: "waits until its provider takes more".to_owned(),
        },
        tries_again: true,
    }
}

/// Records the node at rest, or blocked when it wrote what it may not write.
fn rest(draft: &mut Draft<'_>, end: &ProgramEnd, plan: RestPlan) {
    draft.change_node(end.node, plan.change);
    block_violator(draft, end.node, end.turn, &end.diff.summary.violations);
}

/// Blocks a node that wrote files of a shared directory that it may not write.
pub(super) fn block_violator(
    draft: &mut Draft<'_>,
    id: NodeId,
    turn: AgentTurnId,
    violations: &[String],
) {
    let workspace = draft.run.node(id).and_then(|node| node.workspace.as_ref());
    let is_shared = workspace.is_some_and(|workspace| workspace.kind == WorkspaceKind::Shared);
    // In a worktree of its own the server has restored the files already.
    if violations.is_empty() || !is_shared {
        return;
    }
    let paths: BTreeSet<String> = violations.iter().cloned().collect();
    let summary = describe_violation(&paths);
    let reason = BlockReason::Violation { turn, paths };
    draft.change_node(id, NodeChange::Blocked { reason, summary });
}

pub(super) fn describe_violation(paths: &BTreeSet<String>) -> String {
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    shorten(&format!(
        "wrote files that it may not write: {}",
        paths.join(", ")
    ))
}
