//! The last segment of a log: which of its frames are whole, and which are proven to be durable.
//!
//! Each frame records the last position that was durable when it was written. Worked example: the
//! last segment holds frames 10 to 13. Frame 13 says that 11 was durable. So 10 and 11 are
//! *proven*. Frames 12 and 13 are *doubtful*: they are whole, but nothing proves that they were
//! synced. They may have been acknowledged, so recovery keeps them. They may exist in the page
//! cache only, so recovery writes them again, in a new segment, before any reader sees them.

use std::sync::Arc;

use crate::Position;
use crate::frame::{Frame, FrameError};
use crate::recovery::{OpenError, TornTail, copy_torn, damage_error};
use crate::scan::{ScanStep, SegmentBytes};
use crate::segment::{self, Locator, Segment};
use crate::storage::Storage;

/// The frames of the last segment. Reading them changes nothing on disk.
pub(crate) struct LastSegment {
    bytes: SegmentBytes,
    first: Position,
    /// The offset behind the last whole frame.
    end: u64,
    /// The chain after the last proven frame; `None` if this segment has no proven frame.
    proven: Option<ChainState>,
    /// The last whole frame.
    last: Position,
    last_hash: Option<[u8; 32]>,
    /// The last position that is proven to be durable.
    durable: Position,
    doubtful: Vec<FrameAt>,
    /// Why there is no frame at `end`; `None` if the segment's data ends there.
    bad: Option<FrameError>,
}

/// A frame and its offset in the segment.
struct FrameAt {
    offset: u64,
    frame: Frame,
}

/// The end of the hash chain: the last frame's hash and the next sequence number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainState {
    pub(crate) hash: [u8; 32],
    pub(crate) next_sequence: u64,
}

/// The end of the log as the writer needs it. The default is an empty log.
#[derive(Default)]
pub(crate) struct SegmentTail {
    /// The offset behind the proven frames.
    pub(crate) proven_end: u64,
    /// The last proven position.
    pub(crate) last_proven: Position,
    /// The chain after the last proven frame, if this segment holds it.
    pub(crate) chain: Option<ChainState>,
    pub(crate) doubtful: DoubtfulFrames,
}

/// The doubtful frames and where the first of them begins.
#[derive(Default)]
pub(crate) struct DoubtfulFrames {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) frames: Vec<Frame>,
}

impl LastSegment {
    /// Reads a segment. Frames up to `known` count as durable, whatever the log itself records.
    pub(crate) fn read(
        bytes: SegmentBytes,
        segment: &Segment,
        known: Position,
    ) -> Result<Self, OpenError> {
        let mut last_segment = Self {
            bytes,
            first: segment.first,
            end: SegmentBytes::START,
            proven: None,
            last: Position(segment.first.0 - 1),
            last_hash: None,
            durable: known,
            doubtful: Vec::new(),
            bad: None,
        };
        loop {
            match last_segment
                .bytes
                .scan_at(last_segment.end, Position(last_segment.last.0 + 1))
            {
                ScanStep::Frame(frame, next) => last_segment.add_frame(*frame, next)?,
                ScanStep::End => break,
                ScanStep::Bad(error) => {
                    last_segment.bad = Some(error);
                    break;
                }
            }
        }
        last_segment.copy_doubtful();
        Ok(last_segment)
    }

    fn add_frame(&mut self, frame: Frame, next: u64) -> Result<(), OpenError> {
        // The first frame's predecessor lies in an earlier segment, which recovery does not read.
        if self.last_hash.is_some_and(|hash| hash != frame.prev_hash) {
            return Err(self.damage_at(self.end, "the frame does not name the frame before it"));
        }
        self.last = frame.position;
        self.last_hash = Some(frame.hash);
        self.durable = self.durable.max(frame.durable);
        self.doubtful.push(FrameAt {
            offset: self.end,
            frame,
        });
        self.end = next;
        // This frame may prove earlier ones.
        let proven_count = self
            .doubtful
            .partition_point(|at| at.frame.position <= self.durable);
        if let Some(FrameAt { frame, .. }) = self.doubtful.drain(..proven_count).next_back() {
            self.proven = Some(ChainState {
                hash: frame.hash,
                next_sequence: frame.next_sequence(),
            });
        }
        Ok(())
    }

    /// Copies the doubtful frames out of the map. The kernel may drop an unsynced page that it
    /// failed to write, and the map would then show other bytes than the ones that were checked.
    fn copy_doubtful(&mut self) {
        let number = self.bytes.number;
        for index in 0..self.doubtful.len() {
            let FrameAt { offset, frame } = &self.doubtful[index];
            match frame.copy_from_map(Locator::new(number, *offset)) {
                Ok(copy) => self.doubtful[index].frame = copy,
                // The bytes have changed already: the log ends before this frame.
                Err(error) => {
                    self.bad = Some(error);
                    self.end = *offset;
                    self.last = Position(frame.position.0 - 1);
                    self.doubtful.truncate(index);
                    return;
                }
            }
        }
    }

    /// The last frame that is complete, with all of its payloads.
    pub(crate) fn last_sound(&self) -> Position {
        // A frame counts as whole without its payloads, which its checksum does not cover. A write
        // that was torn inside the payloads therefore shows only here.
        let half_written = self
            .doubtful
            .iter()
            .rev()
            .take_while(|at| !at.frame.blobs_are_sound());
        Position(self.last.0 - half_written.count() as u64)
    }

