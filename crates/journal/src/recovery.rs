//! Opening a log: finds its end and repairs what a crash left there.
//!
//! Recovery reads the headers of all segments, but frames of the last one only, or of the one before
//! an unfinished copy. Worked example: the last segment holds the whole frames 10 to 13 and a bad
//! frame 14.
//!
//! - If a whole frame 15 follows, or a later segment, or the caller knows that 14 was durable,
//!   frame 14 is *damage*: recovery returns an error and changes nothing.
//! - Otherwise frame 14 is a *torn tail*, an interrupted write. Recovery copies it to `log/torn/`,
//!   reports it and cuts it.
//! - Frame 13 is whole but not proven to be durable (see `last_segment`). Recovery writes it again,
//!   in a new segment, and syncs it before any reader sees it. After a failed sync the page cache
//!   may show bytes that the disk does not hold.
//!
//! All checks come before the first change, so a damaged log stays as it was.
//!
//! A crash during recovery is safe too. Each change either removes bytes that no reader has seen,
//! or removes them after a synced copy exists. The next opening finds the remaining work and does
//! it; at worst `log/torn/` then holds two copies of one torn tail.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex};

use arc_swap::ArcSwap;

use crate::Position;
use crate::last_segment::{self, ChainState, LastSegment, LogEnd, SegmentTail};
use crate::log::{ActiveSegment, AppendError, LogOptions, WriterStart};
use crate::reader::{LogReader, LogTip, ReadError, SharedLog};
use crate::scan::SegmentBytes;
use crate::segment::{self, HeaderRead, Segment, SegmentHeader};
use crate::storage::Storage;

const TORN_DIR: &str = "log/torn";

/// The result of opening a log, for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The store's id.
    pub store_id: [u8; 16],
    /// A torn tail that was cut.
    pub torn: Option<TornTail>,
}

