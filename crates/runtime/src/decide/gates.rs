//! Gates: an edge with `gate` carries an envelope that claims success only after the verification
//! commands have passed in the sender's workspace.
//!
//! Worked example: a worker reports `ok: true` over a gated edge. The envelope is held, and the call
//! waits. If the commands pass, the envelope is delivered under the id that it had from the beginning.
//! If they fail, nothing is delivered and the worker gets the failing output. A reply that the server
//! sends in the worker's place cannot be refused, because its question must be answered: it is
//! delivered as a failure. A run without commands has nothing to check, so its gates are open.

use serde_json::{Value, json};

use crate::effect::{Effect, VerifyPlace};
use crate::fact::{Fact, NodeChange};
use crate::ids::{AgentTurnId, EnvelopeId, NodeId, ToolId};
use crate::input::{Envelope, EnvelopeStatus};
use crate::live::LiveRun;
use crate::rejection::Rejection;
use crate::verification::{HeldEnvelope, VerificationTarget};
use crate::words::MessageRole;

use super::draft::ArtifactOwner;
use super::verification::{VerificationEnd, record_report};
use super::{Draft, tools, turns};

/// An envelope on its way.
pub(super) struct Delivery {
    pub(super) envelope: Envelope,
    /// The turn in which it was made.
    pub(super) turn: Option<AgentTurnId>,
    /// The call that sends it.
    pub(super) tool: Option<ToolId>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivered {
    /// It is in the receiver's inbox.
    Sent,
    /// It waits at a gate.
    Held,
}

/// Puts an envelope into the receiver's inbox, or holds it at the gate on its way.
pub(super) fn deliver(draft: &mut Draft<'_>, delivery: Delivery) -> Delivered {
    let Delivery {
        envelope,
        turn,
        tool,
    } = delivery;
    if !is_gated(&draft.run, &envelope) {
        send(draft, envelope, turn);
        return Delivered::Sent;
    }
    // The id is drawn before the check, so that the sender can name the envelope meanwhile.
    let (from, id) = (envelope.from, envelope.id);
    let envelope = Box::new(envelope);
    record_for_sender(draft, from, turn, Fact::EnvelopeHeld { envelope, tool });
    start_check(draft, from, id);
    Delivered::Held
}

/// Whether an envelope claims a success that a gate must check. One gated edge is enough: otherwise
/// a second edge between the same nodes would lead around the gate.
fn is_gated(run: &LiveRun, envelope: &Envelope) -> bool {
    let claims_success = envelope.status.as_ref().is_some_and(|status| status.ok);
    let mut edges = run.edges.values();
    claims_success
        && !run.settings.verify.is_empty()
        && edges.any(|edge| edge.gate && edge.carries(envelope.from, envelope.to))
}

fn start_check(draft: &mut Draft<'_>, sender: NodeId, envelope: EnvelopeId) {
    draft.perform(Effect::Verify {
        target: VerificationTarget::Gate(envelope),
        place: VerifyPlace::Workspace(sender),
    });
}

fn send(draft: &mut Draft<'_>, envelope: Envelope, turn: Option<AgentTurnId>) {
    let (from, to) = (envelope.from, envelope.to);
    record_for_sender(draft, from, turn, Fact::EnvelopeSent(Box::new(envelope)));
    draft.change_node(to, NodeChange::InboxCounted);
}

fn record_for_sender(draft: &mut Draft<'_>, from: NodeId, turn: Option<AgentTurnId>, fact: Fact) {
    match turn {
        Some(turn) => draft.record_in(from, turn, fact),
        None => draft.record_for(from, fact),
    }
}

/// The answer to the sender of a delivered envelope.
pub(super) fn describe_delivery(run: &LiveRun, envelope: EnvelopeId, to: NodeId) -> Value {
    let receiver = run.node(to);
    json!({
        "payloadId": envelope.to_string(),
        "queuePosition": receiver.map(|node| node.inbox.len()),
        "targetStatus": receiver.map(|node| node.status.word()),
    })
}

/// Delivers or refuses a held envelope.
pub(super) fn end_check(
    draft: &mut Draft<'_>,
    id: EnvelopeId,
    end: &VerificationEnd,
) -> Result<(), Rejection> {
    let held = draft.run.gates.get(&id).cloned();
    let held = held.ok_or(Rejection::NotVerifying)?;
    let owner = ArtifactOwner {
        node: Some(held.envelope.from),
        turn: held.turn,
    };
    // Before the envelope, so that the receiver of a failure can read the report.
    record_report(draft, owner, end);
    let answer = if end.ok {
        let envelope = held.envelope.clone();
        let to = envelope.to;
        send(draft, envelope, held.turn);
        Ok(describe_delivery(&draft.run, id, to))
    } else {
        let reason = format!("verification failed: {}", end.tail);
        refuse(draft, &held, &reason);
        Err(format!("not delivered: {reason}"))
    };
    answer_sender(draft, &held, answer);
    Ok(())
}

/// Does not deliver an envelope. A reply of the server is delivered as a failure instead.
fn refuse(draft: &mut Draft<'_>, held: &HeldEnvelope, reason: &str) {
    if held.envelope.synthesized {
        let mut failed = held.envelope.clone();
        failed.status = Some(EnvelopeStatus {
            ok: false,
            reason: Some(reason.to_owned()),
        });
        send(draft, failed, held.turn);
    } else {
        record_refusal(draft, held, reason);
    }
}

fn record_refusal(draft: &mut Draft<'_>, held: &HeldEnvelope, reason: &str) {
    let fact = Fact::EnvelopeRefused {
        envelope: held.envelope.id,
        reason: reason.to_owned(),
    };
    record_for_sender(draft, held.envelope.from, held.turn, fact);
}

/// Answers the call that sent the envelope. A person's envelope had no call, so a refusal comes as a
/// note: somebody has to repair the work.
fn answer_sender(draft: &mut Draft<'_>, held: &HeldEnvelope, answer: Result<Value, String>) {
    match (held.call, answer) {
        (Some(call), answer) => {
            tools::complete_call(draft, call, &answer);
            tools::answer_call(draft, call, answer);
        }
        (None, Err(reason)) if !held.envelope.synthesized => {
            let content = format!("A handoff in your name was {reason}");
            turns::send_message(draft, held.envelope.from, MessageRole::System, content);
        }
        (None, _) => {}
    }
}

/// Gives up the envelopes whose calls a turn waits for.
pub(super) fn cancel_calls(draft: &mut Draft<'_>, turn: AgentTurnId, reason: &str) {
    for held in find_held(draft, |held| {
        held.call.is_some_and(|call| call.turn == turn)
    }) {
        cancel(draft, &held, reason);
        answer_sender(draft, &held, Err(reason.to_owned()));
    }
}

/// Gives up the envelopes from and to a node that is deleted. Its own calls end with its turn.
pub(super) fn cancel_of_node(draft: &mut Draft<'_>, node: NodeId, reason: &str) {
    for held in find_held(draft, |held| held.envelope.from == node) {
        cancel(draft, &held, reason);
    }
    for held in find_held(draft, |held| held.envelope.to == node) {
        cancel(draft, &held, reason);
        let refusal = format!("not delivered: {reason}");
        answer_sender(draft, &held, Err(refusal));
    }
}

fn cancel(draft: &mut Draft<'_>, held: &HeldEnvelope, reason: &str) {
    record_refusal(draft, held, reason);
    let target = VerificationTarget::Gate(held.envelope.id);
    draft.perform(Effect::CancelVerification(target));
}

/// Ends all held envelopes without a result: their checks belong to another run.
pub(super) fn give_up_all(draft: &mut Draft<'_>, reason: &str) {
    for held in find_held(draft, |_| true) {
        refuse(draft, &held, reason);
        answer_sender(draft, &held, Err(format!("not delivered: {reason}")));
    }
}

/// Ends all checks of a run that is deleted.
pub(super) fn cancel_all(draft: &mut Draft<'_>) {
    let ids: Vec<EnvelopeId> = draft.run.gates.keys().copied().collect();
    for id in ids {
        draft.perform(Effect::CancelVerification(VerificationTarget::Gate(id)));
    }
}

/// Starts the checks again that were under way when the server stopped.
pub(super) fn check_again(draft: &mut Draft<'_>) {
    for held in find_held(draft, |_| true) {
        start_check(draft, held.envelope.from, held.envelope.id);
    }
}

fn find_held(draft: &Draft<'_>, is_meant: impl Fn(&HeldEnvelope) -> bool) -> Vec<HeldEnvelope> {
    let held = draft.run.gates.values().map(AsRef::as_ref);
    held.filter(|held| is_meant(held)).cloned().collect()
}
