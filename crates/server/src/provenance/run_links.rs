//! The causes of things in a run: lines, files, turns, handoffs and messages.
//!
//! A fork of a run has the ids of its origin. The oldest run that knows an id is asked, so the
//! answer does not change when a run is forked.

use std::sync::Arc;

use turnkeep_runtime::fact::TurnStep;
use turnkeep_runtime::ids::{AgentTurnId, ArtifactId, NodeId};
use turnkeep_runtime::input::{Envelope, InputId, Message};
use turnkeep_runtime::words::{ArtifactKind, MessageRole};
use turnkeep_runtime::{Event, Fact, Run};
use turnkeep_wire::json::{WhyKind, WhyLink};

use super::added_line::{LineFate, find_line};
use super::refs::{CausedRef, LineRef};
use super::{Cause, Explained, format_time, make_link, operator_link};
use crate::error::ApiError;
use crate::memory::LARGE_FROM_BYTES;
use crate::runs::RunHandle;
use crate::shared::Shared;

/// How many inputs of a turn are considered as its cause.
const INPUTS_MAX: usize = 16;
/// Who writes messages and creates runs.
const OPERATOR: &str = "operator";
/// Who writes a message that no person wrote.
const SERVER: &str = "the server";

/// The oldest run for which the check holds.
pub(super) fn find_run(shared: &Shared, has: impl Fn(&Run) -> bool) -> Option<Arc<RunHandle>> {
    let mut newest_first = shared.runs.list();
    newest_first.reverse();
    newest_first.into_iter().find(|run| run.read(&has))
}

pub(super) fn find_artifact_run(shared: &Shared, id: ArtifactId) -> Option<Arc<RunHandle>> {
    find_run(shared, |run| run.archive.artifact(id).is_some())
}

pub(super) fn find_turn_run(shared: &Shared, id: AgentTurnId) -> Option<Arc<RunHandle>> {
    find_run(shared, |run| run.archive.turn(id).is_some())
}

pub(super) fn find_input_run(shared: &Shared, id: InputId) -> Option<Arc<RunHandle>> {
    find_run(shared, |run| run.archive.input_seq(id).is_some())
}

/// A line was added by a diff.
pub(super) async fn explain_line(
    shared: &Shared,
    run: Arc<RunHandle>,
    line: LineRef,
) -> Result<Explained, ApiError> {
    let artifact = run.read(|run| run.archive.artifact(line.artifact).cloned());
    let artifact = artifact.ok_or_else(|| ApiError::not_found("the diff is gone"))?;
    let bytes = usize::try_from(artifact.bytes).unwrap_or(usize::MAX);
    // Held until the patch is searched.
    let _permit = match bytes {
        0..LARGE_FROM_BYTES => None,
        _ => Some(shared.memory.acquire(bytes).await?),
    };
    let patch = run.read_blob(artifact.content).await?;
    let patch = String::from_utf8_lossy(&patch);
    let place = format!("line {} of {}", line.line, line.path);
    let text = match find_line(&patch, &line.path, line.line) {
        LineFate::Added(text) => text,
        LineFate::Older => {
            let message = format!("{place} was there before this diff: ask an earlier one");
            return Err(ApiError::not_found(message));
        }
        LineFate::NotShown => {
            return Err(ApiError::not_found(format!(
                "this diff does not show {place}"
            )));
        }
    };
    let link = WhyLink {
        at: Some(format_time(artifact.created_at)),
        by: artifact.node.map(|node| name_of(&run, node)),
        ..make_link(WhyKind::Line, &CausedRef::Line(line), text)
    };
    let cause = Cause::Artifact(run, artifact.id);
    Ok(Explained::one(link, Some(cause)))
}

