//! Walking the frames of one segment, and looking beyond a bad one.

use crate::Position;
use crate::frame::{Frame, FrameError, FrameHeader, HEADER_BYTES, MAGIC};
use crate::segment::{self, Locator};
use crate::storage::{Storage, View};

/// What is at an offset of a segment.
pub(crate) enum Step {
    /// A sound frame; the next begins at the offset.
    Frame(Box<Frame>, u64),
    /// Zeros up to the end, or the end: nothing was ever written here.
    End,
    /// Neither.
    Bad(FrameError),
}

/// The bytes of one segment.
#[derive(Clone)]
pub(crate) struct SegmentBytes {
    pub(crate) number: u64,
    /// The tag of the store whose frames are looked for; none if no header tells it.
    pub(crate) store: Option<u32>,
    pub(crate) bytes: View,
}

impl SegmentBytes {
    pub(crate) const START: u64 = segment::HEADER_BYTES as u64;

    /// The bytes of the segment with this number.
    pub(crate) fn open(
        storage: &dyn Storage,
        number: u64,
        store: Option<u32>,
    ) -> std::io::Result<Self> {
        let file = storage.open(&segment::file_name(number))?;
        Ok(Self {
            number,
            store,
            bytes: file.read(0..file.len())?,
        })
    }

    /// What is at `offset`, where the frame at `expected` should be.
    pub(crate) fn step(&self, offset: u64, expected: Position) -> Step {
        let rest = self.rest(offset);
        if rest.iter().take(HEADER_BYTES).all(|&b| b == 0) && used(&rest) == 0 {
            return Step::End;
        }
        match self.frame(offset, expected) {
            Ok((frame, next)) => Step::Frame(Box::new(frame), next),
            Err(error) => Step::Bad(error),
        }
    }

    /// The frame at `offset`, and where the next one begins. Reads nothing behind the frame.
    pub(crate) fn frame(
        &self,
        offset: u64,
        expected: Position,
    ) -> Result<(Frame, u64), FrameError> {
        let frame = Frame::read(&self.rest(offset), Locator::new(self.number, offset))?;
        if frame.position != expected || self.store.is_some_and(|store| frame.store != store) {
            return Err(FrameError::Foreign);
        }
        let next = offset + frame.raw().len() as u64;
        Ok((frame, next))
    }

    /// Where the frame after the one at `offset` begins, by its header alone; with its position.
    pub(crate) fn hop(&self, offset: u64) -> Option<(Position, u64)> {
        let header = self.header(&self.rest(offset))?;
        Some((header.position, offset + header.frame_len()))
    }

    /// The offset and position of the next sound frame header behind what is at `offset`, of a
    /// frame after `expected`. If a sound header is at `offset`, its whole frame is skipped: what
    /// looks like a frame in there is somebody's payload.
    pub(crate) fn find_later(&self, offset: u64, expected: Position) -> Option<(u64, Position)> {
        let from = self
            .hop(offset)
            .map_or((offset + 1).next_multiple_of(8), |(_, next)| next);
        let rest = self.rest(from);
        let candidates = rest
            .chunks_exact(8)
            .enumerate()
            .filter(|(_, chunk)| chunk.starts_with(MAGIC));
        for (at, _) in candidates {
            if let Some(header) = self.header(&rest[at * 8..])
                && header.position > expected
            {
                return Some((from + at as u64 * 8, header.position));
            }
        }
        None
    }

    /// The offset behind the last byte that is not zero.
    pub(crate) fn used(&self) -> u64 {
        used(&self.bytes) as u64
    }

    fn header(&self, bytes: &[u8]) -> Option<FrameHeader> {
        FrameHeader::decode(bytes)
            .filter(|header| self.store.is_none_or(|store| header.store == store))
    }

    fn rest(&self, offset: u64) -> View {
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.bytes.len());
        self.bytes.slice(start..)
    }
}

/// The length without the zeros at the end, which are skipped many at a time.
fn used(bytes: &[u8]) -> usize {
    let is_zero = |block: &[u8]| block.iter().fold(0, |any, &b| any | b) == 0;
    let mut len = bytes.len();
    for block in bytes.rchunks(256) {
        if !is_zero(block) {
            break;
        }
        len -= block.len();
    }
    bytes[..len]
        .iter()
        .rposition(|&b| b != 0)
        .map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::used;

    #[test]
    fn the_last_byte_that_is_not_zero_is_found_wherever_it_is() {
        for len in [0, 1, 255, 256, 257, 600] {
            assert_eq!(used(&vec![0; len]), 0);
            for at in 0..len {
                let mut bytes = vec![0; len];
                bytes[at] = 1;
                assert_eq!(used(&bytes), at + 1, "byte {at} of {len}");
            }
        }
    }
}
