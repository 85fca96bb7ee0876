//! Checkpoints: the state on disk, so that a start replays only the log's tail.
//!
//! They are derived from the log and never needed for safety. The index is a series of files,
//! `index/0000000001.ckpt` and on. Each holds the changes between two log positions: the new rows
//! of the append-only tables, and the rows that changed in place. Writing one costs the size of the
//! changes, not of the store.
//!
//! Worked example with `checkpoint_every_bytes` = 64 MiB: file 1 covers the log from 0 to 64 MiB.
//! At 70 MiB the store closes and writes file 2 for 64 to 70 MiB. File 2 is not full, so the next
//! checkpoint, at 134 MiB, replaces it with a file 2 for 64 to 134 MiB. Now it is full, and the
//! next one is file 3.
//!
//! A file counts only if its checksums hold, it begins where the file before it ends, it belongs to
//! this store, and the log has the frame that it reflects, with the same hash. Otherwise it and all
//! files after it are removed, and the log is replayed instead. A failed write is not retried: the
//! next checkpoint covers the same range and more.

mod columns;
mod file;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use turnkeep_journal::{LogReader, Position, Storage};
use turnkeep_types::{ContextId, TurnId};

use crate::acknowledged::{self, Acknowledged};
use crate::apply::{Applier, ChangedRows};
use crate::command::Labels;
use crate::registry::Registry;
use crate::state::State;

pub(crate) use file::CheckpointHeader;

const DIR: &str = "index";

/// How long a checkpoint waits until the log is synced up to the position that it reflects. Syncs
/// come every 100 ms at the latest, so a longer wait means a poisoned log or a stalled disk.
const DURABLE_WITHIN: Duration = Duration::from_secs(10);

/// A log position and the table lengths at that position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TableExtent {
    pub(crate) position: u64,
    pub(crate) log_bytes: u64,
    pub(crate) turns: u64,
    pub(crate) contexts: u64,
    pub(crate) blobs: u64,
    pub(crate) keys: u64,
    pub(crate) fs_roots: u64,
    pub(crate) events: u64,
    pub(crate) declared: u64,
    pub(crate) bundles: u64,
}

impl TableExtent {
    fn from_state(state: &State, position: Position, log_bytes: u64) -> Self {
        Self {
            position: position.0,
            log_bytes,
            turns: state.turns.len(),
            contexts: state.contexts.len(),
            blobs: state.blobs.len(),
            keys: state.keys.len(),
            fs_roots: state.fs_roots.len(),
            events: state.events.len(),
            declared: state.declared.len(),
            bundles: state.registry.load().bundles().len() as u64,
        }
    }
}

/// The content of one file: all changes between two extents. New rows below `to` do not change, so
/// the checkpoint thread reads them while the writer goes on. Rows that change in place are copied
/// into the delta, because the writer may change them again meanwhile.
pub(crate) struct Delta {
    pub(crate) header: CheckpointHeader,
    pub(crate) state: Arc<State>,
    pub(crate) registry: Arc<Registry>,
    /// Context and head.
    pub(crate) heads: Vec<[u64; 2]>,
    /// Turn and depth.
    pub(crate) lost_turns: Vec<[u64; 2]>,
    /// Row number, then the words of the row.
    pub(crate) moved_blobs: Vec<[u64; 8]>,
    pub(crate) labels: Vec<(ContextId, Arc<Labels>)>,
}

/// Which file is filled next, and how far the files reach.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    /// The number of the file that the next checkpoint writes.
    pub(crate) number: u64,
    /// Where that file begins.
    pub(crate) from: TableExtent,
    /// How far the files on disk reach. Beyond `from` if file `number` exists and is not full.
    pub(crate) done: TableExtent,
}

impl Progress {
    fn start() -> Self {
        Self {
            number: 1,
            from: TableExtent::default(),
            done: TableExtent::default(),
        }
    }
}