/// A file was made in a turn, or by the server for the run.
pub(super) fn explain_artifact(run: Arc<RunHandle>, id: ArtifactId) -> Result<Explained, ApiError> {
    let (artifact, turn) = run.read(|run| {
        let turn = run.archive.turn_of_artifact(id);
        (run.archive.artifact(id).cloned(), turn)
    });
    let artifact = artifact.ok_or_else(|| ApiError::not_found("the artifact is gone"))?;
    let kind = match artifact.kind {
        ArtifactKind::Diff => WhyKind::Diff,
        ArtifactKind::Prompt => WhyKind::Prompt,
        _ => WhyKind::Artifact,
    };
    let diff = artifact.diff.as_ref();
    let text = diff.map_or(&artifact.name, |diff| &diff.summary);
    let link = WhyLink {
        at: Some(format_time(artifact.created_at)),
        by: artifact.node.map(|node| name_of(&run, node)),
        ..make_link(kind, &CausedRef::Artifact(id), text)
    };
    let cause = match turn {
        Some(turn) => Cause::Turn(run, turn),
        None => Cause::Run(run),
    };
    Ok(Explained::one(link, Some(cause)))
}

/// A turn was started by its prompt, and the prompt is for the inputs that the turn consumed.
pub(super) async fn explain_turn(
    run: Arc<RunHandle>,
    id: AgentTurnId,
) -> Result<Explained, ApiError> {
    let trace = run.read(|run| run.archive.turn(id));
    let trace = trace.ok_or_else(|| ApiError::not_found("the turn is gone"))?;
    let started = read_event(&run, trace.started).await?;
    let consumed = match &started.fact {
        Fact::TurnStepped(TurnStep::Started { consumed, .. }) => consumed.as_slice(),
        _ => &[],
    };
    let first = find_first_cause(&run, consumed).await?;
    let name = name_of(&run, trace.node);
    let others = consumed.iter().filter(|input| Some(**input) != first);
    let text = format!("a turn of {name}");
    let mut links = vec![WhyLink {
        at: Some(format_time(started.at)),
        by: Some(name),
        also: others.map(ToString::to_string).take(INPUTS_MAX).collect(),
        ..make_link(WhyKind::Turn, &CausedRef::AgentTurn(id), &text)
    }];
    links.extend(trace.prompt.and_then(|prompt| prompt_link(&run, prompt)));
    // A turn without inputs was started because the run was quiet.
    let cause = match first {
        Some(input) => Cause::Input(run, input),
        None => Cause::Run(run),
    };
    let cause = Some(cause);
    Ok(Explained { links, cause })
}

fn prompt_link(run: &RunHandle, id: ArtifactId) -> Option<WhyLink> {
    let artifact = run.read(|run| run.archive.artifact(id).cloned())?;
    Some(WhyLink {
        at: Some(format_time(artifact.created_at)),
        ..make_link(WhyKind::Prompt, &CausedRef::Artifact(id), &artifact.name)
    })
}

/// The input that leads to a person: the first one that a person or an agent sent, else the first reply
/// that the server wrote in an agent's place, else the first note.
async fn find_first_cause(
    run: &Arc<RunHandle>,
    consumed: &[InputId],
) -> Result<Option<InputId>, ApiError> {
    let mut found: Option<(Sender, InputId)> = None;
    for input in consumed.iter().take(INPUTS_MAX) {
        let seq = run.read(|run| run.archive.input_seq(*input));
        let Some(seq) = seq else { continue };
        let sender = Sender::of(&read_event(run, seq).await?.fact);
        if found.is_none_or(|(best, _)| sender < best) {
            found = Some((sender, *input));
        }
        if sender == Sender::PersonOrAgent {
            break;
        }
    }
    let first = consumed.first().copied();
    Ok(found.map(|(_, input)| input).or(first))
}

/// Who sent an input, the one who explains most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sender {
    PersonOrAgent,
    /// The server, in the place of an agent.
    Proxy,
    /// The server, for itself.
    Server,
}

impl Sender {
    fn of(fact: &Fact) -> Self {
        match fact {
            Fact::MessageSent(message) if message.role != MessageRole::User => Self::Server,
            Fact::EnvelopeSent(envelope) if envelope.is_note() => Self::Server,
            Fact::EnvelopeSent(envelope) if envelope.synthesized => Self::Proxy,
            _ => Self::PersonOrAgent,
        }
    }
}

/// A handoff was sent in a turn, a message by a person.
pub(super) async fn explain_input(run: Arc<RunHandle>, id: InputId) -> Result<Explained, ApiError> {
    let seq = run.read(|run| run.archive.input_seq(id));
    let seq = seq.ok_or_else(|| ApiError::not_found("the input is gone"))?;
    let event = read_event(&run, seq).await?;
    match &event.fact {
        Fact::EnvelopeSent(envelope) => Ok(explain_handoff(run, &event, envelope)),
        Fact::MessageSent(message) => Ok(explain_message(run, &event, message)),
        _ => Err(ApiError::internal("an index names a wrong event")),
    }
}

