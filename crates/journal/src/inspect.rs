//! Inspects a whole log without stopping at damage, for `verify` and `repair`.
//!
//! The inspection yields every sound frame once and in order, and a [`Damage`] for every place
//! where frames are missing. A frame of another store, or one that is not chained to the frame
//! before it, counts as damage. It only reads.
//!
//! Worked example: segment 1 holds frames 1 to 5, and frame 3 is damaged. The items are frame 1,
//! frame 2, damage with `first` 3 and `resumes_at` 4, frame 4, frame 5. The search for frame 4
//! looks for a sound header with a higher position at every multiple of 8.

use std::ops::Range;
use std::sync::Arc;

use crate::Position;
use crate::frame::Frame;
use crate::last_segment;
use crate::scan::{LaterFrame, ScanStep, SegmentBytes};
use crate::segment::{self, HeaderRead, Segment};
use crate::storage::Storage;

/// One item of an inspection.
#[derive(Debug)]
pub enum Inspected {
    /// A frame whose checksums hold.
    Frame {
        /// The frame.
        frame: Box<Frame>,
        /// The file that it is in, relative to the data directory.
        file: String,
        /// The offset in the file.
        offset: u64,
    },
    /// A place where frames are missing.
    Damage(Damage),
}

/// A place where one or more frames are missing or a header is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the data directory.
    pub file: String,
    /// Where in the file.
    pub offset: u64,
    /// The length of the damage in bytes.
    pub bytes: u64,
    /// The first frame that is missing.
    pub first: Position,
    /// The first sound frame after the damage, or 0 if none follows. Equal to `first` if only a
    /// segment's header is damaged.
    pub resumes_at: Position,
    /// What is wrong.
    pub what: String,
    /// Whether it is at the end of the log, where a crash may leave an incomplete frame.
    pub at_end: bool,
}

/// Starts an inspection of every segment. If a server writes meanwhile, the caller must limit it
/// with [`Inspection::up_to`].
pub fn inspect(storage: Arc<dyn Storage>) -> std::io::Result<Inspection> {
    let SegmentFiles { files, store_id } = list_files(&*storage)?;
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
    inspection.drop_unfinished_copy();
    Ok(inspection)
}

/// A segment's file and the state of its header.
#[derive(Clone, Copy)]
struct SegmentFile {
    number: u64,
    header: HeaderState,
}

/// The state of a segment's header.
#[derive(Clone, Copy)]
enum HeaderState {
    /// Sound: the segment holds frames from this position on.
    Holds(Position),
    /// Sound, but of another store or another number.
    Foreign,
    /// Damaged or blank.
    Headless,
    /// The file is missing or cannot be read.
    Unreadable,
}

/// All segment files of a log.
struct SegmentFiles {
    files: Vec<SegmentFile>,
    store_id: Option<[u8; 16]>,
}

/// Lists the segment files, without blank ones at the end. A gap in the numbers, however long,
/// counts as one unreadable file.
fn list_files(storage: &dyn Storage) -> std::io::Result<SegmentFiles> {
    let mut files = Vec::new();
    // How many files there are up to the last one with data.
    let mut used = 0;
    let mut store_id = None;
    // Positions ascend from segment to segment, so a lower one belongs to another log.
    let mut least = Position(1);
    let mut expected = 1;
    for number in segment::list_numbers(storage)? {
        if number > expected {
            files.push(SegmentFile {
                number: expected,
                header: HeaderState::Unreadable,
            });
        }
        expected = number.saturating_add(1);
        let header = match segment::read_header(storage, number) {
            Ok(HeaderRead::Sound(header)) => {
                // The first sound header decides which store this is. No other file names it.
                let ours = *store_id.get_or_insert(header.store_id) == header.store_id;
                if ours && header.number == number && header.first >= least {
                    least = header.first;
                    HeaderState::Holds(header.first)
                } else {
                    HeaderState::Foreign
                }
            }
            Ok(HeaderRead::OtherVersion(_) | HeaderRead::Blank | HeaderRead::Bad) => {
                HeaderState::Headless
            }
            Err(_) => HeaderState::Unreadable,
        };
        files.push(SegmentFile { number, header });
        if !matches!(header, HeaderState::Headless) || has_data(storage, number) {
            used = files.len();
        }
    }
    files.truncate(used);
    Ok(SegmentFiles { files, store_id })
}

