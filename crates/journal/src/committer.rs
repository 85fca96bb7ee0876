//! Group commit: the only thread that writes to the log.
//!
//! The loop takes all waiting inputs, lets the state machine turn them into a batch, appends the
//! batch as one frame with one sync, and lets the state machine reply. It never waits for a group
//! to fill up. Worked example: one input arrives at an idle log, so its group has one command. Its
//! sync takes 2 ms. Meanwhile 40 clients queue inputs; the next group has 40 commands and again one
//! sync. So the load itself makes groups larger, and an idle log adds no delay.
//!
//! An input that the state machine cannot decide before the group is durable is deferred: it comes
//! first in the next group, in its original order. A failed append aborts the whole group.
//!
//! The order is append, sync, apply, reply. A crash before the sync loses only inputs without a
//! reply. A crash after it loses replies but no input: opening applies the frame again.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::batch::{Batch, Stamp};
use crate::log::{AppendError, Appended, Log, SyncPolicy};

/// A group closes at this many bytes, so that one sync never takes long. A disk that writes 100 MB/s
/// needs 80 ms for it.
const GROUP_BYTES_MAX: usize = 8 << 20;
/// How often the loop syncs the log under the `Os` policy. A power
/// failure costs the frames since the last sync.
const OS_SYNC_EVERY: Duration = Duration::from_millis(100);

/// Decides which inputs are logged, and applies the ones that are durable.
pub trait StateMachine: Send + 'static {
    /// A submitted request.
    type Input: Send;
    /// Begins a group and returns the stamp of its frame.
    fn begin_group(&mut self) -> Stamp;
    /// Adds an input to the batch, or replies to it. Returns the input if it cannot be decided
    /// before this group is durable; the committer then passes it to the next group, in order.
    fn admit(&mut self, input: Self::Input, batch: &mut Batch) -> Option<Self::Input>;
    /// Applies a batch that is durable.
    fn commit_group(&mut self, appended: &Appended, batch: &Batch);
    /// Rejects a batch that is not in the log and never will be.
    fn abort_group(&mut self, error: &AppendError);
    /// Notes that a sync failed after its group was committed, under the `Os` policy.
    fn note_failed_sync(&mut self, error: &AppendError);
    /// Runs between two groups, whether or not inputs wait.
    fn run_between_groups(&mut self);
    /// Runs after the last group.
    fn finish(&mut self);
}

/// Why an input was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitterError {
    /// Too many inputs wait.
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
        // Only `close` takes the write lock, so submitters never wait for each other here.
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        let queue = queue.as_ref().ok_or(CommitterError::Closed)?;
        queue.try_send(input).map_err(|error| match error {
            TrySendError::Full(_) => CommitterError::Full,
            TrySendError::Disconnected(_) => CommitterError::Closed,
        })
    }

    /// Rejects further inputs, finishes the queued ones and waits for the thread to end.
    pub fn close(&self) {
        // Without a sender the loop ends after the inputs that are in the queue.
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
            // A panic of the thread has been printed. Waiters learn of it by their dropped replies.
            match thread.join() {
                Ok(()) | Err(_) => {}
            }
        }
    }
}

impl<I> Drop for Committer<I> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Limits of the queue and of a group.
#[derive(Debug, Clone, Copy)]
pub struct CommitterLimits {
    /// The most inputs that may wait.
    pub queue_inputs_max: usize,
    /// The most commands in one group.
    pub group_commands_max: usize,
}

/// Starts the committer.
pub fn spawn_committer<L: Log + 'static, M: StateMachine>(
    log: L,
    machine: M,
    limits: CommitterLimits,
) -> std::io::Result<Committer<M::Input>> {
    let (queue, inputs) = sync_channel(limits.queue_inputs_max);
    let thread = std::thread::Builder::new()
        .name("turnkeep-writer".into())
        .spawn(move || CommitLoop::new(log, machine, inputs, limits.group_commands_max).run())?;
    Ok(Committer {
        queue: RwLock::new(Some(queue)),
        thread: Mutex::new(Some(thread)),
    })
}

struct CommitLoop<L: Log, M: StateMachine> {
    log: L,
    machine: M,
    inputs: Receiver<M::Input>,
    /// Inputs that the state machine deferred to the next group.
    deferred: VecDeque<M::Input>,
    batch: Batch,
    group_max: usize,
    synced: Instant,
}

impl<L: Log, M: StateMachine> CommitLoop<L, M> {
    fn new(log: L, machine: M, inputs: Receiver<M::Input>, group_max: usize) -> Self {
        Self {
            log,
            machine,
            inputs,
            deferred: VecDeque::new(),
            batch: Batch::new(),
            group_max,
            synced: Instant::now(),
        }
    }

    fn run(mut self) {
        while let Some(first) = self.wait_for_input() {
            self.batch.restart(self.machine.begin_group());
            self.fill_batch(first);
            self.commit_batch();
            // Blobs hold memory permits. An idle writer must not keep them until the next group.
            self.batch.clear();
            self.sync_if_due();
            self.machine.run_between_groups();
        }
        // Under the `Os` policy, too, a clean shutdown loses nothing.
        self.sync();
        self.machine.finish();
    }

    /// Waits for the first input of the next group. Returns `None` when the committer is closed and
    /// the queue is empty.
    fn wait_for_input(&mut self) -> Option<M::Input> {
        if let Some(deferred) = self.deferred.pop_front() {
            return Some(deferred);
        }
        if self.log.sync_policy() == SyncPolicy::EveryFrame {
            return self.inputs.recv().ok();
        }
        // Under the `Os` policy an idle log still owes a sync of its last frames.
        loop {
            match self.inputs.recv_timeout(OS_SYNC_EVERY) {
                Ok(input) => return Some(input),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.sync(),
            }
        }
    }

    fn fill_batch(&mut self, first: M::Input) {
        // Deferred inputs go before newer ones, or a client's commands would change places.
        let mut waiting = std::mem::take(&mut self.deferred);
        let mut next = Some(first);
        while let Some(input) = next {
            self.deferred
                .extend(self.machine.admit(input, &mut self.batch));
            if self.batch.command_count() >= self.group_max
                || self.batch.frame_bytes() >= GROUP_BYTES_MAX
            {
                break;
            }
            // Deferred inputs live outside the bounded queue, so their number needs its own limit.
            if self.deferred.len() >= self.group_max {
                break;
            }
            next = waiting.pop_front().or_else(|| self.inputs.try_recv().ok());
        }
        // If the group was full before the old deferred inputs were through, they stay behind the
        // ones that were deferred again, which came first.
        self.deferred.append(&mut waiting);
    }

    fn commit_batch(&mut self) {
        // All inputs were refused or were duplicates: they have their answers, and a frame without
        // a command would be a sync for nothing.
        if self.batch.is_empty() {
            return;
        }
        match self.log.append(&self.batch) {
            Ok(appended) => self.machine.commit_group(&appended, &self.batch),
            Err(error) => self.machine.abort_group(&error),
        }
    }

    fn sync_if_due(&mut self) {
        if self.log.sync_policy() == SyncPolicy::Os && self.synced.elapsed() >= OS_SYNC_EVERY {
            self.sync();
        }
    }

    fn sync(&mut self) {
        // Before the result is known: after a failure the next attempt waits just as long.
        self.synced = Instant::now();
        if let Err(error) = self.log.sync() {
            self.machine.note_failed_sync(&error);
        }
    }
}
