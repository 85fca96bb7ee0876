//! The log's write side: one frame at a time, durable when `append` returns.
//!
//! How it fails: out of space before a sync was tried leaves the log as it was, and the next append
//! tries again. A failed sync, or a write that failed for another reason, poisons the log: what the
//! disk holds is not known any more, so nothing is written until the log is opened again.

use std::io::{self, IoSlice};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::batch::{Batch, BlobRecord};
use crate::ending::Doubtful;
use crate::frame::{self, ALIGN, FRAME_BYTES_MAX, Frame, Link};
use crate::preallocate::Preallocator;
use crate::reader::{Frames, LogReader, Shared, Tip};
use crate::recovery::{self, OpenError, Recovered};
use crate::segment::{self, Locator, Segment, SegmentHeader};
use crate::storage::{Storage, StorageFile, is_out_of_space};
use crate::{Position, scan::SegmentBytes};

/// What fills a frame up to its alignment.
const PADDING: [u8; ALIGN] = [0; ALIGN];
/// A buffer that a large frame made longer than this is given back.
const BUFFER_KEPT_BYTES_MAX: usize = 16 << 20;

/// When a frame is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before `append` returns.
    EveryFrame,
    /// When [`FileLog::sync`] is called, which the committer does every 100 ms.
    Os,
}

/// How to open a log.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// The size of a segment, unless one frame is larger.
    pub segment_bytes: u64,
    /// When a frame is synced.
    pub sync: SyncPolicy,
    /// Names whoever writes.
    pub writer: u128,
    /// The store's id if the log is empty.
    pub store_id_if_new: [u8; 16],
    /// A position that an index checkpoint knows to be durable: a bad frame up to it is damage.
    /// Whether the log reaches it is for the caller to see, who knows if the checkpoint is of this
    /// store.
    pub known_durable: Option<Position>,
}

/// A durable append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The frame's position.
    pub position: Position,
    /// The sequence number of its first command.
    pub first_sequence: u64,
    /// Where its blobs are, in the batch's order.
    pub locators: Vec<Locator>,
}

/// Why a batch was not appended. Nothing of it will ever be seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// No room; it may be tried again.
    #[error("no space is left on the disk: this write needs {needed_bytes} bytes")]
    NoSpace {
        /// What it takes to write the batch, at least.
        needed_bytes: u64,
    },
    /// The log cannot be written until it is opened again.
    #[error("the log is poisoned: {0}")]
    Poisoned(Arc<str>),
}

/// The seam between a store and its log: today a file of segments, tomorrow perhaps a replicated
/// table that feeds one.
pub trait Log: Send {
    /// Appends a batch as one frame.
    fn append(&mut self, batch: &Batch) -> Result<Appended, AppendError>;
    /// Makes what was appended durable, where `append` does not do so itself.
    fn sync(&mut self) -> Result<(), AppendError>;
    /// When a frame is synced.
    fn policy(&self) -> SyncPolicy;
    /// The frames from a position on, as far as there are.
    fn read(&self, from: Position) -> Frames;
    /// Waits until there is a durable frame after a position; false if there is none within the
    /// time.
    fn follow(&self, after: Position, timeout: Duration) -> bool;
}

/// The log as a row of segment files.
pub struct FileLog {
    shared: Arc<Shared>,
    preallocator: Preallocator,
    options: LogOptions,
    store_id: [u8; 16],
    /// The segment that takes the next frame, if it has room.
    active: Option<Active>,
    next_segment: u64,
    next_sequence: u64,
    tip: Tip,
    poisoned: Option<Arc<str>>,
    buffer: Vec<u8>,
}

pub(crate) struct Active {
    pub(crate) number: u64,
    pub(crate) file: Arc<dyn StorageFile>,
    /// Where the next frame goes; 0 while the segment has no header.
    pub(crate) end: u64,
}

/// What recovery found, for the writer to go on from.
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    pub(crate) store_id: [u8; 16],
    pub(crate) active: Option<Active>,
    pub(crate) next_segment: u64,
    pub(crate) next_sequence: u64,
}

impl FileLog {
    /// Opens the log, cutting a torn tail and refusing damage.
    pub fn open(
        storage: Arc<dyn Storage>,
        options: LogOptions,
    ) -> Result<(Self, Recovered), OpenError> {
        let preallocator = Preallocator::start(storage.clone(), options.segment_bytes)?;
        let (start, recovered, doubtful) = recovery::recover(storage, &options)?;
        let tip = *start
            .shared
            .tip
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut log = Self {
            shared: start.shared,
            preallocator,
            options,
            store_id: start.store_id,
            active: start.active,
            next_segment: start.next_segment,
            next_sequence: start.next_sequence,
            tip,
            poisoned: None,
            buffer: Vec::new(),
        };
        log.write_again(&doubtful)?;
        Ok((log, recovered))
    }

