//! Reading the log: blobs by locator, frames by position.
//!
//! Readers share the segment list and a few atomics with the writer and never wait for its I/O. A
//! read verifies the checksum and fails with the file and offset of the damage.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::Position;
use crate::frame::{Frame, blob_crc};
use crate::scan::SegmentBytes;
use crate::segment::{self, Locator, Segment};
use crate::storage::{FileBytes, Storage};

/// The state that the writer and the readers share.
pub(crate) struct SharedLog {
    pub(crate) storage: Arc<dyn Storage>,
    /// The store's tag.
    pub(crate) store: u32,
    /// All segments in use, in order.
    pub(crate) segments: ArcSwap<Vec<Arc<Segment>>>,
    /// The last position of `tip`, for readers that must not wait for its lock.
    pub(crate) last: AtomicU64,
    pub(crate) bytes_used: AtomicU64,
    /// The end of the log. `moved` wakes the threads that wait for it.
    pub(crate) tip: Mutex<LogTip>,
    pub(crate) moved: Condvar,
}

/// The end of the log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogTip {
    pub(crate) durable: Position,
    pub(crate) last: Position,
    pub(crate) last_hash: [u8; 32],
}

impl SharedLog {
    /// Locks the tip. A thread that panicked with the lock held cannot have left half a value.
    pub(crate) fn lock_tip(&self) -> MutexGuard<'_, LogTip> {
        self.tip.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle for reading. Cloning is cheap.
#[derive(Clone)]
pub struct LogReader(pub(crate) Arc<SharedLog>);

/// Why a frame cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The frame is damaged.
    #[error("the log is damaged in {file} at byte {offset} (frame {}): {what}; run `turnkeep verify`, then `turnkeep repair`", .position.0)]
    Damaged {
        /// The file, relative to the data directory.
        file: String,
        /// Where in the file.
        offset: u64,
        /// The frame that should be there.
        position: Position,
        /// What is wrong.
        what: String,
    },
    /// The file cannot be read.
    #[error("{file} cannot be read: {source}")]
    Io {
        /// The file, relative to the data directory.
        file: String,
        /// Why.
        source: std::io::Error,
    },
}

/// Why a blob's bytes cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BlobReadError {
    /// The bytes do not match their checksum or are missing.
    #[error("damaged in {file} at byte {offset}")]
    Damaged {
        /// The file, relative to the data directory.
        file: String,
        /// Where in the file.
        offset: u64,
    },
    /// The file cannot be read.
    #[error("{file} cannot be read: {source}")]
    Io {
        /// The file, relative to the data directory.
        file: String,
        /// Why.
        source: std::io::Error,
    },
}

impl LogReader {
    /// Reads a blob's stored bytes and verifies their checksum.
    pub fn read_blob(
        &self,
        locator: Locator,
        stored_len: u32,
        crc: u32,
    ) -> Result<FileBytes, BlobReadError> {
        let (number, offset) = (locator.segment(), locator.offset());
        let damaged = || BlobReadError::Damaged {
            file: segment::file_name(number),
            offset,
        };
        let segments = self.0.segments.load();
        // Segments are numbered from 1 without gaps. Segment 0 is that of `Locator::NOWHERE`.
        let segment = usize::try_from(number)
            .ok()
            .and_then(|number| segments.get(number.checked_sub(1)?))
            .ok_or_else(damaged)?;
        let bytes = segment
            .open_file(&*self.0.storage)
            .and_then(|file| file.read(offset..offset + u64::from(stored_len)))
            .map_err(|source| BlobReadError::Io {
                file: segment::file_name(number),
                source,
            })?;
        // A truncated file yields fewer bytes.
        let sound = bytes.len() == stored_len as usize && blob_crc(&bytes) == crc;
        if sound { Ok(bytes) } else { Err(damaged()) }
    }

    /// Iterates over the frames from a position to the end of the log.
    pub fn frames_from(&self, from: Position) -> Frames {
        self.frames_between(from, self.last_position())
    }

    /// Iterates over the frames from one position to another, both included.
    pub fn frames_between(&self, from: Position, to: Position) -> Frames {
        let segments = self.0.segments.load_full();
        let from = from.max(Position(1));
        let index = segments
            .partition_point(|segment| segment.first <= from)
            .saturating_sub(1);
        Frames {
            reader: self.clone(),
            segments,
            index,
            at: None,
            next: from,
            to,
            failed: false,
        }
    }

