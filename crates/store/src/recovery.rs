//! Opening a store: load the checkpoints, then replay the log's tail through the same `apply` as
//! live writes.
//!
//! Worked example: the checkpoints cover frames 1 to 900, `index/acknowledged` says that frame 950
//! was durable and turn 4 002 was acknowledged, and a crash has torn the log's end.
//!
//! 1. The log opens. A torn frame after 950 is cut: its sync never returned. A log that ends before
//!    950 is an error (`MissingFrames`), because acknowledged frames are gone.
//! 2. The checkpoints count only if the log's frame 900 has the hash that they recorded. Otherwise
//!    they belong to another history, and replay starts from frame 1.
//! 3. Frames 901 to the end are applied. A frame whose marks do not match the state is an error.
//! 4. Under `--durability os` the log may now hold fewer ids than were acknowledged, say turns up
//!    to 4 000. The ids 4 001 and 4 002 are logged as lost, so that no client sees them reused.
//!
//! Only steps 1 and 4 write to the log. An error never removes bytes that were durable.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use turnkeep_journal::{
    Batch, FileLog, Frame, FrameCommand, Log, LogOptions, LogReader, Position, Recovered, Stamp,
    Storage, SyncPolicy, inspect,
};
use turnkeep_types::Timestamp;

use crate::acknowledged;
use crate::apply::Applier;
use crate::checkpoint::{self, LoadedIndex, LogMinimum, Progress};
use crate::record::{LOST_MAX, Record, RecordError, RecordTag};
use crate::state::BlobRow;
use crate::store::{Durability, OpenError, Options};
use crate::unfinished;

/// More ids than a power failure can cost: `--durability os` syncs every 100 ms. A larger number
/// comes from a damaged file.
const LOST_IDS_MAX: u64 = 1 << 30;

/// An open log and the state that its frames produce.
pub(crate) struct Opened {
    pub(crate) log: FileLog,
    pub(crate) recovered: Recovered,
    pub(crate) applier: Applier,
    pub(crate) progress: Progress,
    pub(crate) lost_ids: Option<LostIds>,
}

/// Acknowledged ids that the log does not hold. `--durability os` allows this: their frames were
/// not durable when the power failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostIds {
    /// The turns, if there are any.
    pub turns: Option<RangeInclusive<u64>>,
    /// The contexts, if there are any.
    pub contexts: Option<RangeInclusive<u64>>,
}

/// Opens the log and rebuilds the state.
pub(crate) fn open(storage: &Arc<dyn Storage>, options: &Options) -> Result<Opened, OpenError> {
    if unfinished::is_marked(&**storage) {
        return Err(OpenError::Unfinished);
    }
    // Before the log opens: its recovery needs to know which frames were durable.
    let loaded = checkpoint::load(&**storage);
    let store_id = inspect(storage.clone())?.store_id();
    let acknowledged = acknowledged::read(&**storage);
    let minimum = LogMinimum::from_evidence(
        loaded.newest_sound.as_ref(),
        acknowledged.as_ref(),
        store_id,
    );
    // The log cuts a torn tail only behind this position. Bytes before it that do not match their
    // checksum are damage, and damage is never cut away.
    let known_durable = Some(Position(minimum.position));
    let (mut log, recovered) = FileLog::open(storage.clone(), log_options(options, known_durable))?;
    let reader = log.reader();
    if minimum.position > reader.last_position().0 {
        return Err(OpenError::MissingFrames {
            last: reader.last_position().0,
            known: minimum.position,
        });
    }
    // Only the open log can tell whether it is the one that the checkpoints were made from.
    let loaded = discard_if_foreign(loaded, &reader, &recovered);
    checkpoint::remove_unloaded_files(&**storage, &loaded);
    let mut applier = Applier::new(Arc::new(loaded.state));
    applier.changed = loaded.changed;
    replay(
        &reader,
        &mut applier,
        Position(loaded.progress.done.position + 1),
    )?;
    let lost_ids = log_lost_ids(&mut log, &mut applier, &minimum)?;
    Ok(Opened {
        log,
        recovered,
        applier,
        progress: loaded.progress,
        lost_ids,
    })
}

/// Logs acknowledged ids that the log does not hold as lost, so that they are not assigned again.
/// The loss becomes part of the log: every later replay assigns the same ids, even without the
/// index files that revealed the loss.
fn log_lost_ids(
    log: &mut FileLog,
    applier: &mut Applier,
    minimum: &LogMinimum,
) -> Result<Option<LostIds>, OpenError> {
    let state = applier.state.clone();
    let (turns, contexts) = (state.turns.len(), state.contexts.len());
    let lost_turns = minimum.turns.saturating_sub(turns);
    let lost_contexts = minimum.contexts.saturating_sub(contexts);
    if lost_turns == 0 && lost_contexts == 0 {
        return Ok(None);
    }
    if lost_turns.max(lost_contexts) > LOST_IDS_MAX {
        return Err(OpenError::ImpossibleLoss {
            turns: lost_turns,
            contexts: lost_contexts,
        });
    }
    // Opening reads no clock. The time of the last frame keeps times ascending.
    let created_at = Timestamp(state.last_stamp.load(Relaxed));
    let stamp = Stamp {
        created_at,
        marks: [turns, contexts],
    };
    let records = build_lost_records(lost_turns, lost_contexts);
    append_records(log, stamp, &records)?;
    // Like a frame of the log, so that the state is the one that the next replay gives.
    applier.begin_frame(created_at, std::iter::empty());
    for record in &records {
        applier.replay(created_at, record);
    }
    let range = |held: u64, lost: u64| (lost > 0).then(|| held + 1..=held + lost);
    Ok(Some(LostIds {
        turns: range(turns, lost_turns),
        contexts: range(contexts, lost_contexts),
    }))
}

