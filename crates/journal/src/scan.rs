//! Walking the frames of one segment, and looking beyond a bad one.

use crate::Position;
use crate::frame::{Frame, FrameError, FrameHeader, HEADER_BYTES, MAGIC};
use crate::segment::{self, Locator};
use crate::storage::View;

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
    pub(crate) bytes: View,
}

impl SegmentBytes {
    pub(crate) const START: u64 = segment::HEADER_BYTES as u64;

    /// What is at `offset`, where the frame at `expected` should be.
    pub(crate) fn step(&self, offset: u64, expected: Position) -> Step {
        let rest = self.rest(offset);
        if rest.iter().take(HEADER_BYTES).all(|&b| b == 0) && is_zero(&rest) {
            return Step::End;
        }
        match Frame::read(&rest, Locator::new(self.number, offset)) {
            Ok(frame) if frame.position == expected => {
                let next = offset + frame.raw().len() as u64;
                Step::Frame(Box::new(frame), next)
            }
            Ok(_) => Step::Bad(FrameError::Malformed),
            Err(error) => Step::Bad(error),
        }
    }

    /// Where the frame after the one at `offset` begins, by its header alone; with its position.
    pub(crate) fn hop(&self, offset: u64) -> Option<(Position, u64)> {
        let header = FrameHeader::decode(&self.rest(offset))?;
        Some((header.position, offset + header.frame_len()))
    }

    /// The offset of the next sound header after `offset` with a position after `expected`, if any.
    pub(crate) fn find_later(&self, offset: u64, expected: Position) -> Option<(u64, FrameHeader)> {
        let from = (offset + 1).next_multiple_of(8);
        let rest = self.rest(from);
        let candidates = rest.chunks_exact(8).enumerate().filter(|(_, chunk)| chunk.starts_with(MAGIC));
        for (at, _) in candidates {
            if let Some(header) = FrameHeader::decode(&rest[at * 8..])
                && header.position > expected
            {
                return Some((from + at as u64 * 8, header));
            }
        }
        None
    }

    /// The offset behind the last byte that is not zero.
    pub(crate) fn used(&self) -> u64 {
        let zeros = self.bytes.iter().rev().take_while(|&&b| b == 0).count();
        (self.bytes.len() - zeros) as u64
    }

    fn rest(&self, offset: u64) -> View {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        self.bytes.slice(start..)
    }
}

/// Whether there is nothing but zeros, a word at a time.
fn is_zero(bytes: &[u8]) -> bool {
    let mut words = bytes.chunks_exact(64);
    words.all(|word| word.iter().fold(0, |any, &b| any | b) == 0) && words.remainder().iter().all(|&b| b == 0)
}
