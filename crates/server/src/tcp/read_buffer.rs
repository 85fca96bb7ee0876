//! The bytes that have arrived from the peer and are not yet a complete frame.
//!
//! A declared length takes no memory: the buffer grows with the bytes that arrive. When enough of a
//! large frame has arrived, it moves to [`ArrivingBytes`], which take memory only as far as the
//! frame's permit allows. A large frame is read to its end and no further, so it leaves with all of
//! its memory. A frame that gets no permit is skipped. Between frames a connection keeps at most
//! [`BUFFER_BYTES_KEPT`].

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use turnkeep_wire::{Frame, FrameTooLong, HEADER_BYTES, Header};

use crate::error::ApiError;
use crate::memory::{ArrivingBytes, LARGE_FROM_BYTES, MemoryPermit, WantedPermit};

/// How much one read asks for, at first and at most. It doubles whenever a read fills the buffer.
const READ_BYTES_MIN: usize = 4 << 10;
const READ_BYTES_MAX: usize = 64 << 10;
/// A larger buffer is freed when its frames have been taken.
const BUFFER_BYTES_KEPT: usize = 2 * READ_BYTES_MAX;
/// How much of a large frame must arrive before the frame gets memory of its own.
const LARGE_BYTES_FIRST: usize = LARGE_FROM_BYTES / 2;

/// Bytes that have arrived and belong to no taken frame.
#[derive(Debug)]
pub(super) struct ReadBuffer {
    buffer: BytesMut,
    read_bytes: usize,
    /// The buffer's size when it last grew. Frames that were taken may still share its memory.
    allocated: usize,
    /// The large frame that is arriving. Its first bytes are in the buffer until it has a permit.
    large: Option<ArrivingBytes>,
    /// Bytes of a refused frame that are still to come.
    skip: usize,
}

impl ReadBuffer {
    pub(super) fn new() -> Self {
        Self {
            buffer: BytesMut::new(),
            read_bytes: READ_BYTES_MIN,
            allocated: 0,
            large: None,
            skip: 0,
        }
    }

