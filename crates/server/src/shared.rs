//! What every connection of both ports uses: the store, the worlds, the limits and the counters.
//!
//! `run` makes one [`Shared`] per server. Every task starts through [`Shared::spawn`], so that the
//! shutdown can wait for it and, after the grace period, abandon it.

use std::sync::Arc;

use tokio::sync::{Semaphore, SetOnce};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_ledger::ids::TokenId;
use turnkeep_wire::json;

use crate::auth::Gate;
use crate::broker::InProcessBroker;
use crate::config::ServerConfig;
use crate::connections::Connections;
use crate::convert::Policy;
use crate::error::ApiError;
use crate::guarded_store::GuardedStore;
use crate::http::once::RecentAnswers;
use crate::ledger::Worlds;
use crate::memory::MemoryBudget;
use crate::metrics::Metrics;
use crate::run::BoundAddrs;
use crate::runs::Runs;
use crate::tool_rate::ToolRate;
use crate::workers::Workers;
use crate::write_rate::{WriteAllowance, WriteRate};

/// What every connection uses.
pub(crate) struct Shared {
    pub(crate) store: GuardedStore,
    pub(crate) worlds: Arc<Worlds>,
    pub(crate) runs: Arc<Runs>,
    /// Counts the calls of each person's token.
    pub(crate) tool_rate: ToolRate,
    /// Counts what persons write.
    pub(crate) write_rate: Arc<WriteRate>,
    pub(crate) config: ServerConfig,
    /// The limits that a request must meet before it becomes a command.
    pub(crate) policy: Policy,
    /// Decides which HTTP requests are served.
    pub(crate) gate: Gate,
    pub(crate) metrics: Metrics,
    /// Counts open connections.
    pub(crate) connections: Connections,
    /// The memory of large requests and answers.
    pub(crate) memory: MemoryBudget,
    /// Threads for long work.
    pub(crate) workers: Workers,
    /// Permits for exports.
    pub(crate) exports: Arc<Semaphore>,
    /// The broker in this process, once there is one.
    pub(crate) broker: SetOnce<InProcessBroker>,
    /// The answers to requests that clients may repeat.
    pub(crate) recent_answers: RecentAnswers,
    /// The things of a demo, once it is filled; `None` inside if that failed.
    pub(crate) demo: SetOnce<Option<json::Demo>>,
    /// Every task that serves a connection or feeds a response. Shutdown waits for them.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the server stops: requests under way may finish, none may begin.
    pub(crate) stopping: CancellationToken,
    /// Cancelled at the end of the grace period: tasks end at once.
    pub(crate) abandoned: CancellationToken,
    pub(crate) addrs: BoundAddrs,
}

impl Shared {
    /// The limits under which a person's token writes.
    pub(crate) fn write_allowance(&self, token: TokenId) -> WriteAllowance {
        WriteAllowance {
            rate: Arc::clone(&self.write_rate),
            token,
        }
    }

    /// Starts a task. Shutdown waits for it during the grace period and then abandons it.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let abandoned = self.abandoned.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = task => {}
                () = abandoned.cancelled() => {}
            }
        });
    }

    /// Runs work that takes long on a worker thread.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.workers.run_blocking(work).await
    }

    /// Runs work on large bytes on a worker thread, when a slot is free.
    pub(crate) async fn work_on_large<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.workers.run_large(work).await
    }
}
