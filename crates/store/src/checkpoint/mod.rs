//! Index checkpoints: the state on disk, so that a start reads only the log's tail.
//!
//! They are derived and never needed for safety. The index is a row of files,
//! `index/0000000001.ckpt` and on, each with what the log added between two positions: new rows of
//! the append-only tables, and the heads and labels that changed. So writing one costs what was
//! added, not what there is; the last file is rewritten while it is small. A file counts only if
//! its checksums hold, it begins where the one before it ends, it is of this store, and the log has
//! the frame that it reflects, with the same hash. Otherwise it and all after it are removed and
//! the log is replayed instead.

mod columns;
mod file;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use turnkeep_journal::{LogReader, Position, Storage};
use turnkeep_types::{ContextId, TurnId};

use crate::acknowledged::{self, Acknowledged};
use crate::apply::{Applier, Touched};
use crate::command::Labels;
use crate::registry::Registry;
use crate::state::State;

pub(crate) use file::Header;

const DIR: &str = "index";

/// How long a checkpoint waits for the log to be synced as far as it reflects it.
const DURABLE_WITHIN: Duration = Duration::from_secs(10);

/// How far the tables reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
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

impl Mark {
    fn now(state: &State, position: Position, log_bytes: u64) -> Self {
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

/// What one file holds: everything between two marks. Rows below `to` never change, so it can be
/// written out while the writer goes on.
pub(crate) struct Delta {
    pub(crate) header: Header,
    pub(crate) state: Arc<State>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) heads: Vec<[u64; 2]>,
    pub(crate) lost_turns: Vec<[u64; 2]>,
    pub(crate) moved_blobs: Vec<[u64; 8]>,
    pub(crate) labels: Vec<(ContextId, Arc<Labels>)>,
}

/// Where the row of files stands: which file is being filled, and from where.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) number: u64,
    pub(crate) from: Mark,
    pub(crate) done: Mark,
}

impl Progress {
    fn start() -> Self {
        Self {
            number: 1,
            from: Mark::default(),
            done: Mark::default(),
        }
    }
}

/// What the checkpoints on disk amount to.
pub(crate) struct Loaded {
    pub(crate) state: State,
    pub(crate) touched: Touched,
    pub(crate) progress: Progress,
    /// The header of the last file; none if there is no checkpoint.
    pub(crate) last: Option<Header>,
    /// The header of the last file that is sound, though its format may be too old to be loaded.
    pub(crate) known: Option<Header>,
}

impl Loaded {
    pub(crate) fn nothing() -> Self {
        let (state, touched) = (State::new(), Touched::default());
        Self {
            state,
            touched,
            progress: Progress::start(),
            last: None,
            known: None,
        }
    }
}

/// Loads what counts of the row of files, as far as they can tell by themselves. Only reads.
pub(crate) fn load(storage: &dyn Storage) -> Loaded {
    load_below(storage, u64::MAX)
}

fn load_below(storage: &dyn Storage, end: u64) -> Loaded {
    let mut loaded = Loaded::nothing();
    for file in row(storage) {
        let follows = loaded.progress.done == file.header.from;
        loaded.known = Some(file.header.clone());
        if file.header.number >= end || !file.header.is_current() || !follows {
            continue;
        }
        let Some(touched) = file.restore(&loaded.state) else {
            // The tables may hold part of it: begin again without it.
            return load_below(storage, file.header.number);
        };
        let Header {
            number, from, to, ..
        } = file.header;
        loaded.touched = touched;
        loaded.progress = Progress {
            number,
            from,
            done: to,
        };
        loaded.last = Some(file.header);
    }
    loaded
}

/// The files of the index in order, as long as each is sound and follows the one before it.
fn row(storage: &dyn Storage) -> impl Iterator<Item = file::File> + '_ {
    let mut before: Option<Header> = None;
    (1..).map_while(move |number| {
        let file = file::open(storage, &file_name(number))?;
        let follows = match &before {
            Some(before) => {
                file.header.from == before.to && file.header.store_id == before.store_id
            }
            None => file.header.from == Mark::default(),
        };
        before = Some(file.header.clone());
        (follows && file.header.number == number).then_some(file)
    })
}

/// How far the log is known to have been durable, and which ids were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Known {
    pub(crate) position: u64,
    pub(crate) turns: u64,
    pub(crate) contexts: u64,
}

