//! The causes of a turn of the store: the event or the line of a transcript that it records, else
//! the conversation that it belongs to.

use std::sync::Arc;

use turnkeep_runtime::input::InputId;
use turnkeep_runtime::words::MessageRole;
use turnkeep_store::Turn;
use turnkeep_types::{ContextId, TurnId};
use turnkeep_wire::json::{WhyKind, WhyLink};
use turnkeep_wire::transcript::{Origin, TranscriptItem, decode_item};

use super::refs::CausedRef;
use super::{Cause, Explained, format_time, make_link, operator_link, run_links};
use crate::error::ApiError;
use crate::runs::RunHandle;
use crate::shared::Shared;

pub(super) async fn explain_turn(shared: &Arc<Shared>, id: TurnId) -> Result<Explained, ApiError> {
    let turn = shared.store.turn(id)?;
    if let Some(world) = shared.worlds.context_owner(turn.context) {
        let message = format!("turn {id} is a record of the world {world}: ask for its entry:ID");
        return Err(ApiError::not_found(message));
    }
    let Some(owner) = shared.runs.context_owner(turn.context) else {
        return explain_conversation(shared, &turn);
    };
    let run = shared.runs.get(owner)?;
    // A run's events are the turns of one context, in order: event 1 has the depth 0.
    if run.events_context() == turn.context {
        let event = run_links::read_event(&run, u64::from(turn.depth) + 1).await?;
        let link = turn_link(&turn, event.fact.wire_name());
        let cause = run_links::cause_of_event(run, &event);
        return Ok(Explained::one(link, Some(cause)));
    }
    explain_transcript(shared, run, &turn).await
}

fn turn_link(turn: &Turn, text: &str) -> WhyLink {
    WhyLink {
        at: Some(format_time(turn.created_at)),
        ..make_link(WhyKind::Turn, &CausedRef::StoreTurn(turn.id), text)
    }
}

/// A turn that belongs to no run: its context names the conversation.
fn explain_conversation(shared: &Shared, turn: &Turn) -> Result<Explained, ApiError> {
    let context = shared.store.context(turn.context)?;
    let labels = context.labels.iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let conversation = WhyLink {
        at: Some(format_time(context.created_at)),
        ..make_link(
            WhyKind::Context,
            &CausedRef::Context(context.id),
            &labels.join(" "),
        )
    };
    let links = vec![turn_link(turn, &turn.declared.to_string()), conversation];
    Ok(Explained { links, cause: None })
}

/// A line of a node's transcript.
async fn explain_transcript(
    shared: &Arc<Shared>,
    run: Arc<RunHandle>,
    turn: &Turn,
) -> Result<Explained, ApiError> {
    let written_in: [ContextId; 1] = [turn.context];
    let content = shared
        .store
        .open_turns(written_in.into_iter(), "why")
        .await?;
    let payload = content.payload(turn)?;
    let raw = payload.raw()?;
    let item = decode_item(&turn.declared, &raw).map_err(ApiError::internal)?;
    let (origin, text) = describe_item(&item);
    let link = turn_link(turn, &text);
    let cause = cause_of_item(run, &item, origin);
    Ok(Explained::one(link, Some(cause)))
}

/// What made a node say or get this.
fn cause_of_item(run: Arc<RunHandle>, item: &TranscriptItem, origin: &Origin) -> Cause {
    let in_turn = || origin.turn.as_ref()?.parse().ok();
    match item {
        TranscriptItem::Handoff(handoff) => match handoff.envelope.parse() {
            Ok(envelope) => Cause::Input(run, InputId::Envelope(envelope)),
            Err(_) => Cause::Run(run),
        },
        TranscriptItem::UserMessage(message) if message.role == MessageRole::User.word() => {
            Cause::Person(operator_link())
        }
        _ => match in_turn() {
            Some(turn) => Cause::Turn(run, turn),
            None => Cause::Run(run),
        },
    }
}

fn describe_item(item: &TranscriptItem) -> (&Origin, String) {
    match item {
        TranscriptItem::UserMessage(message) => (&message.origin, message.text.clone()),
        TranscriptItem::AssistantMessage(message) => (&message.origin, message.text.clone()),
        TranscriptItem::Thinking(thinking) => (&thinking.origin, thinking.text.clone()),
        TranscriptItem::ToolCall(call) => (&call.origin, format!("call of {}", call.name)),
        TranscriptItem::ToolResult(result) => (&result.origin, "result of a tool".to_owned()),
        TranscriptItem::Handoff(handoff) => (&handoff.origin, handoff.message.clone()),
        TranscriptItem::Usage(usage) => (&usage.origin, "what a turn used".to_owned()),
    }
}
