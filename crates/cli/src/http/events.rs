//! Reads a stream of server-sent events.

use std::time::Duration;

use anyhow::Result;
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Incoming;

use super::{Call, Http, HttpRefusal};
use crate::failure::Failure;

/// The longest event that is accepted.
const EVENT_BYTES_MAX: usize = 16 << 20;
/// Attempts to open a broken stream again, and the pause between them. A server that restarts may
/// have to read its log first.
const TRIES_MAX: u32 = 60;
const PAUSE: Duration = Duration::from_millis(500);

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ServerEvent {
    /// The position from which a reader can resume; empty for a notice, which has none.
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: String,
}

/// The events of one answer.
pub(crate) struct EventStream {
    body: Incoming,
    buffer: BytesMut,
}

impl EventStream {
    /// Reads the events in this body.
    pub(crate) fn new(body: Incoming) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
        }
    }

    /// Opens the stream on a connection of its own: a stream never ends, so the connection can
    /// serve nothing else.
    pub(crate) async fn open(http: &Http, call: Call) -> Result<Self> {
        Ok(Self::new(
            Http::new(http.target().clone())
                .open(call)
                .await?
                .into_body(),
        ))
    }

    /// Opens a broken stream again, and retries while that may help.
    pub(crate) async fn reopen(http: &Http, call: impl Fn() -> Call) -> Result<Self> {
        let mut tries = 0;
        loop {
            match Self::open(http, call()).await {
                Err(error) if tries < TRIES_MAX && may_succeed_later(&error) => {
                    tracing::warn!(%error, "the stream of events was lost");
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                other => return other,
            }
        }
    }

    /// The next event; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<ServerEvent>> {
        loop {
            if let Some(event) = take_event(&mut self.buffer) {
                return Ok(Some(event));
            }
            // Without a bound, a server that sends no end of an event would fill the memory.
            if self.buffer.len() > EVENT_BYTES_MAX {
                return Err(Failure::new("the server sent an event that is too long").into());
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
                // A broken connection ends the stream like a closed one: the caller opens it again.
                Some(Err(_)) | None => return Ok(None),
            }
        }
    }
}

/// Whether trying again may help: no server answered, or it answered that it is busy or stopping.
fn may_succeed_later(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<HttpRefusal>();
    refused.is_none_or(|refused| {
        matches!(
            refused.status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        )
    })
}

/// Removes one complete event with data from the buffer. Skips comments and empty events, which
/// only keep the connection alive.
fn take_event(buffer: &mut BytesMut) -> Option<ServerEvent> {
    loop {
        let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
        let block = buffer.split_to(end + 2);
        let event = parse_event(&String::from_utf8_lossy(&block));
        if !event.data.is_empty() {
            return Some(event);
        }
    }
}

fn parse_event(block: &str) -> ServerEvent {
    let mut event = ServerEvent::default();
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        // The format allows one space after the colon, which is not part of the value.
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => value.clone_into(&mut event.id),
            "event" => value.clone_into(&mut event.kind),
            "data" if event.data.is_empty() => value.clone_into(&mut event.data),
            "data" => event.data.extend(["\n", value]),
            _ => {}
        }
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_cut_at_blank_lines_and_comments_skipped() {
        let mut buffer =
            BytesMut::from(": ping\n\nid: 7\nevent: turn.appended\ndata: {}\n\nid: 8\nda");
        let event = take_event(&mut buffer).unwrap();
        assert_eq!(
            (event.id.as_str(), event.kind.as_str(), event.data.as_str()),
            ("7", "turn.appended", "{}")
        );
        assert_eq!(take_event(&mut buffer), None);
        buffer.extend_from_slice(b"ta: a\ndata: b\n\n");
        assert_eq!(take_event(&mut buffer).unwrap().data, "a\nb");
    }
}
