//! The store for asynchronous tasks: a task submits a command and awaits its outcome. Reads go to
//! the store directly.
//!
//! Permits bound the commands that wait for the writer. So the writer's queue never fills, and a
//! task that submits waits without blocking a thread. A permit is free again when its command is
//! answered.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use turnkeep_store::{Command, Outcome, Refusal, Store};

/// The outcome of a submitted command. It is ready when the command is durable or refused.
#[derive(Debug)]
pub struct Answer(oneshot::Receiver<Result<Outcome, Refusal>>);

impl Future for Answer {
    type Output = Result<Outcome, Refusal>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        let answer = std::pin::Pin::new(&mut self.0).poll(context);
        answer.map(|answer| answer.unwrap_or(Err(Refusal::Closed)))
    }
}

/// A permission to submit one command.
#[derive(Debug)]
pub struct SubmitPermit(OwnedSemaphorePermit);

/// A handle on the store for tasks; cheap to clone.
#[derive(Clone)]
pub struct StoreHandle {
    store: Store,
    permits: Arc<Semaphore>,
    queue_commands_max: usize,
    position: watch::Receiver<u64>,
}

impl StoreHandle {
    /// Wraps a store whose queue holds `queue_commands_max`. The handle uses the store's only commit
    /// hook, so a process makes one handle and clones it.
    pub fn new(store: Store, queue_commands_max: usize) -> Self {
        let (sender, position) = watch::channel(store.last_position());
        store.on_commit(move |last| {
            sender.send_replace(last);
        });
        let permits = Arc::new(Semaphore::new(queue_commands_max));
        Self {
            store,
            permits,
            queue_commands_max,
            position,
        }
    }

    /// The store, for reads: they never wait for the writer.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Watches the position of the newest event.
    pub fn position(&self) -> watch::Receiver<u64> {
        self.position.clone()
    }

    /// Commands that wait for the writer or are being written.
    pub fn queued(&self) -> usize {
        self.queue_commands_max
            .saturating_sub(self.permits.available_permits())
    }

    /// A permit, if one is free now.
    pub fn try_permit(&self) -> Option<SubmitPermit> {
        Arc::clone(&self.permits)
            .try_acquire_owned()
            .ok()
            .map(SubmitPermit)
    }

    /// Waits for a permit.
    pub async fn permit(&self) -> Result<SubmitPermit, Refusal> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.map(SubmitPermit).map_err(|_| Refusal::Closed)
    }

    /// Queues a command. The writer keeps the order of submission.
    pub fn submit_with(&self, permit: SubmitPermit, command: Command) -> Answer {
        let (sender, receiver) = oneshot::channel();
        let submitted = self.store.submit(command, move |answer| {
            drop(permit.0);
            // The receiver is gone if the connection ended. The command still took effect.
            drop(sender.send(answer));
        });
        // The store dropped the closure and with it the sender, so the answer is `Closed`.
        if let Err(error) = submitted {
            tracing::debug!(%error, "the store takes no command");
        }
        Answer(receiver)
    }

    /// Waits for a permit and queues a command.
    pub async fn submit(&self, command: Command) -> Result<Answer, Refusal> {
        Ok(self.submit_with(self.permit().await?, command))
    }

    /// Runs a command.
    pub async fn run(&self, command: Command) -> Result<Outcome, Refusal> {
        self.submit(command).await?.await
    }
}
