//! Index checkpoints: the state on disk, so that a start reads only the log's tail.
//!
//! They are derived and never needed for safety. The index is a row of files, `index/0000000001.ckpt`
//! and on, each with what the log added between two positions: new rows of the append-only tables, and
//! the heads and labels that changed. So writing one costs what was added, not what there is; the last
//! file is rewritten while it is small. A file counts only if its checksums hold, it begins where the
//! one before it ends, it is of this store, and the log has the frame that it reflects, with the same
//! hash. Otherwise it and all after it are discarded and the log is replayed instead.

mod columns;
mod file;

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use turnkeep_journal::{LogReader, Position, Storage};
use turnkeep_types::ContextId;

use crate::apply::{Applier, Touched};
use crate::command::Labels;
use crate::registry::Registry;
use crate::state::State;

pub(crate) use file::Header;

const DIR: &str = "index";

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
        Self { number: 1, from: Mark::default(), done: Mark::default() }
    }
}

/// What the checkpoints on disk amount to.
pub(crate) struct Loaded {
    pub(crate) state: State,
    pub(crate) touched: Touched,
    pub(crate) progress: Progress,
    /// The header of the last file; none if there is no checkpoint.
    pub(crate) last: Option<Header>,
}

impl Loaded {
    fn nothing() -> Self {
        let (state, touched) = (State::new(), Touched::default());
        Self { state, touched, progress: Progress::start(), last: None }
    }
}

/// Loads what counts of the row of files, as far as they can tell by themselves.
pub(crate) fn load(storage: &dyn Storage) -> Loaded {
    let mut loaded = Loaded::nothing();
    for number in 1.. {
        let Some(file) = file::open(storage, &file_name(number)) else { break };
        let from = loaded.progress.done;
        let follows = file.header.number == number
            && file.header.from == from
            && loaded.last.as_ref().is_none_or(|last| last.store_id == file.header.store_id);
        let Some(touched) = follows.then(|| file.restore(&loaded.state)).flatten() else {
            // The tables may hold part of it: begin again without it.
            remove_from(storage, number);
            return if from == Mark::default() { Loaded::nothing() } else { load(storage) };
        };
        let to = file.header.to;
        loaded.touched = touched;
        loaded.progress = Progress { number, from, done: to };
        loaded.last = Some(file.header);
    }
    loaded
}

/// Discards every checkpoint.
pub(crate) fn discard(storage: &dyn Storage) -> Loaded {
    remove_from(storage, 1);
    Loaded::nothing()
}

fn remove_from(storage: &dyn Storage, first: u64) {
    for name in storage.list(DIR).unwrap_or_default() {
        let number = name.split('.').next().and_then(|stem| stem.parse::<u64>().ok());
        if number.is_none_or(|number| number >= first) {
            // What cannot be removed is judged again at the next start, by the same rules.
            drop(storage.remove(&format!("{DIR}/{name}")));
        }
    }
}

/// The bytes that the index takes on disk.
pub(crate) fn bytes_on_disk(storage: &dyn Storage) -> u64 {
    let names = storage.list(DIR).unwrap_or_default();
    names.iter().filter_map(|name| Some(storage.open(&format!("{DIR}/{name}")).ok()?.len())).sum()
}

fn file_name(number: u64) -> String {
    format!("{DIR}/{number:010}.ckpt")
}

/// Decides on the writer's thread when a checkpoint is due, and writes it on a thread of its own.
pub(crate) struct Checkpointer {
    pub(crate) store_id: [u8; 16],
    pub(crate) log: LogReader,
    pub(crate) every_bytes: u64,
    progress: Progress,
    deltas: Option<SyncSender<Delta>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(crate) fn start(
        storage: Arc<dyn Storage>,
        log: LogReader,
        (store_id, every_bytes): ([u8; 16], u64),
        progress: Progress,
    ) -> std::io::Result<Self> {
        let (deltas, queue) = sync_channel::<Delta>(1);
        let reader = log.clone();
        let write_all = move || queue.into_iter().for_each(|delta| write(&*storage, &reader, &delta));
        let thread = std::thread::Builder::new().name("turnkeep-checkpoint".into()).spawn(write_all)?;
        Ok(Self { store_id, log, every_bytes, progress, deltas: Some(deltas), thread: Some(thread) })
    }

    /// Writes a checkpoint if enough was logged since the last one.
    pub(crate) fn consider(&mut self, applier: &mut Applier) {
        if self.log.bytes_used().saturating_sub(self.progress.done.log_bytes) >= self.every_bytes {
            self.checkpoint(applier, |queue, delta| queue.try_send(delta).is_ok());
        }
    }

    /// Writes a last checkpoint and waits until it is on disk.
    pub(crate) fn finish(&mut self, applier: &mut Applier) {
        if self.log.last() != Position(self.progress.done.position) {
            self.checkpoint(applier, |queue, delta| queue.send(delta).is_ok());
        }
        self.deltas = None;
        if let Some(thread) = self.thread.take() {
            // A checkpoint that could not be written costs the next start some replay, no more.
            drop(thread.join());
        }
    }

    fn checkpoint(&mut self, applier: &mut Applier, send: impl Fn(&SyncSender<Delta>, Delta) -> bool) {
        let Some(queue) = &self.deltas else { return };
        let Some(delta) = self.delta(applier) else { return };
        let header = delta.header.clone();
        if !send(queue, delta) {
            return;
        }
        self.progress.done = header.to;
        if header.to.log_bytes.saturating_sub(header.from.log_bytes) >= self.every_bytes {
            self.progress = Progress { number: header.number + 1, from: header.to, done: header.to };
            applier.touched = Touched::default();
        }
    }

    fn delta(&self, applier: &Applier) -> Option<Delta> {
        let state = &applier.state;
        let position = self.log.last();
        let header = Header {
            store_id: self.store_id,
            number: self.progress.number,
            frame_hash: self.log.frame_hash(position)?,
            from: self.progress.from,
            to: Mark::now(state, position, self.log.bytes_used()),
            last_stamp: state.last_stamp.load(std::sync::atomic::Ordering::Relaxed),
        };
        let head = |id: &ContextId| [id.get(), state.contexts.word(id.get() - 1, 0).unwrap_or(0)];
        Some(Delta {
            header,
            state: state.clone(),
            registry: state.registry.load_full(),
            heads: applier.touched.heads.iter().map(head).collect(),
            labels: applier.touched.labels.iter().map(|&id| (id, state.labels_of(id))).collect(),
        })
    }
}

/// Writes one file, once the log is durable as far as the file reflects it.
fn write(storage: &dyn Storage, log: &LogReader, delta: &Delta) {
    while log.last_durable().0 < delta.header.to.position {
        if !log.wait_durable(Position(delta.header.to.position), Duration::from_secs(10)) {
            return;
        }
    }
    let name = file_name(delta.header.number);
    // The index is derived: a file that cannot be written is written by the next checkpoint, or replayed.
    drop(file::write(storage, &name, delta));
}
