//! Starts and stops the server. This file is the table of contents of the crate.
//!
//! [`serve`] binds the two ports, builds the state that all connections share, and starts one accept
//! loop per port:
//!
//! | what | where |
//! |---|---|
//! | accepting connections, TLS, limits for connections without a token | `accept`, `tls`, `unauthenticated`, `connections` |
//! | the binary protocol: connections, requests, subscriptions | `tcp` |
//! | HTTP, SSE and the web UI; MCP | `http`, `ui_files`, `mcp` |
//! | who the caller is and what the caller may do | `auth`, `principal`, `world_caller` |
//! | requests as commands, errors as codes | `convert`, `error` |
//! | the way to the store | `guarded_store`, then `handle` |
//! | worlds and their attached writers | `ledger`, `child_process`, `durable_state` |
//! | runs of agents and their programs | `runs`, `child_process`, `durable_state` |
//! | why something is there, across runs, worlds and the store | `provenance` |
//! | limits: memory, worker threads, rates | `memory`, `workers`, `tool_rate`, `write_rate` |
//! | captured turns, beside the server | `broker` |
//!
//! The caller owns the runtime and the store: it opens the store before [`serve`] and closes it after
//! [`Running::shutdown`]. All tasks are in one tracker, and the shutdown waits until it is empty. If
//! [`serve`] fails, no port is open and no request was answered.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, SetOnce};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_store::Store;
use turnkeep_types::Clock;
use turnkeep_wire::{json, percent_encode};

use crate::auth::{Auth, Gate};
use crate::broker::{InProcessBroker, NodeChat, RunChat, StoreKeeper, TurnKeeper};
use crate::config::{ConfigError, ServerConfig};
use crate::connections::{self, Connections};
use crate::convert::Policy;
use crate::guarded_store::{GuardedParts, GuardedStore};
use crate::handle::StoreHandle;
use crate::http;
use crate::http::once::RecentAnswers;
use crate::ledger::Worlds;
use crate::memory::MemoryBudget;
use crate::metrics::Metrics;
use crate::runs::{RunServiceParts, RunServices, Runs};
use crate::shared::Shared;
use crate::tcp;
use crate::tls::{self, TlsError};
use crate::tool_rate::ToolRate;
use crate::workers::Workers;
use crate::write_rate::WriteRate;

/// Connections that may wait to be accepted, as far as the system allows.
const BACKLOG_CONNECTIONS_MAX: u32 = 1024;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A configuration that must not be served.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// TLS files that cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(io::Error),
    /// An address that cannot be listened on.
    #[error("cannot listen on {addr}: {source}")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// The addresses of the two ports after they were bound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoundAddrs {
    /// The binary protocol's address.
    pub(crate) tcp: SocketAddr,
    /// The address of HTTP.
    pub(crate) http: SocketAddr,
}

/// A server that runs. Dropping this does not stop it; [`Running::shutdown`] does.
pub struct Running {
    shared: Arc<Shared>,
}

/// Starts serving `store` with `config`, on the caller's runtime.
pub async fn serve(
    config: ServerConfig,
    store: Store,
    clock: Arc<dyn Clock>,
) -> Result<Running, ServeError> {
    config.check()?;
    let tls_acceptor = |http| {
        let files = config.tls.as_ref();
        files.map(|files| tls::acceptor(files, http)).transpose()
    };
    let (tcp_tls, http_tls) = (tls_acceptor(false)?, tls_acceptor(true)?);
    // Both before the first answer: if one port is taken, the other must not serve anybody.
    let tcp = BoundListener::bind(config.tcp_addr)?;
    let http = BoundListener::bind(config.http_addr)?;
    let addrs = BoundAddrs {
        tcp: tcp.addr,
        http: http.addr,
    };
    let shared = build_shared(config, store, clock, addrs)?;
    // Before the first request: this closes the turns whose programs died with the last server, and
    // a client must never see one of them as open.
    let scheme = if shared.config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    shared
        .runs
        .start(format!("{scheme}://{}/mcp", addrs.http))
        .await;
    shared.spawn(tcp::serve_tcp(tcp.listener, tcp_tls, Arc::clone(&shared)));
    shared.spawn(http::serve_http(
        http.listener,
        http_tls,
        Arc::clone(&shared),
    ));
    Ok(Running { shared })
}

/// A listener and its address, which has a real port where the configured one has port 0.
struct BoundListener {
    listener: TcpListener,
    addr: SocketAddr,
}

impl BoundListener {
    fn bind(addr: SocketAddr) -> Result<Self, ServeError> {
        let bind_error = |source| ServeError::Bind { addr, source };
        let listener = listen(addr).map_err(bind_error)?;
        let addr = listener.local_addr().map_err(bind_error)?;
        Ok(Self { listener, addr })
    }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // Connections of a server that just stopped stay in TIME_WAIT and would block the address.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG_CONNECTIONS_MAX)
}

