//! A client of `/ws` that reads the events of one run, one by one.
//!
//! Every event is checked on the way: it fits the schema of its type, belongs to the run, and its
//! number follows the one before. A test that reads events therefore also tests the stream.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Instant;

use serde_json::Value;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Error, HandshakeError, Message, WebSocket};

use super::contract::check_event;
use super::{ANSWER_MAX, name_of};

/// The events of a run from some number on.
pub(crate) struct EventSocket {
    socket: WebSocket<TcpStream>,
    run: String,
    last_seq: u64,
    /// The names of all events so far, for the message of a test that fails.
    seen: Vec<String>,
    /// Why the stream ended.
    end: String,
}

/// Which events a socket asks for.
pub(crate) struct Place<'a> {
    pub(crate) address: &'a str,
    pub(crate) run: &'a str,
    /// The events behind this number.
    pub(crate) since: u64,
}

impl EventSocket {
    /// Opens a socket. The error is the status of a refused request.
    pub(crate) fn open(place: &Place<'_>) -> Result<Self, u16> {
        let Place {
            address,
            run,
            since,
        } = place;
        let url = format!("ws://{address}/ws?runId={run}&since={since}");
        let stream = TcpStream::connect(*address).unwrap();
        stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        match tungstenite::client(url.into_client_request().unwrap(), stream) {
            Ok((socket, _)) => Ok(Self {
                socket,
                run: (*run).to_owned(),
                last_seq: *since,
                seen: Vec::new(),
                end: String::new(),
            }),
            Err(HandshakeError::Failure(Error::Http(response))) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// The next event, or `None` when the server has closed the connection or is gone.
    pub(crate) fn next_event(&mut self) -> Option<Value> {
        let deadline = Instant::now() + ANSWER_MAX;
        loop {
            // Pings and heartbeats come for ever, so the time limit of the socket is not enough.
            assert!(
                Instant::now() < deadline,
                "no event came any more: {:#?}",
                self.seen
            );
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    let event: Value = serde_json::from_str(&text).unwrap();
                    check_event(&event);
                    // It is not recorded, so it has no number.
                    if event["type"] != "node.heartbeat" {
                        return Some(self.take(event));
                    }
                }
                Ok(Message::Close(frame)) => {
                    self.end = format!("closed by the server: {frame:?}");
                    return None;
                }
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    panic!("no event came any more: {:#?}", self.seen)
                }
                // A process that was stopped and goes on.
                Err(Error::Io(error)) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.end = format!("broken: {error}");
                    return None;
                }
            }
        }
    }

    /// Why the stream has ended, for the message of a test that fails.
    pub(crate) fn end(&self) -> &str {
        &self.end
    }

    /// The next heartbeat. The events before it are skipped.
    pub(crate) fn read_heartbeat(&mut self) -> Value {
        loop {
            let message = self.socket.read().unwrap();
            let Message::Text(text) = message else {
                continue;
            };
            let event: Value = serde_json::from_str(&text).unwrap();
            check_event(&event);
            if event["type"] == "node.heartbeat" {
                return event;
            }
            self.take(event);
        }
    }

    fn take(&mut self, event: Value) -> Value {
        assert_eq!(event["runId"], self.run.as_str(), "{event}");
        assert_eq!(event["seq"], self.last_seq + 1, "{event}");
        self.last_seq += 1;
        self.seen.push(name_of(&event));
        event
    }

    /// Reads until the check holds, and returns the event for which it does.
    pub(crate) fn read_until(&mut self, what: &str, check: impl Fn(&Value) -> bool) -> Value {
        loop {
            let Some(event) = self.next_event() else {
                panic!("{what} did not come: {} {:#?}", self.end, self.seen)
            };
            if check(&event) {
                return event;
            }
        }
    }

    /// Reads all events up to this number.
    pub(crate) fn read_up_to(&mut self, last: u64) -> Vec<Value> {
        let mut events = Vec::new();
        while self.last_seq < last {
            let event = self.next_event();
            events.push(event.unwrap_or_else(|| panic!("the stream ended: {:#?}", self.seen)));
        }
        events
    }

    /// Reads to the close of the connection, and returns its code.
    pub(crate) fn read_close(&mut self) -> Option<u16> {
        loop {
            match self.socket.read() {
                Ok(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// The number of the last event that was read.
    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq
    }
}
