//! A view as it grows, as server-sent events: pages from a cursor on, then each page as it is written.
//!
//! An event is a projection that holds at least one entry, and its id is the cursor behind it, so a reader
//! resumes where it was. What is hidden from the reader sends nothing, not even a sign of life: those come
//! by the clock alone. A subscription ends when its token no longer counts.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tokio::time::MissedTickBehavior;
use turnkeep_ledger::projection::{self, PAGE_ENTRIES_MAX, Projection};
use turnkeep_ledger::{Fault, cursor};

use super::super::extract::Query;
use super::super::query::SubscribeQuery;
use super::super::sse::{self, Sender};
use super::seat::Seat;
use super::stream::{UNNAMED_REQUEST, at};
use crate::error::ApiError;
use crate::shared::Shared;

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
    let seen = sse::last_event_id(&headers).map(|seen| String::from_utf8_lossy(seen).into_owned());
    let cursor = seen.or(query.cursor);
    if let Some(cursor) = &cursor {
        seat.room.read(|world| cursor::read(&world.view(seat.viewer()), cursor, "cursor").map(drop))?;
    }
    Ok(sse::respond(&shared, |sender| Feed { shared: Arc::clone(&shared), seat, cursor, sender }.follow()))
}

struct Feed {
    shared: Arc<Shared>,
    seat: Seat,
    cursor: Option<String>,
    sender: Sender,
}

impl Feed {
    async fn follow(mut self) {
        let mut news = self.seat.room.changed();
        let mut ping = tokio::time::interval(self.shared.config.timeouts.sse_ping);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ping.tick().await;
        loop {
            news.borrow_and_update();
            if !self.catch_up().await {
                return;
            }
            tokio::select! {
                () = self.sender.closed() => return,
                news = news.changed() => if news.is_err() { return } else { continue },
                _ = ping.tick() => {}
            }
            if !self.counts() || self.sender.send(Ok(sse::PING.into())).await.is_err() {
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
                Err(error) => {
                    tracing::debug!(%error, "a subscription ends");
                    return false;
                }
            };
            let mut event = String::new();
            let id = page.cursor_after.as_deref().unwrap_or_default();
            sse::push_event(&mut event, id, "projection", page.value);
            self.cursor = page.cursor_after;
            if self.sender.send(Ok(event.into())).await.is_err() {
                return false;
            }
        }
    }

    /// The next page, if it holds anything.
    async fn page(&self) -> Result<Option<Projection>, ApiError> {
        let (viewer, cursor) = (self.seat.viewer(), self.cursor.clone());
        let has_more = self.seat.room.read(|world| {
            let view = world.view(viewer.clone());
            let seen = cursor.as_deref().map_or(Ok(0), |cursor| cursor::read(&view, cursor, "cursor"))?;
            Ok::<_, Fault>(seen < view.count())
        });
        if !has_more? {
            return Ok(None);
        }
        let room = Arc::clone(&self.seat.room);
        let read = move || {
            let page = room.study(|world| {
                projection::read(&world.view(viewer), UNNAMED_REQUEST, cursor.as_deref(), PAGE_ENTRIES_MAX)
            });
            page.map(Some).map_err(|fault| at(fault, "cursor").into())
        };
        self.shared.blocking(read).await
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
