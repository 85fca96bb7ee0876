//! Follows the events of a run over `/ws`, and checks that none is missing.

use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::child::ServerProcess;

/// A run in which nothing happens for so long is stuck.
const SILENCE_MAX: Duration = Duration::from_mins(1);

/// A connection that reads events in order.
pub(super) struct EventSocket {
    socket: WebSocket<TcpStream>,
    last_seq: u64,
}

impl EventSocket {
    /// Opens a connection for the events behind a number.
    pub(super) fn open(server: &ServerProcess, run: &str, since: u64) -> Result<Self> {
        let url = format!("ws://{}/ws?runId={run}&since={since}", server.http);
        let mut request = url.into_client_request()?;
        let token = server.endpoint.token.as_deref().unwrap_or_default();
        let bearer = format!("Bearer {token}").parse()?;
        request.headers_mut().insert("authorization", bearer);
        let stream = TcpStream::connect(server.http)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        let (socket, _) = tungstenite::client(request, stream)
            .map_err(|error| anyhow::anyhow!("cannot follow the events: {error}"))?;
        Ok(Self {
            socket,
            last_seq: since,
        })
    }

    /// The next event that is recorded.
    pub(super) fn next_event(&mut self) -> Result<Value> {
        loop {
            match self.socket.read()? {
                Message::Text(text) => {
                    let event: Value = serde_json::from_str(&text)?;
                    // A heartbeat is not recorded and has no number.
                    if event.get("seq").is_some() {
                        self.check_order(&event)?;
                        return Ok(event);
                    }
                }
                Message::Close(frame) => bail!("the server closed the stream: {frame:?}"),
                _ => {}
            }
        }
    }

    fn check_order(&mut self, event: &Value) -> Result<()> {
        let seq = event["seq"].as_u64().context("an event without a number")?;
        let expected = self.last_seq + 1;
        ensure!(seq == expected, "event {seq} came instead of {expected}");
        self.last_seq = seq;
        Ok(())
    }

    /// Reads until so many turns have ended. Calls `see` for every event.
    pub(super) fn read_turns(
        &mut self,
        turns: usize,
        mut see: impl FnMut(&Value) -> Result<()>,
    ) -> Result<()> {
        let mut ended = 0;
        while ended < turns {
            let event = self.next_event()?;
            see(&event)?;
            match event["status"].as_str() {
                Some("turn.completed") => ended += 1,
                Some("turn.failed" | "turn.interrupted") => bail!("a turn failed: {event}"),
                _ => {}
            }
        }
        Ok(())
    }
}