    /// Whether no frame has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.large.is_none() && self.skip == 0
    }

    /// Reads what is there; 0 at the end of the stream.
    pub(super) fn poll_read<S>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>>
    where
        S: AsyncRead + Unpin,
    {
        if let Some(large) = &mut self.large {
            return poll_read_large(large, stream, context);
        }
        if let Some(more) = self.needed_growth() {
            self.buffer.reserve(more);
            self.allocated = self.buffer.capacity();
        }
        // Of a large frame only the first part is read into the small buffer. The rest needs the
        // permit.
        let most = match self.frame_bytes() {
            Some(frame) if frame >= LARGE_FROM_BYTES => {
                LARGE_BYTES_FIRST.saturating_sub(self.buffer.len())
            }
            _ => usize::MAX,
        };
        let mut space = (&mut self.buffer).limit(most.max(1));
        let received = ready!(pin!(stream.read_buf(&mut space)).poll(context))?;
        if self.buffer.len() == self.buffer.capacity() {
            // The read filled the buffer, so more waits: larger reads save system calls.
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        }
        Poll::Ready(Ok(received))
    }

    /// How much the buffer has to grow before the next read: at most by as much as has arrived, so
    /// that a peer must send bytes to make us allocate.
    fn needed_growth(&self) -> Option<usize> {
        let (have, free) = (
            self.buffer.len(),
            self.buffer.capacity() - self.buffer.len(),
        );
        let rest = self
            .frame_bytes()
            .map_or(1, |frame| frame.saturating_sub(have));
        let want = rest.clamp(self.read_bytes, self.read_bytes.max(have));
        // A short read is cheaper than growing, which moves the bytes.
        (free < want / 4).then_some(want)
    }

    /// The length of the arriving frame with its header, if the header has arrived.
    fn frame_bytes(&self) -> Option<usize> {
        Header::peek(&self.buffer).map(|header| HEADER_BYTES + header.len as usize)
    }

    /// The permit that has to be acquired before more of a large frame is read.
    pub(super) fn wanted_permit(&mut self) -> Result<Option<WantedPermit>, ApiError> {
        if self.large.is_none()
            && self.buffer.len() >= LARGE_BYTES_FIRST
            && let Some(bytes) = self
                .frame_bytes()
                .filter(|bytes| *bytes >= LARGE_FROM_BYTES)
        {
            self.large = Some(ArrivingBytes::new(bytes)?);
        }
        let Some(large) = &self.large else {
            return Ok(None);
        };
        Ok(large.wanted(self.buffer.len().max(1)))
    }

    /// Adds the permit that was wanted.
    pub(super) fn add_permit(&mut self, wanted: WantedPermit, permit: MemoryPermit) {
        let Some(large) = &mut self.large else { return };
        large.cover(wanted, permit);
        large.append(&self.buffer);
        self.buffer.clear();
    }

    /// The next whole frame. A large one holds its permit for as long as its bytes live.
    pub(super) fn take_frame(
        &mut self,
        frame_bytes_max: usize,
    ) -> Result<Option<Frame>, FrameTooLong> {
        // The refused frame was already answered, so its bytes are dropped as they come.
        if self.skip > 0 {
            let skipped = self.skip.min(self.buffer.len());
            self.buffer.advance(skipped);
            self.skip -= skipped;
        }
        if self.large.is_some() {
            return Ok(self.take_large());
        }
        Frame::split_first(&mut self.buffer, frame_bytes_max)
    }

    fn take_large(&mut self) -> Option<Frame> {
        let large = self.large.take_if(|large| large.is_complete())?;
        let mut payload = large.finish();
        let header = Header::peek(&payload)?;
        payload.advance(HEADER_BYTES);
        Some(Frame { header, payload })
    }

    /// Gives up on the arriving frame: drops its bytes now, and the rest when they arrive.
    pub(super) fn skip_frame(&mut self) -> Option<Header> {
        let large = self.large.take();
        let come = large.as_ref().map_or(&[][..], ArrivingBytes::filled);
        let header = Header::peek(come).or_else(|| Header::peek(&self.buffer))?;
        // `come` has moved out of the buffer. Of the rest, a part is in the buffer and goes now; the
        // other part is skipped when it arrives. The next frame may begin right behind it.
        let rest = HEADER_BYTES + header.len as usize - come.len();
        self.skip = rest.saturating_sub(self.buffer.len());
        self.buffer.advance(rest - self.skip);
        self.free_unused();
        Some(header)
    }

    /// Frees memory that only frames already taken still use.
    pub(super) fn free_unused(&mut self) {
        if self.allocated > BUFFER_BYTES_KEPT {
            self.buffer = BytesMut::from(&self.buffer[..]);
            self.allocated = self.buffer.capacity();
        }
    }
}