/// An interrupted write at the end of the log that was never acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The segment, relative to the data directory.
    pub file: String,
    /// The offset at which it began.
    pub offset: u64,
    /// How many bytes were cut.
    pub bytes: u64,
    /// The file with a copy of them, relative to the data directory.
    pub copied_to: String,
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Durable bytes are damaged or missing.
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
    /// A segment has a format that this version does not know.
    #[error("{file} is of format version {version}, which this version of turnkeep does not know")]
    UnknownVersion {
        /// The file, relative to the data directory.
        file: String,
        /// The format's version.
        version: u8,
    },
    /// A frame cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A doubtful frame cannot be written again.
    #[error("the end of the log cannot be made durable: {0}")]
    Append(#[from] AppendError),
    /// The files cannot be read or written.
    #[error("the log cannot be opened: {0}")]
    Io(#[from] std::io::Error),
}

/// Finds the end of the log and cuts a torn tail. The caller must write the doubtful frames of the
/// result again before it appends.
pub(crate) fn recover(
    storage: Arc<dyn Storage>,
    options: &LogOptions,
) -> Result<(WriterStart, Recovered), OpenError> {
    let mut found = find_segments(&*storage)?;
    let store_id = found.store_id.unwrap_or(options.store_id_if_new);
    let store = segment::store_tag(&store_id);
    let known = options.known_durable.unwrap_or_default();
    let LogEnd {
        mut last_segment,
        unfinished_copy,
    } = last_segment::read_log_end(&*storage, &found.segments, Some(store), known)?;
    found.reject_damage(last_segment.as_ref(), known)?;

    // Changes begin here. Each step leaves a log that the next opening recovers the same way. The
    // last files go first, because a gap in the numbers would count as a deleted segment.
    let mut torn = found.remove_headless(&*storage)?;
    if let Some(copy) = unfinished_copy {
        // The segment before still holds all of the copied frames.
        storage.remove(&segment::file_name(copy))?;
        found.segments.pop();
    }
    let is_torn = last_segment
        .as_mut()
        .is_some_and(LastSegment::drop_torn_frames);
    if let Some(last_segment) = last_segment.as_ref().filter(|_| is_torn) {
        torn = Some(last_segment.cut_torn_tail(&*storage)?);
    }
    let tail = last_segment.map(LastSegment::into_tail).unwrap_or_default();
    let mut segments = found.segments;
    let active = match segments.last_mut() {
        // Cutting the tail removed the segment's preallocated space, so the writer then starts a
        // new one. Doubtful frames also go to a new segment, and later frames must follow them.
        Some(last) if !is_torn && tail.doubtful.frames.is_empty() => {
            Some(reopen_for_writing(&*storage, last, tail.proven_end)?)
        }
        _ => None,
    };
    let start = prepare_writer(storage, segments, store_id, tail, active)?;
    Ok((start, Recovered { store_id, torn }))
}

/// Prepares the state that the writer starts from: the log up to its last proven frame.
fn prepare_writer(
    storage: Arc<dyn Storage>,
    segments: Vec<Arc<Segment>>,
    store_id: [u8; 16],
    tail: SegmentTail,
    active: Option<ActiveSegment>,
) -> Result<WriterStart, OpenError> {
    let bytes_used = sealed_bytes(&*storage, &segments)? + tail.proven_end;
    let next_segment = segments.len() as u64 + 1;
    let last = tail.last_proven;
    let shared = Arc::new(SharedLog {
        storage,
        store: segment::store_tag(&store_id),
        segments: ArcSwap::from_pointee(segments),
        last: AtomicU64::new(last.0),
        bytes_used: AtomicU64::new(bytes_used),
        tip: Mutex::default(),
        moved: Condvar::new(),
    });
    let chain = match tail.chain {
        Some(chain) => chain,
        // The last proven frame lies in an earlier segment.
        None => read_chain_state(&LogReader(shared.clone()), last)?,
    };
    *shared.lock_tip() = LogTip {
        durable: last,
        last,
        last_hash: chain.hash,
    };
    Ok(WriterStart {
        shared,
        store_id,
        active,
        next_segment,
        next_sequence: chain.next_sequence,
        doubtful: tail.doubtful,
    })
}

/// Opens the last segment for the writer, which appends at `end`.
fn reopen_for_writing(
    storage: &dyn Storage,
    segment: &mut Arc<Segment>,
    end: u64,
) -> Result<ActiveSegment, OpenError> {
    let number = segment.number;
    let file = storage.open(&segment::file_name(number))?;
    // Readers share the writer's file, so that they see when it is truncated.
    *segment = Segment::opened(number, segment.first, file.clone());
    Ok(ActiveSegment { number, file, end })
}

/// Reads the chain state after a frame of an earlier segment.
fn read_chain_state(log: &LogReader, last: Position) -> Result<ChainState, OpenError> {
    let Some(frame) = log.frames_between(last, last).next() else {
        // `last` is 0: the log has no frame.
        return Ok(ChainState {
            hash: [0; 32],
            next_sequence: 0,
        });
    };
    let frame = frame?;
    Ok(ChainState {
        hash: frame.hash,
        next_sequence: frame.next_sequence(),
    })
}

/// The segment files of the log directory.
#[derive(Default)]
struct FoundSegments {
    segments: Vec<Arc<Segment>>,
    store_id: Option<[u8; 16]>,
    /// Files at the end without a header: unused segments, or one whose first write was torn.
    headless: Vec<SegmentBytes>,
}

/// Reads the headers of all segments.
fn find_segments(storage: &dyn Storage) -> Result<FoundSegments, OpenError> {
    let mut found = FoundSegments::default();
    for (number, expected) in segment::list_numbers(storage)?.into_iter().zip(1..) {
        let name = segment::file_name(expected);
        // Segments are numbered without gaps, so a gap means a deleted file.
        if number != expected {
            return Err(damage_error(name, 0, "the segment is missing"));
        }
        let header = segment::read_header(storage, number)?;
        // The log syncs a segment's header before it starts the next segment. So a segment with
        // data and without a header can only be the last one.
        if found
            .headless
            .iter()
            .any(|before| before.used_len() > 0 || !matches!(header, HeaderRead::Blank))
        {
            return Err(damage_error(
                segment::file_name(number - 1),
                0,
                "the segment has no header",
            ));
        }
        match header {
            HeaderRead::Sound(header) => found.add_segment(header, number)?,
            HeaderRead::OtherVersion(version) => {
                return Err(OpenError::UnknownVersion {
                    file: name,
                    version,
                });
            }
            HeaderRead::Blank | HeaderRead::Bad => {
                found
                    .headless
                    .push(SegmentBytes::open(storage, number, None)?);
            }
        }
    }
    let store = found.store_id.as_ref().map(segment::store_tag);
    for bytes in &mut found.headless {
        bytes.store = store;
    }
    Ok(found)
}

impl FoundSegments {
    fn add_segment(&mut self, header: SegmentHeader, number: u64) -> Result<(), OpenError> {
        // First positions may be equal: a segment of which all frames were doubtful stays behind
        // with its header alone, and their copy begins at the same position.
        let fits = header.number == number
            && *self.store_id.get_or_insert(header.store_id) == header.store_id
            && self
                .segments
                .last()
                .map_or(header.first.0 == 1, |before| header.first >= before.first);
        if !fits {
            return Err(damage_error(
                segment::file_name(number),
                0,
                "the segment belongs elsewhere",
            ));
        }
        self.segments.push(Segment::closed(number, header.first));
        Ok(())
    }

    /// Returns an error if the last segment, or a file without a header after it, is damaged.
    fn reject_damage(
        &self,
        last_segment: Option<&LastSegment>,
        known: Position,
    ) -> Result<(), OpenError> {
        // A segment is begun only after the one before it is complete and synced. So if this one
        // has data, no frame before it can be a torn write.
        let begun = self.headless.iter().find(|bytes| bytes.used_len() > 0);
        if let Some(last_segment) = last_segment {
            last_segment.reject_damage(begun.is_some())?;
        }
        let Some(begun) = begun else { return Ok(()) };
        let expected = Position(last_segment.map_or(Position(0), LastSegment::last_sound).0 + 1);
        // A torn first write cannot leave a sound later frame behind it.
        if known >= expected || begun.find_later_frame(0, expected).is_some() {
            let what = "the segment's header is bad, but its frames were durable";
            return Err(damage_error(segment::file_name(begun.number), 0, what));
        }
        Ok(())
    }

    /// Removes the files without a header, after copying their data aside. The last file goes
    /// first: a crash in between must not leave a gap in the numbers.
    fn remove_headless(&self, storage: &dyn Storage) -> Result<Option<TornTail>, OpenError> {
        let mut torn = None;
        for bytes in self.headless.iter().rev() {
            if bytes.used_len() > 0 {
                torn = Some(copy_torn(storage, bytes, 0)?);
            }
            storage.remove(&segment::file_name(bytes.number))?;
        }
        Ok(torn)
    }
}

/// The length of all segments but the last.
fn sealed_bytes(storage: &dyn Storage, segments: &[Arc<Segment>]) -> Result<u64, OpenError> {
    let sealed = segments.split_last().map_or(&[][..], |(_, sealed)| sealed);
    let mut sum = 0;
    for segment in sealed {
        sum += storage.open(&segment::file_name(segment.number))?.len();
    }
    Ok(sum)
}

/// Copies a segment's data from an offset on to `log/torn/`.
pub(crate) fn copy_torn(
    storage: &dyn Storage,
    bytes: &SegmentBytes,
    offset: u64,
) -> Result<TornTail, OpenError> {
    let file = segment::file_name(bytes.number);
    let end = bytes.used_len().max(offset);
    let torn = bytes
        .bytes
        .slice(usize::try_from(offset).unwrap_or(0)..usize::try_from(end).unwrap_or(0));
    // Under a new name each time: after a crash between copy and cut, the next opening copies the
    // same place again, and it must not overwrite a copy that an operator may be reading.
    let copied_to = free_name(storage, &format!("{:010}-{offset}", bytes.number))?;
    let copy = storage.create(&copied_to, torn.len() as u64)?;
    copy.write_at(0, &torn)?;
    copy.sync()?;
    Ok(TornTail {
        file,
        offset,
        bytes: torn.len() as u64,
        copied_to,
    })
}

/// Finds an unused name in `log/torn/`: the same place may be torn more than once.
fn free_name(storage: &dyn Storage, stem: &str) -> std::io::Result<String> {
    let taken = storage.list(TORN_DIR)?;
    let mut name = format!("{stem}.bin");
    for again in 2_u64.. {
        if !taken.contains(&name) {
            break;
        }
        name = format!("{stem}-{again}.bin");
    }
    Ok(format!("{TORN_DIR}/{name}"))
}

pub(crate) fn damage_error(file: String, offset: u64, what: &str) -> OpenError {
    OpenError::Damaged {
        file,
        offset,
        what: what.to_owned(),
    }
}
