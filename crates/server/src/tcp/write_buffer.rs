//! The bytes that wait to be written to the peer: answers and deliveries of subscriptions.
//!
//! Small frames are encoded one after the other into a buffer. The pieces of a large frame wait in a
//! queue before that buffer, and each is freed when it has been written. The connection stops reading
//! requests at [`UNREAD_BYTES_MAX`]. A failed write ends the connection.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;

use super::large_frame::LargeFrame;
use crate::memory::MemoryPermit;

/// Bytes that may wait for the peer before the server reads no more requests from it.
pub(super) const UNREAD_BYTES_MAX: usize = 1 << 20;
/// A larger buffer is freed when it is empty.
const BUFFER_BYTES_KEPT: usize = 16 << 10;

/// Bytes that the peer has not taken yet.
#[derive(Debug, Default)]
pub(super) struct WriteBuffer {
    /// Pieces that leave before the buffer.
    pieces: VecDeque<Bytes>,
    buffer: BytesMut,
    /// The largest size of the buffer since it was last freed.
    allocated: usize,
    /// Whether the stream may hold bytes back that were written to it, as TLS does.
    unflushed: bool,
    /// Permits of large answers that are being written.
    permits: Vec<MemoryPermit>,
    /// The slot of a large delivery that is being written.
    slot: Option<OwnedSemaphorePermit>,
}

impl WriteBuffer {
    /// Where answers are encoded.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.pieces.is_empty()
    }

    /// Whether something may still have to reach the peer.
    pub(super) fn is_writing(&self) -> bool {
        !self.is_empty() || self.unflushed
    }

    /// Whether more may be put in.
    pub(super) fn has_capacity(&self) -> bool {
        self.unread_bytes() < UNREAD_BYTES_MAX
    }

    /// Bytes that wait for the peer.
    pub(super) fn unread_bytes(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum::<usize>() + self.buffer.len()
    }

    /// Whether others may be waiting for the memory that this takes.
    pub(super) fn holds_permits(&self) -> bool {
        !self.permits.is_empty()
    }

    /// Adds whole frames. They are not copied if nothing else waits.
    pub(super) fn append(&mut self, frames: BytesMut) {
        if self.buffer.is_empty() {
            self.buffer = frames;
        } else {
            self.buffer.extend_from_slice(&frames);
        }
    }

    /// Adds a large frame behind everything that waits.
    pub(super) fn append_large(&mut self, frame: LargeFrame) {
        // The head joins the small frames before it, so that all of them leave in one write.
        self.append(frame.head);
        self.allocated = self.allocated.max(self.buffer.capacity());
        self.pieces.push_back(self.buffer.split().freeze());
        self.pieces.extend(frame.pieces);
    }

    /// Holds a permit, and the slot of a large delivery, until everything has been written.
    pub(super) fn hold_permit(
        &mut self,
        permit: Option<MemoryPermit>,
        slot: Option<OwnedSemaphorePermit>,
    ) {
        self.permits.extend(permit);
        self.slot = slot.or(self.slot.take());
    }

    /// Writes; ready when something was written or flushed.
    pub(super) fn poll_write<S>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>>
    where
        S: AsyncWrite + Unpin,
    {
        if !self.is_empty() {
            self.allocated = self.allocated.max(self.buffer.capacity());
            let written = ready!(self.poll_write_next(stream, context))?;
            self.unflushed = true;
            if self.pieces.front().is_some_and(Bytes::is_empty) {
                self.pieces.pop_front();
            }
            if self.is_empty() {
                self.free_after_write();
            }
            return Poll::Ready(if written == 0 {
                Err(io::ErrorKind::WriteZero.into())
            } else {
                Ok(())
            });
        }
        // Only when nothing else waits, so that one flush serves many writes.
        if self.unflushed {
            let flushed = ready!(pin!(stream.flush()).poll(context));
            self.unflushed = false;
            return Poll::Ready(flushed);
        }
        Poll::Pending
    }

    fn poll_write_next<S>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>>
    where
        S: AsyncWrite + Unpin,
    {
        match self.pieces.front_mut() {
            Some(piece) => pin!(stream.write_buf(piece)).poll(context),
            None => pin!(stream.write_buf(&mut self.buffer)).poll(context),
        }
    }

    fn free_after_write(&mut self) {
        self.permits.clear();
        self.slot = None;
        // An idle connection must not keep the memory of its largest answer.
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
    use crate::memory::MemoryBudget;

    #[tokio::test]
    async fn a_large_answer_is_given_back_with_its_permit_when_it_has_been_written() {
        let memory = MemoryBudget::new(64 << 20, Duration::from_secs(1));
        let mut out = WriteBuffer::default();
        for len in [10, 1 << 20, 100] {
            out.append(BytesMut::from(&vec![7; len][..]));
            out.hold_permit(memory.try_acquire(len), None);
            let mut sink = tokio::io::sink();
            while out.is_writing() {
                assert_eq!(out.holds_permits(), !out.is_empty());
                poll_fn(|context| out.poll_write(&mut sink, context))
                    .await
                    .unwrap();
            }
            assert_eq!(memory.used_bytes(), 0);
            assert!(
                out.allocated <= BUFFER_BYTES_KEPT,
                "{len}: {}",
                out.allocated
            );
        }
    }

    #[tokio::test]
    async fn a_large_frame_leaves_behind_what_was_there_and_before_what_comes_later() {
        let mut out = WriteBuffer::default();
        out.buffer().extend_from_slice(b"first ");
        let pieces = vec![Bytes::from_static(b"payload "), Bytes::from_static(b"end ")];
        out.append_large(LargeFrame {
            head: BytesMut::from(&b"head "[..]),
            pieces,
        });
        out.append(BytesMut::from(&b"last"[..]));
        let mut written = Vec::new();
        while out.is_writing() {
            poll_fn(|context| out.poll_write(&mut written, context))
                .await
                .unwrap();
        }
        assert_eq!(written, b"first head payload end last");
    }
}
