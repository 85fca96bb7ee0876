//! The write side of the log: one frame at a time. It is durable when `append` returns, unless the
//! `Os` policy syncs later.
//!
//! A full disk leaves the log as it was, and the next append may succeed. A failed sync, or a write
//! that failed for another reason, poisons the log: the content of the disk is unknown, because the
//! kernel may have dropped the pages that it could not write. A poisoned log rejects every write
//! until it is opened again.
//!
//! Why a crash during an append is safe:
//!
//! | crash | left on disk | the next opening |
//! |---|---|---|
//! | after a new segment was created | a segment full of zeros | removes the file |
//! | during the write | an incomplete frame, in any order of its pages | cuts it as a torn tail |
//! | after the write, before the sync | perhaps the whole frame | keeps it if whole, else cuts it |
//! | after the sync, before the answer | the whole frame | keeps it, although no client got an answer |

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch::{Batch, BlobRecord};
use crate::frame::{self, ALIGN, ChainLink, FRAME_BYTES_MAX, Frame};
use crate::last_segment::DoubtfulFrames;
use crate::preallocate::Preallocator;
use crate::reader::{LogReader, LogTip, SharedLog};
use crate::recovery::{self, OpenError, Recovered};
use crate::segment::{self, Locator, Segment, SegmentHeader};
use crate::storage::{Storage, StorageFile, is_out_of_space};
use crate::{Position, scan::SegmentBytes};

/// The zeros that fill a frame up to its alignment.
const PADDING: [u8; ALIGN] = [0; ALIGN];
/// A buffer that a large frame made longer than this returns its memory. Two groups of commands
/// (`GROUP_BYTES_MAX`) fit, so ordinary load never allocates the buffer again.
const BUFFER_KEPT_BYTES_MAX: usize = 16 << 20;

/// When the log syncs a frame.
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
    /// Identifies the process that writes.
    pub writer: u128,
    /// The store's id if the log is empty.
    pub store_id_if_new: [u8; 16],
    /// A position that is known to have been durable: a bad frame up to it is damage. The caller
    /// must check that the log reaches it.
    pub known_durable: Option<Position>,
}

/// A frame that was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The frame's position.
    pub position: Position,
    /// The sequence number of its first command.
    pub first_sequence: u64,
    /// The places of its blobs, in the batch's order.
    pub locators: Vec<Locator>,
}

/// Why a batch was not appended. No reader will ever see it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The disk is full. The caller may retry.
    #[error("no space is left on the disk: this write needs {needed_bytes} bytes")]
    NoSpace {
        /// The least space that the batch needs.
        needed_bytes: u64,
    },
    /// The log rejects writes until it is opened again.
    #[error("the log is poisoned: {0}")]
    Poisoned(Arc<str>),
}

/// The interface between a store and its log.
pub trait Log: Send {
    /// Appends a batch as one frame.
    fn append(&mut self, batch: &Batch) -> Result<Appended, AppendError>;
    /// Makes all appended frames durable, if `append` does not do so itself.
    fn sync(&mut self) -> Result<(), AppendError>;
    /// When a frame is synced.
    fn sync_policy(&self) -> SyncPolicy;
}

/// The log as a series of segment files.
pub struct FileLog {
    shared: Arc<SharedLog>,
    preallocator: Preallocator,
    options: LogOptions,
    store_id: [u8; 16],
    /// The segment that receives the next frame if it is long enough.
    active: Option<ActiveSegment>,
    next_segment: u64,
    next_sequence: u64,
    tip: LogTip,
    poisoned: Option<Arc<str>>,
    buffer: Vec<u8>,
}

/// The segment that frames are written to.
#[derive(Clone)]
pub(crate) struct ActiveSegment {
    pub(crate) number: u64,
    pub(crate) file: Arc<dyn StorageFile>,
    /// The offset of the next frame; 0 while the segment has no header.
    pub(crate) end: u64,
}

/// Where the writer continues after recovery.
pub(crate) struct WriterStart {
    pub(crate) shared: Arc<SharedLog>,
    pub(crate) store_id: [u8; 16],
    pub(crate) active: Option<ActiveSegment>,
    pub(crate) next_segment: u64,
    pub(crate) next_sequence: u64,
    /// Frames that the writer must write again before it appends.
    pub(crate) doubtful: DoubtfulFrames,
}

impl FileLog {
    /// Opens the log. Cuts a torn tail, and returns an error if the log is damaged.
    pub fn open(
        storage: Arc<dyn Storage>,
        options: LogOptions,
    ) -> Result<(Self, Recovered), OpenError> {
        let preallocator = Preallocator::start(storage.clone(), options.segment_bytes)?;
        let (start, recovered) = recovery::recover(storage, &options)?;
        let tip = *start.shared.lock_tip();
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
        log.rewrite_doubtful(&start.doubtful)?;
        Ok((log, recovered))
    }

