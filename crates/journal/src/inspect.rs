//! Walking a whole log without stopping at damage, for `verify` and `repair`.

use std::sync::Arc;

use crate::Position;
use crate::frame::{Frame, FrameHeader};
use crate::scan::{SegmentBytes, Step};
use crate::segment::{self, HeaderRead, SegmentHeader};
use crate::storage::Storage;

/// What an inspection meets, in log order.
#[derive(Debug)]
pub enum Inspected {
    /// A frame whose checksums hold.
    Frame {
        /// The frame.
        frame: Box<Frame>,
        /// The file that it is in, relative to the data directory.
        file: String,
        /// Where in the file.
        offset: u64,
    },
    /// A place where a frame should be and is not.
    Damage(Damage),
}

/// A damaged place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the data directory.
    pub file: String,
    /// Where in the file.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The first frame that is missing.
    pub first: Position,
    /// The first frame after it that is sound, or 0 if there is none.
    pub resumes_at: Position,
    /// What is wrong.
    pub what: String,
    /// Whether it is the very end of the log, as a crash may leave it.
    pub at_end: bool,
}

/// Inspects every segment. The data directory must be locked by the caller.
pub fn inspect(storage: Arc<dyn Storage>) -> std::io::Result<Inspection> {
    let numbers = segment::numbers(&*storage)?;
    let in_use = |number: &&u64| !is_blank(&*storage, **number);
    let highest = numbers.iter().rev().find(in_use).copied().unwrap_or(0);
    let store_id = numbers.iter().find_map(|&n| header_of(&*storage, n)).map(|header| header.store_id);
    Ok(Inspection {
        storage,
        number: 0,
        highest,
        at: None,
        next: Position(1),
        last_hash: Some([0; 32]),
        store_id,
    })
}

fn header_of(storage: &dyn Storage, number: u64) -> Option<SegmentHeader> {
    let file = storage.open(&segment::file_name(number)).ok()?;
    match SegmentHeader::read(&file.read(0..segment::HEADER_BYTES as u64).ok()?) {
        HeaderRead::Sound(header) => Some(header),
        HeaderRead::Blank | HeaderRead::Bad => None,
    }
}

/// Whether a segment was never written to: a spare.
fn is_blank(storage: &dyn Storage, number: u64) -> bool {
    let bytes = storage.open(&segment::file_name(number)).and_then(|file| file.read(0..file.len()));
    bytes.is_ok_and(|bytes| SegmentBytes { number, bytes }.used() == 0)
}

/// An inspection under way.
pub struct Inspection {
    storage: Arc<dyn Storage>,
    number: u64,
    highest: u64,
    at: Option<Place>,
    next: Position,
    /// The hash of the frame before; none after damage, when the chain cannot be followed.
    last_hash: Option<[u8; 32]>,
    store_id: Option<[u8; 16]>,
}

struct Place {
    bytes: SegmentBytes,
    offset: u64,
    /// The first position of the next segment, where this one ends.
    until: Option<Position>,
}

impl Iterator for Inspection {
    type Item = Inspected;

    fn next(&mut self) -> Option<Inspected> {
        loop {
            let Some(mut place) = self.at.take() else {
                match self.enter_next()? {
                    Some(damage) => return Some(Inspected::Damage(damage)),
                    None => continue,
                }
            };
            if place.until.is_some_and(|until| self.next >= until) {
                continue;
            }
            match place.bytes.step(place.offset, self.next) {
                Step::Frame(frame, next) => return Some(self.take_frame(place, frame, next)),
                Step::End if place.until.is_none() => {}
                Step::End => {
                    let resumes = place.until.unwrap_or_default();
                    return Some(self.skip(&place, "frames are missing", (place.bytes.used(), resumes)));
                }
                Step::Bad(error) => {
                    let what = error.to_string();
                    let found = self.beyond(&place);
                    let damage = self.skip(&place, &what, found);
                    place.offset = found.0;
                    self.at = Some(place).filter(|_| found.1.0 > 0);
                    return Some(damage);
                }
            }
        }
    }
}

