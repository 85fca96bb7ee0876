//! What the events of one node do to that node.
//!
//! A node has at most one open turn. Its status follows its turn: running while one is open, blocked
//! while a person must decide, idle or failed otherwise.

use std::collections::{BTreeMap, BTreeSet};

use turnkeep_types::Timestamp;

use super::low_since;
use crate::fact::{NodeChange, TurnStep};
use crate::ids::{AgentTurnId, NodeId};
use crate::input::{Envelope, Input, InputId};
use crate::node::{BlockReason, Node, NodeSettings, Session};
use crate::stall::StallHistory;
use crate::turn::{EndedTurn, OpenTurn, TurnProgress, TurnResult, TurnStage, shorten};
use crate::words::{Expectation, NodeStatus, TurnCause};

pub(super) fn change_node(node: &mut Node, at: Timestamp, change: &NodeChange) {
    let status = node.status;
    node.last_activity_at = at;
    match change {
        NodeChange::Configured(settings) => configure(node, at, settings),
        // The event exists for clients, which do not fold inboxes themselves.
        NodeChange::InboxCounted => {}
        NodeChange::InboxCleared => {
            drop(node.inbox.remove_all());
            node.unfinished.clear();
        }
        NodeChange::Retried => retry(node),
        NodeChange::TurnOpened => {
            node.status = NodeStatus::Running;
            // It said what the last turn did, or why it failed.
            node.summary.clear();
        }
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
            give_up_attempts(node);
        }
        NodeChange::Parked { retry_at, summary } => {
            // Not failed: nothing is wrong with the node, and a person need not act.
            node.status = NodeStatus::Idle;
            node.retry_at = Some(*retry_at);
            node.summary.clone_from(summary);
            count_attempt(node);
        }
        NodeChange::Interrupting {
            reason,
            continues,
            holds,
        } => {
            if let Some(turn) = &mut node.turn {
                turn.stage = TurnStage::Interrupting {
                    since: at,
                    reason: reason.clone(),
                    continues: *continues,
                    holds: *holds,
                };
            }
            node.summary.clone_from(reason);
        }
        // A new session may have its name before the prompt that recalls the last turns.
        NodeChange::SessionNamed { id, .. } => node.session.id = Some(id.clone()),
        NodeChange::SessionDropped { lost, .. } => drop_session(node, *lost),
        NodeChange::WorkspaceFixed(workspace) => node.workspace = Some(workspace.clone()),
        NodeChange::WorkspaceReleased => node.workspace = None,
    }
    if node.status != status {
        node.status_since = at;
    }
}

fn configure(node: &mut Node, at: Timestamp, settings: &NodeSettings) {
    node.settings = settings.clone();
    // A raised budget may be fine again.
    node.budget_low_since = low_since(node.budget_level(), node.budget_low_since, at);
}

fn drop_session(node: &mut Node, lost: bool) {
    node.session = Session {
        was_lost: lost,
        ..Session::default()
    };
    // The old session's repetitions say nothing about the new one.
    node.stalls = StallHistory::default();
    // The pause was the old provider's.
    node.retry_at = None;
    node.rate_limits = 0;
}

/// Ends a block. An open turn goes on.
fn unblock(node: &mut Node) {
    if node.block.take() == Some(BlockReason::Stall) {
        node.stalls = StallHistory::default();
    }
    // It said what the node waited for.
    node.summary.clear();
    node.status = if node.turn.is_some() {
        NodeStatus::Running
    } else {
        NodeStatus::Idle
    };
}

/// Lets inputs start again: those of a failed turn, or those that a person stopped.
fn retry(node: &mut Node) {
    node.inputs_held = false;
    if let Some(last) = node.last_turn.as_mut().filter(|last| last.may_retry) {
        last.may_retry = false;
        node.inbox.put_back(std::mem::take(&mut last.consumed));
    }
}

