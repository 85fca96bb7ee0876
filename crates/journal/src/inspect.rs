//! Walking a whole log without stopping at damage, for `verify` and `repair`.
//!
//! Every place where a frame should be and is not is named, with the frames that it touches; every
//! other frame comes out, in order and once. What looks like a frame but is of another store, or is
//! not chained to the frame before it, does not.

use std::sync::Arc;

use crate::Position;
use crate::ending;
use crate::frame::Frame;
use crate::scan::{SegmentBytes, Step};
use crate::segment::{self, HeaderRead, Segment};
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
    /// The first frame after it that is there, or 0 if there is none; `first` if none is missing.
    pub resumes_at: Position,
    /// What is wrong.
    pub what: String,
    /// Whether it is the very end of the log, as a crash may leave it.
    pub at_end: bool,
}

/// Inspects every segment. Only reads; what is written meanwhile may be seen in part, see
/// [`Inspection::up_to`].
pub fn inspect(storage: Arc<dyn Storage>) -> std::io::Result<Inspection> {
    let (files, store_id) = files(&*storage)?;
    let store = store_id.as_ref().map(segment::store_tag);
    let mut inspection = Inspection {
        storage,
        files,
        entered: 0,
        at: None,
        next: Position(1),
        last_hash: Some([0; 32]),
        store_id,
        store,
        last: None,
    };
    inspection.leave_out_unfinished_copy();
    Ok(inspection)
}

/// A segment's file, from outside.
#[derive(Clone, Copy)]
struct SegmentFile {
    number: u64,
    outside: Outside,
}

/// What its header says.
#[derive(Clone, Copy)]
enum Outside {
    /// It holds frames from this position on.
    Holds(Position),
    /// Its header is sound but of another store or another place.
    Foreign,
    /// Its header is bad.
    Headless,
    /// It is not there, or cannot be read.
    Unreadable,
}

/// The files of the segments, without blank ones at the end; and the store's id. A gap counts as
/// one file that is not there.
fn files(storage: &dyn Storage) -> std::io::Result<(Vec<SegmentFile>, Option<[u8; 16]>)> {
    let (mut files, mut used) = (Vec::new(), 0);
    let (mut store_id, mut least, mut expected) = (None, Position(1), 1);
    for number in segment::numbers(storage)? {
        if number > expected {
            files.push(SegmentFile {
                number: expected,
                outside: Outside::Unreadable,
            });
        }
        expected = number.saturating_add(1);
        let outside = match segment::read_header(storage, number) {
            Ok(HeaderRead::Sound(header)) => {
                let ours = *store_id.get_or_insert(header.store_id) == header.store_id;
                let fits = ours && header.number == number && header.first >= least;
                least = if fits { header.first } else { least };
                if fits {
                    Outside::Holds(header.first)
                } else {
                    Outside::Foreign
                }
            }
            Ok(HeaderRead::OtherVersion(_) | HeaderRead::Blank | HeaderRead::Bad) => {
                Outside::Headless
            }
            Err(_) => Outside::Unreadable,
        };
        files.push(SegmentFile { number, outside });
        if !matches!(outside, Outside::Headless) || is_used(storage, number) {
            used = files.len();
        }
    }
    files.truncate(used);
    Ok((files, store_id))
}

/// Whether a segment holds anything but zeros.
fn is_used(storage: &dyn Storage, number: u64) -> bool {
    SegmentBytes::open(storage, number, None).is_ok_and(|bytes| bytes.used() > 0)
}

/// An inspection under way.
pub struct Inspection {
    storage: Arc<dyn Storage>,
    files: Vec<SegmentFile>,
    /// How many of them were entered; the last of these is being inspected.
    entered: usize,
    at: Option<Place>,
    next: Position,
    /// The hash of the frame before; none after damage, when the chain cannot be followed.
    last_hash: Option<[u8; 32]>,
    store_id: Option<[u8; 16]>,
    store: Option<u32>,
    /// Where the inspection ends; none for the end of the log.
    last: Option<Position>,
}

struct Place {
    bytes: SegmentBytes,
    offset: u64,
    /// The first position that a later segment is seen to hold: there this one ends.
    until: Option<Position>,
    /// Whether the next file has a sound header: then nothing can be missing but from this one.
    is_followed: bool,
}

impl Iterator for Inspection {
    type Item = Inspected;

    fn next(&mut self) -> Option<Inspected> {
        loop {
            if self.last.is_some_and(|last| self.next > last) {
                return None;
            }
            let Some(place) = self.at.take() else {
                let file = *self.files.get(self.entered)?;
                match self.enter(file) {
                    Some(damage) => return Some(Inspected::Damage(damage)),
                    None => continue,
                }
            };
            if place.until.is_some_and(|until| self.next >= until) {
                continue;
            }
            match place.bytes.step(place.offset, self.next) {
                Step::Frame(frame, next) => return Some(self.take_frame(place, frame, next)),
                Step::End if !place.is_followed => {}
                Step::End => {
                    return Some(Inspected::Damage(self.skip(place, "frames are missing")));
                }
                Step::Bad(error) => {
                    return Some(Inspected::Damage(self.skip(place, &error.to_string())));
                }
            }
        }
    }
}

impl Inspection {
    /// Ends behind this frame. Whoever reads beside a writer names a frame that was durable before
    /// the inspection began: what comes behind it may be half written.
    #[must_use]
    pub fn up_to(self, last: Position) -> Self {
        Self {
            last: Some(last),
            ..self
        }
    }

