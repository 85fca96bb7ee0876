//! Server-sent events: the form of an event, and the frame in which a feed runs.
//!
//! A task per stream writes to a short channel, so a reader who is slow is waited for and never
//! buffered; one who takes nothing is cut off with his connection and resumes behind the last `id:`
//! that he saw. Streams end when the server stops.

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
/// Says that the stream is open.
pub(crate) const OPEN: &str = ": open\n\n";
/// Says that it is still there.
pub(crate) const PING: &str = ": ping\n\n";

/// The writing end of a stream.
pub(crate) type Sender = mpsc::Sender<std::io::Result<Bytes>>;

/// A stream that a feed writes until it ends, the reader is gone or the server stops.
pub(crate) fn respond<F>(shared: &Shared, feed: impl FnOnce(Sender) -> F) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, body) = ChannelBody::new(CHUNKS_MAX);
    let (feed, stopping) = (feed(sender), shared.stopping.clone());
    shared.spawn(async move {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = feed => {}
        }
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, Body::new(body)).into_response()
}

/// A stream that a feed writes until it ends by itself or the reader is gone. When the server
/// stops, the feed is told by `stopping` and has the grace to say its last word.
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

/// What a browser that reconnects says that it saw last; none where it says nothing.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get("last-event-id").map(HeaderValue::as_bytes)
}
