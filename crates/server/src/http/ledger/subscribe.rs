//! A view as it grows, as server-sent events: pages from a cursor on, then each page as it is written.
//!
//! An event is a projection that holds at least one entry, and its id is the cursor behind it, so a reader
//! resumes where it was. What is hidden from the reader sends nothing, not even a sign of life: those come
//! by the clock alone. A subscription ends when its token no longer counts.

use std::fmt::Write;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tokio::sync::mpsc::Sender;
use tokio::time::MissedTickBehavior;
use turnkeep_ledger::projection::{self, PAGE_ENTRIES_MAX, Projection};
use turnkeep_ledger::{Fault, cursor};

use super::super::body::ChannelBody;
use super::super::extract::Query;
use super::super::query::SubscribeQuery;
use super::seat::Seat;
use super::stream::{UNNAMED_REQUEST, at};
use crate::error::ApiError;
use crate::shared::Shared;

/// Chunks that may wait for a reader.
const CHUNKS_MAX: usize = 4;

/// Follows a view. Watching changes nothing.
#[utoipa::path(get, path = "/v1/worlds/{world}/subscribe", tag = "ledger",
    params(
        ("world" = String, Path),
        ("cursor" = Option<String>, Query, description = "Resumes behind this cursor; none starts at the beginning"),
        ("as" = Option<String>, Query, description = "Owner: as this person"),
        ("Last-Event-ID" = Option<String>, Header, description = "As `cursor`, and wins over it"),
    ),
    responses((status = 200, description = "Events of kind `projection`, each a ProjectionOutput whose `cursor_after` is the event's id",
        body = String, content_type = "text/event-stream")))]
pub(crate) async fn subscribe(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<SubscribeQuery>,
    seat: Seat,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let cursor = match headers.get("last-event-id").map(|value| value.to_str()) {
        None => query.cursor,
        Some(Ok(seen)) => Some(seen.to_owned()),
        Some(Err(_)) => return Err(ApiError::bad_request("Last-Event-ID is not a cursor")),
    };
    if let Some(cursor) = &cursor {
        seat.room.read(|world| cursor::read(&world.view(seat.viewer()), cursor, "cursor").map(drop))?;
    }
    let (sender, body) = ChannelBody::new(CHUNKS_MAX);
    shared.spawn(Feed { shared: Arc::clone(&shared), seat, cursor, sender }.run());
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    Ok((headers, Body::new(body)).into_response())
}

struct Feed {
    shared: Arc<Shared>,
    seat: Seat,
    cursor: Option<String>,
    sender: Sender<std::io::Result<Bytes>>,
}

impl Feed {
    async fn run(mut self) {
        let stopping = self.shared.stopping.clone();
        tokio::select! {
            () = stopping.cancelled() => {}
            () = self.follow() => {}
        }
    }

    async fn follow(&mut self) {
        let mut news = self.seat.room.changed();
        let mut ping = tokio::time::interval(self.shared.config.timeouts.sse_ping);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ping.tick().await;
        loop {
            news.borrow_and_update();
            if !self.catch_up().await {
                return;
            }
            let chunk = tokio::select! {
                () = self.sender.closed() => return,
                news = news.changed() => if news.is_err() { return } else { continue },
                _ = ping.tick() => Bytes::from_static(b": ping\n\n"),
            };
            if !self.counts() || self.sender.send(Ok(chunk)).await.is_err() {
                return;
            }
        }
    }

    /// Sends what is visible and was not sent yet; says whether the reader is still there.
    async fn catch_up(&mut self) -> bool {
        loop {
            if !self.counts() {
                return false;
            }
            let page = match self.page().await {
                Ok(Some(page)) => page,
                Ok(None) => return true,
                Err(fault) => {
                    tracing::debug!(code = %fault.code, "a subscription ends");
                    return false;
                }
            };
            let mut event = String::new();
            let id = page.cursor_after.as_deref().unwrap_or_default();
            if write!(event, "id: {id}\nevent: projection\ndata: {}\n\n", page.value).is_err() {
                return false;
            }
            self.cursor = page.cursor_after;
            if self.sender.send(Ok(event.into())).await.is_err() {
                return false;
            }
        }
    }

    /// The next page, if it holds anything.
    async fn page(&self) -> Result<Option<Projection>, Fault> {
        let page = self.seat.room.read(|world| {
            let (view, cursor) = (world.view(self.seat.viewer()), self.cursor.as_deref());
            let seen = cursor.map_or(Ok(0), |cursor| cursor::read(&view, cursor, "cursor"))?;
            if seen == view.count() {
                return Ok(None);
            }
            projection::read(&view, UNNAMED_REQUEST, cursor, PAGE_ENTRIES_MAX).map(Some)
        });
        tokio::task::yield_now().await;
        page.map_err(|fault| at(fault, "cursor"))
    }

    /// Whether whoever opened the subscription may still read.
    fn counts(&self) -> bool {
        let Some(token) = self.seat.token else { return true };
        let now = self.seat.room.now();
        let counts = |world: &turnkeep_ledger::World| {
            world.token(token).is_some_and(|token| token.expires_at.is_none_or(|end| end > now))
        };
        self.seat.room.read(counts)
    }
}
