//! A blocking connection to the broker.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use turnkeep_types::broker::{
    CompletedTurn, Deliver, FoundTurn, GetTurn, Hello, Inject, ListSessions, ListTurns, Paste,
    Register, Reply, Request, Role, ServerMessage, SessionInfo, Shown, StateChange, Stored,
    TurnInfo, VERSION,
};
use turnkeep_wire::broker::{decode_message, encode_request, next_frame};

use super::error::BrokerError;
use super::incoming::{NotificationQueue, check_hello, expect_notification};
use super::trust::check_owner;
use super::verbs::verbs;

const READ_BYTES: usize = 16 << 10;

/// A connection to the broker. Its methods block.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    buffer: BytesMut,
    notifications: NotificationQueue,
    next_id: u32,
    answer_within: Duration,
}

impl Connection {
    /// Connects to the broker and sends hello. Every response must arrive within `answer_within`.
    pub fn open(path: &Path, role: Role, answer_within: Duration) -> Result<Self, BrokerError> {
        let unreachable = |source| BrokerError::Unreachable {
            path: path.to_owned(),
            source,
        };
        check_owner(path)?;
        let stream = UnixStream::connect(path).map_err(unreachable)?;
        stream
            .set_write_timeout(Some(answer_within))
            .map_err(unreachable)?;
        let mut connection = Self {
            stream,
            buffer: BytesMut::new(),
            notifications: NotificationQueue::default(),
            next_id: 0,
            answer_within,
        };
        connection.send(&Request::Hello(Hello {
            version: VERSION,
            role,
        }))?;
        check_hello(connection.receive(answer_within)?)?;
        Ok(connection)
    }

    /// Sends a request and waits for the response.
    pub fn call(&mut self, request: &Request) -> Result<Reply, BrokerError> {
        let request_id = self.send(request)?;
        let deadline = Instant::now() + self.answer_within;
        loop {
            let message = self.receive(deadline.saturating_duration_since(Instant::now()))?;
            if let Some(reply) = self.notifications.sort_message(message, request_id)? {
                return Ok(reply);
            }
        }
    }

    /// Returns the oldest queued notification, or waits for the next one.
    pub fn next_notification(&mut self, within: Duration) -> Result<ServerMessage, BrokerError> {
        match self.notifications.pop() {
            Some(message) => Ok(message),
            None => expect_notification(self.receive(within)?),
        }
    }

    /// Waits for bytes to inject, the only notification of a wrapper whose terminal is not shared.
    pub fn next_inject(&mut self, within: Duration) -> Result<Inject, BrokerError> {
        match self.next_notification(within)? {
            ServerMessage::Inject(inject) => Ok(inject),
            _ => Err(BrokerError::Unexpected),
        }
    }

    /// Sends a request and returns the id of its response.
    fn send(&mut self, request: &Request) -> Result<u32, BrokerError> {
        let id = self.next_id;
        let frame = encode_request(id, request)?;
        // After the last id the count starts at 1 again: 0 is the id of hello and of notifications.
        self.next_id = self.next_id.checked_add(1).unwrap_or(1);
        self.stream.write_all(&frame)?;
        Ok(id)
    }

    /// Waits for the next message. After a time-out, an incomplete message stays in the buffer.
    fn receive(&mut self, within: Duration) -> Result<ServerMessage, BrokerError> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(body) = next_frame(&mut self.buffer)? {
                return Ok(decode_message(&body)?);
            }
            // The deadline is that of the whole message: a peer that sends a byte now and then must
            // not extend it. A time-out of zero would mean none.
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(BrokerError::TimedOut);
            }
            self.stream.set_read_timeout(Some(left))?;
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> Result<(), BrokerError> {
        let mut chunk = [0; READ_BYTES];
        let read = match self.stream.read(&mut chunk) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(()),
            read => read?,
        };
        if read == 0 {
            return Err(BrokerError::Closed);
        }
        self.buffer
            .extend_from_slice(chunk.get(..read).unwrap_or_default());
        Ok(())
    }
}

verbs!(Connection, [], []);