/// Reads into a large frame. Without free space it waits, because a read of 0 bytes would look like
/// the end of the stream.
fn poll_read_large<S>(
    large: &mut ArrivingBytes,
    stream: &mut S,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>>
where
    S: AsyncRead + Unpin,
{
    let mut space = ReadBuf::new(large.space());
    if space.remaining() == 0 {
        return Poll::Pending;
    }
    ready!(Pin::new(stream).poll_read(context, &mut space))?;
    let received = space.filled().len();
    large.advance(received);
    Poll::Ready(Ok(received))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;
    use crate::memory::MemoryBudget;

    const MAX: usize = 64 << 20;

    fn memory(bytes: usize) -> MemoryBudget {
        MemoryBudget::new(bytes, Duration::from_secs(1))
    }

    fn frame(req_id: u64, len: usize) -> Vec<u8> {
        let mut out = BytesMut::new();
        let len = u32::try_from(len).unwrap();
        Header {
            len,
            msg_type: 11,
            flags: 0,
            req_id,
        }
        .encode(&mut out);
        out.resize(HEADER_BYTES + len as usize, 7);
        out.to_vec()
    }

    /// Reads until a frame is whole, acquiring whatever permit it wants.
    async fn next(
        read_buffer: &mut ReadBuffer,
        stream: &mut &[u8],
        memory: &MemoryBudget,
    ) -> Frame {
        loop {
            if let Some(taken) = read_buffer.take_frame(MAX).unwrap() {
                return taken;
            }
            if let Some(wanted) = read_buffer.wanted_permit().unwrap() {
                read_buffer.add_permit(wanted, wanted.try_acquire(memory).unwrap());
            }
            assert!(
                poll_fn(|context| read_buffer.poll_read(stream, context))
                    .await
                    .unwrap()
                    > 0
            );
        }
    }

    #[tokio::test]
    async fn nothing_of_a_large_frame_is_kept_when_it_has_been_taken() {
        let (memory, mut read_buffer) = (memory(256 << 20), ReadBuffer::new());
        for len in [100, 32 << 20, 100, 200 << 10, 5 << 20] {
            let bytes = [frame(1, len), frame(2, 9)].concat();
            let mut stream = &bytes[..];
            let large = next(&mut read_buffer, &mut stream, &memory).await;
            assert!(
                large.payload.len() == len && large.payload.iter().all(|byte| *byte == 7),
                "{len}"
            );
            assert!(
                memory.used_bytes() >= if len >= LARGE_FROM_BYTES { len } else { 0 },
                "{len}"
            );
            assert!(memory.used_bytes() <= len + (64 << 10), "{len}");
            assert_eq!(
                next(&mut read_buffer, &mut stream, &memory)
                    .await
                    .header
                    .req_id,
                2
            );
            read_buffer.free_unused();
            assert!(
                read_buffer.is_empty() && read_buffer.allocated <= BUFFER_BYTES_KEPT,
                "{len}: {read_buffer:?}"
            );
            drop(large);
            assert_eq!(memory.used_bytes(), 0);
        }
    }

    #[tokio::test]
    async fn a_declared_length_takes_no_permit_and_no_memory() {
        let mut read_buffer = ReadBuffer::new();
        let mut stream = &frame(1, 64 << 20)[..100 << 10];
        while !stream.is_empty() {
            assert_eq!(read_buffer.take_frame(MAX).unwrap(), None);
            assert_eq!(read_buffer.wanted_permit().unwrap(), None);
            poll_fn(|context| read_buffer.poll_read(&mut stream, context))
                .await
                .unwrap();
        }
        assert!(
            read_buffer.buffer.capacity() <= LARGE_FROM_BYTES,
            "{}",
            read_buffer.buffer.capacity()
        );
    }

    #[tokio::test]
    async fn a_frame_without_a_permit_is_skipped_and_the_next_one_is_read() {
        // It is refused before it has a permit, and again after some of it has come under one.
        for covered_times in [0, 1, 2] {
            let memory = memory(4 << 20);
            let mut read_buffer = ReadBuffer::new();
            let bytes = [frame(1, 3 << 20), frame(2, 5)].concat();
            let (mut stream, mut times) = (&bytes[..], 0);
            loop {
                assert_eq!(read_buffer.take_frame(MAX).unwrap(), None);
                if let Some(wanted) = read_buffer.wanted_permit().unwrap() {
                    if times == covered_times {
                        break;
                    }
                    times += 1;
                    read_buffer.add_permit(wanted, wanted.try_acquire(&memory).unwrap());
                }
                poll_fn(|context| read_buffer.poll_read(&mut stream, context))
                    .await
                    .unwrap();
            }
            assert_eq!(read_buffer.skip_frame().unwrap().req_id, 1);
            assert!(
                !read_buffer.is_empty() && memory.used_bytes() == 0,
                "the rest is still to come"
            );
            let next = next(&mut read_buffer, &mut stream, &memory).await;
            assert_eq!((next.header.req_id, read_buffer.is_empty()), (2, true));
        }
    }
}
