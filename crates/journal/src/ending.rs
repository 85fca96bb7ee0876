//! The end of a log: the frames of its last segment, how far they are whole, and how far anybody
//! was told that they are durable.
//!
//! A *doubtful* frame is whole, but nothing proves that it was ever synced. It may have been acked,
//! so it is kept; it may be in the page cache only, so it is written again before anyone reads it.

use std::sync::Arc;

use crate::Position;
use crate::frame::{Frame, FrameError};
use crate::recovery::{OpenError, TornTail, copy_torn, damaged};
use crate::scan::{SegmentBytes, Step};
use crate::segment::{self, Locator, Segment};
use crate::storage::Storage;

/// The last segment, walked from its first frame to where frames stop. Nothing is changed by
/// walking.
pub(crate) struct Ending {
    bytes: SegmentBytes,
    first: Position,
    /// Behind the last whole frame.
    pub(crate) end: u64,
    /// The last whole frame before the doubtful ones; if there is none, this is not known here.
    settled: Option<Settled>,
    last: Position,
    last_hash: Option<[u8; 32]>,
    durable: Position,
    doubtful: Vec<(u64, Frame)>,
    bad: Option<FrameError>,
}

/// What comes after a frame: the chain's next link and the next sequence number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settled {
    pub(crate) hash: [u8; 32],
    pub(crate) next_sequence: u64,
}

/// Whole frames that may not be durable, and where the first of them begins.
#[derive(Default)]
pub(crate) struct Doubtful {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) frames: Vec<Frame>,
}

impl Ending {
    /// Walks a segment. Frames up to `known` are durable, whatever the log itself says.
    pub(crate) fn walk(
        bytes: SegmentBytes,
        segment: &Segment,
        known: Position,
    ) -> Result<Self, OpenError> {
        let mut ending = Self {
            bytes,
            first: segment.first,
            end: SegmentBytes::START,
            settled: None,
            last: Position(segment.first.0 - 1),
            last_hash: None,
            durable: known,
            doubtful: Vec::new(),
            bad: None,
        };
        loop {
            match ending.bytes.step(ending.end, Position(ending.last.0 + 1)) {
                Step::Frame(frame, next) => ending.take(*frame, next)?,
                Step::End => break,
                Step::Bad(error) => {
                    ending.bad = Some(error);
                    break;
                }
            }
        }
        ending.copy_doubtful();
        Ok(ending)
    }

    fn take(&mut self, frame: Frame, next: u64) -> Result<(), OpenError> {
        if self.last_hash.is_some_and(|hash| hash != frame.prev_hash) {
            return Err(self.damage(self.end, "the frame does not name the frame before it"));
        }
        self.last = frame.position;
        self.last_hash = Some(frame.hash);
        if frame.durable > self.durable {
            self.durable = frame.durable;
        }
        let (offset, durable) = (self.end, self.durable);
        self.doubtful.push((offset, frame));
        let still = self
            .doubtful
            .iter()
            .position(|(_, frame)| frame.position > durable);
        let settled = self
            .doubtful
            .drain(..still.unwrap_or(self.doubtful.len()))
            .last();
        if let Some((_, frame)) = settled {
            self.settled = Some(Settled {
                hash: frame.hash,
                next_sequence: frame.next_sequence(),
            });
        }
        self.end = next;
        Ok(())
    }

    /// Copies the doubtful frames: what a map shows of an unsynced page may change when it is
    /// evicted.
    fn copy_doubtful(&mut self) {
        let number = self.bytes.number;
        for at in 0..self.doubtful.len() {
            let (offset, frame) = &self.doubtful[at];
            match frame.copied(Locator::new(number, *offset)) {
                Ok(copy) => self.doubtful[at].1 = copy,
                Err(error) => {
                    self.bad = Some(error);
                    self.end = *offset;
                    self.last = Position(frame.position.0 - 1);
                    self.doubtful.truncate(at);
                    return;
                }
            }
        }
    }

    /// The last frame of which header, commands and payloads are all there.
    pub(crate) fn last_sound(&self) -> Position {
        let half_written = self
            .doubtful
            .iter()
            .rev()
            .take_while(|(_, frame)| !frame.blobs_are_sound());
        Position(self.last.0 - half_written.count() as u64)
    }

