//! Runs long work on blocking threads, so that the runtime's own threads never wait for it.
//!
//! Work on large bytes has a limited number of slots. The server waits for all work at shutdown. Work
//! that panics gives its caller an `Internal` error.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::error::ApiError;

/// How many pieces of large work run at once: per core, at least and at most.
const LARGE_WORK_PER_CORE: usize = 2;
const LARGE_WORK_MIN: usize = 4;
const LARGE_WORK_MAX: usize = 32;

/// Runs long work on blocking threads. Clones share the slots.
#[derive(Clone)]
pub(crate) struct Workers {
    tasks: TaskTracker,
    large_slots: Arc<Semaphore>,
}

impl Workers {
    /// Runs work as tasks of `tasks`.
    pub(crate) fn new(tasks: TaskTracker) -> Self {
        Self {
            tasks,
            large_slots: Arc::new(Semaphore::new(large_work_slots())),
        }
    }

    /// Runs work that takes long.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.tasks
            .spawn_blocking(work)
            .await
            .map_err(ApiError::internal)?
    }

    /// Runs work on large bytes, of which only so much runs at once. More threads would not be
    /// faster, and each takes memory of its own that no budget counts.
    pub(crate) async fn run_large<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let slot = Arc::clone(&self.large_slots)
            .acquire_owned()
            .await
            .map_err(ApiError::internal)?;
        // The slot is free when the work ends, not when its caller stops waiting for it.
        let work = move || {
            let done = work();
            drop(slot);
            done
        };
        self.run_blocking(work).await
    }
}

/// Some work may wait for the disk while other work computes, so there are more slots than cores.
fn large_work_slots() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (LARGE_WORK_PER_CORE * cores).clamp(LARGE_WORK_MIN, LARGE_WORK_MAX)
}