    /// Returns a handle for reading.
    pub fn reader(&self) -> LogReader {
        LogReader(self.shared.clone())
    }

    /// Appends a frame of another log of the same store unchanged, for import. The caller must call
    /// [`Log::sync`] at the end.
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
        self.write_frame(frame.position, &[], 0)?;
        self.advance_tip(frame.position, frame.hash);
        self.next_sequence = frame.next_sequence();
        Ok(())
    }

    /// Copies the doubtful frames into one new segment and syncs it. Cuts the originals only
    /// afterwards, so a crash on the way leaves them in place.
    fn rewrite_doubtful(&mut self, doubtful: &DoubtfulFrames) -> Result<(), OpenError> {
        if doubtful.frames.is_empty() {
            return Ok(());
        }
        let original = self
            .shared
            .storage
            .open(&segment::file_name(doubtful.segment))?;
        // The original keeps its header, which was in the same unsynced write as its first frame.
        if doubtful.offset == SegmentBytes::START {
            segment::rewrite_header(&*original)?;
        }
        // One segment for all of them: recovery recognizes an unfinished copy by its holding
        // fewer of the frames. On a nearly full disk the segment is just long enough.
        let copied_bytes = doubtful.frames.iter().map(|frame| frame.raw().len() as u64);
        self.rotate_segment(copied_bytes.sum())?;
        for frame in &doubtful.frames {
            self.append_raw(frame)?;
        }
        Log::sync(self)?;
        // A crash before this line leaves the frames in both segments. Readers use the later copy,
        // so this cut only saves space and keeps the log free of stale bytes.
        original.truncate(doubtful.offset)?;
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

    /// Writes the frame at `position`: the buffer, the blobs, the padding. Returns the place of its
    /// first byte.
    fn write_frame(
        &mut self,
        position: Position,
        blobs: &[BlobRecord],
        padding: usize,
    ) -> Result<Locator, AppendError> {
        let blob_bytes: usize = blobs.iter().map(|blob| blob.bytes.len()).sum();
        let frame_len = (self.buffer.len() + blob_bytes + padding) as u64;
        let no_space = AppendError::NoSpace {
            needed_bytes: frame_len,
        };
        if !self.fits_active_segment(frame_len) {
            self.rotate_segment(frame_len)?;
        }
        let Some(mut active) = self.active.clone() else {
            return Err(no_space);
        };
        let is_first = active.end == 0;
        // A new segment gets its header in the same write as its first frame: one sync covers both.
        if is_first {
            self.prepend_segment_header(active.number, position);
        }
        if let Err(error) = self.write_pieces(&active, blobs, padding) {
            return Err(self.undo_write(&error, no_space));
        }
        // The first frame of a segment is synced under every policy. Recovery relies on it: a
        // segment without a sound header has no later segment.
        if (self.options.sync == SyncPolicy::EveryFrame || is_first)
            && let Err(error) = active.file.sync()
        {
            return Err(self.poison("a sync of the log failed", &error));
        }
        // After the sync: readers must not see a segment that a crash could take back.
        if is_first {
            self.publish_segment(position);
        }
        // Longer than the frame if this write also had the segment's header.
        let written = (self.buffer.len() + blob_bytes + padding) as u64;
        active.end += written;
        let at = Locator::new(active.number, active.end - frame_len);
        self.active = Some(active);
        self.shared.bytes_used.fetch_add(written, Ordering::Release);
        self.request_spare_if_due();
        Ok(at)
    }

    /// Writes the buffer, the blobs and the padding with one system call, so that no payload is
    /// copied into the buffer.
    fn write_pieces(
        &self,
        active: &ActiveSegment,
        blobs: &[BlobRecord],
        padding: usize,
    ) -> io::Result<()> {
        let mut pieces = Vec::with_capacity(blobs.len() + 2);
        pieces.push(IoSlice::new(&self.buffer));
        pieces.extend(blobs.iter().map(|blob| IoSlice::new(&blob.bytes)));
        pieces.push(IoSlice::new(&PADDING[..padding]));
        active.file.write_pieces_at(active.end, &pieces)
    }

    fn fits_active_segment(&self, frame_len: u64) -> bool {
        self.active
            .as_ref()
            .is_some_and(|active| active.end + frame_len <= active.file.len())
    }

    fn prepend_segment_header(&mut self, number: u64, first: Position) {
        let header = SegmentHeader {
            store_id: self.store_id,
            number,
            first,
        };
        self.buffer.splice(0..0, header.encode());
    }

    /// Makes a new segment active and seals the old one.
    fn rotate_segment(&mut self, frame_len: u64) -> Result<(), AppendError> {
        // `sync` covers the active file only, so the old segment is synced before it is left.
        if self.options.sync == SyncPolicy::Os {
            Log::sync(self)?;
        }
        let len = SegmentBytes::START + frame_len;
        let file = match self.preallocator.take_segment(self.next_segment, len) {
            Ok(file) => file,
            // Nothing was written and the old segment is still active: the caller may retry.
            Err(error) if is_out_of_space(&error) => {
                return Err(AppendError::NoSpace { needed_bytes: len });
            }
            Err(error) => return Err(self.poison("a log segment cannot be created", &error)),
        };
        if let Some(old) = self.active.take() {
            // The rest holds zeros. A failure is harmless: the file only stays longer. So is a
            // crash before the new segment's first write: opening continues in the old segment.
            match old.file.truncate(old.end) {
                Ok(()) | Err(_) => {}
            }
        }
        self.active = Some(ActiveSegment {
            number: self.next_segment,
            file,
            end: 0,
        });
        self.next_segment += 1;
        Ok(())
    }

    /// Undoes a write that failed for lack of space: the log then ends with its last whole frame.
    /// Also syncs that frame, because no later sync covers this segment. Returns `no_space` on
    /// success.
    fn undo_write(&mut self, error: &io::Error, no_space: AppendError) -> AppendError {
        let Some(active) = self.active.take() else {
            return no_space;
        };
        if !is_out_of_space(error) {
            return self.poison("a write to the log failed", error);
        }
        // The next frame must not follow half-written bytes: recovery would see a bad frame before
        // a whole one and report damage. A segment without a frame is removed, so that its number
        // can be used again.
        let undone = if active.end == 0 {
            self.next_segment = active.number;
            self.shared
                .storage
                .remove(&segment::file_name(active.number))
        } else {
            active
                .file
                .truncate(active.end)
                .and_then(|()| active.file.sync())
        };
        match undone {
            // `active` stays empty: the cut file has no room, so the next append starts a segment.
            Ok(()) => {
                self.tip.durable = self.tip.last;
                self.publish_tip();
                no_space
            }
            Err(error) => self.poison("the log could not be cut back", &error),
        }
    }

    /// Makes the active segment visible to readers.
    fn publish_segment(&self, first: Position) {
        let Some(active) = &self.active else { return };
        let mut segments = Vec::clone(&self.shared.segments.load());
        segments.push(Segment::opened(active.number, first, active.file.clone()));
        self.shared.segments.store(Arc::new(segments));
    }

    fn request_spare_if_due(&mut self) {
        // Early, so that the spare is ready when this segment is full.
        if let Some(active) = &self.active
            && active.end > active.file.len() / 4
        {
            self.preallocator.request_spare();
        }
    }

    /// Moves the tip of the log to a frame that was written.
    fn advance_tip(&mut self, position: Position, hash: [u8; 32]) {
        self.tip.last = position;
        self.tip.last_hash = hash;
        if self.options.sync == SyncPolicy::EveryFrame {
            self.tip.durable = position;
        }
        self.publish_tip();
    }

    fn publish_tip(&self) {
        *self.shared.lock_tip() = self.tip;
        self.shared.last.store(self.tip.last.0, Ordering::Release);
        self.shared.moved.notify_all();
    }
}

