//! The events of a run over the WebSocket `/ws`, in order and without gaps.
//!
//! The connection is an upgraded HTTP connection of [`Http`], so address, token and TLS are those of
//! every other request. When it breaks, the next one begins after the last event that was read:
//! the server replays what came in between. An event that arrives twice is dropped by its number.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_core::Stream;
use hyper::upgrade::Upgraded;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::Value;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use turnkeep_wire::runs::EventView;

use crate::answer::number_of;
use crate::failure::Failure;
use crate::http::{Call, Http, HttpRefusal, Target};

/// The longest event that is accepted. Texts and outputs are whole in events.
const EVENT_BYTES_MAX: usize = 64 << 20;
/// Attempts to open a broken stream again, and the pause before each. A server that restarts may
/// have to read its log first.
const TRIES_MAX: u32 = 60;
const PAUSE: Duration = Duration::from_millis(500);
/// The server closes the stream of a deleted run with this code.
const RUN_DELETED: u16 = 4004;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct RunEvent {
    /// As the server wrote it.
    pub(crate) json: Value,
    /// `None` for a kind of event that this version does not know.
    pub(crate) view: Option<EventView>,
}

impl RunEvent {
    /// Reads an event. Whatever is JSON is an event: a newer server may send other kinds.
    pub(crate) fn new(json: Value) -> Self {
        let view = EventView::deserialize(&json).ok();
        Self { json, view }
    }

    /// Its number in the run; 0 for one that is not recorded.
    pub(crate) fn seq(&self) -> u64 {
        number_of(&self.json, "seq")
    }
}

/// The events of one run after a position.
pub(crate) struct RunEvents {
    target: Target,
    run: String,
    /// The number of the last event that was read.
    last_seq: u64,
    socket: Option<Socket>,
    /// How often the stream broke since the last event.
    broken: u32,
}

impl RunEvents {
    /// Opens the stream behind an event.
    pub(crate) async fn open(http: &Http, run: &str, since: u64) -> Result<Self> {
        let mut events = Self {
            target: http.target().clone(),
            run: run.to_owned(),
            last_seq: since,
            socket: None,
            broken: 0,
        };
        events.socket = Some(events.open_socket().await?);
        Ok(events)
    }

    /// The next event; none when the run was deleted. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Result<Option<RunEvent>> {
        loop {
            let Some(socket) = &mut self.socket else {
                self.reopen().await?;
                continue;
            };
            match next_message(socket).await {
                Some(Ok(Message::Text(text))) => {
                    if let Some(event) = self.accept(&text) {
                        return Ok(Some(event));
                    }
                }
                Some(Ok(Message::Close(Some(frame)))) if u16::from(frame.code) == RUN_DELETED => {
                    return Ok(None);
                }
                // Pings are answered by the socket itself.
                Some(Ok(
                    Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_),
                )) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => self.mark_broken(),
            }
        }
    }

    /// Reads a frame. Skips events that were read before the stream broke.
    fn accept(&mut self, text: &str) -> Option<RunEvent> {
        let event = RunEvent::new(serde_json::from_str(text).ok()?);
        self.broken = 0;
        match event.seq() {
            // Only live events have no number.
            0 => Some(event),
            seq if seq <= self.last_seq => None,
            seq => {
                self.last_seq = seq;
                Some(event)
            }
        }
    }

    fn mark_broken(&mut self) {
        self.socket = None;
        self.broken += 1;
    }

    async fn reopen(&mut self) -> Result<()> {
        tokio::time::sleep(PAUSE).await;
        match self.open_socket().await {
            Ok(socket) => self.socket = Some(socket),
            Err(error) if self.broken < TRIES_MAX && may_succeed_later(&error) => {
                tracing::debug!(%error, "the stream of events was lost");
                self.broken += 1;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Opens a WebSocket behind the last event, on a connection of its own.
    async fn open_socket(&self) -> Result<Socket> {
        let mut http = Http::new(self.target.clone());
        let key = generate_key();
        let call = Call::get("/ws")
            .query("runId", &self.run)
            .query("since", self.last_seq)
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", 13)
            .header("sec-websocket-key", &key);
        let response = http.send(&call).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(http.read_refusal(response).await);
        }
        check_accepted(&response, &key)?;
        let upgraded = hyper::upgrade::on(response).await;
        let upgraded = upgraded.context("the server did not open the stream of events")?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(EVENT_BYTES_MAX))
            .max_frame_size(Some(EVENT_BYTES_MAX));
        let io = TokioIo::new(upgraded);
        Ok(WebSocketStream::from_raw_socket(io, Role::Client, Some(config)).await)
    }
}

/// Checks the hash of our key: a proxy that cannot carry a stream of events does not know it.
fn check_accepted<B>(response: &Response<B>, key: &str) -> Result<()> {
    let accepted = response.headers().get("sec-websocket-accept");
    if accepted
        .is_some_and(|accepted| accepted.as_bytes() == derive_accept_key(key.as_bytes()).as_bytes())
    {
        return Ok(());
    }
    Failure::new("the server's answer is not a WebSocket's")
        .hint("a proxy between here and the server must let WebSockets through")
        .fail()
}

async fn next_message(socket: &mut Socket) -> Option<Result<Message, SocketError>> {
    poll_fn(|context| Pin::new(&mut *socket).poll_next(context)).await
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_of_an_unknown_kind_is_kept() {
        let event = RunEvent::new(json!({ "type": "run.danced", "seq": 7 }));
        assert!(event.view.is_none());
        assert_eq!(event.seq(), 7);
    }

    #[test]
    fn events_that_were_read_are_skipped() {
        let mut events = RunEvents {
            target: Target::parse("localhost", None, None).unwrap(),
            run: String::new(),
            last_seq: 3,
            socket: None,
            broken: 2,
        };
        for (text, expect) in [
            (r#"{"seq":3}"#, None),
            (r#"{"seq":4}"#, Some(4)),
            (r#"{"seq":4}"#, None),
            (r#"{"type":"node.heartbeat"}"#, Some(0)),
            ("no JSON", None),
        ] {
            let seq = events.accept(text).map(|event| event.seq());
            assert_eq!(seq, expect, "{text}");
        }
        assert_eq!((events.last_seq, events.broken), (4, 0));
    }
}