/// Applies a step of a turn. `held_to` are the nodes for which a reply of this one waits at a gate.
pub(super) fn step_turn(
    node: &mut Node,
    at: Timestamp,
    turn: AgentTurnId,
    step: &TurnStep,
    held_to: &BTreeSet<NodeId>,
) {
    match step {
        TurnStep::Started { .. } => open_turn(node, at, turn, step),
        TurnStep::WaitingForModel {
            prompt,
            prompt_hash,
            forgets,
            base_tree,
        } => {
            let session_before = node.session.clone();
            // Recorded when the prompt is sent, so that the next turn can send only what is new.
            node.session.prompt_hash = Some(*prompt_hash);
            node.session.was_lost = false;
            if let Some(open) = &mut node.turn {
                open.stage = TurnStage::Working;
                open.prompt = Some(*prompt);
                open.session_before = Some(session_before);
                open.forgets = *forgets;
                open.base_tree.clone_from(base_tree);
                open.last_output_at = at;
            }
        }
        TurnStep::ToolPending | TurnStep::AwaitingApproval => {}
        TurnStep::Completed { signature } => {
            node.failed_attempts = 0;
            node.rate_limits = 0;
            node.unfinished.clear();
            node.made_calls.end();
            node.owed.extend(questions_of(node, &[]));
            node.owed.retain(|owed| held_to.contains(&owed.from));
            node.stalls.add_turn(turn, signature, last_words(node));
            end_turn(node, at, &[], TurnResult::Completed);
        }
        TurnStep::Interrupted {
            requeued, holds, ..
        } => {
            node.continue_note_due = continues_later(node) && requeued.is_empty();
            node.owed.extend(questions_of(node, requeued));
            node.inputs_held = *holds;
            end_turn(node, at, requeued, TurnResult::Interrupted);
        }
        TurnStep::Failed { requeued, .. } => end_turn(node, at, requeued, TurnResult::Failed),
    }
}

/// What the open turn said last, in a line.
fn last_words(node: &Node) -> String {
    let open = node.turn.as_ref();
    let text = open.and_then(|turn| turn.final_text.as_deref());
    shorten(text.unwrap_or_default())
}

fn continues_later(node: &Node) -> bool {
    node.turn.as_ref().is_some_and(OpenTurn::continues_later)
}

/// A node that is parked tries its turn again. Waiting for a provider is no failed attempt.
fn count_attempt(node: &mut Node) {
    let last = node.last_turn.as_ref();
    match last.map(|last| last.result) {
        Some(TurnResult::Failed) => node.failed_attempts += 1,
        Some(TurnResult::Interrupted) => node.rate_limits = node.rate_limits.saturating_add(1),
        Some(TurnResult::Completed) | None => {}
    }
}

/// A node at rest does not try its last turn again. An automatic turn that did not complete counts as
/// an idle one: without this, a program that always fails would be prompted for ever.
fn give_up_attempts(node: &mut Node) {
    let Some(last) = &node.last_turn else {
        return;
    };
    if last.result == TurnResult::Failed {
        node.failed_attempts = 0;
    }
    if last.cause == TurnCause::Auto && last.result != TurnResult::Completed {
        node.stalls.add_idle_auto_turn(last.id);
    }
}

/// Counts an envelope that the open turn sends, also if it waits at a gate.
pub(super) fn note_sent(sender: &mut Node, turn: Option<AgentTurnId>, envelope: &Envelope) {
    // What the daemon writes is no work of the agent, so it does not repeat itself.
    if envelope.is_note() {
        return;
    }
    // A person's envelope in a node's name belongs to no turn.
    let Some(open) = sender.turn.as_ref().filter(|open| Some(open.id) == turn) else {
        return;
    };
    let diff = open.diff.filter(|_| envelope.synthesized);
    sender.stalls.add_envelope(envelope, diff);
}

/// Keeps the inputs of the interrupted turn that the agent is asked to continue.
pub(super) fn keep_unfinished(node: &mut Node) {
    let last = node.last_turn.iter();
    let interrupted = last.filter(|last| last.result == TurnResult::Interrupted);
    for input in interrupted.flat_map(|last| &last.consumed) {
        let is_known = node.unfinished.iter().any(|known| known.id() == input.id());
        if !is_known && !input.asks_to_continue() {
            node.unfinished.push(input.clone());
        }
    }
}

