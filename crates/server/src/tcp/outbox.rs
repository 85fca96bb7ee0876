//! Bytes on their way out: answers and deliveries, until the peer has taken them.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;

use crate::memory::Room;

/// Bytes that may wait for the peer before it is asked for nothing more.
const UNREAD_BYTES_MAX: usize = 1 << 20;
/// A larger buffer is given back when it is empty.
const BUFFER_BYTES_KEPT: usize = 16 << 10;

/// What the peer has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    buffer: BytesMut,
    /// What the buffer took at most since it was last given back.
    allocated: usize,
    /// Whether the stream may hold bytes back that were written to it, as TLS does.
    unflushed: bool,
    /// Room of large answers that are being written.
    rooms: Vec<Room>,
    /// The place of a large delivery that is being written.
    place: Option<OwnedSemaphorePermit>,
}

impl Outbox {
    /// Where answers are encoded.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Whether something may still have to reach the peer.
    pub(super) fn is_writing(&self) -> bool {
        !self.buffer.is_empty() || self.unflushed
    }

    /// Whether more may be put in.
    pub(super) fn has_capacity(&self) -> bool {
        self.buffer.len() < UNREAD_BYTES_MAX
    }

    /// Whether others may be waiting for the room that this takes.
    pub(super) fn holds_room(&self) -> bool {
        !self.rooms.is_empty()
    }

    /// Adds whole frames, without a copy where nothing else waits.
    pub(super) fn append(&mut self, frames: BytesMut) {
        if self.buffer.is_empty() {
            self.buffer = frames;
        } else {
            self.buffer.extend_from_slice(&frames);
        }
    }

    /// Keeps room, and a large delivery's place, until everything has been written.
    pub(super) fn keep(&mut self, room: Option<Room>, place: Option<OwnedSemaphorePermit>) {
        self.rooms.extend(room);
        self.place = place.or(self.place.take());
    }

    /// Writes; ready when something was written or flushed.
    pub(super) fn poll_write<S>(&mut self, stream: &mut S, context: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        S: AsyncWrite + Unpin,
    {
        if !self.buffer.is_empty() {
            self.allocated = self.allocated.max(self.buffer.capacity());
            let written = ready!(pin!(stream.write_buf(&mut self.buffer)).poll(context))?;
            self.unflushed = true;
            if self.buffer.is_empty() {
                self.emptied();
            }
            return Poll::Ready(if written == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) });
        }
        if self.unflushed {
            let flushed = ready!(pin!(stream.flush()).poll(context));
            self.unflushed = false;
            return Poll::Ready(flushed);
        }
        Poll::Pending
    }

    fn emptied(&mut self) {
        self.rooms.clear();
        self.place = None;
        if self.allocated > BUFFER_BYTES_KEPT {
            self.buffer = BytesMut::new();
            self.allocated = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;
    use crate::memory::Memory;

    #[tokio::test]
    async fn a_large_answer_is_given_back_with_its_room_when_it_has_been_written() {
        let memory = Memory::new(64 << 20, Duration::from_secs(1));
        let mut out = Outbox::default();
        for len in [10, 1 << 20, 100] {
            out.append(BytesMut::from(&vec![7; len][..]));
            out.keep(memory.try_take(len), None);
            let mut sink = tokio::io::sink();
            while out.is_writing() {
                assert_eq!(out.holds_room(), !out.is_empty());
                poll_fn(|context| out.poll_write(&mut sink, context)).await.unwrap();
            }
            assert_eq!(memory.held(), 0);
            assert!(out.allocated <= BUFFER_BYTES_KEPT, "{len}: {}", out.allocated);
        }
    }
}
