//! Scans the frames of one segment, and searches for sound frames behind a bad one.
//!
//! It only reads. It accepts a frame only if its checksums hold, its position is the expected one
//! and it carries the store's tag.

use crate::Position;
use crate::frame::{ALIGN, Frame, FrameError, FrameHeader, HEADER_BYTES, MAGIC};
use crate::segment::{self, Locator};
use crate::storage::{FileBytes, Storage};

/// The content of a segment at an offset.
pub(crate) enum ScanStep {
    /// A sound frame, and the offset behind it.
    Frame(Box<Frame>, u64),
    /// Only zeros, or the end of the file: nothing was ever written here.
    End,
    /// Other bytes.
    Bad(FrameError),
}

/// A frame of which only the header was read.
pub(crate) struct SkippedFrame {
    pub(crate) position: Position,
    /// The offset behind it.
    pub(crate) next: u64,
}

/// The header of a frame that was found behind a bad one.
#[derive(Clone, Copy)]
pub(crate) struct LaterFrame {
    pub(crate) offset: u64,
    pub(crate) position: Position,
}

/// The bytes of one segment.
#[derive(Clone)]
pub(crate) struct SegmentBytes {
    pub(crate) number: u64,
    /// The tag of the store; `None` if no segment header is readable.
    pub(crate) store: Option<u32>,
    pub(crate) bytes: FileBytes,
}

impl SegmentBytes {
    pub(crate) const START: u64 = segment::HEADER_BYTES as u64;

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

    /// Reads the content at `offset`, where the frame at `expected` should be.
    pub(crate) fn scan_at(&self, offset: u64, expected: Position) -> ScanStep {
        let rest = self.bytes_from(offset);
        // The header first: almost always it settles the question without reading the whole rest.
        if rest.iter().take(HEADER_BYTES).all(|&b| b == 0) && length_without_zeros(&rest) == 0 {
            return ScanStep::End;
        }
        match self.read_frame(offset, expected) {
            Ok((frame, next)) => ScanStep::Frame(Box::new(frame), next),
            Err(error) => ScanStep::Bad(error),
        }
    }

    /// Reads the frame at `offset` and returns it with the offset behind it. Reads no byte behind
    /// the frame.
    pub(crate) fn read_frame(
        &self,
        offset: u64,
        expected: Position,
    ) -> Result<(Frame, u64), FrameError> {
        let frame = Frame::read(&self.bytes_from(offset), Locator::new(self.number, offset))?;
        // A sound frame in the wrong place is the rest of an earlier use of the disk's blocks, or a
        // payload that looks like a frame.
        if frame.position != expected || self.store.is_some_and(|store| frame.store != store) {
            return Err(FrameError::Foreign);
        }
        let next = offset + frame.raw().len() as u64;
        Ok((frame, next))
    }

    /// Reads the header of the frame at `offset` and skips the frame.
    pub(crate) fn skip_frame(&self, offset: u64) -> Option<SkippedFrame> {
        let header = self.read_header(&self.bytes_from(offset))?;
        Some(SkippedFrame {
            position: header.link.position,
            next: offset + header.frame_len(),
        })
    }

    /// Finds the next sound header behind `offset` of a frame after `expected`. If a sound header
    /// is at `offset`, the search starts behind its frame: bytes inside it that look like a frame
    /// are a client's payload.
    pub(crate) fn find_later_frame(&self, offset: u64, expected: Position) -> Option<LaterFrame> {
        let from = match self.skip_frame(offset) {
            Some(skipped) => skipped.next,
            None => (offset + 1).next_multiple_of(ALIGN as u64),
        };
        let rest = self.bytes_from(from);
        for at in (0..rest.len()).step_by(ALIGN) {
            // The magic first: a checksum at every candidate would make the search slow.
            if rest[at..].starts_with(MAGIC)
                && let Some(header) = self.read_header(&rest[at..])
                && header.link.position > expected
            {
                return Some(LaterFrame {
                    offset: from + at as u64,
                    position: header.link.position,
                });
            }
        }
        None
    }

    /// The offset behind the last byte that is not zero.
    pub(crate) fn used_len(&self) -> u64 {
        length_without_zeros(&self.bytes) as u64
    }

    fn read_header(&self, bytes: &[u8]) -> Option<FrameHeader> {
        FrameHeader::decode(bytes)
            .filter(|header| self.store.is_none_or(|store| header.link.store == store))
    }

    fn bytes_from(&self, offset: u64) -> FileBytes {
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.bytes.len());
        self.bytes.slice(start..)
    }
}

/// The length without the zeros at the end. Compares blocks, because the rest of a fresh segment is
/// tens of megabytes of zeros.
fn length_without_zeros(bytes: &[u8]) -> usize {
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
    use super::length_without_zeros;

    #[test]
    fn the_last_byte_that_is_not_zero_is_found_wherever_it_is() {
        for len in [0, 1, 255, 256, 257, 600] {
            assert_eq!(length_without_zeros(&vec![0; len]), 0);
            for at in 0..len {
                let mut bytes = vec![0; len];
                bytes[at] = 1;
                assert_eq!(length_without_zeros(&bytes), at + 1, "byte {at} of {len}");
            }
        }
    }
}
