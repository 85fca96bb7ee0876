//! Server-sent events: the format of an event, and the response that a feed writes to.
//!
//! Each stream has a task that writes to a short channel. So the task waits for a slow reader and
//! buffers almost nothing for it. The server disconnects a reader that takes nothing; the reader
//! resumes after the last `id:` that it saw. Streams end when the server stops.

use std::fmt::{Display, Write};

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tokio::sync::mpsc;

use super::body::ChannelBody;
use crate::shared::Shared;

/// Chunks that may wait for a reader.
const CHUNKS_MAX: usize = 4;
/// A comment at the start of a stream, so that the client sees it open.
pub(crate) const OPEN: &str = ": open\n\n";
/// A comment that keeps a quiet stream alive.
pub(crate) const PING: &str = ": ping\n\n";

/// The writing end of a stream.
pub(crate) type Sender = mpsc::Sender<std::io::Result<Bytes>>;

/// A stream that a feed writes until it ends, the reader is gone or the server stops.
pub(crate) fn respond<F>(shared: &Shared, feed: impl FnOnce(Sender) -> F) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let stopping = shared.stopping.clone();
    respond_to_the_end(shared, |sender| {
        let feed = feed(sender);
        async move {
            tokio::select! {
                () = stopping.cancelled() => {}
                () = feed => {}
            }
        }
    })
}

/// A stream that a feed writes until it ends by itself or the reader is gone. When the server stops,
/// the feed itself watches `stopping` and may send a last event within the grace period.
pub(crate) fn respond_to_the_end<F>(shared: &Shared, feed: impl FnOnce(Sender) -> F) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, body) = ChannelBody::new(CHUNKS_MAX);
    shared.spawn(feed(sender));
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, Body::new(body)).into_response()
}

/// Adds an event behind which a reader may resume.
pub(crate) fn push_event(out: &mut String, id: impl Display, kind: &str, data: impl Display) {
    writeln!(out, "id: {id}").expect("memory takes what is written");
    push_notice(out, kind, data);
}

/// Adds an event that is never replayed.
pub(crate) fn push_notice(out: &mut String, kind: &str, data: impl Display) {
    write!(out, "event: {kind}\ndata: {data}\n\n").expect("memory takes what is written");
}

/// The id of the last event that a reconnecting browser saw.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get("last-event-id").map(HeaderValue::as_bytes)
}
