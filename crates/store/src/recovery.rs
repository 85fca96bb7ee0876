//! Opening: checkpoints as far as they count, then the log's tail through the same `apply` as live.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use turnkeep_journal::{
    Batch, FileLog, Frame, Log, LogOptions, LogReader, Position, Recovered, Stamp, Storage,
    SyncPolicy, inspect,
};
use turnkeep_types::Timestamp;

use crate::acknowledged;
use crate::apply::Applier;
use crate::checkpoint::{self, Known, Loaded, Progress};
use crate::record::{LOST_MAX, Record, RecordError, Tag};
use crate::state::BlobRow;
use crate::store::{Durability, OpenError, Options};
use crate::unfinished;

/// More ids than a power failure can cost: `--durability os` syncs every second. A larger number
/// comes from a damaged file.
const LOST_IDS_MAX: u64 = 1 << 30;

/// A log and the state that it amounts to.
pub(crate) struct Opened {
    pub(crate) log: FileLog,
    pub(crate) recovered: Recovered,
    pub(crate) applier: Applier,
    pub(crate) progress: Progress,
    pub(crate) went_back: Option<WentBack>,
}

/// Ids that were acknowledged and that the log does not hold: their frames were not durable when
/// the power failed, as `--durability os` allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WentBack {
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
    let loaded = checkpoint::load(&**storage);
    let store_id = inspect(storage.clone())?.store_id();
    let acknowledged = acknowledged::read(&**storage);
    let known = Known::of(loaded.known.as_ref(), acknowledged.as_ref(), store_id);
    let known_durable = Some(Position(known.position));
    let (mut log, recovered) = FileLog::open(storage.clone(), log_options(options, known_durable))?;
    let reader = log.reader();
    if known.position > reader.last().0 {
        return Err(OpenError::MissingFrames {
            last: reader.last().0,
            known: known.position,
        });
    }
    let loaded = vet(loaded, &reader, &recovered);
    checkpoint::remove_rest(&**storage, &loaded);
    let mut applier = Applier::new(Arc::new(loaded.state));
    applier.touched = loaded.touched;
    replay(
        &reader,
        &mut applier,
        Position(loaded.progress.done.position + 1),
    )?;
    let went_back = keep_lost_ids(&mut log, &mut applier, &known)?;
    Ok(Opened {
        log,
        recovered,
        applier,
        progress: loaded.progress,
        went_back,
    })
}

/// Keeps acknowledged ids that the log does not hold from being given again. The loss becomes a
/// record of the log, so every later replay comes to the same ids, whatever the index says then.
fn keep_lost_ids(
    log: &mut FileLog,
    applier: &mut Applier,
    known: &Known,
) -> Result<Option<WentBack>, OpenError> {
    let state = applier.state.clone();
    let marks = [state.turns.len(), state.contexts.len()];
    let lost = |held: u64, given: u64| (given > held).then(|| held + 1..=given);
    let (turns, contexts) = (lost(marks[0], known.turns), lost(marks[1], known.contexts));
    let (lost_turns, lost_contexts) = (
        known.turns.saturating_sub(marks[0]),
        known.contexts.saturating_sub(marks[1]),
    );
    if lost_turns == 0 && lost_contexts == 0 {
        return Ok(None);
    }
    if lost_turns.max(lost_contexts) > LOST_IDS_MAX {
        return Err(OpenError::ImpossibleLoss {
            turns: lost_turns,
            contexts: lost_contexts,
        });
    }
    let created_at = Timestamp(state.last_stamp.load(Relaxed));
    let mut batch = Batch::new();
    batch.restart(Stamp { created_at, marks });
    let records = lost_records(lost_turns, lost_contexts);
    for record in &records {
        let mut body = Vec::new();
        let tag = record.encode(&mut body);
        batch.push_command(tag.kind, tag.version, &body);
    }
    log.append(&batch)
        .and_then(|_| log.sync())
        .map_err(turnkeep_journal::OpenError::from)?;
    applier.begin_frame(created_at, std::iter::empty());
    for record in &records {
        // Nothing refuses it: ids that nobody uses are always free.
        drop(applier.apply(created_at, record));
    }
    Ok(Some(WentBack { turns, contexts }))
}

/// Records that keep so many ids as lost.
pub(crate) fn lost_records(mut turns: u64, mut contexts: u64) -> Vec<Record> {
    let mut records = Vec::new();
    while turns > 0 || contexts > 0 {
        let (some_turns, some_contexts) = (turns.min(LOST_MAX), contexts.min(LOST_MAX));
        records.push(Record::Lost {
            turns: some_turns,
            contexts: some_contexts,
            in_feed: true,
        });
        (turns, contexts) = (turns - some_turns, contexts - some_contexts);
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

/// Keeps the checkpoints only if they are of this log.
fn vet(loaded: Loaded, log: &LogReader, recovered: &Recovered) -> Loaded {
    let Some(header) = &loaded.last else {
        return loaded;
    };
    let reflected = Position(header.to.position);
    let ours = header.store_id == recovered.store_id
        && log.frame_hash(reflected) == Some(header.frame_hash);
    if ours { loaded } else { Loaded::nothing() }
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
        return Err(OpenError::Diverged {
            position: frame.position.0,
        });
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
        Record::decode(Tag { kind, version }, body, &in_frame).map_err(|error| match error {
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
    use crate::acknowledged::{Acknowledged, Keeper};
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
    fn ids_that_never_became_durable_are_not_given_again() {
        let disk = MemoryStorage::new();
        let store = open_store(&disk);
        assert_eq!(create(&store), 1);
        store.close();
        // Under `--durability os` frames were answered that the power failure took.
        let log_end = store.log().last();
        let acked = Acknowledged {
            store_id: store.id(),
            durable: log_end,
            position: Position(log_end.0 + 5),
            turns: 4,
            contexts: 3,
        };
        drop(store);
        Keeper::start(&disk, &acked).unwrap();
        let store = open_store(&disk);
        assert_eq!(
            store.went_back(),
            Some(&WentBack {
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
        // The log itself says so now: without the index, every id is the same.
        let mut files = disk.files();
        files.retain(|name, _| name.starts_with("log/"));
        let store = open_store(&MemoryStorage::with_files(files));
        assert_eq!((store.went_back(), create(&store)), (None, 5));
    }
}
