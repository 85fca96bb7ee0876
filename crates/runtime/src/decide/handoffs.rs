//! Handoffs: one node gives another something to work on, along an edge.

use serde_json::Value;

use crate::artifact::Artifact;
use crate::ids::{ArtifactId, EnvelopeId, NodeId, ToolId};
use crate::input::{Envelope, EnvelopeStatus, Input};
use crate::live::LiveRun;
use crate::node::Node;
use crate::rejection::Rejection;
use crate::request::MadeId;
use crate::run::Run;
use crate::words::{ArtifactKind, EdgeKind, Expectation};

use super::draft::ArtifactOwner;
use super::gates::{self, Delivered, Delivery};
use super::{Decision, Draft, Surroundings, find_node, schedule};

/// The longest message of an envelope.
const MESSAGE_BYTES_MAX: usize = 16 << 10;
/// The longest structured part of an envelope, as JSON.
const STRUCTURED_BYTES_MAX: usize = 64 << 10;

/// The longest context pack. It stands in the prompt as a whole.
const CONTEXT_PACK_BYTES_MAX: u64 = 1 << 20;

/// An envelope to send.
#[derive(Debug, Clone)]
pub struct Handoff<'a> {
    pub from: NodeId,
    /// The receiver's id or alias.
    pub to: &'a str,
    pub message: &'a str,
    pub structured: Option<Value>,
    pub artifacts: Vec<ArtifactId>,
    pub status: Option<EnvelopeStatus>,
    /// Whether the receiver owes a reply; the direction of the edge decides without one.
    pub expectation: Option<Expectation>,
    pub reply_to: Option<EnvelopeId>,
    /// What the receiver reads before its task. An artifact of another kind is made a context pack.
    pub context_pack: Option<ArtifactId>,
}

/// Sends an envelope. An invalid one is not delivered at all.
pub fn send_handoff(
    run: &Run,
    around: Surroundings<'_>,
    handoff: Handoff<'_>,
) -> Result<Decision<EnvelopeId>, Rejection> {
    let mut draft = Draft::new(run, around);
    let sent = record_handoff(&mut draft, handoff, None)?;
    draft.note_made(MadeId::Envelope(sent.id));
    schedule::start_ready_turns(&mut draft);
    Ok(draft.finish(sent.id))
}

/// An envelope that was recorded.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordedHandoff {
    pub(super) id: EnvelopeId,
    pub(super) to: NodeId,
    pub(super) delivered: Delivered,
}

/// Checks and records an envelope. `tool` is the call that waits if a gate holds it.
pub(super) fn record_handoff(
    draft: &mut Draft<'_>,
    handoff: Handoff<'_>,
    tool: Option<ToolId>,
) -> Result<RecordedHandoff, Rejection> {
    check_sizes(&handoff)?;
    // Before anything is recorded: the receiver could not read what does not exist.
    for artifact in handoff.artifacts.iter().chain(&handoff.context_pack) {
        draft
            .archive
            .artifact(*artifact)
            .ok_or(Rejection::UnknownArtifact(*artifact))?;
    }
    let pack = handoff.context_pack;
    let pack = pack.and_then(|pack| draft.archive.artifact(pack)).cloned();
    check_pack(pack.as_deref())?;
    let from = draft
        .run
        .node(handoff.from)
        .ok_or(Rejection::NodeGone(handoff.from))?;
    let to = find_node(&draft.run, handoff.to)?;
    let route = find_route(&draft.run, from, to)?;
    // Agents rarely name the envelope that they answer. Without this, the server would send a second
    // answer at the end of the turn.
    let answered = handoff
        .reply_to
        .or_else(|| find_question(&draft.run, from, to));
    if let Some(question) = handoff.reply_to.filter(|id| !may_answer(from, to, *id)) {
        return Err(Rejection::NoSuchQuestion(question));
    }
    let usual = match (route, answered) {
        (Route::Task, None) => Expectation::Required,
        (Route::Report, _) | (Route::Task, Some(_)) => Expectation::None,
    };
    let (from, to, turn) = (from.id, to.id, from.turn.as_ref().map(|turn| turn.id));
    let owner = ArtifactOwner {
        node: Some(from),
        turn,
    };
    let pack = pack.map(|source| make_pack(draft, owner, &source));
    let envelope = Envelope {
        id: draft.draw_id(),
        from,
        to,
        created_at: draft.now(),
        message: handoff.message.to_owned(),
        structured: handoff.structured,
        artifacts: handoff.artifacts,
        status: handoff.status,
        expectation: handoff.expectation.unwrap_or(usual),
        reply_to: answered,
        context_pack: pack,
        synthesized: false,
    };
    let id = envelope.id;
    let delivery = Delivery {
        envelope,
        turn,
        tool,
    };
    let delivered = gates::deliver(draft, delivery);
    Ok(RecordedHandoff { id, to, delivered })
}