impl Known {
    /// What a checkpoint and the file of acknowledged writes say about the store with this id;
    /// without an id, about whatever store they are of.
    pub(crate) fn of(
        checkpoint: Option<&Header>,
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

/// How far the log of this store is known to have been durable, without loading the index.
pub(crate) fn known(storage: &dyn Storage, store_id: Option<[u8; 16]>) -> Known {
    let last = row(storage).last().map(|file| file.header);
    Known::of(
        last.as_ref(),
        acknowledged::read(storage).as_ref(),
        store_id,
    )
}

/// Removes what did not count: every file behind those that were loaded.
pub(crate) fn remove_rest(storage: &dyn Storage, loaded: &Loaded) {
    let kept = loaded.last.as_ref().map_or(0, |header| header.number);
    for name in storage.list(DIR).unwrap_or_default() {
        if format!("{DIR}/{name}") == acknowledged::NAME {
            continue;
        }
        let number = name
            .strip_suffix(".ckpt")
            .and_then(|stem| stem.parse::<u64>().ok());
        if number.is_none_or(|number| number > kept) {
            // What cannot be removed is judged again at the next start, by the same rules.
            drop(storage.remove(&format!("{DIR}/{name}")));
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
/// One that could not be written is as if it had not been tried: the next one covers the same and
/// more.
pub(crate) struct Checkpointer {
    store_id: [u8; 16],
    log: LogReader,
    every_bytes: u64,
    progress: Progress,
    /// The length of the log at which the next one is due.
    due_at: u64,
    in_flight: Option<InFlight>,
    worker: Option<Worker>,
}

/// A checkpoint that is being written.
struct InFlight {
    header: Header,
    touched: Touched,
}

struct Worker {
    deltas: SyncSender<Delta>,
    /// Whether the last one was written.
    written: Receiver<bool>,
    thread: JoinHandle<()>,
}

impl Checkpointer {
    pub(crate) fn start(
        storage: Arc<dyn Storage>,
        log: LogReader,
        (store_id, every_bytes): ([u8; 16], u64),
        progress: Progress,
    ) -> std::io::Result<Self> {
        let (deltas, queue) = sync_channel::<Delta>(1);
        let (done, written) = sync_channel(1);
        let reader = log.clone();
        let write_all = move || {
            for delta in queue {
                if done.send(write(&*storage, &reader, &delta)).is_err() {
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

    /// Writes a checkpoint if enough was logged since the last one.
    pub(crate) fn consider(&mut self, applier: &mut Applier) {
        let Some(worker) = &self.worker else { return };
        if self.in_flight.is_some() {
            let written = worker.written.try_recv().ok();
            self.settle(applier, written);
        }
        if self.in_flight.is_none() && self.log.bytes_used() >= self.due_at {
            self.send(applier);
        }
    }

    /// Writes a last checkpoint and waits until it is on disk.
    pub(crate) fn finish(&mut self, applier: &mut Applier) {
        self.wait(applier);
        if self.log.last() != Position(self.progress.done.position) {
            self.send(applier);
            self.wait(applier);
        }
        if let Some(Worker { deltas, thread, .. }) = self.worker.take() {
            drop(deltas);
            // A checkpoint that could not be written costs the next start some replay, no more.
            drop(thread.join());
        }
    }

    fn wait(&mut self, applier: &mut Applier) {
        if self.in_flight.is_some() {
            let written = self
                .worker
                .as_ref()
                .and_then(|worker| worker.written.recv().ok());
            self.settle(applier, Some(written.unwrap_or(false)));
        }
    }

    fn send(&mut self, applier: &mut Applier) {
        let Some(worker) = &self.worker else { return };
        let Some(delta) = self.delta(applier) else {
            return;
        };
        let header = delta.header.clone();
        if worker.deltas.try_send(delta).is_ok() {
            self.in_flight = Some(InFlight {
                header,
                touched: std::mem::take(&mut applier.touched),
            });
        }
    }

    /// Takes note of what came of the checkpoint in flight; none if nothing has come yet.
    fn settle(&mut self, applier: &mut Applier, written: Option<bool>) {
        let (Some(written), Some(InFlight { header, touched })) =
            (written, self.in_flight.take_if(|_| written.is_some()))
        else {
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
            applier.touched.add(touched);
        }
        let since = if written {
            header.to.log_bytes
        } else {
            self.log.bytes_used()
        };
        self.due_at = since.saturating_add(self.every_bytes);
    }

    fn delta(&self, applier: &Applier) -> Option<Delta> {
        let state = &applier.state;
        let position = self.log.last();
        let header = Header {
            format: file::FORMAT,
            store_id: self.store_id,
            number: self.progress.number,
            frame_hash: self.log.frame_hash(position)?,
            from: self.progress.from,
            to: Mark::now(state, position, self.log.bytes_used()),
            last_stamp: state.last_stamp.load(std::sync::atomic::Ordering::Relaxed),
        };
        let head = |id: &ContextId| [id.get(), state.contexts.word(id.get() - 1, 0).unwrap_or(0)];
        let lost = |id: &TurnId| Some([id.get(), state.turn(*id)?.depth.into()]);
        let moved = |&row: &u64| {
            let mut moved = [row; 8];
            moved[1..].copy_from_slice(&state.blobs.get(row)?);
            Some(moved)
        };
        Some(Delta {
            header,
            state: state.clone(),
            registry: state.registry.load_full(),
            heads: applier.touched.heads.iter().map(head).collect(),
            lost_turns: applier.touched.lost_turns.iter().filter_map(lost).collect(),
            moved_blobs: applier.touched.blobs.iter().filter_map(moved).collect(),
            labels: applier
                .touched
                .labels
                .iter()
                .map(|&id| (id, state.labels_of(id)))
                .collect(),
        })
    }
}

/// Writes one file, once the log is durable as far as the file reflects it; says whether it could.
fn write(storage: &dyn Storage, log: &LogReader, delta: &Delta) -> bool {
    log.wait_durable(Position(delta.header.to.position), DURABLE_WITHIN)
        && file::write(storage, &file_name(delta.header.number), delta).is_ok()
}