    /// Whether nothing in this segment proves that any of its frames was durable.
    pub(crate) fn is_unproven(&self) -> bool {
        self.durable < self.first
    }

    /// Refuses what is not whole and yet cannot be a torn tail: it was durable, a later frame is
    /// there, or (`went_on`) a later segment was begun.
    pub(crate) fn refuse_damage(&self, went_on: bool) -> Result<(), OpenError> {
        let last_sound = self.last_sound();
        for (offset, frame) in &self.doubtful {
            let later = went_on || frame.position < last_sound;
            if later && !frame.blobs_are_sound() {
                return Err(self.damage(*offset, "a payload's checksum does not hold"));
            }
        }
        let Some(error) = self.bad else { return Ok(()) };
        let expected = Position(self.last.0 + 1);
        if went_on
            || self.durable >= expected
            || self.bytes.find_later(self.end, expected).is_some()
        {
            return Err(self.damage(self.end, &error.to_string()));
        }
        Ok(())
    }

    /// Leaves out last frames whose payloads did not all reach the disk, and tells whether the
    /// segment has a torn tail behind `end`.
    pub(crate) fn leave_out_torn(&mut self) -> bool {
        let mut torn = self.bad.is_some();
        while let Some((offset, frame)) =
            self.doubtful.pop_if(|(_, frame)| !frame.blobs_are_sound())
        {
            torn = true;
            self.end = offset;
            self.last = Position(frame.position.0 - 1);
        }
        torn
    }

    /// Copies the torn tail aside and cuts it.
    pub(crate) fn cut(&self, storage: &dyn Storage) -> Result<TornTail, OpenError> {
        let torn = copy_torn(storage, &self.bytes, self.end)?;
        let file = storage.open(&torn.file)?;
        if self.end == SegmentBytes::START {
            segment::settle_header(&*file)?;
        }
        file.cut(self.end)?;
        Ok(torn)
    }

    /// Where the frames that are surely durable end.
    pub(crate) fn settled_end(&self) -> u64 {
        self.doubtful
            .first()
            .map_or(self.end, |(offset, _)| *offset)
    }

    /// The last position that is surely durable, and what comes after it, if this segment tells.
    pub(crate) fn settled(&self) -> (Position, Option<Settled>) {
        let Some((_, first)) = self.doubtful.first() else {
            return (self.last, self.settled);
        };
        let settled = Settled {
            hash: first.prev_hash,
            next_sequence: first.first_sequence,
        };
        (Position(first.position.0 - 1), Some(settled))
    }

    /// The doubtful frames.
    pub(crate) fn into_doubtful(self) -> Doubtful {
        let (segment, offset) = (self.bytes.number, self.settled_end());
        Doubtful {
            segment,
            offset,
            frames: self.doubtful.into_iter().map(|(_, frame)| frame).collect(),
        }
    }

    fn damage(&self, offset: u64, what: &str) -> OpenError {
        damaged(segment::file_name(self.bytes.number), offset, what)
    }
}

/// Walks the last of the segments, or the one before it if the last is an unfinished copy of
/// doubtful frames that are still there: then the copy's number comes back, too.
///
/// Opening copies doubtful frames into a new segment, all into one, and cuts their first place only
/// when the copy is durable. So if the segment before holds more of them, the copy was cut short by
/// a crash and nobody has seen it.
pub(crate) fn walk_last(
    storage: &dyn Storage,
    segments: &[Arc<Segment>],
    (store, known): (Option<u32>, Position),
) -> Result<(Option<Ending>, Option<u64>), OpenError> {
    let walk = |segment: &Arc<Segment>| {
        Ending::walk(
            SegmentBytes::open(storage, segment.number, store)?,
            segment,
            known,
        )
    };
    let Some((last, before)) = segments.split_last() else {
        return Ok((None, None));
    };
    let ending = walk(last)?;
    if ending.is_unproven()
        && let Some(Ok(earlier)) = before.last().map(walk)
        && earlier.last_sound() > ending.last_sound()
    {
        return Ok((Some(earlier), Some(last.number)));
    }
    Ok((Some(ending), None))
}
