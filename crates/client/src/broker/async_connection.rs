//! An asynchronous connection to the broker.

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

use super::error::BrokerError;
use super::incoming::{NotificationQueue, check_hello, expect_notification};
use super::trust::check_owner;
use super::verbs::verbs;

const READ_BYTES: usize = 64 << 10;

/// A connection to the broker. After a call was dropped before its response, the connection cannot
/// be used again.
#[derive(Debug)]
pub struct AsyncConnection {
    stream: UnixStream,
    buffer: BytesMut,
    notifications: NotificationQueue,
    next_id: u32,
    answer_within: Duration,
}

impl AsyncConnection {
    /// Connects to the broker and sends hello. Every response must arrive within `answer_within`.
    pub async fn open(
        path: &Path,
        role: Role,
        answer_within: Duration,
    ) -> Result<Self, BrokerError> {
        let unreachable = |source| BrokerError::Unreachable {
            path: path.to_owned(),
            source,
        };
        check_owner(path)?;
        let stream = UnixStream::connect(path).await.map_err(unreachable)?;
        let mut connection = Self {
            stream,
            buffer: BytesMut::new(),
            notifications: NotificationQueue::default(),
            next_id: 0,
            answer_within,
        };
        let hello = Request::Hello(Hello {
            version: VERSION,
            role,
        });
        connection.send(&hello).await?;
        check_hello(
            timeout(answer_within, connection.receive())
                .await
                .map_err(|_| BrokerError::TimedOut)??,
        )?;
        Ok(connection)
    }

    /// Sends a request and waits for the response.
    pub async fn call(&mut self, request: &Request) -> Result<Reply, BrokerError> {
        let limit = self.answer_within;
        timeout(limit, self.call_without_timeout(request))
            .await
            .map_err(|_| BrokerError::TimedOut)?
    }

    async fn call_without_timeout(&mut self, request: &Request) -> Result<Reply, BrokerError> {
        let request_id = self.send(request).await?;
        loop {
            let message = self.receive().await?;
            if let Some(reply) = self.notifications.sort_message(message, request_id)? {
                return Ok(reply);
            }
        }
    }

    /// Returns the oldest queued notification, or waits for the next one. Safe to drop and call
    /// again.
    pub async fn next_notification(&mut self) -> Result<ServerMessage, BrokerError> {
        match self.notifications.pop() {
            Some(message) => Ok(message),
            None => expect_notification(self.receive().await?),
        }
    }

    /// Whether a notification is queued.
    pub fn has_notification(&self) -> bool {
        !self.notifications.is_empty()
    }

    /// The bytes of the queued notifications.
    pub fn notification_bytes(&self) -> usize {
        self.notifications.bytes()
    }

    /// Sends a request without waiting and returns the id of its response.
    pub async fn send(&mut self, request: &Request) -> Result<u32, BrokerError> {
        let id = self.next_id;
        let frame = encode_request(id, request)?;
        // After the last id the count starts at 1 again: 0 is the id of hello and of notifications.
        self.next_id = self.next_id.checked_add(1).unwrap_or(1);
        self.stream.write_all(&frame).await?;
        Ok(id)
    }

    /// Waits for the next message. Safe to drop and call again.
    pub async fn receive(&mut self) -> Result<ServerMessage, BrokerError> {
        loop {
            if let Some(body) = next_frame(&mut self.buffer)? {
                return Ok(decode_message(&body)?);
            }
            self.buffer.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(BrokerError::Closed);
            }
        }
    }
}

verbs!(AsyncConnection, [async], [.await]);
