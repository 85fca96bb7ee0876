//! The broker's shell: a unix socket in front of the state machine in `turnkeep-session`.
//!
//! A connection is one task: it reads a request, lets the machine decide, does what follows from
//! that and waits for it, so that a slow sink or a slow reader stops nobody but the one who asked.
//! What goes to a connection lies in its bounded outbox. The machine is behind a lock that is held
//! for one decision and never while anything waits. Only the user's own processes are heard, and
//! never over TCP.

mod connection;
mod door;
mod file_sink;
mod hub;
mod outbox;
mod sinks;
mod socket;
mod store_keeper;
mod terminals;
mod viewer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_session::broker::{BadSettings, Settings};
use turnkeep_types::Clock;
use turnkeep_types::broker::RECONNECT_PAUSE_MAX;

pub use sinks::{Clipboard, Outlets, Sink, TurnKeeper};
pub use socket::SocketError;
pub(crate) use store_keeper::StoreKeeper;
pub use terminals::Terminals;
pub(crate) use terminals::{Seen, Watch};

use crate::memory::MemoryBudget;
use door::Door;
use hub::Hub;

/// How often sessions that have been gone for long enough are looked for when nobody asks anything.
const EXPIRE_EVERY: Duration = Duration::from_secs(30);

/// What the broker is told at start.
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    /// Where it listens; the directory around it is made if it is not there.
    pub socket: PathBuf,
    /// How much it keeps.
    pub settings: Settings,
    /// The user to whom the socket's directory must belong.
    pub uid: u32,
    /// The one user whose processes are heard: the same, but in tests.
    pub peer_uid: u32,
    /// Connections at once.
    pub connections_max: usize,
    /// How long it waits for others.
    pub timeouts: BrokerTimeouts,
    /// The memory that large messages share with a server in the same process; a broker that is
    /// alone has its own.
    pub memory: Option<MemoryBudget>,
}

impl BrokerConfig {
    /// The defaults, for this process's user, on this socket.
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

/// How long the broker waits for others before it gives up on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerTimeouts {
    /// Until hello is whole.
    pub hello: Duration,
    /// Until a message that has begun is whole.
    pub message: Duration,
    /// Until a client has read an answer. A wrapper may be suspended: it is not hurried.
    pub write: Duration,
    /// Until there is room for a large message.
    pub room: Duration,
    /// Until a sink has taken what it was given.
    pub sink: Duration,
    /// After the start, until every wrapper that lost an earlier broker has connected to this one.
    pub settle: Duration,
}

impl Default for BrokerTimeouts {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(10),
            message: Duration::from_secs(30),
            write: Duration::from_secs(30),
            room: Duration::from_secs(10),
            sink: Duration::from_secs(30),
            // A wrapper whose attempt came just too early comes with its next one; connecting takes
            // a moment.
            settle: RECONNECT_PAUSE_MAX + Duration::from_millis(500),
        }
    }
}

/// Why the broker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// Bounds that cannot be.
    #[error(transparent)]
    Settings(#[from] BadSettings),
    /// The socket cannot be had.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// A broker at work.
pub struct RunningBroker {
    socket: PathBuf,
    hub: Arc<Hub>,
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
    let door = Door::open(&config.socket, config.uid)?;
    let socket = config.socket.clone();
    let tasks = TaskTracker::new();
    let stopping = CancellationToken::new();
    let hub = Arc::new(Hub::new(config, outlets, clock));
    tasks.spawn(accept(
        door,
        Arc::clone(&hub),
        tasks.clone(),
        stopping.clone(),
    ));
    tasks.spawn(expire(Arc::clone(&hub), stopping.clone()));
    Ok(RunningBroker {
        socket,
        hub,
        tasks,
        stopping,
    })
}

impl RunningBroker {
    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits until another broker has taken the place of this one, which then closes every
    /// connection.
    pub async fn replaced(&self) {
        self.stopping.cancelled().await;
    }

    /// The terminals that are shared, for a server in the same process to show.
    pub fn terminals(&self) -> Terminals {
        Terminals(Arc::clone(&self.hub))
    }

    /// Stops: accepts nothing more, closes every connection, removes the socket.
    pub async fn shutdown(self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn accept(mut door: Door, hub: Arc<Hub>, tasks: TaskTracker, stopping: CancellationToken) {
    loop {
        let came = tokio::select! {
            () = stopping.cancelled() => break,
            came = door.next() => came,
        };
        let Some(stream) = came else {
            stopping.cancel();
            break;
        };
        let (hub, stopping) = (Arc::clone(&hub), stopping.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = connection::serve(stream, &hub) => {}
                () = stopping.cancelled() => {}
            }
        });
    }
    door.close();
}

async fn expire(hub: Arc<Hub>, stopping: CancellationToken) {
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(EXPIRE_EVERY) => hub.expire(),
        }
    }
}