/// Appends records as one frame and syncs it.
fn append_records(log: &mut FileLog, stamp: Stamp, records: &[Record]) -> Result<(), OpenError> {
    let mut batch = Batch::new();
    batch.restart(stamp);
    for record in records {
        let mut body = Vec::new();
        let tag = record.encode(&mut body);
        batch.push_command(tag.kind, tag.version, &body);
    }
    // Also under `--durability os`: the loss must be durable before a client gets the next id.
    log.append(&batch)
        .and_then(|_| log.sync())
        .map_err(turnkeep_journal::OpenError::from)?;
    Ok(())
}

/// Builds the records that mark this many ids as lost, each within the limit of one record.
pub(crate) fn build_lost_records(mut turns: u64, mut contexts: u64) -> Vec<Record> {
    let mut records = Vec::new();
    while turns > 0 || contexts > 0 {
        let turns_now = turns.min(LOST_MAX);
        let contexts_now = contexts.min(LOST_MAX);
        records.push(Record::Lost {
            turns: turns_now,
            contexts: contexts_now,
            in_feed: true,
        });
        turns -= turns_now;
        contexts -= contexts_now;
    }
    records
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

/// Discards the checkpoints unless they were made from this log. A restored or exchanged log has
/// another frame at the position that they reflect.
fn discard_if_foreign(loaded: LoadedIndex, log: &LogReader, recovered: &Recovered) -> LoadedIndex {
    let Some(header) = &loaded.last else {
        return loaded;
    };
    let reflected = Position(header.to.position);
    let ours = header.store_id == recovered.store_id
        && log.frame_hash(reflected) == Some(header.frame_hash);
    if ours { loaded } else { LoadedIndex::empty() }
}

fn replay(log: &LogReader, applier: &mut Applier, from: Position) -> Result<(), OpenError> {
    for frame in log.frames_from(from) {
        apply_frame(applier, &frame?)?;
    }
    Ok(())
}

/// Applies one frame of the log to the state.
pub(crate) fn apply_frame(applier: &mut Applier, frame: &Frame) -> Result<(), OpenError> {
    let created_at = frame.stamp.created_at;
    // The marks are the table lengths that the writer saw. Going on after a mismatch would assign
    // other ids than the ones that clients were given.
    if frame.stamp.marks != [applier.state.turns.len(), applier.state.contexts.len()] {
        return Err(OpenError::Diverged {
            position: frame.position.0,
        });
    }
    applier.begin_frame(created_at, frame.blobs.iter().map(blob_row));
    for record in decode_records(frame) {
        applier.replay(created_at, &record?);
    }
    Ok(())
}

/// Decodes the commands of a frame.
pub(crate) fn decode_records(
    frame: &Frame,
) -> impl Iterator<Item = Result<Record, OpenError>> + '_ {
    let position = frame.position.0;
    let in_frame = |at: u32| frame.blobs.get(at as usize).map(|blob| blob.hash);
    frame.commands().map(move |command| {
        let FrameCommand {
            kind,
            version,
            body,
        } = command;
        Record::decode(RecordTag { kind, version }, body, &in_frame).map_err(|error| match error {
            RecordError::UnknownKind => OpenError::UnknownCommand {
                kind,
                version,
                position,
            },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acknowledged::{Acknowledged, AcknowledgedFile};
    use crate::{Command, CreateContext, Outcome, Store};
    use turnkeep_journal::MemoryStorage;
    use turnkeep_types::ManualClock;

    fn open_store(disk: &MemoryStorage) -> Store {
        let clock = Arc::new(ManualClock::new(Timestamp(7)));
        Store::open(Arc::new(disk.clone()), &Options::default(), clock).unwrap()
    }

    fn create(store: &Store) -> u64 {
        let Ok(Outcome::Created(created)) =
            store.run(Command::CreateContext(CreateContext::default()))
        else {
            panic!("a context")
        };
        created.context.get()
    }

    #[test]
    fn ids_that_never_became_durable_are_not_assigned_again() {
        let disk = MemoryStorage::new();
        let store = open_store(&disk);
        assert_eq!(create(&store), 1);
        store.close();
        // Under `--durability os`, a power failure removed frames that were acknowledged.
        let log_end = store.log().last_position();
        let acked = Acknowledged {
            store_id: store.id(),
            durable: log_end,
            position: Position(log_end.0 + 5),
            turns: 4,
            contexts: 3,
        };
        drop(store);
        AcknowledgedFile::open(&disk, &acked).unwrap();
        let store = open_store(&disk);
        assert_eq!(
            store.lost_ids(),
            Some(&LostIds {
                turns: Some(1..=4),
                contexts: Some(2..=3)
            })
        );
        assert_eq!(create(&store), 4);
        assert_eq!(
            (store.stats().lost_turns, store.stats().lost_contexts),
            (4, 2)
        );
        store.close();
        // The log itself records the loss now: without the index, every id is the same.
        let mut files = disk.files();
        files.retain(|name, _| name.starts_with("log/"));
        let store = open_store(&MemoryStorage::with_files(files));
        assert_eq!((store.lost_ids(), create(&store)), (None, 5));
    }
}
