//! A connection that awaits.

use std::path::Path;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;
use turnkeep_types::broker::{
    CompletedTurn, Deliver, FoundTurn, GetTurn, Hello, ListSessions, ListTurns, Paste, Register,
    Reply, Request, Role, ServerMessage, SessionInfo, Shown, StateChange, Stored, TurnInfo,
    VERSION,
};
use turnkeep_wire::broker::{decode_message, encode_request, next_frame};

use super::error::Error;
use super::hearing::{Unasked, greeted, unasked};
use super::trust::check_owner;
use super::verbs::verbs;

const READ_BYTES: usize = 64 << 10;

/// A connection to the broker that awaits its answers. A call that is dropped before its answer
/// leaves the connection unfit for another one.
#[derive(Debug)]
pub struct AsyncConnection {
    stream: UnixStream,
    buffer: BytesMut,
    unasked: Unasked,
    next_id: u32,
    answer_within: Duration,
}

impl AsyncConnection {
    /// Connects to the broker and says hello; then and later an answer may take as long as
    /// `answer_within`.
    pub async fn open(path: &Path, role: Role, answer_within: Duration) -> Result<Self, Error> {
        let unreachable = |source| Error::Unreachable {
            path: path.to_owned(),
            source,
        };
        check_owner(path)?;
        let stream = UnixStream::connect(path).await.map_err(unreachable)?;
        let mut connection = Self {
            stream,
            buffer: BytesMut::new(),
            unasked: Unasked::default(),
            next_id: 0,
            answer_within,
        };
        let hello = Request::Hello(Hello {
            version: VERSION,
            role,
        });
        connection.send(&hello).await?;
        greeted(
            timeout(answer_within, connection.receive())
                .await
                .map_err(|_| Error::TimedOut)??,
        )?;
        Ok(connection)
    }

    /// Asks, and waits for the answer.
    pub async fn call(&mut self, request: &Request) -> Result<Reply, Error> {
        let limit = self.answer_within;
        timeout(limit, self.ask(request))
            .await
            .map_err(|_| Error::TimedOut)?
    }

    async fn ask(&mut self, request: &Request) -> Result<Reply, Error> {
        let asked = self.send(request).await?;
        loop {
            let message = self.receive().await?;
            if let Some(reply) = self.unasked.sort(message, asked)? {
                return Ok(reply);
            }
        }
    }

    /// Waits for what the broker says unasked, or gives what came while something was asked. May be
    /// dropped and called again.
    pub async fn next_unasked(&mut self) -> Result<ServerMessage, Error> {
        match self.unasked.take() {
            Some(message) => Ok(message),
            None => unasked(self.receive().await?),
        }
    }

    /// Whether something that the broker said unasked is here already.
    pub fn has_unasked(&self) -> bool {
        !self.unasked.is_empty()
    }

    /// Bytes of what the broker said unasked and is here already.
    pub fn unasked_bytes(&self) -> usize {
        self.unasked.bytes()
    }

    /// Sends a request and does not wait; gives the id that its answer will carry.
    pub async fn send(&mut self, request: &Request) -> Result<u32, Error> {
        let id = self.next_id;
        let frame = encode_request(id, request)?;
        self.next_id = self.next_id.checked_add(1).unwrap_or(1);
        self.stream.write_all(&frame).await?;
        Ok(id)
    }

    /// Waits for the next message. May be dropped and called again.
    pub async fn receive(&mut self) -> Result<ServerMessage, Error> {
        loop {
            if let Some(body) = next_frame(&mut self.buffer)? {
                return Ok(decode_message(&body)?);
            }
            self.buffer.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(Error::Closed);
            }
        }
    }
}

verbs!(AsyncConnection, [async], [.await]);