    /// A handle for reading.
    pub fn reader(&self) -> LogReader {
        LogReader(self.shared.clone())
    }

    /// Appends a frame of another log of the same store as it is, for import. Call [`Log::sync`] at
    /// the end.
    pub fn append_raw(&mut self, frame: &Frame) -> Result<(), AppendError> {
        self.check_poison()?;
        let follows = frame.store == self.shared.store
            && frame.position == Position(self.tip.last.0 + 1)
            && frame.prev_hash == self.tip.last_hash;
        if !follows {
            return Err(AppendError::Poisoned(
                "the frame does not follow the last one".into(),
            ));
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(frame.raw());
        self.write(frame.position, &[], 0)?;
        self.advance(frame.position, frame.hash);
        self.next_sequence = frame.next_sequence();
        Ok(())
    }

    /// Writes frames whose durability is in doubt once more, all into one new segment, and syncs
    /// them. Their first place is cut only then: a crash on the way leaves them where they were.
    fn write_again(&mut self, doubtful: &Doubtful) -> Result<(), OpenError> {
        if doubtful.frames.is_empty() {
            return Ok(());
        }
        let first_place = self
            .shared
            .storage
            .open(&segment::file_name(doubtful.segment))?;
        if doubtful.offset == SegmentBytes::START {
            segment::settle_header(&*first_place)?;
        }
        // A nearly full disk gives a segment that holds just these frames, so the store can be
        // read.
        self.rotate(
            doubtful
                .frames
                .iter()
                .map(|frame| frame.raw().len() as u64)
                .sum(),
        )?;
        for frame in &doubtful.frames {
            self.append_raw(frame)?;
        }
        Log::sync(self)?;
        first_place.cut(doubtful.offset)?;
        Ok(())
    }

    fn check_poison(&self) -> Result<(), AppendError> {
        self.poisoned
            .as_ref()
            .map_or(Ok(()), |why| Err(AppendError::Poisoned(why.clone())))
    }

    fn poison(&mut self, what: &str, error: &io::Error) -> AppendError {
        let why: Arc<str> = format!("{what}: {error}").into();
        self.poisoned = Some(why.clone());
        AppendError::Poisoned(why)
    }

    /// Writes the frame at `position`: the buffer, then the blobs and the padding; returns where
    /// its first byte is.
    fn write(
        &mut self,
        position: Position,
        blobs: &[BlobRecord],
        padding: usize,
    ) -> Result<Locator, AppendError> {
        let behind = blobs.iter().map(|blob| blob.bytes.len()).sum::<usize>() + padding;
        let frame_len = (self.buffer.len() + behind) as u64;
        let room = self
            .active
            .as_ref()
            .is_some_and(|a| a.end + frame_len <= a.file.len());
        if !room {
            self.rotate(frame_len)?;
        }
        let no_space = AppendError::NoSpace {
            needed_bytes: frame_len,
        };
        let Some(active) = &self.active else {
            return Err(no_space);
        };
        let (number, start, file) = (active.number, active.end, active.file.clone());
        if start == 0 {
            let header = SegmentHeader {
                store_id: self.store_id,
                number,
                first: position,
            };
            self.buffer.splice(0..0, header.encode());
        }
        let mut pieces = Vec::with_capacity(blobs.len() + 2);
        pieces.push(IoSlice::new(&self.buffer));
        pieces.extend(blobs.iter().map(|blob| IoSlice::new(&blob.bytes)));
        pieces.push(IoSlice::new(&PADDING[..padding]));
        if let Err(error) = file.write_pieces_at(start, &pieces) {
            return Err(self.cut_back(&error, no_space));
        }
        // A segment's header is synced under every policy: files may only be created behind it
        // then.
        if (self.options.sync == SyncPolicy::EveryFrame || start == 0)
            && let Err(error) = file.sync()
        {
            return Err(self.poison("a sync of the log failed", &error));
        }
        let written = (self.buffer.len() + behind) as u64;
        let end = start + written;
        if start == 0 {
            self.enlist(position);
        }
        self.active = Some(Active { number, file, end });
        self.shared.bytes_used.fetch_add(written, Ordering::Release);
        self.prepare_next();
        Ok(Locator::new(number, end - frame_len))
    }

    /// Makes a new segment the active one, and seals the old one.
    fn rotate(&mut self, frame_len: u64) -> Result<(), AppendError> {
        if self.options.sync == SyncPolicy::Os {
            Log::sync(self)?;
        }
        let len = SegmentBytes::START + frame_len;
        let file = match self.preallocator.take(self.next_segment, len) {
            Ok(file) => file,
            Err(error) if is_out_of_space(&error) => {
                return Err(AppendError::NoSpace { needed_bytes: len });
            }
            Err(error) => return Err(self.poison("a log segment cannot be created", &error)),
        };
        if let Some(old) = self.active.take() {
            // The rest of it holds nothing; a segment that could not be cut is only longer.
            drop(old.file.cut(old.end));
        }
        self.activate(file);
        Ok(())
    }

    fn activate(&mut self, file: Arc<dyn StorageFile>) {
        self.active = Some(Active {
            number: self.next_segment,
            file,
            end: 0,
        });
        self.next_segment += 1;
    }

    /// Takes back what a failed write may have left, so that the log ends with its last whole
    /// frame, and syncs that one if it is not yet: the segment is left for good. Returns `no_space`
    /// if that worked.
    fn cut_back(&mut self, error: &io::Error, no_space: AppendError) -> AppendError {
        let Some(active) = self.active.take() else {
            return no_space;
        };
        if !is_out_of_space(error) {
            return self.poison("a write to the log failed", error);
        }
        let cut = if active.end == 0 {
            self.next_segment = active.number;
            self.shared
                .storage
                .remove(&segment::file_name(active.number))
        } else {
            active
                .file
                .cut(active.end)
                .and_then(|()| active.file.sync())
        };
        match cut {
            Ok(()) => {
                self.tip.durable = self.tip.last;
                self.publish();
                no_space
            }
            Err(error) => self.poison("the log could not be cut back", &error),
        }
    }

    /// Shows the active segment to readers.
    fn enlist(&self, first: Position) {
        let Some(active) = &self.active else { return };
        let mut segments = Vec::clone(&self.shared.segments.load());
        segments.push(Segment::opened(active.number, first, active.file.clone()));
        self.shared.segments.store(Arc::new(segments));
    }

    fn prepare_next(&mut self) {
        if let Some(active) = &self.active
            && active.end > active.file.len() / 4
        {
            self.preallocator.prepare();
        }
    }

    /// Moves the tip to a frame that was written.
    fn advance(&mut self, position: Position, hash: [u8; 32]) {
        self.tip.last = position;
        self.tip.last_hash = hash;
        if self.options.sync == SyncPolicy::EveryFrame {
            self.tip.durable = position;
        }
        self.publish();
    }

    fn publish(&self) {
        *self
            .shared
            .tip
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = self.tip;
        self.shared.last.store(self.tip.last.0, Ordering::Release);
        self.shared.moved.notify_all();
    }
}

impl Log for FileLog {
    fn append(&mut self, batch: &Batch) -> Result<Appended, AppendError> {
        self.check_poison()?;
        let link = Link {
            store: self.shared.store,
            position: Position(self.tip.last.0 + 1),
            durable: self.tip.durable,
            prev_hash: self.tip.last_hash,
            writer: self.options.writer,
            first_sequence: self.next_sequence,
        };
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_KEPT_BYTES_MAX);
        let encoded = frame::encode_head(batch, link, &mut self.buffer);
        assert!(
            encoded.head + batch.blob_bytes() as u64 <= FRAME_BYTES_MAX,
            "the store's limits keep batches far below a frame's"
        );
        let at = self.write(link.position, &batch.blobs, encoded.padding)?;
        self.advance(link.position, encoded.hash);
        self.next_sequence += u64::from(batch.command_count);
        let mut offset = at.offset() + encoded.head;
        let locate = |blob: &BlobRecord| {
            let locator = Locator::new(at.segment(), offset);
            offset += blob.bytes.len() as u64;
            locator
        };
        let locators = batch.blobs.iter().map(locate).collect();
        Ok(Appended {
            position: link.position,
            first_sequence: link.first_sequence,
            locators,
        })
    }

    fn sync(&mut self) -> Result<(), AppendError> {
        self.check_poison()?;
        if self.tip.durable == self.tip.last {
            return Ok(());
        }
        if let Some(active) = &self.active
            && let Err(error) = active.file.sync()
        {
            return Err(self.poison("a sync of the log failed", &error));
        }
        self.tip.durable = self.tip.last;
        self.publish();
        Ok(())
    }

    fn policy(&self) -> SyncPolicy {
        self.options.sync
    }

    fn read(&self, from: Position) -> Frames {
        self.reader().frames(from, self.tip.last)
    }

    fn follow(&self, after: Position, timeout: Duration) -> bool {
        self.reader().wait_durable(Position(after.0 + 1), timeout)
    }
}