    /// The store's id, if any segment's header is sound.
    pub fn store_id(&self) -> Option<[u8; 16]> {
        self.store_id
    }

    /// How far it is: the segment it is in, and how many there are.
    pub fn segments(&self) -> (u64, u64) {
        (self.entered as u64, self.files.len() as u64)
    }

    /// Forgets a last segment that only began to copy frames which the one before it still holds.
    fn leave_out_unfinished_copy(&mut self) {
        let [.., before, last] = self.files[..] else {
            return;
        };
        let (Outside::Holds(first_before), Outside::Holds(first)) = (before.outside, last.outside)
        else {
            return;
        };
        let segments = [
            Segment::closed(before.number, first_before),
            Segment::closed(last.number, first),
        ];
        if let Ok((_, Some(_))) =
            ending::walk_last(&*self.storage, &segments, (self.store, Position(0)))
        {
            self.files.pop();
        }
    }

    /// Goes to the next segment; some if not all is well with it.
    fn enter(&mut self, SegmentFile { number, outside }: SegmentFile) -> Option<Damage> {
        self.entered += 1;
        let until = self.first_after();
        let is_followed = self
            .files
            .get(self.entered)
            .is_some_and(|next| matches!(next.outside, Outside::Holds(_)));
        match (
            outside,
            SegmentBytes::open(&*self.storage, number, self.store),
        ) {
            (Outside::Unreadable, _) | (_, Err(_)) => {
                Some(self.miss(until, "the segment is missing or cannot be read"))
            }
            (Outside::Foreign, _) => Some(self.miss(until, "the segment belongs elsewhere")),
            (Outside::Headless, Ok(bytes)) => Some(self.enter_headless(Place {
                bytes,
                offset: 0,
                until,
                is_followed,
            })),
            (Outside::Holds(first), Ok(bytes)) => {
                self.at = Some(Place {
                    bytes,
                    offset: SegmentBytes::START,
                    until,
                    is_followed,
                });
                let gap = first > self.next;
                gap.then(|| self.miss(Some(first), "frames before this segment are missing"))
            }
        }
    }

    /// The first position that a later segment tells, by its header or, if that is bad, by its
    /// frames.
    fn first_after(&self) -> Option<Position> {
        self.files[self.entered..]
            .iter()
            .find_map(|later| match later.outside {
                Outside::Holds(first) => Some(first),
                Outside::Headless => {
                    let bytes =
                        SegmentBytes::open(&*self.storage, later.number, self.store).ok()?;
                    Some(bytes.find_later(0, Position(0))?.1)
                }
                Outside::Foreign | Outside::Unreadable => None,
            })
    }

    /// Enters a segment whose header is bad: its frames may all be there.
    fn enter_headless(&mut self, place: Place) -> Damage {
        let what = "the segment's header is bad";
        if let Step::Frame(..) = place.bytes.step(SegmentBytes::START, self.next) {
            let damage = self.damage((0, SegmentBytes::START), what, self.next);
            self.at = Some(Place {
                offset: SegmentBytes::START,
                ..place
            });
            return damage;
        }
        self.skip(place, what)
    }

    /// Names frames that are missing with all that was around them; it goes on at `resumes_at`.
    fn miss(&mut self, resumes_at: Option<Position>, what: &str) -> Damage {
        let resumes_at = resumes_at.unwrap_or_default();
        let damage = self.damage((0, 0), what, resumes_at);
        self.resume(resumes_at);
        damage
    }

    /// Names the damage at a place, and goes on where the log does.
    fn skip(&mut self, mut place: Place, what: &str) -> Damage {
        let later = place.bytes.find_later(place.offset, self.next);
        let here = later.filter(|&(_, position)| place.until.is_none_or(|until| position < until));
        let (offset, resumes_at) =
            here.unwrap_or((place.bytes.used(), place.until.unwrap_or_default()));
        let bytes = offset.saturating_sub(place.offset);
        let damage = self.damage((place.offset, bytes), what, resumes_at);
        self.resume(resumes_at);
        place.offset = offset;
        self.at = Some(place).filter(|_| here.is_some());
        damage
    }

    /// The name of the file that is being inspected.
    fn file(&self) -> String {
        segment::file_name(
            self.entered
                .checked_sub(1)
                .map_or(0, |at| self.files[at].number),
        )
    }

    fn resume(&mut self, next: Position) {
        if next > self.next {
            self.next = next;
            self.last_hash = None;
        }
    }

    fn take_frame(&mut self, mut place: Place, frame: Box<Frame>, next: u64) -> Inspected {
        let (file, offset) = (self.file(), place.offset);
        place.offset = next;
        self.at = Some(place);
        let chained = self.last_hash.is_none_or(|hash| hash == frame.prev_hash);
        self.last_hash = Some(frame.hash);
        let after = Position(frame.position.0 + 1);
        if chained {
            self.next = after;
            return Inspected::Frame {
                frame,
                file,
                offset,
            };
        }
        let what = "the frame does not name the frame before it: the chain is broken";
        let damage = self.damage((offset, frame.raw().len() as u64), what, after);
        self.next = after;
        Inspected::Damage(damage)
    }

    fn damage(&self, (offset, bytes): (u64, u64), what: &str, resumes_at: Position) -> Damage {
        let at_end = self.entered >= self.files.len() && resumes_at.0 == 0;
        Damage {
            file: self.file(),
            offset,
            bytes,
            first: self.next,
            resumes_at,
            what: what.to_owned(),
            at_end,
        }
    }
}