/// The state and the progress that the files on disk hold.
pub(crate) struct LoadedIndex {
    pub(crate) state: State,
    pub(crate) changed: ChangedRows,
    pub(crate) progress: Progress,
    /// The header of the last file that was loaded.
    pub(crate) last: Option<CheckpointHeader>,
    /// The header of the last sound file. Its format may be too old to load, but it still proves
    /// how far the log was durable.
    pub(crate) newest_sound: Option<CheckpointHeader>,
}

impl LoadedIndex {
    pub(crate) fn empty() -> Self {
        Self {
            state: State::new(),
            changed: ChangedRows::default(),
            progress: Progress::start(),
            last: None,
            newest_sound: None,
        }
    }
}

/// Loads the files that are sound and follow each other. Whether they belong to the log is for the
/// caller to check. Writes nothing.
pub(crate) fn load(storage: &dyn Storage) -> LoadedIndex {
    load_below(storage, u64::MAX)
}

/// Loads the files with numbers below `end`.
fn load_below(storage: &dyn Storage, end: u64) -> LoadedIndex {
    let mut loaded = LoadedIndex::empty();
    for file in sound_files(storage) {
        let follows = loaded.progress.done == file.header.from;
        loaded.newest_sound = Some(file.header.clone());
        // Not a `break`: the headers of later files still tell how far the log was durable.
        if file.header.number >= end || !file.header.is_current() || !follows {
            continue;
        }
        let Some(changed) = file.restore(&loaded.state) else {
            // The tables may hold part of the file, and rows cannot be removed. Start over with
            // empty tables and stop before this file.
            return load_below(storage, file.header.number);
        };
        let CheckpointHeader {
            number, from, to, ..
        } = file.header;
        // Only the last file can be written again, so only its changed rows matter.
        loaded.changed = changed;
        loaded.progress = Progress {
            number,
            from,
            done: to,
        };
        loaded.last = Some(file.header);
    }
    loaded
}

/// The files of the index in order, up to the first that is missing, not sound or does not follow
/// the one before it.
fn sound_files(storage: &dyn Storage) -> impl Iterator<Item = file::CheckpointFile> + '_ {
    let mut before: Option<CheckpointHeader> = None;
    (1..).map_while(move |number| {
        let file = file::open(storage, &file_name(number))?;
        let follows = match &before {
            Some(before) => {
                file.header.from == before.to && file.header.store_id == before.store_id
            }
            None => file.header.from == TableExtent::default(),
        };
        before = Some(file.header.clone());
        (follows && file.header.number == number).then_some(file)
    })
}

/// What the log must hold at least, according to the files beside it. Ids are assigned in order, so
/// a count of turns stands for all ids up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LogMinimum {
    /// The last frame known to have been durable.
    pub(crate) position: u64,
    /// How many turns were acknowledged.
    pub(crate) turns: u64,
    /// How many contexts were acknowledged.
    pub(crate) contexts: u64,
}

impl LogMinimum {
    /// Combines a checkpoint with the file of acknowledged writes, as far as they belong to the
    /// store `store_id`. Without an id both count.
    pub(crate) fn from_evidence(
        checkpoint: Option<&CheckpointHeader>,
        acknowledged: Option<&Acknowledged>,
        store_id: Option<[u8; 16]>,
    ) -> Self {
        let is_ours = |id: [u8; 16]| store_id.is_none_or(|ours| ours == id);
        let checkpoint = checkpoint
            .filter(|header| is_ours(header.store_id))
            .map(|header| header.to);
        let checkpoint = checkpoint.unwrap_or_default();
        let acknowledged = acknowledged
            .filter(|acked| is_ours(acked.store_id))
            .copied()
            .unwrap_or_default();
        Self {
            position: checkpoint.position.max(acknowledged.durable.0),
            turns: checkpoint.turns.max(acknowledged.turns),
            contexts: checkpoint.contexts.max(acknowledged.contexts),
        }
    }
}

/// Reads the minimum from the headers, without loading the tables.
pub(crate) fn read_log_minimum(storage: &dyn Storage, store_id: Option<[u8; 16]>) -> LogMinimum {
    let last = sound_files(storage).last().map(|file| file.header);
    LogMinimum::from_evidence(
        last.as_ref(),
        acknowledged::read(storage).as_ref(),
        store_id,
    )
}

