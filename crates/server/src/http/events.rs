//! The event feed as server-sent events: the server replays from a position and then follows.
//!
//! The store finds the events of one context without reading those of the others. A feed that waits
//! for news of its context is woken by every commit, but then looks only at its own context.
//!
//! The feed of all contexts also carries notices for the owner (`notices`). A notice tells the client
//! to read an object again. Notices have no id and are never replayed, because a client that was away
//! reads everything again.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tokio::sync::watch;
use turnkeep_store::{Event, EventKind, FeedCursor};
use turnkeep_types::{ContextId, TurnId};
use turnkeep_wire::{ErrorCode, json};

use super::extract::{At, Query};
use super::notices::Notices;
use super::query::{EventsQuery, parse_position};
use super::sse::{self, Sender};
use crate::error::ApiError;
use crate::guarded_store::ContentReader;
use crate::shared::Shared;

/// A chunk is sent when it is this long.
const CHUNK_BYTES: usize = 16 << 10;
/// Events that the feed reads before it lets other tasks run.
const READ_EVENTS_MAX: usize = 1024;

/// All events of the store.
#[utoipa::path(get, path = "/v1/events", tag = "events",
    params(
        ("after" = Option<u64>, Query, description = "Resumes after this position; 0 replays all, none starts now"),
        ("Last-Event-ID" = Option<u64>, Header, description = "As `after`, and wins over it"),
    ),
    responses((status = 200, description = "`turn.appended`, `context.created`, `fs.attached`, `registry.put`, in a repaired store `turn.lost` and `context.lost`, and, without id and never replayed, `world.changed`, `session.changed`, `run.changed` and `attention.changed`; ignore other kinds",
        body = String, content_type = "text/event-stream")))]
pub(crate) async fn all(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let content = shared.store.open_feed(None).await?;
    stream(&shared, content, None, start_position(query, &headers)?)
}

/// The events of one context: what happened to it and was appended to it, not what it inherited.
#[utoipa::path(get, path = "/v1/contexts/{context_id}/events", tag = "events",
    params(
        ("context_id" = json::Id, Path),
        ("after" = Option<u64>, Query, description = "Resumes after this position; 0 replays all, none starts now"),
        ("Last-Event-ID" = Option<u64>, Header, description = "As `after`, and wins over it"),
    ),
    responses((status = 200, description = "`turn.appended`, `context.created`, `fs.attached`, in a repaired store `turn.lost` and `context.lost`; ignore other kinds",
        body = String, content_type = "text/event-stream")))]
pub(crate) async fn of_context(
    State(shared): State<Arc<Shared>>,
    At(context): At<ContextId>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // An unknown context is 404, not a stream that stays empty.
    shared.store.context(context)?;
    let content = shared.store.open_feed(Some(context)).await?;
    let after = start_position(query, &headers)?;
    stream(&shared, content, Some(context), after)
}

fn stream(
    shared: &Arc<Shared>,
    content: ContentReader,
    context: Option<ContextId>,
    after: Option<u64>,
) -> Result<Response, ApiError> {
    let last = content.last_position();
    let after = after.unwrap_or(last);
    // The reader saw this position in another store, or in this one before it lost its end. Waiting
    // for the position would skip events that the reader has not seen.
    if after > last {
        let message = format!("position {after} is beyond the end of the feed, which is {last}");
        return Err(
            ApiError::new(ErrorCode::Conflict, message).with("last_position", last.to_string())
        );
    }
    let notices = context.is_none().then(|| Notices::subscribe(shared));
    let feed = |sender| {
        Feed {
            shared: Arc::clone(shared),
            events: content.feed(context, after),
            content,
            notices,
            sender,
        }
        .follow()
    };
    Ok(sse::respond(shared, feed))
}

/// The position to start after. A browser that reconnects requests the same address and adds the
/// id that it saw last, so that id wins.
fn start_position(query: EventsQuery, headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(seen) = sse::last_event_id(headers) else {
        return Ok(query.after);
    };
    let position = std::str::from_utf8(seen).ok().and_then(parse_position);
    position
        .map(Some)
        .ok_or_else(|| ApiError::bad_request("Last-Event-ID is not a position"))
}

struct Feed {
    shared: Arc<Shared>,
    content: ContentReader,
    events: FeedCursor,
    /// Notices, for the feed of all contexts.
    notices: Option<Notices>,
    sender: Sender,
}

