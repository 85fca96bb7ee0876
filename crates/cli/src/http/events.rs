//! Reads a stream of server-sent events.

use anyhow::Result;
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::failure::Failure;

/// The longest event that is accepted.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ServerEvent {
    /// Its id, by which a reader resumes; empty for a notice without a number.
    pub(crate) id: String,
    /// What kind it is.
    pub(crate) kind: String,
    /// Its data.
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
        Self { body, buffer: BytesMut::new() }
    }

    /// The next event; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<ServerEvent>> {
        loop {
            if let Some(event) = take_event(&mut self.buffer) {
                return Ok(Some(event));
            }
            if self.buffer.len() > EVENT_BYTES_MAX {
                return Err(Failure::new("the server sent an event that is too long").into());
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
                Some(Err(_)) | None => return Ok(None),
            }
        }
    }
}

/// Takes one whole event that has data off the buffer; comments and empty events are skipped.
fn take_event(buffer: &mut BytesMut) -> Option<ServerEvent> {
    loop {
        let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
        let block = buffer.split_to(end + 2);
        let event = parse(&String::from_utf8_lossy(&block));
        if !event.data.is_empty() {
            return Some(event);
        }
    }
}

fn parse(block: &str) -> ServerEvent {
    let mut event = ServerEvent::default();
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
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
        let mut buffer = BytesMut::from(": ping\n\nid: 7\nevent: turn.appended\ndata: {}\n\nid: 8\nda");
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