/// Whether a segment has a byte that is not zero.
fn has_data(storage: &dyn Storage, number: u64) -> bool {
    SegmentBytes::open(storage, number, None).is_ok_and(|bytes| bytes.used_len() > 0)
}

/// An inspection in progress.
pub struct Inspection {
    storage: Arc<dyn Storage>,
    files: Vec<SegmentFile>,
    /// How many of the files were entered. The last of these is being inspected.
    entered: usize,
    at: Option<SegmentCursor>,
    next: Position,
    /// The hash of the frame before; `None` after damage, where the chain is interrupted.
    last_hash: Option<[u8; 32]>,
    store_id: Option<[u8; 16]>,
    store: Option<u32>,
    /// The last position to inspect; `None` for the end of the log.
    last: Option<Position>,
}

/// A place in a segment.
struct SegmentCursor {
    bytes: SegmentBytes,
    offset: u64,
    /// The first position of the next readable segment. This segment's frames end before it.
    until: Option<Position>,
    /// Whether the next file has a sound header. If so, every frame before it must be in this file.
    is_followed: bool,
}

/// How far an inspection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InspectionProgress {
    /// How many segments were entered.
    pub segments_done: u64,
    /// How many segments there are.
    pub segments: u64,
}

impl Iterator for Inspection {
    type Item = Inspected;

    fn next(&mut self) -> Option<Inspected> {
        loop {
            if self.last.is_some_and(|last| self.next > last) {
                return None;
            }
            let Some(cursor) = self.at.take() else {
                let file = *self.files.get(self.entered)?;
                match self.enter_segment(file) {
                    Some(damage) => return Some(Inspected::Damage(damage)),
                    None => continue,
                }
            };
            // The next segment holds the frames from here on, also if this one still has older
            // copies.
            if cursor.until.is_some_and(|until| self.next >= until) {
                continue;
            }
            match cursor.bytes.scan_at(cursor.offset, self.next) {
                ScanStep::Frame(frame, next) => return Some(self.emit_frame(cursor, frame, next)),
                // Zeros at the end of the log are unused space. Before another segment they are
                // lost frames.
                ScanStep::End if !cursor.is_followed => {}
                ScanStep::End => {
                    return Some(Inspected::Damage(
                        self.skip_damage(cursor, "frames are missing"),
                    ));
                }
                ScanStep::Bad(error) => {
                    return Some(Inspected::Damage(
                        self.skip_damage(cursor, &error.to_string()),
                    ));
                }
            }
        }
    }
}

impl Inspection {
    /// Ends the inspection after this frame. While a server writes, the caller must pass a frame
    /// that was durable before the inspection began: later frames may be incomplete.
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

    /// How far the inspection is.
    pub fn progress(&self) -> InspectionProgress {
        InspectionProgress {
            segments_done: self.entered as u64,
            segments: self.files.len() as u64,
        }
    }

    /// Drops a last segment that is an unfinished copy of doubtful frames. The segment before it
    /// still holds all of them.
    fn drop_unfinished_copy(&mut self) {
        let [.., before, last] = self.files[..] else {
            return;
        };
        let (HeaderState::Holds(first_before), HeaderState::Holds(first)) =
            (before.header, last.header)
        else {
            return;
        };
        let segments = [
            Segment::closed(before.number, first_before),
            Segment::closed(last.number, first),
        ];
        let log_end =
            last_segment::read_log_end(&*self.storage, &segments, self.store, Position(0));
        if log_end.is_ok_and(|end| end.unfinished_copy.is_some()) {
            self.files.pop();
        }
    }

    /// Enters the next segment. Returns the damage if frames before it or its header are missing.
    fn enter_segment(&mut self, SegmentFile { number, header }: SegmentFile) -> Option<Damage> {
        self.entered += 1;
        let until = self.find_first_position_after();
        let is_followed = self
            .files
            .get(self.entered)
            .is_some_and(|next| matches!(next.header, HeaderState::Holds(_)));
        let unreadable = "the segment is missing or cannot be read";
        let Ok(bytes) = SegmentBytes::open(&*self.storage, number, self.store) else {
            return Some(self.report_missing(until, unreadable));
        };
        let cursor = SegmentCursor {
            bytes,
            offset: SegmentBytes::START,
            until,
            is_followed,
        };
        match header {
            HeaderState::Unreadable => Some(self.report_missing(until, unreadable)),
            HeaderState::Foreign => {
                Some(self.report_missing(until, "the segment belongs elsewhere"))
            }
            HeaderState::Headless => Some(self.enter_headless(cursor)),
            HeaderState::Holds(first) => {
                self.at = Some(cursor);
                // A segment before this one lost its end.
                (first > self.next).then(|| {
                    self.report_missing(Some(first), "frames before this segment are missing")
                })
            }
        }
    }