    /// Whether no frame of this segment is proven.
    pub(crate) fn is_unproven(&self) -> bool {
        self.durable < self.first
    }

    /// Returns an error if an incomplete frame cannot be a torn tail: it is proven to be durable, a
    /// later frame exists, or a later segment was begun (`log_continues`).
    pub(crate) fn reject_damage(&self, log_continues: bool) -> Result<(), OpenError> {
        // The log writes a frame only after the one before it. So an incomplete frame that has a
        // later one was complete once.
        let last_sound = self.last_sound();
        for FrameAt { offset, frame } in &self.doubtful {
            let has_later = log_continues || frame.position < last_sound;
            if has_later && !frame.blobs_are_sound() {
                return Err(self.damage_at(*offset, "a payload's checksum does not hold"));
            }
        }
        let Some(error) = self.bad else { return Ok(()) };
        // In each of these cases the log went on after the bad frame, so it was complete once.
        let expected = Position(self.last.0 + 1);
        if log_continues
            || self.durable >= expected
            || self.bytes.find_later_frame(self.end, expected).is_some()
        {
            return Err(self.damage_at(self.end, &error.to_string()));
        }
        Ok(())
    }

    /// Drops last frames with incomplete payloads. Returns whether there is a torn tail behind
    /// `end`.
    pub(crate) fn drop_torn_frames(&mut self) -> bool {
        let mut is_torn = self.bad.is_some();
        while let Some(FrameAt { offset, frame }) =
            self.doubtful.pop_if(|at| !at.frame.blobs_are_sound())
        {
            is_torn = true;
            self.end = offset;
            self.last = Position(frame.position.0 - 1);
        }
        is_torn
    }

    /// Copies the torn tail aside and cuts it.
    pub(crate) fn cut_torn_tail(&self, storage: &dyn Storage) -> Result<TornTail, OpenError> {
        // Synced before the cut: a crash in between leaves the tail, and the next opening cuts it.
        let torn = copy_torn(storage, &self.bytes, self.end)?;
        let file = storage.open(&torn.file)?;
        // The header was part of the torn write and stays, so it must become durable.
        if self.end == SegmentBytes::START {
            segment::rewrite_header(&*file)?;
        }
        file.truncate(self.end)?;
        Ok(torn)
    }

    /// Separates the doubtful frames from the proven part.
    pub(crate) fn into_tail(self) -> SegmentTail {
        let Some(FrameAt { offset, frame }) = self.doubtful.first() else {
            return SegmentTail {
                proven_end: self.end,
                last_proven: self.last,
                chain: self.proven,
                doubtful: DoubtfulFrames::default(),
            };
        };
        SegmentTail {
            proven_end: *offset,
            last_proven: Position(frame.position.0 - 1),
            // The first doubtful frame names the frame before it, so that one need not be read,
            // even if it lies in an earlier segment.
            chain: Some(ChainState {
                hash: frame.prev_hash,
                next_sequence: frame.first_sequence,
            }),
            doubtful: DoubtfulFrames {
                segment: self.bytes.number,
                offset: *offset,
                frames: self.doubtful.into_iter().map(|at| at.frame).collect(),
            },
        }
    }

    fn damage_at(&self, offset: u64, what: &str) -> OpenError {
        damage_error(segment::file_name(self.bytes.number), offset, what)
    }
}

/// The segment in which the log ends.
#[derive(Default)]
pub(crate) struct LogEnd {
    /// `None` if the log has no segment.
    pub(crate) last_segment: Option<LastSegment>,
    /// The number of a segment after it that is an unfinished copy of its doubtful frames.
    pub(crate) unfinished_copy: Option<u64>,
}

/// Reads the last segment, or the one before it if the last is an unfinished copy of doubtful
/// frames. `store` is the tag of the store; frames up to `known` count as durable.
///
/// Opening copies all doubtful frames into one new segment and cuts the originals only when the
/// copy is durable. So if the segment before holds more of them, a crash interrupted the copy, and
/// no reader has seen it.
pub(crate) fn read_log_end(
    storage: &dyn Storage,
    segments: &[Arc<Segment>],
    store: Option<u32>,
    known: Position,
) -> Result<LogEnd, OpenError> {
    let read = |segment: &Arc<Segment>| {
        LastSegment::read(
            SegmentBytes::open(storage, segment.number, store)?,
            segment,
            known,
        )
    };
    let Some((last, before)) = segments.split_last() else {
        return Ok(LogEnd::default());
    };
    let last_segment = read(last)?;
    // A copy with a proven frame was complete, because the log went on after it. An error in the
    // segment before is ignored: opening checks only the segment in which the log ends.
    if last_segment.is_unproven()
        && let Some(Ok(earlier)) = before.last().map(read)
        && earlier.last_sound() > last_segment.last_sound()
    {
        return Ok(LogEnd {
            last_segment: Some(earlier),
            unfinished_copy: Some(last.number),
        });
    }
    Ok(LogEnd {
        last_segment: Some(last_segment),
        unfinished_copy: None,
    })
}