fn explain_handoff(run: Arc<RunHandle>, event: &Event, envelope: &Envelope) -> Explained {
    let id = InputId::Envelope(envelope.id);
    let sender = name_of(&run, envelope.from);
    let (kind, by) = match Sender::of(&event.fact) {
        Sender::PersonOrAgent => (WhyKind::Handoff, sender),
        Sender::Proxy => (WhyKind::Handoff, format!("{SERVER}, for {sender}")),
        Sender::Server => (WhyKind::Note, SERVER.to_owned()),
    };
    let link = WhyLink {
        at: Some(format_time(event.at)),
        by: Some(by),
        ..make_link(kind, &id, &envelope.message)
    };
    let cause = match (
        event.turn,
        envelope.reply_to.filter(|_| envelope.synthesized),
    ) {
        (Some(turn), _) => Cause::Turn(run, turn),
        // The server returned the mail of a deleted node to its sender. The cause of this returned
        // envelope is the envelope that the sender had sent.
        (None, Some(question)) => Cause::Input(run, InputId::Envelope(question)),
        // Logs of older versions do not say of which turn a note is.
        (None, None) if envelope.synthesized => cause_of_note(run, envelope.from, event.seq),
        (None, None) => Cause::Person(operator_link()),
    };
    Explained::one(link, Some(cause))
}

fn explain_message(run: Arc<RunHandle>, event: &Event, message: &Message) -> Explained {
    let is_chat = message.role == MessageRole::User;
    let (kind, by) = if is_chat {
        (WhyKind::Message, OPERATOR)
    } else {
        (WhyKind::Note, SERVER)
    };
    let id = InputId::Message(message.id);
    let link = WhyLink {
        at: Some(format_time(message.created_at)),
        by: Some(by.to_owned()),
        ..make_link(kind, &id, &message.content)
    };
    let cause = if is_chat {
        Cause::Person(operator_link())
    } else {
        cause_of_note(run, message.node, event.seq)
    };
    Explained::one(link, Some(cause))
}

/// A note to a node is about what it did last: the turn that was interrupted, or the call whose outcome
/// the note reports.
fn cause_of_note(run: Arc<RunHandle>, node: NodeId, seq: u64) -> Cause {
    match run.read(|run| run.archive.turn_before(node, seq)) {
        Some(turn) => Cause::Turn(run, turn),
        None => Cause::Run(run),
    }
}

/// A run was created by the operator.
pub(super) fn explain_run(run: &RunHandle) -> Explained {
    let link = run.read_live(|run| WhyLink {
        at: Some(format_time(run.created_at)),
        by: Some(OPERATOR.to_owned()),
        ..make_link(WhyKind::Run, &CausedRef::Run(run.id), &run.settings.title)
    });
    Explained::one(link, Some(Cause::Person(operator_link())))
}

/// The cause of an event of the run.
pub(super) fn cause_of_event(run: Arc<RunHandle>, event: &Event) -> Cause {
    match (&event.fact, event.turn) {
        (Fact::EnvelopeSent(envelope), _) => Cause::Input(run, InputId::Envelope(envelope.id)),
        (Fact::MessageSent(message), _) => Cause::Input(run, InputId::Message(message.id)),
        (_, Some(turn)) => Cause::Turn(run, turn),
        (_, None) => Cause::Run(run),
    }
}

/// Reads one event of a run.
pub(super) async fn read_event(run: &Arc<RunHandle>, seq: u64) -> Result<Event, ApiError> {
    let mut events = run.read_events(seq, 1).await?;
    let event = events.pop();
    event.ok_or_else(|| ApiError::internal(format!("the run has no event {seq}")))
}

/// What people call a node, which may be deleted by now.
fn name_of(run: &RunHandle, node: NodeId) -> String {
    let found = run.read(|run| {
        let live = run.live.node(node).map(|node| node.name().to_owned());
        let added = || {
            run.archive
                .added_node(node)
                .map(|new| new.settings.label.clone())
        };
        live.or_else(added)
    });
    found.unwrap_or_else(|| node.to_string())
}
