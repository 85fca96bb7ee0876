//! A connection that blocks.

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

use super::error::Error;
use super::hearing::{Unasked, greeted, unasked};
use super::trust::check_owner;
use super::verbs::verbs;

const READ_BYTES: usize = 16 << 10;

/// A connection to the broker that blocks while it asks.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    buffer: BytesMut,
    unasked: Unasked,
    next_id: u32,
    answer_within: Duration,
}

impl Connection {
    /// Connects to the broker and says hello; then and later an answer may take as long as
    /// `answer_within`.
    pub fn open(path: &Path, role: Role, answer_within: Duration) -> Result<Self, Error> {
        let unreachable = |source| Error::Unreachable {
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
            unasked: Unasked::default(),
            next_id: 0,
            answer_within,
        };
        connection.send(&Request::Hello(Hello {
            version: VERSION,
            role,
        }))?;
        greeted(connection.receive(answer_within)?)?;
        Ok(connection)
    }

    /// Asks, and waits for the answer.
    pub fn call(&mut self, request: &Request) -> Result<Reply, Error> {
        let asked = self.send(request)?;
        let deadline = Instant::now() + self.answer_within;
        loop {
            let message = self.receive(deadline.saturating_duration_since(Instant::now()))?;
            if let Some(reply) = self.unasked.sort(message, asked)? {
                return Ok(reply);
            }
        }
    }

    /// Waits for what the broker says unasked, or gives what came while something was asked.
    pub fn next_unasked(&mut self, within: Duration) -> Result<ServerMessage, Error> {
        match self.unasked.take() {
            Some(message) => Ok(message),
            None => unasked(self.receive(within)?),
        }
    }

    /// Waits for bytes to inject: what a wrapper that is not shared hears.
    pub fn next_inject(&mut self, within: Duration) -> Result<Inject, Error> {
        match self.next_unasked(within)? {
            ServerMessage::Inject(inject) => Ok(inject),
            _ => Err(Error::Unexpected),
        }
    }

    /// Sends a request; gives the id that its answer will carry.
    fn send(&mut self, request: &Request) -> Result<u32, Error> {
        let id = self.next_id;
        let frame = encode_request(id, request)?;
        self.next_id = self.next_id.checked_add(1).unwrap_or(1);
        self.stream.write_all(&frame)?;
        Ok(id)
    }

    /// Waits for the next message for some time. What has arrived of one that is not whole is kept.
    fn receive(&mut self, within: Duration) -> Result<ServerMessage, Error> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(body) = next_frame(&mut self.buffer)? {
                return Ok(decode_message(&body)?);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::TimedOut);
            }
            self.stream.set_read_timeout(Some(left))?;
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<(), Error> {
        let mut chunk = [0; READ_BYTES];
        let read = match self.stream.read(&mut chunk) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(()),
            read => read?,
        };
        if read == 0 {
            return Err(Error::Closed);
        }
        self.buffer
            .extend_from_slice(chunk.get(..read).unwrap_or_default());
        Ok(())
    }
}

verbs!(Connection, [], []);