impl Inspection {
    /// The store's id, if any segment's header is sound.
    pub fn store_id(&self) -> Option<[u8; 16]> {
        self.store_id
    }

    /// How many segments there are, for progress.
    pub fn segments(&self) -> (u64, u64) {
        (self.number, self.highest)
    }

    /// Goes to the next segment. The outer none is the end; the inner one means that all is well.
    fn enter_next(&mut self) -> Option<Option<Damage>> {
        self.number += 1;
        if self.number > self.highest {
            return None;
        }
        let file = segment::file_name(self.number);
        let Ok(bytes) = self.storage.open(&file).and_then(|f| f.read(0..f.len())) else {
            return Some(Some(self.damage(file, (0, 0), "the segment cannot be read", Position(0))));
        };
        let bytes = SegmentBytes { number: self.number, bytes };
        let header = SegmentHeader::read(&bytes.bytes);
        let used = bytes.used();
        let until = header_of(&*self.storage, self.number + 1).map(|header| header.first);
        let offset = SegmentBytes::START;
        self.at = Some(Place { bytes, offset, until });
        match header {
            HeaderRead::Sound(header) if header.first > self.next => {
                let damage =
                    self.damage(file, (0, 0), "frames before this segment are missing", header.first);
                self.resume(header.first);
                Some(Some(damage))
            }
            HeaderRead::Sound(header) => {
                // A tail that was written again: its first copy does not count.
                if header.first < self.next {
                    self.resume(header.first);
                }
                Some(None)
            }
            HeaderRead::Blank if used == 0 => {
                self.at = None;
                Some(None)
            }
            HeaderRead::Blank | HeaderRead::Bad => {
                let len = segment::HEADER_BYTES as u64;
                Some(Some(self.damage(file, (0, len), "the segment's header is bad", self.next)))
            }
        }
    }

    fn resume(&mut self, next: Position) {
        self.next = next;
        self.last_hash = None;
    }

    fn take_frame(&mut self, mut place: Place, frame: Box<Frame>, next: u64) -> Inspected {
        let (file, offset) = (segment::file_name(place.bytes.number), place.offset);
        place.offset = next;
        self.at = Some(place);
        self.next = Position(frame.position.0 + 1);
        let chained = self.last_hash.is_none_or(|hash| hash == frame.prev_hash);
        self.last_hash = Some(frame.hash);
        if chained {
            return Inspected::Frame { frame, file, offset };
        }
        let what = "the frame does not name the frame before it: the chain is broken";
        Inspected::Damage(self.damage(file, (offset, frame.raw().len() as u64), what, self.next))
    }

    /// Where the log goes on after a bad frame, and with which position; 0 if nowhere in this segment.
    fn beyond(&self, place: &Place) -> (u64, Position) {
        if let Some((position, next)) = place.bytes.hop(place.offset)
            && position == self.next
            && place.bytes.hop(next).is_some()
        {
            return (next, Position(position.0 + 1));
        }
        let sound = |(at, header): (u64, FrameHeader)| (at, header.position);
        place.bytes.find_later(place.offset, self.next).map_or((place.bytes.used(), Position(0)), sound)
    }

    /// Names the damage at a place, and goes on at `found`.
    fn skip(&mut self, place: &Place, what: &str, found: (u64, Position)) -> Inspected {
        let file = segment::file_name(place.bytes.number);
        let resumes_at = if found.1.0 > 0 { found.1 } else { place.until.unwrap_or_default() };
        let bytes = found.0.saturating_sub(place.offset);
        let damage = self.damage(file, (place.offset, bytes), what, resumes_at);
        if resumes_at.0 > 0 {
            self.resume(resumes_at);
        }
        Inspected::Damage(damage)
    }

    fn damage(&self, file: String, (offset, bytes): (u64, u64), what: &str, resumes_at: Position) -> Damage {
        let last = self.number >= self.highest;
        let at_end = last && resumes_at.0 == 0;
        Damage { file, offset, bytes, first: self.next, resumes_at, what: what.to_owned(), at_end }
    }
}
