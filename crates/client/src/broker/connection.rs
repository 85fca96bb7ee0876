//! A connection that blocks, and its two halves.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use turnkeep_types::broker::{
    CompletedTurn, Deliver, FoundTurn, GetTurn, Hello, Inject, Paste, Register, Reply, Request, Role,
    ServerMessage, SessionInfo, Shown, StateChange, TurnInfo, VERSION,
};
use turnkeep_wire::broker::{decode_message, encode_request, next_frame};

use super::error::Error;
use super::verbs::verbs;

const READ_BYTES: usize = 16 << 10;
/// What was said unasked and not yet taken; beyond it the oldest is dropped, for nobody takes them.
const UNASKED_KEPT_MAX: usize = 64;

/// A connection to the broker that blocks while it asks.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    receiver: Receiver,
    unasked: VecDeque<ServerMessage>,
    answer_within: Duration,
}

impl Connection {
    /// Connects to the broker and says hello; then and later an answer may take as long as `answer_within`.
    pub fn open(path: &Path, role: Role, answer_within: Duration) -> Result<Self, Error> {
        let unreachable = |source| Error::Unreachable { path: path.to_owned(), source };
        let stream = UnixStream::connect(path).map_err(unreachable)?;
        stream.set_write_timeout(Some(answer_within)).map_err(unreachable)?;
        let sender = Sender { stream: stream.try_clone().map_err(unreachable)?, next_id: 0 };
        let receiver = Receiver { stream, buffer: BytesMut::new() };
        let mut connection = Self { sender, receiver, unasked: VecDeque::new(), answer_within };
        connection.sender.send(&Request::Hello(Hello { version: VERSION, role }))?;
        match connection.receiver.receive_within(answer_within)? {
            ServerMessage::HelloAck(Ok(())) => Ok(connection),
            ServerMessage::HelloAck(Err(refusal)) | ServerMessage::Response { outcome: Err(refusal), .. } => {
                Err(refusal.into())
            }
            _ => Err(Error::Unexpected),
        }
    }

    /// Asks, and waits for the answer.
    pub fn call(&mut self, request: &Request) -> Result<Reply, Error> {
        let asked = self.sender.send(request)?;
        let deadline = Instant::now() + self.answer_within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.receiver.receive_within(left)? {
                ServerMessage::Response { id, outcome } if id == asked => return Ok(outcome?),
                // What closes the connection carries id 0 where the broker could not read ours.
                ServerMessage::Response { outcome: Err(refusal), .. } if refusal.reason.closes() => {
                    return Err(refusal.into());
                }
                ServerMessage::HelloAck(_) | ServerMessage::Response { .. } => return Err(Error::Unexpected),
                unasked => self.keep(unasked),
            }
        }
    }

    /// Waits for what the broker says unasked, or gives what came while something was asked.
    pub fn next_unasked(&mut self, within: Duration) -> Result<ServerMessage, Error> {
        match self.unasked.pop_front() {
            Some(unasked) => Ok(unasked),
            None => match self.receiver.receive_within(within)? {
                ServerMessage::HelloAck(_) | ServerMessage::Response { .. } => Err(Error::Unexpected),
                unasked => Ok(unasked),
            },
        }
    }

    /// Waits for bytes to inject: what a wrapper that is not shared hears.
    pub fn next_inject(&mut self, within: Duration) -> Result<Inject, Error> {
        match self.next_unasked(within)? {
            ServerMessage::Inject(inject) => Ok(inject),
            _ => Err(Error::Unexpected),
        }
    }

    /// The two halves, for a wrapper that hears while it speaks. Take what was injected already first.
    pub fn split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }

    fn keep(&mut self, unasked: ServerMessage) {
        if self.unasked.len() == UNASKED_KEPT_MAX {
            self.unasked.pop_front();
        }
        self.unasked.push_back(unasked);
    }
}

verbs!(Connection, [], []);

/// The half that speaks.
#[derive(Debug)]
pub struct Sender {
    stream: UnixStream,
    next_id: u32,
}

impl Sender {
    /// Sends a request; gives the id that its answer will carry.
    pub fn send(&mut self, request: &Request) -> Result<u32, Error> {
        let id = self.next_id;
        let frame = encode_request(id, request)?;
        self.next_id = self.next_id.checked_add(1).unwrap_or(1);
        self.stream.write_all(&frame)?;
        Ok(id)
    }

    /// Ends both directions, which wakes a receiver that waits in another thread.
    pub fn shutdown(&self) -> Result<(), Error> {
        Ok(self.stream.shutdown(std::net::Shutdown::Both)?)
    }
}

/// The half that hears.
#[derive(Debug)]
pub struct Receiver {
    stream: UnixStream,
    buffer: BytesMut,
}

impl Receiver {
    /// Waits for the next message, however long that takes.
    pub fn receive(&mut self) -> Result<ServerMessage, Error> {
        self.stream.set_read_timeout(None)?;
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(message);
            }
            self.fill()?;
        }
    }

    /// Waits for the next message for some time. What has arrived of one that is not whole is kept.
    pub fn receive_within(&mut self, time: Duration) -> Result<ServerMessage, Error> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(message);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::TimedOut);
            }
            self.stream.set_read_timeout(Some(left))?;
            self.fill()?;
        }
    }

    fn buffered(&mut self) -> Result<Option<ServerMessage>, Error> {
        let body = next_frame(&mut self.buffer)?;
        Ok(body.map(|body| decode_message(&body)).transpose()?)
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
        self.buffer.extend_from_slice(chunk.get(..read).unwrap_or_default());
        Ok(())
    }
}

/// For those who wait for several things at once: readable means that [`Receiver::receive_within`] may give
/// a message. Drain it until it times out before waiting again: one read may bring several.
impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
