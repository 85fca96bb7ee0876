//! Every question gets an answer: if a turn ends without one, the server sends the agent's last
//! message in its place.

use crate::fact::NodeChange;
use crate::ids::{ArtifactId, NodeId};
use crate::input::{Envelope, EnvelopeStatus, Input};
use crate::turn::OpenTurn;
use crate::words::Expectation;

use super::Draft;
use super::gates::{self, Delivery};
use super::turns::{ProgramEnd, failure_of};

/// A synthesized reply quotes at most so many characters of the final message.
const REPLY_CHARACTERS_MAX: usize = 2000;

/// Sends a reply for every question that the ending turn, or an interrupted one before it, consumed
/// and did not answer.
pub(super) fn send_owed_replies(draft: &mut Draft<'_>, end: &ProgramEnd, diff: ArtifactId) {
    let Some(node) = draft.run.node(end.node) else {
        return;
    };
    // A turn that a pause stopped goes on later, and may still answer.
    let Some(open) = node.turn.clone().filter(|turn| !turn.continues_later()) else {
        return;
    };
    // The oldest first, as they were asked.
    let consumed = open.consumed.iter().filter_map(Input::as_envelope);
    let questions: Vec<Envelope> = node.owed.iter().chain(consumed).cloned().collect();
    // Before the first reply of the server: those answer one question each.
    let is_due = |question: &Envelope| !has_written_to(draft, &open, end.node, question.from);
    let questions: Vec<Envelope> = questions.into_iter().filter(is_due).collect();
    for question in &questions {
        if is_owed(draft, question) {
            let envelope = synthesize_reply(draft, end, question, &open, diff);
            let delivery = Delivery {
                envelope,
                turn: Some(end.turn),
                tool: None,
            };
            gates::deliver(draft, delivery);
        }
    }
}

/// Whether the question still needs a reply. Any reply settles it, whoever wrote it, and so does one
/// that waits at a gate.
fn is_owed(draft: &Draft<'_>, question: &Envelope) -> bool {
    question.expectation == Expectation::Required
        && is_unanswered(draft, question)
        && !draft.run.holds_reply_to(question.id)
}

/// Whether the turn has sent the asker something itself. One envelope answers all questions of a node.
fn has_written_to(draft: &Draft<'_>, open: &OpenTurn, from: NodeId, asker: NodeId) -> bool {
    open.sent_to.contains(&asker) || draft.run.holds_reply(from, asker)
}

fn is_unanswered(draft: &Draft<'_>, question: &Envelope) -> bool {
    let asker = draft.run.node(question.from);
    asker.is_some_and(|asker| asker.unanswered.contains(&question.id))
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

/// Sends the mail of a node that is deleted back to its senders. Returns the inputs that have no
/// sender to go back to.
pub(super) fn return_mail(draft: &mut Draft<'_>, id: NodeId) -> Vec<Input> {
    let Some(node) = draft.run.node(id) else {
        return Vec::new();
    };
    // Mail that the node has read goes back only if the sender still waits for a reply.
    let read = node.owed.iter().filter(|owed| is_unanswered(draft, owed));
    let mut returned: Vec<Envelope> = read.cloned().collect();
    let mut dropped = Vec::new();
    for input in node.inbox.inputs() {
        match input
            .as_envelope()
            .filter(|mail| has_sender(draft, id, mail))
        {
            Some(mail) => returned.push(mail.clone()),
            None => dropped.push(input.clone()),
        }
    }
    for envelope in returned {
        return_envelope(draft, id, envelope, "the node was deleted");
    }
    dropped
}

/// Answers the questions of a node whose inbox is cleared: those that wait in it, and those that an
/// interrupted turn has read and that a later turn would have answered. Their askers would wait for
/// ever.
pub(super) fn refuse_waiting_questions(draft: &mut Draft<'_>, id: NodeId) {
    let Some(node) = draft.run.node(id) else {
        return;
    };
    let mail = node.inbox.inputs().iter().filter_map(Input::as_envelope);
    let questions: Vec<Envelope> = node
        .owed
        .iter()
        .chain(mail)
        .filter(|mail| is_owed(draft, mail) && has_sender(draft, id, mail))
        .cloned()
        .collect();
    for question in questions {
        return_envelope(draft, id, question, "the inbox was cleared");
    }
}

/// A deleted sender, or the server's mail to the node itself, has no inbox to return to.
fn has_sender(draft: &Draft<'_>, id: NodeId, mail: &Envelope) -> bool {
    mail.from != id && draft.run.node(mail.from).is_some()
}

fn return_envelope(draft: &mut Draft<'_>, from: NodeId, envelope: Envelope, reason: &str) {
    let returned = Envelope {
        id: draft.draw_id(),
        from,
        to: envelope.from,
        created_at: draft.now(),
        status: Some(EnvelopeStatus {
            ok: false,
            reason: Some(reason.to_owned()),
        }),
        expectation: Expectation::None,
        reply_to: Some(envelope.id),
        synthesized: true,
        ..envelope
    };
    let to = returned.to;
    draft.record_for(from, crate::Fact::EnvelopeSent(Box::new(returned)));
    draft.change_node(to, NodeChange::InboxCounted);
}