/// Takes back what a prompt that perhaps never reached the program has changed: the next prompt has
/// everything that this one had.
fn forget_prompt(session: &mut Session, before: Option<Session>) {
    // A session that was dropped meanwhile has no prompt hash: its next prompt is a full one anyway.
    if let Some(before) = before.filter(|_| session.prompt_hash.is_some()) {
        session.prompt_hash = before.prompt_hash;
        session.was_lost = before.was_lost;
    }
}

/// The inputs that the next turn reads: those that it consumes, and before them those of the turns
/// that it continues, unless its session has read them.
fn take_inputs(node: &mut Node, consumed: &[InputId]) -> Vec<Input> {
    let mut inputs = node.inbox.remove(consumed);
    if !inputs.iter().any(Input::asks_to_continue) {
        // The agent does something else now.
        node.unfinished.clear();
    } else if node.session.has_read_nothing() {
        let again = std::mem::take(&mut node.unfinished);
        // This turn answers them like any other question that it reads.
        let is_read_again = |owed: &Envelope| {
            again
                .iter()
                .any(|input| input.as_envelope().is_some_and(|read| read.id == owed.id))
        };
        node.owed.retain(|owed| !is_read_again(owed));
        inputs.splice(0..0, again);
    }
    inputs
}

/// The questions of the open turn that are not put back. The agent has read them, and owes answers
/// when it continues.
fn questions_of(node: &Node, requeued: &[InputId]) -> Vec<Envelope> {
    let consumed = node.turn.iter().flat_map(|turn| &turn.consumed);
    let kept = consumed.filter(|input| !requeued.contains(&input.id()));
    kept.filter_map(Input::as_envelope)
        .filter(|question| question.expectation == Expectation::Required)
        .cloned()
        .collect()
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
    node.inputs_held = false;
    node.woken_at = None;
    node.retry_at = None;
    node.stalls.begin_turn();
    let consumed = take_inputs(node, consumed);
    let is_resumed = node.made_calls.begin_turn(&consumed);
    // A resumed turn does not ask its questions again, so it must keep waiting for their replies.
    if !is_resumed {
        // Late replies to older questions still settle `unanswered`, but nothing waits for them.
        node.awaited_replies.clear();
    }
    node.turn = Some(OpenTurn {
        id,
        cause: *cause,
        stage: TurnStage::Preparing,
        started_at: at,
        last_output_at: at,
        consumed,
        mode: *mode,
        global_mode: *global_mode,
        prompt: None,
        session_before: None,
        has_output: false,
        forgets: false,
        base_tree: None,
        attempt: *attempt,
        unfinished_text: String::new(),
        final_text: None,
        open_tools: BTreeMap::new(),
        written_paths: BTreeSet::new(),
        tools_signature: None,
        diff: None,
        progress: TurnProgress::default(),
        sent_to: BTreeSet::new(),
        silence_warned_at: None,
    });
}

/// Ends the open turn and puts the named inputs back into the inbox.
fn end_turn(node: &mut Node, at: Timestamp, requeued: &[InputId], result: TurnResult) {
    let Some(turn) = node.turn.take() else {
        return;
    };
    // A call that a person still decides about belongs to the run: its outcome comes as a message,
    // and neither this node nor its next turn waits for it.
    node.open_approvals.clear();
    let is_requeued = |input: &Input| requeued.contains(&input.id());
    // The others stay with the ended turn, for a retry by a person.
    let (back, consumed): (Vec<Input>, _) = turn.consumed.into_iter().partition(is_requeued);
    if !back.is_empty() && !turn.has_output {
        forget_prompt(&mut node.session, turn.session_before);
    }
    node.inbox.put_back(back);
    node.last_turn = Some(EndedTurn {
        id: turn.id,
        cause: turn.cause,
        ended_at: at,
        consumed,
        result,
        may_retry: result == TurnResult::Failed,
        final_text: turn.final_text,
    });
}