    /// The first position of a later segment, from its header or, if that is damaged, from its
    /// frames.
    fn find_first_position_after(&self) -> Option<Position> {
        self.files[self.entered..]
            .iter()
            .find_map(|later| match later.header {
                HeaderState::Holds(first) => Some(first),
                HeaderState::Headless => {
                    let bytes =
                        SegmentBytes::open(&*self.storage, later.number, self.store).ok()?;
                    Some(bytes.find_later_frame(0, Position(0))?.position)
                }
                HeaderState::Foreign | HeaderState::Unreadable => None,
            })
    }

    /// Enters a segment whose header is damaged. Its frames may all be sound.
    fn enter_headless(&mut self, cursor: SegmentCursor) -> Damage {
        let what = "the segment's header is bad";
        if let ScanStep::Frame(..) = cursor.bytes.scan_at(SegmentBytes::START, self.next) {
            let damage = self.describe_damage(0..SegmentBytes::START, what, self.next);
            self.at = Some(cursor);
            return damage;
        }
        // From the file's start, so that the damage includes the header.
        self.skip_damage(
            SegmentCursor {
                offset: 0,
                ..cursor
            },
            what,
        )
    }

    /// Reports frames that are missing together with their file, and continues at `resumes_at`.
    fn report_missing(&mut self, resumes_at: Option<Position>, what: &str) -> Damage {
        let resumes_at = resumes_at.unwrap_or_default();
        let damage = self.describe_damage(0..0, what, resumes_at);
        self.resume_at(resumes_at);
        damage
    }

    /// Reports the damage at a place and continues at the next sound frame.
    fn skip_damage(&mut self, mut cursor: SegmentCursor, what: &str) -> Damage {
        let later = cursor.bytes.find_later_frame(cursor.offset, self.next);
        // A frame from `until` on is a leftover: the next segment holds the frames from there.
        let here = later.filter(|later| cursor.until.is_none_or(|until| later.position < until));
        let LaterFrame {
            offset,
            position: resumes_at,
        } = here.unwrap_or(LaterFrame {
            offset: cursor.bytes.used_len(),
            position: cursor.until.unwrap_or_default(),
        });
        // If frames are missing at the end of a file, the last used byte is before the cursor.
        let bad = cursor.offset..offset.max(cursor.offset);
        let damage = self.describe_damage(bad, what, resumes_at);
        self.resume_at(resumes_at);
        cursor.offset = offset;
        self.at = Some(cursor).filter(|_| here.is_some());
        damage
    }

    /// The name of the file that is being inspected.
    fn file_name(&self) -> String {
        segment::file_name(
            self.entered
                .checked_sub(1)
                .map_or(0, |at| self.files[at].number),
        )
    }

    fn resume_at(&mut self, next: Position) {
        // Position 0 means that no sound frame follows: the inspection then ends by itself.
        if next > self.next {
            self.next = next;
            // The frame before `next` is missing, so there is no hash to compare with.
            self.last_hash = None;
        }
    }

    fn emit_frame(&mut self, mut cursor: SegmentCursor, frame: Box<Frame>, next: u64) -> Inspected {
        let (file, offset) = (self.file_name(), cursor.offset);
        cursor.offset = next;
        self.at = Some(cursor);
        let chained = self.last_hash.is_none_or(|hash| hash == frame.prev_hash);
        // The chain goes on from this frame in any case, so one break is reported once.
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
        let end = offset + frame.raw().len() as u64;
        let damage = self.describe_damage(offset..end, what, after);
        self.next = after;
        Inspected::Damage(damage)
    }

    fn describe_damage(&self, bad: Range<u64>, what: &str, resumes_at: Position) -> Damage {
        // Only the last file can hold a torn write, and only if no sound frame follows.
        let at_end = self.entered >= self.files.len() && resumes_at.0 == 0;
        Damage {
            file: self.file_name(),
            offset: bad.start,
            bytes: bad.end - bad.start,
            first: self.next,
            resumes_at,
            what: what.to_owned(),
            at_end,
        }
    }
}
