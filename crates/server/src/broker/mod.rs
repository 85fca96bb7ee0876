//! The broker's shell: a Unix socket in front of the state machine in `turnkeep-session`.
//!
//! Each connection is one task (`connection`). It lets the state machine decide (`shared`), performs
//! the effect (`sinks`) and waits for it, so a slow sink or a slow reader delays only the connection
//! that asked. Frames to a connection wait in a bounded queue (`write_queue`, `screen_queue`). The
//! state machine's lock is held for one decision and never during a wait.
//!
//! The broker serves only processes of its own user, and never listens on TCP. It cannot start if
//! another broker runs on its socket. It stops if another one has replaced it (`listener`).

mod connection;
mod file_sink;
mod in_process;
mod listener;
mod message_reader;
mod run_chat;
mod screen_queue;
mod shared;
mod sinks;
mod socket;
mod store_keeper;
mod write_queue;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_session::broker::{BadSettings, Settings};
use turnkeep_types::Clock;
use turnkeep_types::broker::RECONNECT_PAUSE_MAX;

pub use in_process::InProcessBroker;
pub(crate) use in_process::{TerminalEvent, TerminalWatch};
pub(crate) use run_chat::RunChat;
pub(crate) use shared::SessionChanges;
pub use sinks::{Clipboard, NodeChat, Outlets, Sink, TurnKeeper};
pub use socket::SocketError;
pub(crate) use store_keeper::StoreKeeper;

use crate::memory::MemoryBudget;
use connection::serve_connection;
use listener::BrokerListener;
use shared::BrokerShared;

/// How often sessions whose linger time is over are removed. Requests remove them too.
const EXPIRE_EVERY: Duration = Duration::from_secs(30);

/// The broker's configuration.
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    /// The socket's path. The broker creates the directory if it is missing.
    pub socket: PathBuf,
    /// The limits of the rings.
    pub settings: Settings,
    /// The user who must own the socket's directory.
    pub uid: u32,
    /// The user whose processes may connect. Only tests set another one than `uid`.
    pub peer_uid: u32,
    /// Connections that may be open at once.
    pub connections_max: usize,
    /// How long the broker waits for peers and sinks.
    pub timeouts: BrokerTimeouts,
    /// The memory budget of the server in the same process. `None`: the broker makes its own.
    pub memory: Option<MemoryBudget>,
}

impl BrokerConfig {
    /// The defaults for this process's user.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        Self {
            socket: socket.into(),
            settings: Settings::default(),
            uid,
            peer_uid: uid,
            connections_max: 2048,
            timeouts: BrokerTimeouts::default(),
            memory: None,
        }
    }
}

/// How long the broker waits for peers and sinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerTimeouts {
    /// From the connect until hello is complete.
    pub hello: Duration,
    /// From the first byte of a message until it is complete.
    pub message: Duration,
    /// For a client to read one response. A wrapper may be suspended, so it has no deadline.
    pub write: Duration,
    /// For the memory permit of a large message.
    pub memory: Duration,
    /// For a sink to take a delivery.
    pub sink: Duration,
    /// From the start until every wrapper that lost an earlier broker has connected to this one.
    pub settle: Duration,
}

impl Default for BrokerTimeouts {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(10),
            message: Duration::from_secs(30),
            write: Duration::from_secs(30),
            memory: Duration::from_secs(10),
            sink: Duration::from_secs(30),
            // A wrapper may have tried just before this broker listened, and then comes with its
            // next attempt. The rest is for the connecting itself.
            settle: RECONNECT_PAUSE_MAX + Duration::from_millis(500),
        }
    }
}

/// Why the broker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// Limits that contradict each other.
    #[error(transparent)]
    Settings(#[from] BadSettings),
    /// The broker cannot listen on its socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// A running broker. Dropping this does not stop it; [`RunningBroker::shutdown`] does.
pub struct RunningBroker {
    socket: PathBuf,
    shared: Arc<BrokerShared>,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

/// Starts the broker on the caller's runtime.
pub fn start(
    config: BrokerConfig,
    outlets: Outlets,
    clock: Arc<dyn Clock>,
) -> Result<RunningBroker, BrokerError> {
    config.settings.check()?;
    let listener = BrokerListener::open(&config.socket, config.uid)?;
    let broker = RunningBroker {
        socket: config.socket.clone(),
        shared: Arc::new(BrokerShared::new(config, outlets, clock)),
        tasks: TaskTracker::new(),
        stopping: CancellationToken::new(),
    };
    broker.tasks.spawn(broker.accept_connections(listener));
    broker.tasks.spawn(broker.expire_sessions());
    Ok(broker)
}

impl RunningBroker {
    /// The socket's path.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits until another broker has replaced this one, which has then closed its connections.
    pub async fn wait_until_replaced(&self) {
        self.stopping.cancelled().await;
    }

    /// This broker, for a server in the same process.
    pub fn in_process(&self) -> InProcessBroker {
        InProcessBroker(Arc::clone(&self.shared))
    }

    /// Stops: accepts nothing more, closes every connection, removes the socket.
    pub async fn shutdown(self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The task that accepts connections and starts a task for each.
    fn accept_connections(&self, mut listener: BrokerListener) -> impl Future<Output = ()> + use<> {
        let (shared, tasks) = (Arc::clone(&self.shared), self.tasks.clone());
        let stopping = self.stopping.clone();
        async move {
            loop {
                let accepted = tokio::select! {
                    () = stopping.cancelled() => break,
                    accepted = listener.accept() => accepted,
                };
                // Another broker has replaced this one. The open connections end too, so that their
                // wrappers and clients connect to the other.
                let Some(stream) = accepted else {
                    stopping.cancel();
                    break;
                };
                let (shared, stopping) = (Arc::clone(&shared), stopping.clone());
                tasks.spawn(async move {
                    tokio::select! {
                        () = serve_connection(stream, &shared) => {}
                        () = stopping.cancelled() => {}
                    }
                });
            }
            listener.close();
        }
    }

    /// The task that removes ended sessions while no request does.
    fn expire_sessions(&self) -> impl Future<Output = ()> + use<> {
        let (shared, stopping) = (Arc::clone(&self.shared), self.stopping.clone());
        async move {
            loop {
                tokio::select! {
                    () = stopping.cancelled() => return,
                    () = tokio::time::sleep(EXPIRE_EVERY) => shared.expire_sessions(),
                }
            }
        }
    }
}
