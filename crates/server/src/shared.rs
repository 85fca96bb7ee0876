//! What every connection of both surfaces sees: the store, the rules and the counters.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_ledger::ids::TokenId;

use crate::auth::Gate;
use crate::broker::Terminals;
use crate::config::ServerConfig;
use crate::connections::Connections;
use crate::convert::Policy;
use crate::error::ApiError;
use crate::handle::StoreHandle;
use crate::ledger::Worlds;
use crate::memory::MemoryBudget;
use crate::metrics::Metrics;
use crate::tool_rate::ToolRate;
use crate::write_rate::{WriteAllowance, WriteRate};

/// What every connection sees. Made once, by the composition root.
pub(crate) struct Shared {
    /// The store.
    pub(crate) store: StoreHandle,
    /// The worlds.
    pub(crate) worlds: Arc<Worlds>,
    /// How often persons ask.
    pub(crate) tool_rate: ToolRate,
    /// How much persons write.
    pub(crate) write_rate: Arc<WriteRate>,
    /// As the server was told at start.
    pub(crate) config: ServerConfig,
    /// What is held against requests before they become commands.
    pub(crate) policy: Policy,
    /// Who may come in over HTTP.
    pub(crate) gate: Gate,
    /// Counters.
    pub(crate) metrics: Metrics,
    /// Room for connections.
    pub(crate) connections: Connections,
    /// What large requests and answers may hold.
    pub(crate) memory: MemoryBudget,
    /// Slots for work on large bytes.
    pub(crate) large_work: Arc<Semaphore>,
    /// Places for exports.
    pub(crate) exports: Arc<Semaphore>,
    /// The terminals of the broker beside, once there is one.
    pub(crate) terminals: OnceLock<Terminals>,
    /// Every task that serves a connection or feeds a response; joined at shutdown.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the server is to stop: finish what is under way, begin nothing.
    pub(crate) stopping: CancellationToken,
    /// Cancelled when the grace is over: end now.
    pub(crate) abandoned: CancellationToken,
    /// Where the binary protocol listens.
    pub(crate) tcp_addr: SocketAddr,
    /// Where HTTP listens.
    pub(crate) http_addr: SocketAddr,
}

impl Shared {
    /// The limits under which a person's token writes.
    pub(crate) fn write_allowance(&self, token: TokenId) -> WriteAllowance {
        WriteAllowance {
            rate: Arc::clone(&self.write_rate),
            token,
        }
    }

    /// Starts a task that is joined at shutdown, and abandoned if it does not end within the grace.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let abandoned = self.abandoned.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = task => {}
                () = abandoned.cancelled() => {}
            }
        });
    }

    /// Runs work that takes long on a thread of its own.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.tasks
            .spawn_blocking(work)
            .await
            .map_err(ApiError::internal)?
    }

    /// The same for work on large bytes, of which only so much runs at once: more threads would not
    /// be faster, and each takes memory of its own that no budget counts.
    pub(crate) async fn work_on_large<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let slot = Arc::clone(&self.large_work)
            .acquire_owned()
            .await
            .map_err(ApiError::internal)?;
        let work = move || {
            let done = work();
            drop(slot);
            done
        };
        self.blocking(work).await
    }
}