/// Builds what the connections of a server share.
pub(crate) fn build_shared(
    config: ServerConfig,
    store: Store,
    clock: Arc<dyn Clock>,
    addrs: BoundAddrs,
) -> Result<Arc<Shared>, ServeError> {
    let store = StoreHandle::new(store, config.queue_commands_max);
    // The file limit also bounds a configured maximum: more connections could not be accepted.
    let files_allow = connections::raise_file_limit();
    let connections = Connections::new(
        config
            .connections_max
            .unwrap_or(usize::MAX)
            .min(files_allow),
    );
    let memory = MemoryBudget::new(config.memory_budget_bytes, config.timeouts.memory);
    let tasks = TaskTracker::new();
    let stopping = CancellationToken::new();
    let run_clock = Arc::clone(&clock);
    let worlds = Worlds::open(
        store.clone(),
        clock,
        (tasks.clone(), stopping.clone()),
        &random_seed()?,
    );
    let runs = Runs::open(RunServices::new(RunServiceParts {
        store: store.clone(),
        worlds: Arc::clone(&worlds),
        clock: run_clock,
        settings: config.runs.clone(),
        stopping: stopping.clone(),
        tasks: tasks.clone(),
        data_dir: config.data_dir.clone().into(),
        seed: random_seed()?,
    }));
    let workers = Workers::new(tasks.clone());
    let metrics = Metrics::new(
        store.clone(),
        connections.clone(),
        memory.clone(),
        worlds.rehydrations(),
    );
    Ok(Arc::new(Shared {
        store: GuardedStore::new(GuardedParts {
            handle: store,
            worlds: Arc::clone(&worlds),
            runs: Arc::clone(&runs),
            memory: memory.clone(),
            workers: workers.clone(),
        }),
        worlds,
        runs,
        tool_rate: ToolRate::default(),
        write_rate: Arc::new(WriteRate::new(&config.limits)),
        policy: Policy {
            limits: config.limits.clone(),
            strict_types: config.strict_types,
        },
        gate: Gate::new(&config, addrs.http.port()),
        metrics,
        config,
        connections,
        memory,
        workers,
        exports: Arc::new(Semaphore::new(http::EXPORTS_MAX)),
        broker: SetOnce::new(),
        recent_answers: RecentAnswers::default(),
        demo: SetOnce::new(),
        tasks,
        stopping,
        abandoned: CancellationToken::new(),
        addrs,
    }))
}

/// Reads the random bytes from which the server derives ids and secrets.
fn random_seed() -> Result<[u8; 32], ServeError> {
    let mut seed = [0; 32];
    let filled = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(count) if count == seed.len() => Ok(seed),
        Ok(_) => Err(ServeError::Random(io::ErrorKind::UnexpectedEof.into())),
        Err(error) => Err(ServeError::Random(error.into())),
    }
}

impl Running {
    /// Where the binary protocol listens.
    pub fn tcp_addr(&self) -> SocketAddr {
        self.shared.addrs.tcp
    }

    /// Where HTTP listens.
    pub fn http_addr(&self) -> SocketAddr {
        self.shared.addrs.http
    }

    /// The address of the web UI, with the token that opens it.
    pub fn link(&self) -> String {
        let config = &self.shared.config;
        let scheme = if config.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let token = match &config.auth {
            Auth::Off(_) => String::new(),
            Auth::Token(token) => format!("?token={}", percent_encode(token.reveal())),
        };
        format!("{scheme}://{}/{token}", self.shared.addrs.http)
    }

    /// The memory that large requests and answers share, for a broker in the same process.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.shared.memory.clone()
    }

    /// Offers a broker's sessions and terminals to the owner over HTTP, if HTTP listens on loopback.
    /// A second call has no effect.
    pub fn offer_broker(&self, broker: InProcessBroker) {
        if self.shared.broker.set(broker).is_err() {
            tracing::warn!("the server already offers another broker");
        }
    }

    /// Says what the tour of a demo points at, or that the demo could not be filled. Requests wait for
    /// this. A second call has no effect.
    pub fn offer_demo(&self, things: Option<json::Demo>) {
        if self.shared.demo.set(things).is_err() {
            tracing::warn!("the server already offers the things of a demo");
        }
    }

    /// Keeps captured turns in this server's store, for a broker in the same process.
    pub fn turn_keeper(&self) -> Arc<dyn TurnKeeper> {
        Arc::new(StoreKeeper::new(Arc::clone(&self.shared)))
    }

    /// Sends messages to the nodes of this server's runs, for a broker in the same process.
    pub fn node_chat(&self) -> Arc<dyn NodeChat> {
        Arc::new(RunChat::new(Arc::clone(&self.shared)))
    }

    /// Stops the server. It accepts nothing more, lets requests under way finish within the grace
    /// period, and then abandons them.
    pub async fn shutdown(self) {
        let Shared {
            tasks,
            stopping,
            abandoned,
            config,
            ..
        } = &*self.shared;
        stopping.cancel();
        tasks.close();
        if tokio::time::timeout(config.timeouts.shutdown_grace, tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                tasks = tasks.len(),
                "the server abandons requests under way"
            );
            abandoned.cancel();
            tasks.wait().await;
        }
        // No task writes to a world any more, so the checkpoints are complete.
        self.shared.worlds.write_checkpoints();
    }
}