impl Log for FileLog {
    fn append(&mut self, batch: &Batch) -> Result<Appended, AppendError> {
        self.check_poison()?;
        let link = ChainLink {
            store: self.shared.store,
            position: Position(self.tip.last.0 + 1),
            durable: self.tip.durable,
            prev_hash: self.tip.last_hash,
            writer: self.options.writer,
            first_sequence: self.next_sequence,
        };
        self.buffer.clear();
        // One large batch must not hold its memory for the rest of the process.
        self.buffer.shrink_to(BUFFER_KEPT_BYTES_MAX);
        let encoded = frame::encode_head(batch, link, &mut self.buffer);
        assert!(
            encoded.head + batch.blob_bytes() as u64 <= FRAME_BYTES_MAX,
            "the store's limits keep batches far below a frame's"
        );
        let at = self.write_frame(link.position, &batch.blobs, encoded.padding)?;
        self.advance_tip(link.position, encoded.hash);
        self.next_sequence += u64::from(batch.command_count);
        // The blobs lie back to back behind the head.
        let mut offset = at.offset() + encoded.head;
        let mut locators = Vec::with_capacity(batch.blobs.len());
        for blob in &batch.blobs {
            locators.push(Locator::new(at.segment(), offset));
            offset += blob.bytes.len() as u64;
        }
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
        // Only the active segment can hold unsynced frames: `rotate_segment` and `undo_write` sync
        // a segment before they leave it.
        if let Some(active) = &self.active
            && let Err(error) = active.file.sync()
        {
            return Err(self.poison("a sync of the log failed", &error));
        }
        self.tip.durable = self.tip.last;
        self.publish_tip();
        Ok(())
    }

    fn sync_policy(&self) -> SyncPolicy {
        self.options.sync
    }
}
