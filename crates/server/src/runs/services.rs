//! What every run needs from the server.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use tokio::sync::{OnceCell, Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_runtime::ids::{IdSource, NodeId, RunId};
use turnkeep_runtime::record;
use turnkeep_runtime::secrets::Secrets;
use turnkeep_store::{Command, Outcome};
use turnkeep_types::{Clock, ContextId, Timestamp};
use turnkeep_wire::runs as wire;
use turnkeep_wire::transcript;

use super::capacity::SharedCapacity;
use super::error::RunError;
use super::file_remover::FileRemover;
use super::node_tokens::{NodeToken, NodeTokens, TokenNode};
use super::process_records::{PRIVATE_DIR_PREFIX, ProcessRecords};
use super::run_handle::RunHandle;
use super::run_log;
use super::settings::RunsConfig;
use super::workspaces::Workspaces;
use crate::handle::StoreHandle;
use crate::ledger::Worlds;

/// How many notices of new events may wait for a subscriber of all runs.
const NOTICES_MAX: usize = 1024;

/// A run has events up to this number. The notice has the run itself: a deleted run cannot be found
/// by its id any more.
#[derive(Clone)]
pub(crate) struct RunNotice {
    pub(crate) handle: Arc<RunHandle>,
    pub(crate) last_seq: u64,
}

/// How many heartbeats may wait for a subscriber. One that is slower misses some.
const HEARTBEATS_MAX: usize = 256;
/// How many threads work on files and run git at once. More would only compete for the disk.
const FILE_WORKERS_MAX: usize = 8;

/// A sign of life of a node's program. It is not recorded.
#[derive(Debug, Clone)]
pub(crate) struct Heartbeat {
    pub(crate) run: RunId,
    pub(crate) node: NodeId,
    pub(crate) at: Timestamp,
    pub(crate) connection: wire::ConnectionView,
}

/// What every run needs from the server.
pub(crate) struct RunServices {
    pub(super) store: StoreHandle,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) capacity: SharedCapacity,
    pub(super) stopping: CancellationToken,
    pub(super) settings: RunsConfig,
    pub(super) workspaces: Workspaces,
    /// The worlds that runs may name.
    pub(super) worlds: Arc<Worlds>,
    pub(crate) node_tokens: NodeTokens,
    pub(super) process_records: ProcessRecords,
    pub(super) file_remover: FileRemover,
    file_workers: Arc<Semaphore>,
    /// Counts the processes of programs, so that each has a private directory of its own.
    process_count: AtomicU64,
    /// The data directory: views, worktrees and private files of programs lie there.
    data_dir: PathBuf,
    /// Where agents reach the server's tools.
    mcp_url: OnceLock<String>,
    tasks: TaskTracker,
    published: OnceCell<()>,
    ids: Mutex<IdSource>,
    contexts: RwLock<HashMap<ContextId, RunId>>,
    notices: broadcast::Sender<RunNotice>,
    heartbeats: broadcast::Sender<Heartbeat>,
}

/// What [`RunServices`] is made from.
pub(crate) struct RunServiceParts {
    pub(crate) store: StoreHandle,
    pub(crate) worlds: Arc<Worlds>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: RunsConfig,
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) data_dir: PathBuf,
    pub(crate) seed: [u8; 32],
}

impl RunServices {
    pub(crate) fn new(parts: RunServiceParts) -> Arc<Self> {
        let workspaces = Workspaces::new(
            &parts.data_dir,
            parts.store.store().clone(),
            Arc::clone(&parts.clock),
        );
        let file_remover = FileRemover::new(parts.tasks.clone());
        let has_dir = !parts.data_dir.as_os_str().is_empty();
        let run_dir = has_dir.then(|| parts.data_dir.join("run"));
        Arc::new(Self {
            process_records: ProcessRecords::new(run_dir, file_remover.clone()),
            file_remover,
            file_workers: Arc::new(Semaphore::new(FILE_WORKERS_MAX)),
            process_count: AtomicU64::new(0),
            heartbeats: broadcast::Sender::new(HEARTBEATS_MAX),
            store: parts.store,
            clock: parts.clock,
            capacity: SharedCapacity::new(parts.settings.capacity.clone()),
            settings: parts.settings,
            stopping: parts.stopping,
            workspaces,
            worlds: parts.worlds,
            node_tokens: NodeTokens::default(),
            data_dir: parts.data_dir,
            mcp_url: OnceLock::new(),
            tasks: parts.tasks,
            published: OnceCell::new(),
            ids: Mutex::new(IdSource::from_seed(&parts.seed)),
            contexts: RwLock::default(),
            notices: broadcast::Sender::new(NOTICES_MAX),
        })
    }

    /// Runs work to its end, even if the caller is cancelled.
    pub(super) async fn run_to_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RunError> {
        let done = self.tasks.spawn(work).await;
        done.map_err(|error| RunError::Abandoned(error.to_string()))
    }