impl Feed {
    /// Sends events until the reader is gone.
    async fn follow(mut self) {
        let mut positions = self.shared.store.watch_position();
        let period = self.shared.config.timeouts.sse_ping;
        let mut chunk = String::from(sse::OPEN);
        loop {
            let caught_up = self.fill(&mut chunk);
            if !chunk.is_empty() {
                let filled = std::mem::take(&mut chunk);
                if self.sender.send(Ok(filled.into())).await.is_err() {
                    return;
                }
            }
            // A long replay must not keep the other tasks of this thread waiting.
            if !caught_up {
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                () = self.sender.closed() => return,
                news = wait_for_news(&mut self.events, &mut positions) => if news.is_err() { return },
                notices = due_notices(self.notices.as_mut()) => notices.push_due(&mut chunk),
                () = tokio::time::sleep(period) => chunk.push_str(sse::PING),
            }
        }
    }

    /// Adds events to a chunk. Returns whether there are no more for now.
    fn fill(&mut self, chunk: &mut String) -> bool {
        let last = self.content.last_position();
        for _ in 0..READ_EVENTS_MAX {
            if chunk.len() >= CHUNK_BYTES {
                return false;
            }
            let Some(event) = self.events.next_up_to(last) else {
                return true;
            };
            push_event(chunk, &self.content, &event);
        }
        false
    }
}

/// Waits until the feed has a next event. Events of other contexts do not end the wait, so they do
/// not put off a ping.
async fn wait_for_news(
    events: &mut FeedCursor,
    positions: &mut watch::Receiver<u64>,
) -> Result<(), watch::error::RecvError> {
    loop {
        // An event that was appended since the last look is found at once: the look is at the last
        // position, and not at what changes from now on.
        let last = *positions.borrow_and_update();
        if events.peek_up_to(last).is_some() {
            return Ok(());
        }
        positions.changed().await?;
    }
}

/// Waits until notices are due; forever if the feed has none.
async fn due_notices(notices: Option<&mut Notices>) -> &mut Notices {
    match notices {
        Some(notices) => {
            notices.wait_until_due().await;
            notices
        }
        None => std::future::pending().await,
    }
}

/// Adds an event, unless it has nothing to show.
fn push_event(out: &mut String, store: &ContentReader, event: &Event) {
    let (kind, data) = match &event.kind {
        EventKind::TurnAppended(id) if store.turn(*id).is_err() => ("turn.lost", turn_lost(*id)),
        EventKind::TurnAppended(id) => ("turn.appended", turn_appended(store, *id)),
        EventKind::ContextCreated(id) if is_creation_lost(store, *id) => {
            ("context.lost", context_lost(*id))
        }
        EventKind::ContextCreated(id) => ("context.created", context_created(store, *id)),
        EventKind::FsAttached(id) => ("fs.attached", fs_attached(store, *id)),
        EventKind::RegistryPut(id) => ("registry.put", registry_put(id)),
    };
    if let Some(data) = data {
        sse::push_event(out, event.position, kind, data);
    }
}

fn turn_appended(store: &ContentReader, id: TurnId) -> Option<String> {
    let turn = store.turn(id).ok()?;
    let event = json::TurnAppended {
        context_id: turn.context.into(),
        turn_id: turn.id.into(),
        parent_turn_id: turn.parent.into(),
        depth: turn.depth,
        declared_type: json::TypeName {
            type_id: turn.declared.id.as_ref().to_owned(),
            type_version: turn.declared.version,
        },
        encoding: turn.encoding,
        content_hash_b3: json::Hash(turn.hash),
        uncompressed_len: turn.raw_len,
        fs_root_hash: turn.fs_root.map(json::Hash),
        created_at: json::Time(turn.created_at),
    };
    encode(&event)
}

/// An event's data. It is a plain struct, so encoding it cannot fail.
fn encode(event: &impl serde::Serialize) -> Option<String> {
    serde_json::to_string(event).ok()
}

fn turn_lost(id: TurnId) -> Option<String> {
    encode(&json::TurnLost { turn_id: id.into() })
}

fn is_creation_lost(store: &ContentReader, id: ContextId) -> bool {
    store.context(id).is_ok_and(|context| context.creation_lost)
}

fn context_lost(id: ContextId) -> Option<String> {
    encode(&json::ContextLost {
        context_id: id.into(),
    })
}

fn context_created(store: &ContentReader, id: ContextId) -> Option<String> {
    let created_at = json::Time(store.context(id).ok()?.created_at);
    encode(&json::ContextCreated {
        context_id: id.into(),
        created_at,
    })
}

fn fs_attached(store: &ContentReader, id: TurnId) -> Option<String> {
    let turn = store.turn(id).ok()?;
    let fs_root_hash = json::Hash(turn.fs_root?);
    encode(&json::FsAttached {
        context_id: turn.context.into(),
        turn_id: id.into(),
        fs_root_hash,
    })
}

fn registry_put(id: &str) -> Option<String> {
    encode(&json::RegistryPut {
        bundle_id: id.to_owned(),
    })
}
