//! Export and import: the whole log in one portable file.
//!
//! ```text
//! "TKEXPORT" | format u32 = 1 | store id [16] | frames u64
//! each frame exactly as it is in the log, see the storage format
//! "TKEXPEND" | hash of the last frame [32]
//! ```
//! Frames keep their positions, stamps and hash chain. An import therefore restores every id, and
//! `verify` checks the copy like the original. A file without its end mark is incomplete, and the
//! import rejects it.

use std::io::{self, Read, Write};
use std::sync::Arc;

use turnkeep_journal::{
    AppendError, FileLog, Frame, Log, LogOptions, OpenError, Position, Storage, SyncPolicy,
    read_frame,
};

use crate::apply::Applier;
use crate::recovery::apply_frame;
use crate::state::State;
use crate::store::Store;
use crate::unfinished;

const MAGIC: &[u8; 8] = b"TKEXPORT";
const END: &[u8; 8] = b"TKEXPEND";
const FORMAT: u32 = 1;

/// Why an import failed. The import removes the files that it wrote.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The directory holds a store.
    #[error("the data directory is not empty: an import needs an empty one")]
    NotEmpty,
    /// The file is not a whole export.
    #[error("this is not a whole export: {0}")]
    Malformed(String),
    /// The file cannot be read or the log cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The log cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log cannot be written.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// The size of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// The number of frames.
    pub frames: u64,
    /// The size of the new log in bytes.
    pub bytes: u64,
}

/// Writes all frames that are durable now. The store stays open for writes meanwhile. Calls
/// `progress` after each frame with the number of frames done and the total.
pub fn export(
    store: &Store,
    out: &mut dyn Write,
    mut progress: impl FnMut(u64, u64),
) -> io::Result<()> {
    let last = store.log().last_durable();
    out.write_all(MAGIC)?;
    out.write_all(&FORMAT.to_le_bytes())?;
    out.write_all(&store.id())?;
    out.write_all(&last.0.to_le_bytes())?;
    let mut last_hash = [0; 32];
    for frame in store.log().frames_between(Position(1), last) {
        let frame = frame.map_err(io::Error::other)?;
        // An export with a damaged payload could not be imported, so it fails early.
        if !frame.blobs_are_sound() {
            let what = format!(
                "a payload in frame {} is damaged: run `turnkeep verify`",
                frame.position.0
            );
            return Err(io::Error::other(what));
        }
        out.write_all(frame.raw())?;
        last_hash = frame.hash;
        progress(frame.position.0, last.0);
    }
    out.write_all(END)?;
    out.write_all(&last_hash)
}

/// Reads an export into an empty directory. The caller must hold its lock. `progress` is as in
/// [`export`].
pub fn import(
    storage: &Arc<dyn Storage>,
    segment_bytes: u64,
    input: &mut dyn Read,
    progress: impl FnMut(u64, u64),
) -> Result<Imported, ImportError> {
    if !storage.list("log")?.is_empty() {
        return Err(ImportError::NotEmpty);
    }
    // Before the first frame: a crash must not leave a partial copy that opens.
    unfinished::mark(&**storage)?;
    let done = import_frames(storage, segment_bytes, input, progress);
    if done.is_err() {
        for name in storage.list("log")? {
            storage.remove(&format!("log/{name}"))?;
        }
    }
    done
}

fn import_frames(
    storage: &Arc<dyn Storage>,
    segment_bytes: u64,
    mut input: &mut dyn Read,
    mut progress: impl FnMut(u64, u64),
) -> Result<Imported, ImportError> {
    let ArchiveHead { store_id, frames } = read_head(&mut input)?;
    let options = LogOptions {
        segment_bytes,
        sync: SyncPolicy::Os,
        writer: 0,
        store_id_if_new: store_id,
        known_durable: None,
    };
    let (mut log, _) = FileLog::open(storage.clone(), options)?;
    // Each frame is also applied, so that an import which succeeds can be opened.
    let mut applier = Applier::new(Arc::new(State::new()));
    let mut last_hash = [0; 32];
    for number in 1..=frames {
        let frame = read_next_frame(&mut input, number, last_hash)?;
        apply_frame(&mut applier, &frame)
            .map_err(|error| ImportError::Malformed(error.to_string()))?;
        log.append_raw(&frame)?;
        last_hash = frame.hash;
        progress(number, frames);
    }
    read_end(&mut input, last_hash)?;
    log.sync()?;
    unfinished::clear(&**storage)?;
    Ok(Imported {
        frames,
        bytes: log.reader().bytes_used(),
    })
}

/// Reads a frame that continues the chain of hashes.
fn read_next_frame(
    input: &mut impl Read,
    number: u64,
    last_hash: [u8; 32],
) -> Result<Frame, ImportError> {
    let frame = read_frame(input).map_err(to_import_error)?;
    let Some(frame) = frame else {
        let what = format!("it ends before frame {number}");
        return Err(ImportError::Malformed(what));
    };
    if frame.position.0 != number || frame.prev_hash != last_hash {
        let what = format!("frame {number} does not follow the one before it");
        return Err(ImportError::Malformed(what));
    }
    Ok(frame)
}

struct ArchiveHead {
    store_id: [u8; 16],
    frames: u64,
}

fn read_head(input: &mut impl Read) -> Result<ArchiveHead, ImportError> {
    let mut head = [0; 36];
    input.read_exact(&mut head).map_err(to_import_error)?;
    if !head.starts_with(MAGIC) {
        return Err(ImportError::Malformed("it does not begin as one".into()));
    }
    let format = u32::from_le_bytes(std::array::from_fn(|i| head[8 + i]));
    if format != FORMAT {
        return Err(ImportError::Malformed(format!(
            "format {format} is not known to this version"
        )));
    }
    Ok(ArchiveHead {
        store_id: std::array::from_fn(|i| head[12 + i]),
        frames: u64::from_le_bytes(std::array::from_fn(|i| head[28 + i])),
    })
}

fn read_end(input: &mut impl Read, last_hash: [u8; 32]) -> Result<(), ImportError> {
    let mut end = Vec::new();
    // One byte more than the end mark has, so that trailing bytes are noticed.
    input.take(41).read_to_end(&mut end)?;
    if end == [&END[..], &last_hash].concat() {
        return Ok(());
    }
    Err(ImportError::Malformed(
        "its end mark is missing or wrong".into(),
    ))
}

fn to_import_error(error: io::Error) -> ImportError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => ImportError::Malformed("it is cut off".into()),
        io::ErrorKind::InvalidData => ImportError::Malformed(error.to_string()),
        _ => error.into(),
    }
}