    /// Runs work that no caller waits for. It ends when the server stops.
    pub(super) fn spawn_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.stopping.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = work => {}
                () = stopping.cancelled() => {}
            }
        });
    }

    /// Runs work that no caller waits for and that ends by itself when the server stops.
    pub(super) fn spawn_until_done(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Runs long work on a thread that may block.
    pub(super) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let done = self.tasks.spawn_blocking(work).await;
        done.map_err(|error| RunError::Abandoned(error.to_string()))
    }

    /// Runs long work on files or with git on a thread that may block. Only some of it runs at once;
    /// the rest waits without holding a thread, so that short reads never queue behind it.
    pub(super) async fn run_file_work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let permit = Arc::clone(&self.file_workers).acquire_owned().await;
        let permit = permit.map_err(|error| RunError::Abandoned(error.to_string()))?;
        // The thread has the permit: the work goes on if the caller is dropped.
        self.run_blocking(move || {
            let done = work();
            drop(permit);
            done
        })
        .await
    }

    /// Makes a source of random ids, seeded from the server's own source. Each decision gets one of
    /// its own, so that decisions share no lock while they draw.
    pub(super) fn new_ids(&self) -> IdSource {
        let mut source = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        source.split()
    }

    /// Makes the token of a node's new process.
    pub(super) fn mint_token(&self, run: RunId, node: NodeId) -> NodeToken {
        let holder = TokenNode { run, node };
        self.node_tokens.mint(&mut self.new_ids(), holder)
    }

    /// What must not be recorded: the configured variables of programs, and the tokens of nodes.
    pub(super) fn secrets(&self) -> Secrets {
        let variables = self.settings.program_variables();
        Secrets::new(variables.into_iter().chain(self.node_tokens.reveal_all()))
    }

    /// Says where agents reach the server's tools, once the port is known.
    pub(crate) fn set_mcp_url(&self, url: String) {
        // A second call would have the same address: a server binds its port once.
        self.mcp_url.set(url).ok();
    }

    pub(super) fn mcp_url(&self) -> Option<String> {
        self.mcp_url.get().cloned()
    }

    /// The directory of a run's files; `None` for a store in memory, which has no directory.
    pub(super) fn run_dir(&self, run: RunId) -> Option<PathBuf> {
        let has_dir = !self.data_dir.as_os_str().is_empty();
        has_dir.then(|| self.data_dir.join("runs").join(run.to_string()))
    }

    /// The directory of a run's artifacts.
    pub(crate) fn artifacts_dir(&self, run: RunId) -> PathBuf {
        let dir = self.data_dir.join("runs").join(run.to_string());
        dir.join("artifacts")
    }

    /// A directory for files that one request creates and removes.
    pub(super) fn scratch_dir(&self) -> PathBuf {
        if self.data_dir.as_os_str().is_empty() {
            std::env::temp_dir()
        } else {
            self.data_dir.join("run")
        }
    }

    /// A directory for files that only the process of a node may read.
    pub(super) fn private_dir(&self, run: RunId, node: NodeId) -> Result<String, String> {
        // A process may be started before the files of the last one are removed.
        let number = self.process_count.fetch_add(1, Ordering::Relaxed);
        // A fork of a run has nodes of the same ids.
        let name = format!("{PRIVATE_DIR_PREFIX}{run}-{node}-{number}");
        let dir = self.data_dir.join("run").join(name);
        let dir = std::path::absolute(dir).map_err(|error| error.to_string())?;
        dir.into_os_string()
            .into_string()
            .map_err(|_| "the data directory has a name that is not UTF-8".to_owned())
    }

    /// Removes the files of a deleted run. Its worktrees stay: they may have work that is nowhere
    /// else.
    pub(super) async fn remove_files(&self, run: RunId) {
        let Some(dir) = self.run_dir(run) else {
            return;
        };
        let removed = tokio::fs::remove_dir_all(&dir).await;
        if let Err(error) = removed
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%run, %error, "the files of a deleted run are still there");
        }
    }

    /// Publishes the types of records, once per start.
    pub(super) async fn publish_record_types(&self) -> Result<(), RunError> {
        let put = async || {
            let bundles = record::BUNDLES.iter().chain(&transcript::BUNDLES);
            for bundle in bundles {
                let json = bytes::Bytes::from_static(bundle.json.as_bytes());
                let id = bundle.id.to_owned();
                self.store.run(Command::PutBundle { id, json }).await?;
            }
            Ok::<(), RunError>(())
        };
        self.published.get_or_try_init(put).await.copied()
    }

    /// Creates a context.
    pub(super) async fn create_context(&self, command: Command) -> Result<ContextId, RunError> {
        match self.store.run(command).await? {
            Outcome::Created(created) => Ok(created.context),
            other => {
                let message = format!("a context ended as {other:?}");
                Err(RunError::Abandoned(message))
            }
        }
    }

    /// Marks a run as deleted, so that the next start does not read it. If that fails, the next start
    /// reads it once and tries again.
    pub(super) async fn label_deleted(&self, run: RunId, events: ContextId) {
        let labelled = self.store.run(run_log::label_deleted(run, events)).await;
        if let Err(error) = labelled {
            tracing::warn!(%run, %error, "a deleted run is not marked as deleted yet");
        }
    }

    /// Records which run owns a context.
    pub(super) fn claim_context(&self, context: ContextId, run: RunId) {
        let mut contexts = self
            .contexts
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        contexts.insert(context, run);
    }

    /// The run that owns a context.
    pub(crate) fn context_owner(&self, context: ContextId) -> Option<RunId> {
        let contexts = self.contexts.read().unwrap_or_else(PoisonError::into_inner);
        contexts.get(&context).copied()
    }

    /// Tells subscribers of all runs that a run has new events.
    pub(super) fn notify_events(&self, notice: RunNotice) {
        // An error means that there is no subscriber.
        self.notices.send(notice).ok();
    }

    /// Tells subscribers that a program is alive.
    pub(super) fn notify_heartbeat(&self, heartbeat: Heartbeat) {
        // An error means that there is no subscriber.
        self.heartbeats.send(heartbeat).ok();
    }

    /// Subscribes to the heartbeats of all runs.
    pub(crate) fn subscribe_heartbeats(&self) -> broadcast::Receiver<Heartbeat> {
        self.heartbeats.subscribe()
    }

    /// Subscribes to the events of all runs.
    pub(crate) fn subscribe_notices(&self) -> broadcast::Receiver<RunNotice> {
        self.notices.subscribe()
    }
}
