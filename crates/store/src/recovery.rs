//! Opening: checkpoints as far as they count, then the log's tail through the same `apply` as live.

use std::sync::Arc;

use turnkeep_journal::{
    FileLog, Frame, LogOptions, LogReader, Position, Recovered, Storage, SyncPolicy, inspect,
};

use crate::apply::Applier;
use crate::checkpoint::{self, Header, Loaded, Progress};
use crate::record::{Record, RecordError};
use crate::state::BlobRow;
use crate::store::{Durability, OpenError, Options};
use crate::unfinished;

/// A log and the state that it amounts to.
pub(crate) struct Opened {
    pub(crate) log: FileLog,
    pub(crate) recovered: Recovered,
    pub(crate) applier: Applier,
    pub(crate) progress: Progress,
}

/// Opens the log and rebuilds the state.
pub(crate) fn open(storage: &Arc<dyn Storage>, options: &Options) -> Result<Opened, OpenError> {
    if unfinished::is_marked(&**storage) {
        return Err(OpenError::Unfinished);
    }
    let loaded = checkpoint::load(&**storage);
    let store_id = inspect(storage.clone())?.store_id();
    let ours = |header: &&Header| store_id.is_none_or(|id| id == header.store_id);
    let known_durable = loaded.last.as_ref().filter(ours).map(|header| Position(header.to.position));
    let (log, recovered) = FileLog::open(storage.clone(), log_options(options, known_durable))?;
    let reader = log.reader();
    let loaded = vet(loaded, &reader, &recovered)?;
    checkpoint::remove_rest(&**storage, &loaded);
    let mut applier = Applier::new(Arc::new(loaded.state));
    applier.touched = loaded.touched;
    replay(&reader, &mut applier, Position(loaded.progress.done.position + 1))?;
    Ok(Opened { log, recovered, applier, progress: loaded.progress })
}

fn log_options(options: &Options, known_durable: Option<Position>) -> LogOptions {
    let (store_id, writer) = options.random.split_at(16);
    LogOptions {
        segment_bytes: options.segment_bytes,
        sync: match options.durability {
            Durability::Fsync => SyncPolicy::EveryFrame,
            Durability::Os => SyncPolicy::Os,
        },
        writer: u128::from_le_bytes(writer.try_into().expect("half of 32 bytes")),
        store_id_if_new: store_id.try_into().expect("half of 32 bytes"),
        known_durable,
    }
}

/// Keeps the checkpoints only if they are of this log.
fn vet(loaded: Loaded, log: &LogReader, recovered: &Recovered) -> Result<Loaded, OpenError> {
    let Some(header) = &loaded.last else { return Ok(loaded) };
    let known = Position(header.to.position);
    // A log without a frame has no id to compare: the index says that it had some.
    let of_this_log = header.store_id == recovered.store_id || log.last() == Position(0);
    if of_this_log && known > log.last() {
        return Err(OpenError::MissingFrames { last: log.last().0, known: known.0 });
    }
    let ours = header.store_id == recovered.store_id && log.frame_hash(known) == Some(header.frame_hash);
    Ok(if ours { loaded } else { Loaded::nothing() })
}

fn replay(log: &LogReader, applier: &mut Applier, from: Position) -> Result<(), OpenError> {
    for frame in log.frames(from, log.last()) {
        apply_frame(applier, &frame?)?;
    }
    Ok(())
}

/// Applies one frame.
pub(crate) fn apply_frame(applier: &mut Applier, frame: &Frame) -> Result<(), OpenError> {
    let created_at = frame.stamp.created_at;
    if frame.stamp.marks != [applier.state.turns.len(), applier.state.contexts.len()] {
        return Err(OpenError::Diverged { position: frame.position.0 });
    }
    applier.begin_frame(created_at, frame.blobs.iter().map(blob_row));
    for record in records(frame) {
        // A refusal was answered when it was live, and leaves no state now either.
        drop(applier.apply(created_at, &record?));
    }
    Ok(())
}

/// A frame's commands.
pub(crate) fn records(frame: &Frame) -> impl Iterator<Item = Result<Record, OpenError>> + '_ {
    let position = frame.position.0;
    let in_frame = |at: u32| frame.blobs.get(at as usize).map(|blob| blob.hash);
    frame.commands().map(move |(kind, version, body)| {
        Record::decode((kind, version), body, &in_frame).map_err(|error| match error {
            RecordError::UnknownKind => OpenError::UnknownCommand { kind, version, position },
            RecordError::Malformed => OpenError::MalformedCommand { position },
        })
    })
}

pub(crate) fn blob_row(blob: &turnkeep_journal::BlobEntry) -> BlobRow {
    BlobRow {
        hash: blob.hash,
        locator: blob.locator,
        raw_len: blob.raw_len,
        crc: blob.crc,
        stored_len: blob.stored_len,
        form: blob.form,
    }
}
