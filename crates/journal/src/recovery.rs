//! Opening a log: where it ends, and what a crash left there.
//!
//! Only the last segment is read through. A bad frame at its end is *damage* if a later whole frame
//! exists, if the log went on in a later segment, or if the index or a frame's record says that it
//! was durable; otherwise it is a *torn tail*: copied to `log/torn/`, reported, cut. Whole frames
//! that are not known to be durable are kept, but written again into a new segment and synced
//! before anyone is served: after a failed sync the page cache may show what the disk does not
//! hold.
//!
//! Everything is judged before anything is changed, so a log that is refused is left as it was.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::Position;
use crate::ending::{self, Doubtful, Ending, Settled};
use crate::log::{Active, AppendError, LogOptions, Start};
use crate::reader::{LogReader, ReadError, Shared, Tip};
use crate::scan::SegmentBytes;
use crate::segment::{self, HeaderRead, Segment, SegmentHeader};
use crate::storage::Storage;

const TORN_DIR: &str = "log/torn";

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
    /// Another version of Turnkeep wrote it.
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
    /// A frame that was in doubt cannot be made durable.
    #[error("the end of the log cannot be made durable: {0}")]
    Append(#[from] AppendError),
    /// The files cannot be read or written.
    #[error("the log cannot be opened: {0}")]
    Io(#[from] std::io::Error),
}

/// Finds the end of the log.
pub(crate) fn recover(
    storage: Arc<dyn Storage>,
    options: &LogOptions,
) -> Result<(Start, Recovered, Doubtful), OpenError> {
    let mut found = find_segments(&*storage)?;
    let store_id = found.store_id.unwrap_or(options.store_id_if_new);
    let store = segment::store_tag(&store_id);
    let known = options.known_durable.unwrap_or_default();
    let (mut ending, copy) = ending::walk_last(&*storage, &found.segments, (Some(store), known))?;
    found.refuse_damage(ending.as_ref(), known)?;

    let mut torn = found.remove_headless(&*storage)?;
    if let Some(copy) = copy {
        storage.remove(&segment::file_name(copy))?;
        found.segments.pop();
    }
    let is_torn = ending.as_mut().is_some_and(Ending::leave_out_torn);
    if let Some(ending) = ending.as_ref().filter(|_| is_torn) {
        torn = Some(ending.cut(&*storage)?);
    }
    let (start, doubtful) = start(storage, found.segments, store_id, (ending, is_torn))?;
    Ok((start, Recovered { store_id, torn }, doubtful))
}

/// Readies what the writer goes on from: the last segment if all in it is settled, else a new one.
fn start(
    storage: Arc<dyn Storage>,
    mut segments: Vec<Arc<Segment>>,
    store_id: [u8; 16],
    (ending, is_torn): (Option<Ending>, bool),
) -> Result<(Start, Doubtful), OpenError> {
    let bytes_used =
        sealed_bytes(&*storage, &segments)? + ending.as_ref().map_or(0, Ending::settled_end);
    let (last, settled) = ending.as_ref().map_or((Position(0), None), Ending::settled);
    let end = ending.as_ref().map_or(0, |ending| ending.end);
    let doubtful = ending.map(Ending::into_doubtful).unwrap_or_default();
    let next_segment = segments.len() as u64 + 1;
    let mut active = None;
    if !is_torn
        && doubtful.frames.is_empty()
        && let Some(segment) = segments.last_mut()
    {
        let (number, file) = (
            segment.number,
            storage.open(&segment::file_name(segment.number))?,
        );
        // Readers share the writer's file, so that they know when it is cut.
        *segment = Segment::opened(number, segment.first, file.clone());
        active = Some(Active { number, file, end });
    }
    let shared = Arc::new(Shared {
        storage,
        store: segment::store_tag(&store_id),
        segments: ArcSwap::from_pointee(segments),
        last: AtomicU64::new(last.0),
        bytes_used: AtomicU64::new(bytes_used),
        tip: Mutex::default(),
        moved: Condvar::new(),
    });
    let after = match settled {
        Some(settled) => settled,
        None => settled_before(&LogReader(shared.clone()), last)?,
    };
    *shared.tip.lock().unwrap_or_else(PoisonError::into_inner) = Tip {
        durable: last,
        last,
        last_hash: after.hash,
    };
    Ok((
        Start {
            shared,
            store_id,
            active,
            next_segment,
            next_sequence: after.next_sequence,
        },
        doubtful,
    ))
}

/// What comes after a frame of an earlier segment.
fn settled_before(log: &LogReader, last: Position) -> Result<Settled, OpenError> {
    let Some(frame) = log.frames(last, last).next() else {
        return Ok(Settled {
            hash: [0; 32],
            next_sequence: 0,
        });
    };
    let frame = frame?;
    Ok(Settled {
        hash: frame.hash,
        next_sequence: frame.next_sequence(),
    })
}

/// The segment files.
#[derive(Default)]
struct Found {
    segments: Vec<Arc<Segment>>,
    store_id: Option<[u8; 16]>,
    /// The last files, if they have no header: a spare, or one whose first write was torn.
    headless: Vec<SegmentBytes>,
}

/// Reads the headers of all segments.
fn find_segments(storage: &dyn Storage) -> Result<Found, OpenError> {
    let mut found = Found::default();
    for (number, expected) in segment::numbers(storage)?.into_iter().zip(1..) {
        let name = segment::file_name(expected);
        if number != expected {
            return Err(damaged(name, 0, "the segment is missing"));
        }
        let header = segment::read_header(storage, number)?;
        // Nothing is ever begun behind a segment that holds bytes but no header.
        if found
            .headless
            .iter()
            .any(|before| before.used() > 0 || !matches!(header, HeaderRead::Blank))
        {
            return Err(damaged(
                segment::file_name(number - 1),
                0,
                "the segment has no header",
            ));
        }
        match header {
            HeaderRead::Sound(header) => found.add(header, number)?,
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
    found
        .headless
        .iter_mut()
        .for_each(|bytes| bytes.store = store);
    Ok(found)
}

impl Found {
    fn add(&mut self, header: SegmentHeader, number: u64) -> Result<(), OpenError> {
        let fits = header.number == number
            && *self.store_id.get_or_insert(header.store_id) == header.store_id
            && self
                .segments
                .last()
                .map_or(header.first.0 == 1, |before| header.first >= before.first);
        if !fits {
            return Err(damaged(
                segment::file_name(number),
                0,
                "the segment belongs elsewhere",
            ));
        }
        self.segments.push(Segment::closed(number, header.first));
        Ok(())
    }

    /// Refuses damage at the log's end, in the last segment or in what has no header behind it.
    fn refuse_damage(&self, ending: Option<&Ending>, known: Position) -> Result<(), OpenError> {
        let begun = self.headless.iter().find(|bytes| bytes.used() > 0);
        if let Some(ending) = ending {
            ending.refuse_damage(begun.is_some())?;
        }
        let Some(begun) = begun else { return Ok(()) };
        let expected = Position(ending.map_or(Position(0), Ending::last_sound).0 + 1);
        if known >= expected || begun.find_later(0, expected).is_some() {
            let what = "the segment's header is bad, but its frames were durable";
            return Err(damaged(segment::file_name(begun.number), 0, what));
        }
        Ok(())
    }

    /// Removes the files without a header; what one of them holds is copied aside.
    fn remove_headless(&self, storage: &dyn Storage) -> Result<Option<TornTail>, OpenError> {
        let mut torn = None;
        for bytes in &self.headless {
            if bytes.used() > 0 {
                torn = Some(copy_torn(storage, bytes, 0)?);
            }
            storage.remove(&segment::file_name(bytes.number))?;
        }
        Ok(torn)
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

/// Copies what a segment holds from an offset on to `log/torn/`.
pub(crate) fn copy_torn(
    storage: &dyn Storage,
    bytes: &SegmentBytes,
    offset: u64,
) -> Result<TornTail, OpenError> {
    let file = segment::file_name(bytes.number);
    let end = bytes.used().max(offset);
    let torn = bytes
        .bytes
        .slice(usize::try_from(offset).unwrap_or(0)..usize::try_from(end).unwrap_or(0));
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

/// A name in `log/torn/` that no earlier copy has: a segment's number may be torn more than once.
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

pub(crate) fn damaged(file: String, offset: u64, what: &str) -> OpenError {
    OpenError::Damaged {
        file,
        offset,
        what: what.to_owned(),
    }
}
