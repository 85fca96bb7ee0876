//! Opening a log: where it ends, and what a crash left there.
//!
//! Only the last segment is read through. A bad frame at its end is *damage* if a later whole frame
//! exists or if the index or a later frame's record says that it was durable; otherwise it is a *torn
//! tail*: copied to `log/torn/`, reported, cut. Whole frames that are not known to be durable are kept,
//! but written again into a new segment and synced before anyone is served: after a failed sync the
//! page cache may show what the disk does not hold.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex};

use arc_swap::ArcSwap;

use crate::Position;
use crate::frame::Frame;
use crate::log::{Active, AppendError, LogOptions, Start};
use crate::reader::{LogReader, ReadError, Shared, Tip};
use crate::scan::{SegmentBytes, Step};
use crate::segment::{self, HeaderRead, LOG_DIR, Segment, SegmentHeader};
use crate::storage::{Storage, StorageFile};

/// What opening found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The store's id.
    pub store_id: [u8; 16],
    /// A torn tail that was cut.
    pub torn: Option<TornTail>,
}

/// What a crash left of a write that nobody was told about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The segment, relative to the data directory.
    pub file: String,
    /// Where it began.
    pub offset: u64,
    /// How many bytes were cut.
    pub bytes: u64,
    /// Where a copy of them is, relative to the data directory.
    pub copied_to: String,
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Something that was durable is damaged or missing.
    #[error(
        "the log is damaged in {file} at byte {offset}: {what}; run `turnkeep verify` to see what is touched, then `turnkeep repair`"
    )]
    Damaged {
        /// The file, relative to the data directory.
        file: String,
        /// Where in the file.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A frame cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A frame that was in doubt cannot be made durable.
    #[error("the end of the log cannot be made durable: {0}")]
    Append(#[from] AppendError),
    /// The files cannot be read or written.
    #[error("the log cannot be opened: {0}")]
    Io(#[from] std::io::Error),
}

/// Whole frames at the end of the log that may not be durable.
#[derive(Default)]
pub(crate) struct Doubtful {
    pub(crate) segment: u64,
    /// Where the first of them begins.
    pub(crate) offset: u64,
    pub(crate) frames: Vec<Frame>,
}

/// Finds the end of the log.
pub(crate) fn recover(
    storage: Arc<dyn Storage>,
    options: &LogOptions,
) -> Result<(Start, Recovered, Doubtful), OpenError> {
    let Found { segments, store_id, mut torn } = find_segments(&*storage, options)?;
    let store_id = store_id.unwrap_or(options.store_id_if_new);
    let next_segment = segments.last().map_or(0, |segment| segment.number) + 1;
    let mut ending = match segments.last() {
        Some(last) => Ending::of(&*storage, last, options.known_durable)?,
        None => Ending::empty(),
    };
    if torn.is_none() {
        torn = ending.cut_torn(&*storage)?;
    }
    let bytes_used = sealed_bytes(&*storage, &segments)? + ending.end;
    let shared = Arc::new(Shared {
        storage,
        segments: ArcSwap::from_pointee(segments),
        last: AtomicU64::new(ending.tip.last.0),
        bytes_used: AtomicU64::new(bytes_used),
        tip: Mutex::new(ending.tip),
        moved: Condvar::new(),
    });
    let next_sequence = ending.find_tip(&LogReader(shared.clone()))?;
    let start = Start { shared, store_id, active: ending.active, next_segment, next_sequence };
    Ok((start, Recovered { store_id, torn }, ending.doubtful))
}

struct Found {
    segments: Vec<Arc<Segment>>,
    store_id: Option<[u8; 16]>,
    torn: Option<TornTail>,
}

/// Reads the headers of all segments, and deals with a last one that has none.
fn find_segments(storage: &dyn Storage, options: &LogOptions) -> Result<Found, OpenError> {
    let mut found = Found { segments: Vec::new(), store_id: None, torn: None };
    let numbers = segment::numbers(storage)?;
    for (&number, expected) in numbers.iter().zip(1..) {
        if number != expected {
            return Err(damaged(segment::file_name(expected), 0, "the segment is missing"));
        }
        let name = segment::file_name(number);
        let file = storage.open(&name)?;
        let bytes = file.read(0..file.len())?;
        let is_last = number == numbers.len() as u64;
        match SegmentHeader::read(&bytes) {
            HeaderRead::Sound(header) => found.add(header, number)?,
            HeaderRead::Blank | HeaderRead::Bad if is_last => {
                let bytes = SegmentBytes { number, bytes };
                found.torn = set_aside(storage, &bytes, options.known_durable)?;
            }
            HeaderRead::Blank | HeaderRead::Bad => return Err(damaged(name, 0, "the segment has no header")),
        }
    }
    Ok(found)
}

impl Found {
    fn add(&mut self, header: SegmentHeader, number: u64) -> Result<(), OpenError> {
        let after = self.segments.last().map_or(Position(1), |segment| segment.first);
        let fits = header.number == number
            && *self.store_id.get_or_insert(header.store_id) == header.store_id
            && header.first >= after;
        if !fits {
            return Err(damaged(segment::file_name(number), 0, "the segment belongs elsewhere"));
        }
        self.segments.push(Segment::closed(number, header.first));
        Ok(())
    }
}

/// Removes a last segment without a header: a spare, or one whose first write was torn.
fn set_aside(
    storage: &dyn Storage,
    bytes: &SegmentBytes,
    known_durable: Option<Position>,
) -> Result<Option<TornTail>, OpenError> {
    let name = segment::file_name(bytes.number);
    let used = bytes.used();
    // The first frame may be whole without its header; a second one proves that the first was durable.
    let whole = bytes.find_later(0, Position(0));
    let later = whole.and_then(|(at, header)| bytes.find_later(at, header.position));
    let known = whole.is_some_and(|(_, header)| Some(header.position) <= known_durable);
    if used > 0 && (later.is_some() || known) {
        return Err(damaged(name, 0, "the segment's header is bad, but its frames were durable"));
    }
    let torn = if used > 0 { Some(copy_torn(storage, &name, bytes, 0)?) } else { None };
    storage.remove(&name)?;
    Ok(torn)
}

/// The end of the last segment.
struct Ending {
    number: u64,
    first: Position,
    bytes: Option<SegmentBytes>,
    end: u64,
    tip: Tip,
    next_sequence: Option<u64>,
    is_torn: bool,
    active: Option<Active>,
    doubtful: Doubtful,
}

impl Ending {
    fn empty() -> Self {
        Self {
            number: 0,
            first: Position(1),
            bytes: None,
            end: 0,
            tip: Tip::default(),
            next_sequence: Some(0),
            is_torn: false,
            active: None,
            doubtful: Doubtful::default(),
        }
    }

    /// Walks the last segment.
    fn of(storage: &dyn Storage, segment: &Segment, known: Option<Position>) -> Result<Self, OpenError> {
        let file = storage.open(&segment::file_name(segment.number))?;
        let bytes = SegmentBytes { number: segment.number, bytes: file.read(0..file.len())? };
        let mut ending = Self {
            number: segment.number,
            first: segment.first,
            end: SegmentBytes::START,
            next_sequence: None,
            ..Self::empty()
        };
        ending.tip.last = Position(segment.first.0 - 1);
        ending.tip.durable = known.unwrap_or_default();
        let mut walked: Vec<(u64, Frame)> = Vec::new();
        let stop = loop {
            match bytes.step(ending.end, Position(ending.tip.last.0 + 1)) {
                Step::Frame(frame, next) => ending.take(*frame, next, &mut walked),
                stop => break stop,
            }
        };
        if let Step::Bad(error) = stop {
            ending.check_torn(&bytes, known, &error.to_string())?;
            ending.is_torn = true;
        }
        ending.drop_half_written(&mut walked);
        ending.settle(file, bytes, walked);
        Ok(ending)
    }

    /// Takes in a whole frame; keeps it in `walked` while it is in doubt.
    fn take(&mut self, frame: Frame, next: u64, walked: &mut Vec<(u64, Frame)>) {
        self.tip.last = frame.position;
        self.tip.last_hash = frame.hash;
        self.tip.durable = self.tip.durable.max(frame.durable);
        self.next_sequence = Some(frame.first_sequence + frame.commands().count() as u64);
        let durable = self.tip.durable;
        walked.retain(|(_, earlier)| earlier.position > durable);
        if frame.position > durable {
            walked.push((self.end, frame));
        }
        self.end = next;
    }

    fn check_torn(&self, bytes: &SegmentBytes, known: Option<Position>, what: &str) -> Result<(), OpenError> {
        let expected = Position(self.tip.last.0 + 1);
        let was_durable = known.is_some_and(|known| known >= expected) || self.tip.durable >= expected;
        if was_durable || bytes.find_later(self.end, expected).is_some() {
            return Err(damaged(segment::file_name(self.number), self.end, what));
        }
        Ok(())
    }

    /// A last frame in doubt whose payloads did not all reach the disk is torn, too.
    fn drop_half_written(&mut self, walked: &mut Vec<(u64, Frame)>) {
        while let Some((offset, frame)) = walked.pop_if(|(_, frame)| !frame.blobs_are_sound()) {
            self.is_torn = true;
            self.end = offset;
            self.tip.last = Position(frame.position.0 - 1);
            self.tip.last_hash = frame.prev_hash;
            self.next_sequence = Some(frame.first_sequence);
        }
    }

    /// Decides where the writer goes on: here, or in a new segment after what is in doubt.
    fn settle(&mut self, file: Arc<dyn StorageFile>, bytes: SegmentBytes, walked: Vec<(u64, Frame)>) {
        let clean = walked.is_empty() && !self.is_torn;
        if clean {
            self.active = Some(Active { number: self.number, file, end: self.end });
        }
        if let Some((offset, first)) = walked.first() {
            self.tip.last = Position(first.position.0 - 1);
            self.tip.last_hash = first.prev_hash;
            self.next_sequence = Some(first.first_sequence);
            self.doubtful.offset = *offset;
        }
        self.doubtful.segment = self.number;
        self.doubtful.frames = walked.into_iter().map(|(_, frame)| frame).collect();
        self.tip.durable = self.tip.last;
        self.bytes = Some(bytes);
    }

    /// Copies a torn tail aside and cuts it.
    fn cut_torn(&mut self, storage: &dyn Storage) -> Result<Option<TornTail>, OpenError> {
        let Some(bytes) = self.bytes.as_ref().filter(|_| self.is_torn) else { return Ok(None) };
        let name = segment::file_name(self.number);
        let torn = copy_torn(storage, &name, bytes, self.end)?;
        storage.open(&name)?.cut(self.end)?;
        Ok(Some(torn))
    }

    /// The next sequence number; if the last segment has no frame, the tip is found before it.
    fn find_tip(&mut self, log: &LogReader) -> Result<u64, OpenError> {
        if let Some(next) = self.next_sequence {
            return Ok(next);
        }
        let last = Position(self.first.0 - 1);
        let Some(frame) = log.frames(last, last).next() else { return Ok(0) };
        let frame = frame?;
        let mut tip = log.0.tip.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tip.last_hash = frame.hash;
        Ok(frame.first_sequence + frame.commands().count() as u64)
    }
}

fn sealed_bytes(storage: &dyn Storage, segments: &[Arc<Segment>]) -> Result<u64, OpenError> {
    let sealed = segments.split_last().map_or(&[][..], |(_, sealed)| sealed);
    let mut sum = 0;
    for segment in sealed {
        sum += storage.open(&segment::file_name(segment.number))?.len();
    }
    Ok(sum)
}

fn copy_torn(
    storage: &dyn Storage,
    name: &str,
    bytes: &SegmentBytes,
    offset: u64,
) -> Result<TornTail, OpenError> {
    let end = bytes.used().max(offset);
    let torn = bytes.bytes.slice(usize::try_from(offset).unwrap_or(0)..usize::try_from(end).unwrap_or(0));
    let copied_to = format!("{LOG_DIR}/torn/{:010}-{offset}.bin", bytes.number);
    let copy = storage.create(&copied_to, torn.len() as u64)?;
    copy.write_at(0, &torn)?;
    copy.sync()?;
    Ok(TornTail { file: name.to_owned(), offset, bytes: torn.len() as u64, copied_to })
}

fn damaged(file: String, offset: u64, what: &str) -> OpenError {
    OpenError::Damaged { file, offset, what: what.to_owned() }
}
