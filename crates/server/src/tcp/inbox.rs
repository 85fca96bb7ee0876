//! Bytes on their way in: read, held until a frame is whole, and given back.
//!
//! A declared length is never reserved: the buffer grows with what has come, and that of a large frame
//! only as far as it has room for. A large frame is read to its end and no further, so that it takes
//! its whole buffer with it; a frame for which no room came is skipped. Between frames a connection
//! keeps at most [`BUFFER_BYTES_KEPT`].

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use turnkeep_wire::{Frame, FrameTooLong, HEADER_BYTES, Header};

use crate::memory::{LARGE_FROM_BYTES, Memory, Room};

/// What is read at once, at first and at most; it doubles whenever a read fills it.
const READ_BYTES_MIN: usize = 4 << 10;
const READ_BYTES_MAX: usize = 64 << 10;
/// A larger buffer is given back when its frames have been taken.
const BUFFER_BYTES_KEPT: usize = 2 * READ_BYTES_MAX;

/// What has come and is not yet taken.
#[derive(Debug)]
pub(super) struct Inbox {
    buffer: BytesMut,
    read_bytes: usize,
    /// What the buffer took when it last grew; frames that were taken may still share it.
    allocated: usize,
    /// Room for the large frame that is arriving.
    room: Option<Room>,
    /// Bytes of a refused frame that are still to come.
    skip: usize,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self { buffer: BytesMut::new(), read_bytes: READ_BYTES_MIN, allocated: 0, room: None, skip: 0 }
    }

    /// Whether no frame has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.skip == 0
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
        if let Some(more) = self.growth() {
            self.buffer.reserve(more);
            self.allocated = self.buffer.capacity();
        }
        let most = self.large().map_or(usize::MAX, |frame| frame - self.buffer.len());
        let mut space = (&mut self.buffer).limit(most);
        let received = ready!(pin!(stream.read_buf(&mut space)).poll(context))?;
        if self.buffer.len() == self.buffer.capacity() {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        }
        Poll::Ready(Ok(received))
    }

    /// How much the buffer has to grow before it takes more: at most by as much as has come already.
    fn growth(&self) -> Option<usize> {
        let (have, free) = (self.buffer.len(), self.buffer.capacity() - self.buffer.len());
        let rest = self.frame_bytes().map_or(1, |frame| frame.saturating_sub(have));
        let want = rest.clamp(self.read_bytes, self.read_bytes.max(have));
        let suffices = free >= want / 4 || (free >= rest && self.large().is_some());
        (!suffices).then_some(want)
    }

    /// The frame that is arriving, header included, as far as it is known.
    fn frame_bytes(&self) -> Option<usize> {
        Header::peek(&self.buffer).map(|header| HEADER_BYTES + header.len as usize)
    }

    /// The same, if it is large and not yet whole.
    fn large(&self) -> Option<usize> {
        self.frame_bytes().filter(|bytes| *bytes >= LARGE_FROM_BYTES && *bytes > self.buffer.len())
    }

    /// Room that has to be found before more is read.
    pub(super) fn lacks(&self, memory: &Memory) -> Option<usize> {
        let frame = self.large()?;
        let grown = (self.buffer.len() + self.growth()?).max(2 * self.buffer.capacity()).min(frame);
        if grown < LARGE_FROM_BYTES { None } else { memory.lacking(self.room.as_ref(), grown) }
    }

    pub(super) fn add_room(&mut self, room: Room) {
        self.room = Some(room.joined(self.room.take()));
    }

    /// The next whole frame, with its room if it is large.
    pub(super) fn take(
        &mut self,
        frame_bytes_max: usize,
    ) -> Result<Option<(Frame, Option<Room>)>, FrameTooLong> {
        if self.skip > 0 {
            let skipped = self.skip.min(self.buffer.len());
            self.buffer.advance(skipped);
            self.skip -= skipped;
        }
        let frame = Frame::take(&mut self.buffer, frame_bytes_max)?;
        Ok(frame.map(|frame| (frame, self.room.take())))
    }

    /// Gives up on the frame that is arriving: what has come of it is dropped, the rest will be.
    pub(super) fn skip_frame(&mut self) -> Option<Header> {
        let header = Header::peek(&self.buffer)?;
        let bytes = HEADER_BYTES + header.len as usize;
        self.skip = bytes.saturating_sub(self.buffer.len());
        self.buffer.advance(bytes - self.skip);
        self.room = None;
        self.shed();
        Some(header)
    }

    /// Gives back memory that only frames which were taken still need.
    pub(super) fn shed(&mut self) {
        if self.allocated > BUFFER_BYTES_KEPT {
            self.buffer = BytesMut::from(&self.buffer[..]);
            self.allocated = self.buffer.capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    const MAX: usize = 64 << 20;

    fn memory(bytes: usize) -> Memory {
        Memory::new(bytes, Duration::from_secs(1))
    }

    fn frame(req_id: u64, len: usize) -> Vec<u8> {
        let mut out = BytesMut::new();
        let len = u32::try_from(len).unwrap();
        Header { len, msg_type: 11, flags: 0, req_id }.encode(&mut out);
        out.resize(HEADER_BYTES + len as usize, 7);
        out.to_vec()
    }

    /// Reads until a frame is whole, taking whatever room it lacks.
    async fn next(inbox: &mut Inbox, stream: &mut &[u8], memory: &Memory) -> (Frame, Option<Room>) {
        loop {
            if let Some(taken) = inbox.take(MAX).unwrap() {
                return taken;
            }
            if let Some(bytes) = inbox.lacks(memory) {
                inbox.add_room(memory.try_take(bytes).unwrap());
            }
            assert!(poll_fn(|context| inbox.poll_read(stream, context)).await.unwrap() > 0);
        }
    }

    #[tokio::test]
    async fn nothing_of_a_large_frame_is_kept_when_it_has_been_taken() {
        let (memory, mut inbox) = (memory(256 << 20), Inbox::new());
        for len in [100, 32 << 20, 100, 200 << 10, 5 << 20] {
            let bytes = [frame(1, len), frame(2, 9)].concat();
            let mut stream = &bytes[..];
            let (large, room) = next(&mut inbox, &mut stream, &memory).await;
            assert_eq!((large.payload.len(), room.is_some()), (len, len >= LARGE_FROM_BYTES));
            assert!(memory.held() >= if room.is_some() { len } else { 0 }, "{len}");
            assert!(memory.held() <= len + (64 << 10), "{len}");
            assert_eq!(next(&mut inbox, &mut stream, &memory).await.0.header.req_id, 2);
            inbox.shed();
            assert!(inbox.is_empty() && inbox.allocated <= BUFFER_BYTES_KEPT, "{len}: {inbox:?}");
            drop(room);
            assert_eq!(memory.held(), 0);
        }
    }

    #[tokio::test]
    async fn a_declared_length_takes_no_room_and_no_memory() {
        let (memory, mut inbox) = (memory(256 << 20), Inbox::new());
        let mut stream = &frame(1, 64 << 20)[..100 << 10];
        while !stream.is_empty() {
            assert_eq!(inbox.take(MAX).unwrap().map(|(frame, _)| frame), None);
            assert_eq!(inbox.lacks(&memory), None);
            poll_fn(|context| inbox.poll_read(&mut stream, context)).await.unwrap();
        }
        assert!(inbox.buffer.capacity() <= LARGE_FROM_BYTES, "{}", inbox.buffer.capacity());
    }

    #[tokio::test]
    async fn a_frame_without_room_is_skipped_and_the_next_one_is_read() {
        let memory = memory(4 << 20);
        let held: Vec<_> = (0..4).map(|_| memory.try_take(1 << 20).unwrap()).collect();
        let mut inbox = Inbox::new();
        let bytes = [frame(1, 3 << 20), frame(2, 5)].concat();
        let mut stream = &bytes[..];
        while inbox.lacks(&memory).is_none() {
            assert_eq!(inbox.take(MAX).unwrap().map(|(frame, _)| frame), None);
            poll_fn(|context| inbox.poll_read(&mut stream, context)).await.unwrap();
        }
        assert_eq!(inbox.skip_frame().unwrap().req_id, 1);
        assert!(!inbox.is_empty(), "the rest is still to come");
        let (next, room) = next(&mut inbox, &mut stream, &memory).await;
        assert_eq!((next.header.req_id, room.is_none(), inbox.is_empty()), (2, true, true));
        drop(held);
    }
}