    /// The hash of the frame at a position.
    pub fn frame_hash(&self, position: Position) -> Option<[u8; 32]> {
        let tip = *self.0.lock_tip();
        // Each checkpoint needs the hash of the last frame, and the tip has it without a disk read.
        if position == tip.last {
            return (position.0 > 0).then_some(tip.last_hash);
        }
        Some(self.frames_between(position, position).next()?.ok()?.hash)
    }

    /// The last frame's position; 0 for an empty log. Under the `Os` policy the frame may not be
    /// durable yet.
    pub fn last_position(&self) -> Position {
        Position(self.0.last.load(Ordering::Acquire))
    }

    /// The last position known to be durable.
    pub fn last_durable(&self) -> Position {
        self.0.lock_tip().durable
    }

    /// Waits until a position is durable. Returns false after `timeout`.
    pub fn wait_durable(&self, position: Position, timeout: Duration) -> bool {
        let tip = self.0.lock_tip();
        let waited = self
            .0
            .moved
            .wait_timeout_while(tip, timeout, |tip| tip.durable < position);
        waited.unwrap_or_else(PoisonError::into_inner).0.durable >= position
    }

    /// The length of all segments up to the last frame.
    pub fn bytes_used(&self) -> u64 {
        self.0.bytes_used.load(Ordering::Acquire)
    }
}

/// Iterates over frames in order. Ends after the first error.
pub struct Frames {
    reader: LogReader,
    segments: Arc<Vec<Arc<Segment>>>,
    index: usize,
    /// The next frame's place in the current segment; `None` if the segment must be opened first.
    at: Option<FramePlace>,
    next: Position,
    to: Position,
    failed: bool,
}

/// A segment and the offset of a frame in it.
struct FramePlace {
    bytes: SegmentBytes,
    offset: u64,
}

impl Iterator for Frames {
    type Item = Result<Frame, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.next > self.to {
            return None;
        }
        let frame = self.read_next();
        // The next frame begins where this one ends, so after an error its place is unknown.
        self.failed = frame.is_err();
        self.next = Position(self.next.0.saturating_add(1));
        Some(frame)
    }
}

impl Frames {
    fn read_next(&mut self) -> Result<Frame, ReadError> {
        // The later segment counts: recovery may have written this frame again in it.
        while self
            .segments
            .get(self.index + 1)
            .is_some_and(|later| later.first <= self.next)
        {
            self.index += 1;
            self.at = None;
        }
        let FramePlace { bytes, offset } = match self.at.take() {
            Some(at) => at,
            None => self.find_in_segment()?,
        };
        // Reads exactly one frame and no byte behind it: the writer may cut the file there.
        let (frame, next) = bytes
            .read_frame(offset, self.next)
            .map_err(|error| self.damage_at(offset, error.to_string()))?;
        self.at = Some(FramePlace {
            bytes,
            offset: next,
        });
        Ok(frame)
    }

    /// Opens the current segment and finds the next frame in it by skipping the frames before it.
    fn find_in_segment(&self) -> Result<FramePlace, ReadError> {
        let segment = self
            .segments
            .get(self.index)
            .ok_or_else(|| self.damage_at(0, "no segment".into()))?;
        let file = segment::file_name(segment.number);
        let bytes = segment
            .open_file(&*self.reader.0.storage)
            .and_then(|file| file.read(0..file.len()));
        let bytes = bytes.map_err(|source| ReadError::Io { file, source })?;
        let bytes = SegmentBytes {
            number: segment.number,
            store: Some(self.reader.0.store),
            bytes,
        };
        let mut offset = SegmentBytes::START;
        for position in segment.first.0..self.next.0 {
            match bytes.skip_frame(offset) {
                Some(skipped) if skipped.position.0 == position => offset = skipped.next,
                _ => return Err(self.damage_at(offset, "no frame header".into())),
            }
        }
        Ok(FramePlace { bytes, offset })
    }

    fn damage_at(&self, offset: u64, what: String) -> ReadError {
        let number = self
            .segments
            .get(self.index)
            .map_or(0, |segment| segment.number);
        ReadError::Damaged {
            file: segment::file_name(number),
            offset,
            position: self.next,
            what,
        }
    }
}
