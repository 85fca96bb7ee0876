//! Reading the log: blobs by locator, frames by position. Readers take no lock and never wait for
//! the writer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::Position;
use crate::frame::{Frame, blob_crc};
use crate::scan::SegmentBytes;
use crate::segment::{self, Locator, Segment};
use crate::storage::{Storage, View};

/// What the writer and the readers share.
pub(crate) struct Shared {
    pub(crate) storage: Arc<dyn Storage>,
    /// The store's tag.
    pub(crate) store: u32,
    /// All segments in use, in order.
    pub(crate) segments: ArcSwap<Vec<Arc<Segment>>>,
    pub(crate) last: AtomicU64,
    pub(crate) bytes_used: AtomicU64,
    /// The last durable position and the hash of the last frame, with a bell for those who wait.
    pub(crate) tip: Mutex<Tip>,
    pub(crate) moved: Condvar,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tip {
    pub(crate) durable: Position,
    pub(crate) last: Position,
    pub(crate) last_hash: [u8; 32],
}

/// A handle for reading; cheap to clone.
#[derive(Clone)]
pub struct LogReader(pub(crate) Arc<Shared>);

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
    /// The bytes do not match their checksum, or are not there.
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
    /// A blob's stored bytes, checked.
    pub fn blob(&self, locator: Locator, stored_len: u32, crc: u32) -> Result<View, BlobReadError> {
        let (number, offset) = (locator.segment(), locator.offset());
        let damaged = || BlobReadError::Damaged {
            file: segment::file_name(number),
            offset,
        };
        let segments = self.0.segments.load();
        let index = number
            .checked_sub(1)
            .and_then(|n| usize::try_from(n).ok())
            .ok_or_else(damaged)?;
        let segment = segments.get(index).ok_or_else(damaged)?;
        let bytes = segment
            .file(&*self.0.storage)
            .and_then(|file| file.read(offset..offset + u64::from(stored_len)))
            .map_err(|source| BlobReadError::Io {
                file: segment::file_name(number),
                source,
            })?;
        let sound = bytes.len() == stored_len as usize && blob_crc(&bytes) == crc;
        if sound { Ok(bytes) } else { Err(damaged()) }
    }

    /// The frames from one position to another, both included.
    pub fn frames(&self, from: Position, to: Position) -> Frames {
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
        let tip = self.tip();
        if position == tip.last {
            return (position.0 > 0).then_some(tip.last_hash);
        }
        Some(self.frames(position, position).next()?.ok()?.hash)
    }

    /// The last frame's position; 0 for an empty log. Under the `Os` policy it may not be durable
    /// yet.
    pub fn last(&self) -> Position {
        Position(self.0.last.load(Ordering::Acquire))
    }

    /// The last position known to be durable.
    pub fn last_durable(&self) -> Position {
        self.tip().durable
    }

    /// Waits until a position is durable; false if it is not within the time.
    pub fn wait_durable(&self, position: Position, timeout: Duration) -> bool {
        let tip = self.0.tip.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .0
            .moved
            .wait_timeout_while(tip, timeout, |tip| tip.durable < position);
        waited.unwrap_or_else(PoisonError::into_inner).0.durable >= position
    }

    /// The bytes of all segments up to the last frame.
    pub fn bytes_used(&self) -> u64 {
        self.0.bytes_used.load(Ordering::Acquire)
    }

    fn tip(&self) -> Tip {
        *self.0.tip.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frames in order; ends after the first error.
pub struct Frames {
    reader: LogReader,
    segments: Arc<Vec<Arc<Segment>>>,
    index: usize,
    /// The segment being read, and where in it.
    at: Option<(SegmentBytes, u64)>,
    next: Position,
    to: Position,
    failed: bool,
}

impl Iterator for Frames {
    type Item = Result<Frame, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.next > self.to {
            return None;
        }
        let frame = self.read();
        self.failed = frame.is_err();
        self.next = Position(self.next.0.saturating_add(1));
        Some(frame)
    }
}

impl Frames {
    fn read(&mut self) -> Result<Frame, ReadError> {
        while self
            .segments
            .get(self.index + 1)
            .is_some_and(|later| later.first <= self.next)
        {
            self.index += 1;
            self.at = None;
        }
        let (bytes, offset) = match self.at.take() {
            Some(at) => at,
            None => self.enter()?,
        };
        // Only frames that the log has are asked for, so nothing behind the last one is ever looked
        // at: the writer may cut the file there.
        let (frame, next) = bytes
            .frame(offset, self.next)
            .map_err(|error| self.damaged(offset, error.to_string()))?;
        self.at = Some((bytes, next));
        Ok(frame)
    }

    /// The current segment, at the offset of the frame that is wanted next.
    fn enter(&self) -> Result<(SegmentBytes, u64), ReadError> {
        let segment = self
            .segments
            .get(self.index)
            .ok_or_else(|| self.damaged(0, "no segment".into()))?;
        let file = segment::file_name(segment.number);
        let bytes = segment
            .file(&*self.reader.0.storage)
            .and_then(|file| file.read(0..file.len()));
        let bytes = bytes.map_err(|source| ReadError::Io { file, source })?;
        let bytes = SegmentBytes {
            number: segment.number,
            store: Some(self.reader.0.store),
            bytes,
        };
        let mut offset = SegmentBytes::START;
        for position in segment.first.0..self.next.0 {
            match bytes.hop(offset) {
                Some((found, next)) if found.0 == position => offset = next,
                _ => return Err(self.damaged(offset, "no frame header".into())),
            }
        }
        Ok((bytes, offset))
    }

    fn damaged(&self, offset: u64, what: String) -> ReadError {
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