/// Removes every index file after the ones that were loaded, and leftovers of interrupted writes.
pub(crate) fn remove_unloaded_files(storage: &dyn Storage, loaded: &LoadedIndex) {
    let kept = loaded.last.as_ref().map_or(0, |header| header.number);
    for name in storage.list(DIR).unwrap_or_default() {
        if format!("{DIR}/{name}") == acknowledged::NAME {
            continue;
        }
        let number = name
            .strip_suffix(".ckpt")
            .and_then(|stem| stem.parse::<u64>().ok());
        if number.is_none_or(|number| number > kept) {
            // A failure is harmless: the next start rejects the file by the same rules.
            match storage.remove(&format!("{DIR}/{name}")) {
                Ok(()) | Err(_) => {}
            }
        }
    }
}

/// The bytes that the index takes on disk.
pub(crate) fn bytes_on_disk(storage: &dyn Storage) -> u64 {
    let names = storage.list(DIR).unwrap_or_default();
    names
        .iter()
        .filter_map(|name| Some(storage.open(&format!("{DIR}/{name}")).ok()?.len()))
        .sum()
}

fn file_name(number: u64) -> String {
    format!("{DIR}/{number:010}.ckpt")
}

/// Decides on the writer's thread when a checkpoint is due, and writes it on a thread of its own.
pub(crate) struct Checkpointer {
    store_id: [u8; 16],
    log: LogReader,
    every_bytes: u64,
    progress: Progress,
    /// The length of the log at which the next checkpoint is due.
    due_at: u64,
    in_flight: Option<InFlight>,
    worker: Option<Worker>,
}

/// A checkpoint that the thread is writing.
struct InFlight {
    header: CheckpointHeader,
    /// The changed rows that it covers. They go back to the applier if the file must be rewritten.
    changed: ChangedRows,
}

struct Worker {
    deltas: SyncSender<Delta>,
    /// Whether a delta was written, one message per delta.
    written: Receiver<bool>,
    thread: JoinHandle<()>,
}

