//! A view as server-sent events: pages from a cursor on, then a page for each new commit.
//!
//! An event is a projection with at least one entry. Its id is the cursor behind it, so a reader can
//! resume there. Hidden entries cause no event and no ping: pings come at fixed intervals. A
//! subscription ends when its token is revoked or expires.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tokio::time::MissedTickBehavior;
use turnkeep_ledger::projection::{PAGE_ENTRIES_MAX, PageRequest, Projection};
use turnkeep_ledger::{Fault, World, cursor};

use super::super::extract::Query;
use super::super::query::SubscribeQuery;
use super::super::sse::{self, Sender};
use super::acting_caller::ActingCaller;
use super::stream::{UNNAMED_REQUEST, with_path};
use crate::error::ApiError;
use crate::ledger::{HeldPage, PageKey, SharedPage};
use crate::shared::Shared;
use crate::world_caller::is_token_valid;

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
    acting: ActingCaller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let seen = sse::last_event_id(&headers).map(|seen| String::from_utf8_lossy(seen).into_owned());
    let cursor = seen.or(query.cursor);
    // Checked while the answer can still have a status: a stream that has begun can only end.
    if let Some(cursor) = &cursor {
        acting
            .handle
            .read(|world| cursor::read(&world.view(acting.viewer()), cursor, "cursor").map(drop))?;
    }
    let audience = query.audience;
    let feed = |sender| Feed {
        shared: Arc::clone(&shared),
        acting,
        cursor,
        audience,
        sender,
        held: None,
    };
    Ok(sse::respond(&shared, |sender| feed(sender).follow()))
}

struct Feed {
    shared: Arc<Shared>,
    acting: ActingCaller,
    cursor: Option<String>,
    audience: bool,
    sender: Sender,
    /// The last page, held for subscribers that are a little later.
    held: Option<HeldPage>,
}

impl Feed {
    async fn follow(mut self) {
        let mut news = self.acting.handle.subscribe_position();
        let mut ping = tokio::time::interval(self.shared.config.timeouts.sse_ping);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick of an interval is immediate.
        ping.tick().await;
        loop {
            // Marked as seen before the pages are read: a commit during the read wakes the loop.
            news.borrow_and_update();
            if !self.catch_up().await {
                return;
            }
            tokio::select! {
                () = self.sender.closed() => return,
                news = news.changed() => if news.is_err() { return } else { continue },
                _ = ping.tick() => {}
            }
            // Other subscribers ask for a page right after the commit. At a ping none is needed any
            // more.
            self.held = None;
            if !self.is_token_valid() || self.sender.send(Ok(sse::PING.into())).await.is_err() {
                return;
            }
        }
    }

    /// Sends all visible entries that were not sent yet. Returns whether to go on.
    async fn catch_up(&mut self) -> bool {
        loop {
            // A token may be revoked while a slow reader takes the page before.
            if !self.is_token_valid() {
                return false;
            }
            let held = match self.next_page().await {
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

    /// The next page, if it has an entry. Subscribers with the same view and cursor share it.
    async fn next_page(&self) -> Result<Option<HeldPage>, ApiError> {
        let handle = &self.acting.handle;
        let key = PageKey {
            viewer: self.acting.viewer(),
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
        let handle = Arc::clone(&self.acting.handle);
        let read = move || {
            handle
                .read_long(|world| page_event(world, &key))
                .map_err(|fault| with_path(fault, "cursor").into())
        };
        self.shared.blocking(read).await
    }

    /// Whether the token that opened the subscription is still valid.
    fn is_token_valid(&self) -> bool {
        is_token_valid(&self.acting.handle, self.acting.token)
    }
}

/// The event of a page.
fn page_event(world: &World, key: &PageKey) -> Result<SharedPage, Fault> {
    let request = PageRequest {
        request: UNNAMED_REQUEST,
        cursor: key.cursor.as_deref(),
        limit: PAGE_ENTRIES_MAX,
        audiences: key.audience,
    };
    let Projection {
        value,
        cursor_after,
    } = request.read(&world.view(key.viewer.clone()))?;
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
