//! Group commit: the one thread that writes.
//!
//! It takes whatever waits, has the machine turn it into a batch, appends that as one frame with
//! one sync, and lets the machine answer. It never waits for a group to fill: while one group
//! syncs, the next gathers by itself.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::batch::{Batch, Stamp};
use crate::log::{AppendError, Appended, Log, SyncPolicy};

/// A group closes at this many bytes, if not at its number of commands.
const GROUP_BYTES_MAX: usize = 8 << 20;
/// How often the log is synced under the `Os` policy.
const OS_SYNC_EVERY: Duration = Duration::from_millis(100);

/// What the committer drives: it decides what is logged and applies what is durable.
pub trait Machine: Send + 'static {
    /// What is submitted.
    type Input: Send;
    /// Begins a group.
    fn begin(&mut self) -> Stamp;
    /// Adds an input to the batch, or answers it. Gives it back if it cannot be decided before this
    /// group is durable: it is then offered again in the next one, in order.
    fn admit(&mut self, input: Self::Input, batch: &mut Batch) -> Option<Self::Input>;
    /// The batch is durable.
    fn commit(&mut self, appended: &Appended, batch: &Batch);
    /// The batch is not in the log and never will be.
    fn abort(&mut self, error: &AppendError);
    /// The log took back an earlier promise: a later sync failed.
    fn poisoned(&mut self, error: &AppendError);
    /// Between two groups.
    fn idle(&mut self);
    /// After the last group.
    fn finish(&mut self);
}

/// Why an input was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitterError {
    /// Too many wait.
    Full,
    /// The committer is closed.
    Closed,
}

/// A handle on the committer thread.
pub struct Committer<I> {
    queue: RwLock<Option<SyncSender<I>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<I> Committer<I> {
    /// Queues an input without waiting.
    pub fn submit(&self, input: I) -> Result<(), CommitterError> {
        // The lock is only ever written to close: submitters share it.
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        let queue = queue.as_ref().ok_or(CommitterError::Closed)?;
        queue.try_send(input).map_err(|error| match error {
            TrySendError::Full(_) => CommitterError::Full,
            TrySendError::Disconnected(_) => CommitterError::Closed,
        })
    }

    /// Takes no more inputs, finishes what is queued and waits for it.
    pub fn close(&self) {
        drop(
            self.queue
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            drop(thread.join());
        }
    }
}

impl<I> Drop for Committer<I> {
    fn drop(&mut self) {
        self.close();
    }
}

/// How much the committer takes.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Inputs that may wait.
    pub queue: usize,
    /// Commands in one group.
    pub group: usize,
}

/// Starts the committer.
pub fn spawn_committer<L: Log + 'static, M: Machine>(
    log: L,
    machine: M,
    bounds: Bounds,
) -> std::io::Result<Committer<M::Input>> {
    let (queue, inputs) = sync_channel(bounds.queue);
    let thread = std::thread::Builder::new().name("turnkeep-writer".into());
    let thread = thread.spawn(move || Loop::new(log, machine, inputs, bounds.group).run())?;
    Ok(Committer {
        queue: RwLock::new(Some(queue)),
        thread: Mutex::new(Some(thread)),
    })
}

struct Loop<L: Log, M: Machine> {
    log: L,
    machine: M,
    inputs: Receiver<M::Input>,
    /// Inputs that wait for the group before them.
    deferred: VecDeque<M::Input>,
    batch: Batch,
    group_max: usize,
    synced: Instant,
}

impl<L: Log, M: Machine> Loop<L, M> {
    fn new(log: L, machine: M, inputs: Receiver<M::Input>, group_max: usize) -> Self {
        let (deferred, batch) = (VecDeque::new(), Batch::new());
        Self {
            log,
            machine,
            inputs,
            deferred,
            batch,
            group_max,
            synced: Instant::now(),
        }
    }

    fn run(mut self) {
        while let Some(first) = self.first() {
            self.batch.restart(self.machine.begin());
            self.fill(first);
            self.commit();
            // Blobs hold memory permits. An idle writer must not keep them until the next group.
            self.batch.clear();
            self.sync_if_due();
            self.machine.idle();
        }
        self.sync();
        self.machine.finish();
    }

    /// The next group's first input; none when the committer is closed and nothing is left.
    fn first(&mut self) -> Option<M::Input> {
        if let Some(deferred) = self.deferred.pop_front() {
            return Some(deferred);
        }
        if self.log.policy() == SyncPolicy::EveryFrame {
            return self.inputs.recv().ok();
        }
        loop {
            match self.inputs.recv_timeout(OS_SYNC_EVERY) {
                Ok(input) => return Some(input),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.sync(),
            }
        }
    }

    fn fill(&mut self, first: M::Input) {
        let mut waiting = std::mem::take(&mut self.deferred);
        let mut next = Some(first);
        while let Some(input) = next {
            self.deferred
                .extend(self.machine.admit(input, &mut self.batch));
            if self.batch.commands() >= self.group_max || self.batch.bytes() >= GROUP_BYTES_MAX {
                break;
            }
            // A crowd that waits for this group must not be read in without end.
            if self.deferred.len() >= self.group_max {
                break;
            }
            next = waiting.pop_front().or_else(|| self.inputs.try_recv().ok());
        }
        self.deferred.append(&mut waiting);
    }

    fn commit(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        match self.log.append(&self.batch) {
            Ok(appended) => self.machine.commit(&appended, &self.batch),
            Err(error) => self.machine.abort(&error),
        }
    }

    fn sync_if_due(&mut self) {
        if self.log.policy() == SyncPolicy::Os && self.synced.elapsed() >= OS_SYNC_EVERY {
            self.sync();
        }
    }

    fn sync(&mut self) {
        self.synced = Instant::now();
        if let Err(error) = self.log.sync() {
            self.machine.poisoned(&error);
        }
    }
}
