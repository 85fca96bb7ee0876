//! Reads messages from one connection of the broker.
//!
//! The buffer grows with the bytes that arrive, never with a declared length. From
//! [`LARGE_FROM_BYTES`] on, each further part of a message needs a permit of the memory budget that
//! all connections share. A message that is malformed, too long, too slow or without memory gives a
//! refusal that ends the connection, because the reader cannot find the next message behind it.

use bytes::BytesMut;
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;
use tokio::time::{Instant, timeout_at};
use turnkeep_types::broker::{Reason, Refusal};
use turnkeep_wire::broker::{Incoming, decode_request, next_frame};

use super::shared::BrokerShared;
use crate::memory::{LARGE_FROM_BYTES, MemoryPermit};

const READ_BYTES: usize = 32 << 10;

/// The reading half of a connection, and the bytes of an incomplete message.
pub(super) struct MessageReader {
    stream: OwnedReadHalf,
    buffer: BytesMut,
    /// Permits of [`LARGE_FROM_BYTES`] each, for the large message that is arriving.
    permits: Vec<MemoryPermit>,
}

impl MessageReader {
    pub(super) fn new(stream: OwnedReadHalf) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            permits: Vec::new(),
        }
    }

    /// Reads the next message. Returns `None` when the peer has closed the connection. A peer that
    /// has said hello may be silent for any time between two messages.
    pub(super) async fn read_message(
        &mut self,
        shared: &BrokerShared,
        has_greeted: bool,
    ) -> Result<Option<Incoming>, Refusal> {
        let mut deadline = (!has_greeted).then(|| Instant::now() + shared.timeouts.hello);
        loop {
            if let Some(incoming) = self.decode_next()? {
                return Ok(Some(incoming));
            }
            // The time of a message begins with its first byte.
            if !self.buffer.is_empty() && deadline.is_none() {
                deadline = Some(Instant::now() + shared.timeouts.message);
            }
            self.prepare_read(shared).await?;
            let read = self.stream.read_buf(&mut self.buffer);
            let read = match deadline {
                None => read.await,
                Some(deadline) => timeout_at(deadline, read).await.map_err(|_| {
                    Refusal::new(Reason::Malformed, "the message was not whole in time")
                })?,
            };
            if matches!(read, Ok(0) | Err(_)) {
                return Ok(None);
            }
        }
    }

    fn decode_next(&mut self) -> Result<Option<Incoming>, Refusal> {
        let body = next_frame(&mut self.buffer)
            .map_err(|error| Refusal::new(Reason::PayloadTooLarge, error.to_string()))?;
        let Some(body) = body else { return Ok(None) };
        let incoming = decode_request(&body)
            .map_err(|error| Refusal::new(Reason::Malformed, error.to_string()))?;
        if body.len() > LARGE_FROM_BYTES {
            // The decoded message has copies of its bytes, so the large buffer can be freed.
            self.buffer = BytesMut::from(&self.buffer[..]);
            self.permits.clear();
        }
        Ok(Some(incoming))
    }

    /// Reserves space for the next read, and acquires the next permit of a large message.
    async fn prepare_read(&mut self, shared: &BrokerShared) -> Result<(), Refusal> {
        self.buffer.reserve(READ_BYTES);
        let held_bytes = self.permits.len() * LARGE_FROM_BYTES;
        if self.buffer.len() >= held_bytes + LARGE_FROM_BYTES {
            let acquired = shared.memory.acquire(LARGE_FROM_BYTES).await;
            let permit = acquired
                .map_err(|_| Refusal::new(Reason::Busy, "no memory for a large message"))?;
            self.permits.push(permit);
        }
        Ok(())
    }
}
