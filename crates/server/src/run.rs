//! The composition root: binds both listeners, starts every task, and joins them at shutdown.
//!
//! The caller owns the runtime and the store: it opens the store before and closes it after.
//! Nothing is served before both ports are bound, and [`Running::shutdown`] returns when no task is
//! left.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnkeep_store::Store;
use turnkeep_types::Clock;
use turnkeep_wire::percent_encode;

use crate::auth::{Auth, Gate};
use crate::broker::{StoreKeeper, Terminals, TurnKeeper};
use crate::config::{ConfigError, ServerConfig};
use crate::connections::{self, Connections};
use crate::convert::Policy;
use crate::handle::StoreHandle;
use crate::http;
use crate::ledger::Worlds;
use crate::memory::MemoryBudget;
use crate::metrics::Metrics;
use crate::shared::Shared;
use crate::tcp;
use crate::tls::{self, TlsError};
use crate::tool_rate::ToolRate;
use crate::write_rate::WriteRate;

/// Connections that may wait to be accepted, as far as the system allows.
const BACKLOG_CONNECTIONS_MAX: u32 = 1024;

/// Large requests that are worked on at once: per core, at least and at most.
const LARGE_WORK_PER_CORE: usize = 2;
const LARGE_WORK_MIN: usize = 4;
const LARGE_WORK_MAX: usize = 32;

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

/// A server at work. Dropping it lets the server run on; [`Running::shutdown`] ends it.
pub struct Running {
    shared: Arc<Shared>,
}

/// Starts serving `store` as `config` says, on the caller's runtime.
pub async fn serve(
    config: ServerConfig,
    store: Store,
    clock: Arc<dyn Clock>,
) -> Result<Running, ServeError> {
    config.check()?;
    let tcp_tls = config
        .tls
        .as_ref()
        .map(|files| tls::acceptor(files, false))
        .transpose()?;
    let http_tls = config
        .tls
        .as_ref()
        .map(|files| tls::acceptor(files, true))
        .transpose()?;
    let (tcp, tcp_addr) = bind(config.tcp_addr)?;
    let (http, http_addr) = bind(config.http_addr)?;
    let shared = share(config, store, clock, (tcp_addr, http_addr))?;
    shared.spawn(tcp::serve_tcp(tcp, tcp_tls, Arc::clone(&shared)));
    shared.spawn(http::serve_http(http, http_tls, Arc::clone(&shared)));
    Ok(Running { shared })
}

fn bind(addr: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let refuse = |source| ServeError::Bind { addr, source };
    let listener = listen(addr).map_err(refuse)?;
    let bound = listener.local_addr().map_err(refuse)?;
    Ok((listener, bound))
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // A server that was just stopped leaves connections behind that would keep the address.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG_CONNECTIONS_MAX)
}

/// What the connections of a server share.
pub(crate) fn share(
    config: ServerConfig,
    store: Store,
    clock: Arc<dyn Clock>,
    (tcp_addr, http_addr): (SocketAddr, SocketAddr),
) -> Result<Arc<Shared>, ServeError> {
    let store = StoreHandle::new(store, config.queue_commands_max);
    let room = connections::file_limit();
    let connections = Connections::new(config.connections_max.map_or(room, |max| max.min(room)));
    let memory = MemoryBudget::new(config.memory_budget_bytes, config.timeouts.memory);
    let tasks = TaskTracker::new();
    let stopping = CancellationToken::new();
    let worlds = Worlds::open(
        store.clone(),
        clock,
        (tasks.clone(), stopping.clone()),
        &random_seed()?,
    );
    let metrics = Metrics::new(
        store.clone(),
        connections.clone(),
        memory.clone(),
        worlds.rehydrations(),
    );
    Ok(Arc::new(Shared {
        worlds,
        tool_rate: ToolRate::default(),
        write_rate: Arc::new(WriteRate::new(&config.limits)),
        policy: Policy {
            limits: config.limits.clone(),
            strict_types: config.strict_types,
        },
        gate: Gate::new(&config, http_addr.port()),
        metrics,
        store,
        config,
        connections,
        memory,
        large_work: Arc::new(Semaphore::new(large_work_slots())),
        exports: Arc::new(Semaphore::new(http::EXPORTS_MAX)),
        terminals: OnceLock::new(),
        tasks,
        stopping,
        abandoned: CancellationToken::new(),
        tcp_addr,
        http_addr,
    }))
}

/// How many large requests are worked on at once: some may wait for the disk while others compute.
fn large_work_slots() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (LARGE_WORK_PER_CORE * cores).clamp(LARGE_WORK_MIN, LARGE_WORK_MAX)
}

/// Random bytes from the system, from which ids and secrets are drawn.
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
        self.shared.tcp_addr
    }

    /// Where HTTP listens.
    pub fn http_addr(&self) -> SocketAddr {
        self.shared.http_addr
    }

    /// The address of the status page, with the token that opens it.
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
        format!("{scheme}://{}/{token}", self.shared.http_addr)
    }

    /// The memory that large requests and answers share, for a broker in the same process.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.shared.memory.clone()
    }

    /// Lets the owner watch these terminals over HTTP, if it listens on loopback. The first ones
    /// stay.
    pub fn show_terminals(&self, terminals: Terminals) {
        if self.shared.terminals.set(terminals).is_err() {
            tracing::warn!("the terminals of another broker are shown already");
        }
    }

    /// Keeps captured turns in this server's store, for a broker in the same process.
    pub fn turn_keeper(&self) -> Arc<dyn TurnKeeper> {
        Arc::new(StoreKeeper::new(Arc::clone(&self.shared)))
    }

    /// Stops: accepts nothing more, lets requests under way finish within the grace, then abandons
    /// them.
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
            tracing::warn!(tasks = tasks.len(), "requests under way are abandoned");
            abandoned.cancel();
            tasks.wait().await;
        }
        self.shared.worlds.write_checkpoints();
    }
}