fn check_sizes(handoff: &Handoff<'_>) -> Result<(), Rejection> {
    let structured = handoff
        .structured
        .as_ref()
        .map_or(0, |value| value.to_string().len());
    check_size("`structured`", structured, STRUCTURED_BYTES_MAX)?;
    check_message(handoff.message)
}

/// Rejects a message that no envelope may have.
pub(super) fn check_message(message: &str) -> Result<(), Rejection> {
    if message.trim().is_empty() {
        return Err(Rejection::Empty("message"));
    }
    check_size("`message`", message.len(), MESSAGE_BYTES_MAX)
}

fn check_pack(pack: Option<&Artifact>) -> Result<(), Rejection> {
    let bytes = pack.map_or(0, |pack| pack.bytes);
    if bytes <= CONTEXT_PACK_BYTES_MAX {
        return Ok(());
    }
    Err(Rejection::TooLarge {
        what: "the artifact of `contextRef`",
        bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        max: usize::try_from(CONTEXT_PACK_BYTES_MAX).unwrap_or(usize::MAX),
        hint: "name it in `artifacts`, and the receiver reads it in parts",
    })
}

/// The context pack with the content of an artifact: the artifact itself if it is one, one that was
/// made before, or a new one.
fn make_pack(draft: &mut Draft<'_>, owner: ArtifactOwner, source: &Artifact) -> ArtifactId {
    if source.kind == ArtifactKind::ContextPack {
        return source.id;
    }
    let mut known = draft.archive.artifacts();
    let made = known.find(|artifact| {
        artifact.kind == ArtifactKind::ContextPack && artifact.content == source.content
    });
    if let Some(made) = made {
        return made.id;
    }
    draft.copy_artifact(owner, source, ArtifactKind::ContextPack)
}

fn check_size(what: &'static str, bytes: usize, max: usize) -> Result<(), Rejection> {
    if bytes <= max {
        return Ok(());
    }
    Err(Rejection::TooLarge {
        what,
        bytes,
        max,
        hint: "keep it as an artifact and hand that over",
    })
}

/// What an edge carries in the direction of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    /// Along a handoff edge: the receiver owes a reply.
    Task,
    /// Along a report edge, or against the direction of a handoff edge.
    Report,
}

fn find_route(run: &LiveRun, from: &Node, to: &Node) -> Result<Route, Rejection> {
    let mut carrying = run
        .edges
        .values()
        .filter(|edge| edge.carries(from.id, to.id))
        .peekable();
    if carrying.peek().is_none() {
        // An agent reads the error, so it names the nodes that would work.
        let reachable = run.nodes().filter(|node| {
            run.edges
                .values()
                .any(|edge| edge.carries(from.id, node.id))
        });
        return Err(Rejection::NoEdge {
            from: from.name().to_owned(),
            to: to.name().to_owned(),
            reachable: reachable.map(|node| node.name().to_owned()).collect(),
        });
    }
    // A task wins where both kinds of edges lead: an answer too many does no harm, a missing one does.
    let is_task = carrying.any(|edge| edge.kind == EdgeKind::Handoff && edge.from == from.id);
    Ok(if is_task { Route::Task } else { Route::Report })
}

/// Whether the receiver waits for an answer to this envelope, or the sender works on it. An answer to
/// an `optional` question is welcome, but nothing waits for it.
fn may_answer(from: &Node, to: &Node, question: EnvelopeId) -> bool {
    let mut read = mail_at_work(from, to);
    to.unanswered.contains(&question) || read.any(|mail| mail.id == question)
}

/// The envelopes of the receiver that the sender's open turn consumed. A turn that goes on after an
/// interrupt still owes what the interrupted one had read.
fn mail_at_work<'a>(from: &'a Node, to: &'a Node) -> impl Iterator<Item = &'a Envelope> {
    let consumed = from.turn.iter().flat_map(|turn| &turn.consumed);
    let read = consumed.filter_map(Input::as_envelope).chain(&from.owed);
    read.filter(|mail| mail.from == to.id)
}

/// The question of the receiver that the sender's open turn consumed and has not answered.
fn find_question(run: &LiveRun, from: &Node, to: &Node) -> Option<EnvelopeId> {
    from.turn.as_ref()?;
    let open = mail_at_work(from, to)
        .find(|question| to.unanswered.contains(&question.id) && !run.holds_reply_to(question.id));
    open.map(|question| question.id)
}