impl Checkpointer {
    pub(crate) fn start(
        storage: Arc<dyn Storage>,
        log: LogReader,
        store_id: [u8; 16],
        every_bytes: u64,
        progress: Progress,
    ) -> std::io::Result<Self> {
        // One place each is enough: the next delta is built only after the last one was written.
        let (deltas, queue) = sync_channel::<Delta>(1);
        let (done, written) = sync_channel(1);
        let reader = log.clone();
        let write_all = move || {
            for delta in queue {
                if done
                    .send(write_when_durable(&*storage, &reader, &delta))
                    .is_err()
                {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("turnkeep-checkpoint".into())
            .spawn(write_all)?;
        let worker = Some(Worker {
            deltas,
            written,
            thread,
        });
        let due_at = progress.done.log_bytes.saturating_add(every_bytes);
        Ok(Self {
            store_id,
            log,
            every_bytes,
            progress,
            due_at,
            in_flight: None,
            worker,
        })
    }

    /// Starts a checkpoint if enough was logged since the last one. Never waits.
    pub(crate) fn write_if_due(&mut self, applier: &mut Applier) {
        let Some(worker) = &self.worker else { return };
        if self.in_flight.is_some() {
            let written = worker.written.try_recv().ok();
            self.finish_in_flight(applier, written);
        }
        if self.in_flight.is_none() && self.log.bytes_used() >= self.due_at {
            self.start_write(applier);
        }
    }

    /// Writes a last checkpoint and waits until it is on disk.
    pub(crate) fn finish(&mut self, applier: &mut Applier) {
        // One write at a time: the last checkpoint begins where the current one ends.
        self.wait_for_write(applier);
        if self.log.last_position() != Position(self.progress.done.position) {
            self.start_write(applier);
            self.wait_for_write(applier);
        }
        if let Some(Worker { deltas, thread, .. }) = self.worker.take() {
            drop(deltas);
            // A panic of the thread costs the next start some replay, and nothing else.
            match thread.join() {
                Ok(()) | Err(_) => {}
            }
        }
    }

    fn wait_for_write(&mut self, applier: &mut Applier) {
        if self.in_flight.is_some() {
            let written = self
                .worker
                .as_ref()
                .and_then(|worker| worker.written.recv().ok());
            self.finish_in_flight(applier, Some(written.unwrap_or(false)));
        }
    }

    fn start_write(&mut self, applier: &mut Applier) {
        let Some(worker) = &self.worker else { return };
        let Some(delta) = self.build_delta(applier) else {
            return;
        };
        let header = delta.header.clone();
        if worker.deltas.try_send(delta).is_ok() {
            self.in_flight = Some(InFlight {
                header,
                changed: std::mem::take(&mut applier.changed),
            });
        }
    }

    /// Records the result of the checkpoint in flight. `None` means that the thread still writes.
    fn finish_in_flight(&mut self, applier: &mut Applier, written: Option<bool>) {
        let Some(written) = written else { return };
        let Some(InFlight { header, changed }) = self.in_flight.take() else {
            return;
        };
        let full = header.to.log_bytes.saturating_sub(header.from.log_bytes) >= self.every_bytes;
        if written {
            self.progress.done = header.to;
        }
        if written && full {
            self.progress = Progress {
                number: header.number + 1,
                from: header.to,
                done: header.to,
            };
        } else {
            // The next checkpoint writes this file again, so it must cover these rows again.
            applier.changed.merge(changed);
        }
        // After a failure the next attempt waits for as much log as after a success: a full disk
        // must not make every commit try again.
        let since = if written {
            header.to.log_bytes
        } else {
            self.log.bytes_used()
        };
        self.due_at = since.saturating_add(self.every_bytes);
    }

    fn build_delta(&self, applier: &Applier) -> Option<Delta> {
        let state = &applier.state;
        let position = self.log.last_position();
        let header = CheckpointHeader {
            format: file::FORMAT,
            store_id: self.store_id,
            number: self.progress.number,
            frame_hash: self.log.frame_hash(position)?,
            from: self.progress.from,
            to: TableExtent::from_state(state, position, self.log.bytes_used()),
            last_stamp: state.last_stamp.load(std::sync::atomic::Ordering::Relaxed),
        };
        let ChangedRows {
            heads,
            labels,
            blobs,
            lost_turns,
        } = &applier.changed;
        // The worker reads the new rows of the append-only tables later, up to `header.to`: they never
        // change. Rows that change in place are copied now, while the writer stands still.
        Some(Delta {
            header,
            state: state.clone(),
            registry: state.registry.load_full(),
            heads: heads.iter().map(|&id| head_row(state, id)).collect(),
            lost_turns: lost_turns
                .iter()
                .filter_map(|&id| lost_turn_row(state, id))
                .collect(),
            moved_blobs: blobs
                .iter()
                .filter_map(|&row| moved_blob_row(state, row))
                .collect(),
            labels: labels
                .iter()
                .map(|&id| (id, state.read_labels(id)))
                .collect(),
        })
    }
}

fn head_row(state: &State, context: ContextId) -> [u64; 2] {
    let head = state.contexts.read_word(context.get() - 1, 0);
    [context.get(), head.unwrap_or(0)]
}

fn lost_turn_row(state: &State, turn: TurnId) -> Option<[u64; 2]> {
    Some([turn.get(), state.turn(turn)?.depth.into()])
}

fn moved_blob_row(state: &State, row: u64) -> Option<[u64; 8]> {
    let mut moved = [row; 8];
    moved[1..].copy_from_slice(&state.blobs.get(row)?);
    Some(moved)
}

/// Writes one file and returns whether it succeeded. It waits for the log first: a checkpoint that
/// reflects a frame which a crash then removes would report a loss of frames never acknowledged.
fn write_when_durable(storage: &dyn Storage, log: &LogReader, delta: &Delta) -> bool {
    log.wait_durable(Position(delta.header.to.position), DURABLE_WITHIN)
        && file::write(storage, &file_name(delta.header.number), delta).is_ok()
}
