//! A view as it grows, as server-sent events: pages from a cursor on, then each page as it is
//! written.
//!
//! An event is a projection that holds at least one entry, and its id is the cursor behind it, so a
//! reader resumes where it was. What is hidden from the reader sends nothing, not even a sign of
//! life: those come by the clock alone. A subscription ends when its token no longer counts.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tokio::time::MissedTickBehavior;
use turnkeep_ledger::projection::{self, PAGE_ENTRIES_MAX, Projection};
use turnkeep_ledger::{Fault, World, cursor};

use super::super::extract::Query;
use super::super::query::SubscribeQuery;
use super::super::sse::{self, Sender};
use super::seat::Seat;
use super::stream::{UNNAMED_REQUEST, at};
use crate::error::ApiError;
use crate::ledger::{HeldPage, PageKey, SharedPage};
use crate::shared::Shared;

/// Follows a view. Watching changes nothing.
#[utoipa::path(get, path = "/v1/worlds/{world}/subscribe", tag = "ledger",
    params(
        ("world" = String, Path),
        ("cursor" = Option<String>, Query, description = "Resumes behind this cursor; none starts at the beginning"),
        ("audience" = Option<String>, Query, description = "`1` adds `visibility` to each entry: who may see it"),
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
        seat.handle
            .read(|world| cursor::read(&world.view(seat.viewer()), cursor, "cursor").map(drop))?;
    }
    let audience = query.audience;
    let feed = |sender| Feed {
        shared: Arc::clone(&shared),
        seat,
        cursor,
        audience,
        sender,
        held: None,
    };
    Ok(sse::respond(&shared, |sender| feed(sender).follow()))
}

struct Feed {
    shared: Arc<Shared>,
    seat: Seat,
    cursor: Option<String>,
    audience: bool,
    sender: Sender,
    /// The last page, held for subscribers that are a little later.
    held: Option<HeldPage>,
}

impl Feed {
    async fn follow(mut self) {
        let mut news = self.seat.handle.subscribe_position();
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
            // A page that is asked for at all is asked for right after the commit.
            self.held = None;
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
            let held = match self.page().await {
                Ok(Some(held)) => held,
                Ok(None) => return true,
                Err(error) => {
                    tracing::debug!(%error, "a subscription ends");
                    return false;
                }
            };
            self.cursor.clone_from(&held.page.cursor_after);
            let event = held.page.event.clone();
            self.held = Some(held);
            if self.sender.send(Ok(event)).await.is_err() {
                return false;
            }
        }
    }

    /// The next page, if it holds anything. Everybody with the same eyes and the same cursor gets
    /// the same one.
    async fn page(&self) -> Result<Option<HeldPage>, ApiError> {
        let handle = &self.seat.handle;
        let key = PageKey {
            viewer: self.seat.viewer(),
            cursor: self.cursor.clone(),
            audience: self.audience,
        };
        // The version is read first: a page may be newer than its version says, never older.
        let version = handle.version();
        let has_more = handle.read(|world| {
            let view = world.view(key.viewer.clone());
            let cursor = key.cursor.as_deref();
            let seen = cursor.map_or(Ok(0), |cursor| cursor::read(&view, cursor, "cursor"))?;
            Ok::<_, Fault>(seen < view.count())
        });
        if !has_more? {
            return Ok(None);
        }
        let make = || self.make_page(key.clone());
        handle
            .pages()
            .get(version, key.clone(), make)
            .await
            .map(Some)
    }

    async fn make_page(&self, key: PageKey) -> Result<SharedPage, ApiError> {
        self.shared.metrics.count_stream_page();
        let handle = Arc::clone(&self.seat.handle);
        let read = move || {
            handle
                .read_long(|world| event_of(world, &key))
                .map_err(|fault| at(fault, "cursor").into())
        };
        self.shared.blocking(read).await
    }

    /// Whether whoever opened the subscription may still read.
    fn counts(&self) -> bool {
        let Some(token) = self.seat.token else {
            return true;
        };
        let now = self.seat.handle.now();
        let counts = |world: &World| {
            world
                .token(token)
                .is_some_and(|token| token.expires_at.is_none_or(|end| end > now))
        };
        self.seat.handle.read(counts)
    }
}

/// The event of a page.
fn event_of(world: &World, key: &PageKey) -> Result<SharedPage, Fault> {
    let view = world.view(key.viewer.clone());
    let page = projection::read_page(
        &view,
        UNNAMED_REQUEST,
        key.cursor.as_deref(),
        PAGE_ENTRIES_MAX,
    );
    let Projection {
        mut value,
        cursor_after,
    } = page?;
    if key.audience {
        projection::add_audiences(&view, &mut value);
    }
    let mut event = String::new();
    sse::push_event(
        &mut event,
        cursor_after.as_deref().unwrap_or_default(),
        "projection",
        value,
    );
    Ok(SharedPage {
        event: event.into(),
        cursor_after,
    })
}
