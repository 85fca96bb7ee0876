//! A store that this process opens itself: it takes the lock, opens the log and starts a server.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Result;
use turnkeep_journal::{DataDirLock, FileStorage, LockError, ReadOnlyStorage, Storage, TornTail};
use turnkeep_server::broker::{NodeChat, RunningBroker, TurnKeeper};
use turnkeep_server::{
    Auth, MemoryBudget, Running, RunsConfig, ServeError, ServerConfig, TlsFiles, Token,
};
use turnkeep_store::{LostIds, Options, Store};
use turnkeep_types::{Clock, Timestamp};
use turnkeep_wire::json;
use turnkeep_wire::json::Demo;

use crate::config::Config;
use crate::data_dir::{DENIED_HINT, DataDir, ServerNote, random_bytes};
use crate::failure::Failure;
use crate::listener::{self, Listener};
use crate::session::{Need, server_on};

/// An open store and its server.
pub(crate) struct LocalServer {
    running: Running,
    store: Store,
    token: String,
    /// Held until the store is closed.
    _access: Access,
}

/// How this process may use a data directory.
pub(crate) enum Access {
    /// This process alone uses the directory, as long as this value lives.
    Locked(#[expect(dead_code, reason = "held, not looked at")] DataDirLock),
    /// The directory cannot be written, so it is read without a lock.
    ReadOnly,
}

impl Access {
    fn token(&self, dir: &DataDir) -> Result<String> {
        match self {
            Self::Locked(_) => dir.ensure_token(),
            // A read-only directory cannot keep a token, and only this command needs one.
            Self::ReadOnly => Ok(hex::encode(random_bytes::<32>()?)),
        }
    }

    fn open_store(&self, config: &Config, dir: &DataDir) -> Result<Store> {
        match self {
            Self::Locked(_) => open_store(config, dir),
            Self::ReadOnly => open_read_only(config, dir),
        }
    }
}

/// The machine's clock.
pub(crate) struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        #[expect(
            clippy::disallowed_methods,
            reason = "the composition root is where the clock comes from"
        )]
        let since = std::time::SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl LocalServer {
    /// Opens the directory for one command. The server listens on free loopback ports and always
    /// requires the token.
    pub(crate) async fn start_for_command(
        config: &Config,
        dir: &DataDir,
        need: Need,
    ) -> Result<Self> {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = ServerConfig {
            // Two commands may run at the same time, so no port can be fixed.
            tcp_addr: any_port,
            http_addr: any_port,
            // The connection stays inside this process, and the certificate may not name the
            // loopback address.
            tls: None,
            runs: RunsConfig {
                is_served: false,
                ..config.runs.to_config()
            },
            ..server_config(config)
        };
        let access = match need {
            Need::Read => lock_or_read_only(dir).await?,
            Need::Change | Need::Write => Access::Locked(create_and_lock(dir).await?),
        };
        Self::start_with(config, dir, server, AuthMode::Token, access).await
    }

    /// Opens the directory and serves it as configured.
    pub(crate) async fn start_configured(config: &Config, dir: &DataDir) -> Result<Self> {
        Self::start_serving(config, dir, server_config(config)).await
    }

    /// The same for a demo: clients may ask what its tour points at.
    pub(crate) async fn start_demo(config: &Config, dir: &DataDir) -> Result<Self> {
        let server = ServerConfig {
            is_demo: true,
            ..server_config(config)
        };
        Self::start_serving(config, dir, server).await
    }

    async fn start_serving(config: &Config, dir: &DataDir, server: ServerConfig) -> Result<Self> {
        let auth = if config.no_auth.value {
            AuthMode::Off
        } else {
            AuthMode::Token
        };
        let access = Access::Locked(create_and_lock(dir).await?);
        Self::start_with(config, dir, server, auth, access).await
    }

    async fn start_with(
        config: &Config,
        dir: &DataDir,
        server: ServerConfig,
        auth: AuthMode,
        access: Access,
    ) -> Result<Self> {
        let token = access.token(dir)?;
        let store = access.open_store(config, dir)?;
        let server = ServerConfig {
            auth: auth.with_token(&token),
            ..server
        };
        match turnkeep_server::serve(server, store.clone(), Arc::new(WallClock)).await {
            Ok(running) => Ok(Self {
                running,
                store,
                token,
                _access: access,
            }),
            Err(error) => {
                // Without this, the writer thread would keep the store open.
                store.close();
                explain_serve_error(&error).fail()
            }
        }
    }

    pub(crate) fn http_addr(&self) -> SocketAddr {
        self.running.http_addr()
    }

    pub(crate) fn tcp_addr(&self) -> SocketAddr {
        self.running.tcp_addr()
    }

    /// Offers the broker to the owner over HTTP.
    pub(crate) fn offer_broker(&self, broker: &RunningBroker) {
        self.running.offer_broker(broker.in_process());
    }

    /// Says what the tour of a demo points at, or that the demo could not be filled.
    pub(crate) fn offer_demo(&self, things: Option<Demo>) {
        self.running.offer_demo(things);
    }

    /// The memory that large requests and answers share.
    pub(crate) fn memory_budget(&self) -> MemoryBudget {
        self.running.memory_budget()
    }

    /// Keeps captured turns in this store.
    pub(crate) fn turn_keeper(&self) -> Arc<dyn TurnKeeper> {
        self.running.turn_keeper()
    }

    /// Sends messages to the nodes of this server's runs.
    pub(crate) fn node_chat(&self) -> Arc<dyn NodeChat> {
        self.running.node_chat()
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The address of the web UI, with the token that opens it.
    pub(crate) fn link(&self) -> String {
        self.running.link()
    }

    /// Finishes what is under way, then closes the store and gives up the lock.
    pub(crate) async fn stop(self) {
        let Self {
            running,
            store,
            _access,
            ..
        } = self;
        running.shutdown().await;
        // Closing joins the writer thread and writes checkpoints, which would block the runtime.
        if let Err(error) = tokio::task::spawn_blocking(move || store.close()).await {
            tracing::error!(%error, "the store did not close");
        }
    }
}

/// Explains why the server does not start. If the port belongs to another turnkeep server of this
/// user, the message names that server.
fn explain_serve_error(error: &ServeError) -> Failure {
    if let ServeError::Bind { addr, source } = error
        && source.kind() == ErrorKind::AddrInUse
        && let Some(Listener { pid, data }) = listener::find_turnkeep_on(*addr)
    {
        let whose = data.map(|data| format!(" of {}", data.display()));
        let whose = whose.unwrap_or_default();
        return Failure::new(format!(
            "{addr} is taken by the turnkeep server{whose}, process {pid}"
        ))
        .hint(format!("stop that one, or {}", serve_hint(error)));
    }
    Failure::new(error.to_string()).hint(serve_hint(error))
}

fn serve_hint(error: &ServeError) -> &'static str {
    match error {
        ServeError::Tls(_) => "check the PEM files given with --tls-cert and --tls-key",
        ServeError::Random(_) => "check that the system has a source of random bytes",
        ServeError::Config(_) | ServeError::Bind { .. } => {
            "choose other addresses with --listen and --http; port 0 takes a free one"
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum AuthMode {
    Token,
    Off,
}

impl AuthMode {
    fn with_token(self, token: &str) -> Auth {
        let token = Token::new(token);
        match self {
            Self::Token => Auth::Token(token),
            // A caller who shows a token is still checked: a wrong one is a mistake.
            Self::Off => Auth::Off(Some(token)),
        }
    }
}

fn server_config(config: &Config) -> ServerConfig {
    let files = config
        .tls_cert
        .value
        .clone()
        .zip(config.tls_key.value.clone());
    ServerConfig {
        tcp_addr: config.listen.value,
        http_addr: config.http.value,
        allow_hosts: config.allow_host.value.clone(),
        allow_origins: config.allow_origin.value.clone(),
        tls: files.map(|(cert, key)| TlsFiles { cert, key }),
        memory_budget_bytes: config.memory_budget.value,
        strict_types: config.strict_types.value,
        limits: config.limits.clone(),
        data_dir: config.data.value.display().to_string(),
        runs: config.runs.to_config(),
        settings: settings_view(config),
        ..ServerConfig::default()
    }
}

/// The settings as `config show` prints them, for the server's owner.
fn settings_view(config: &Config) -> json::ServerSettings {
    let rows = config.rows().into_iter();
    json::ServerSettings {
        file: config.file.display().to_string(),
        settings: rows
            .map(|row| json::ServerSetting {
                name: row.name.to_owned(),
                value: row.value,
                source: row.source.to_string(),
            })
            .collect(),
    }
}

/// The pause between two attempts to take the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// Attempts while another command holds the lock, or a server is about to release it. On a busy disk
/// that can take seconds.
const LOCK_TRIES_MAX: u32 = 200;
/// Attempts while an agent's server holds the lock: the agent may be about to end.
const AGENT_TRIES_MAX: u32 = 20;

/// Locks the directory for this process. Waits for another command, and briefly for an agent's
/// server, but not for a server that keeps running: it would not release the lock.
pub(crate) async fn lock_dir(dir: &DataDir) -> Result<DataDirLock> {
    let mut tries = 0;
    loop {
        let error = match DataDirLock::acquire(dir.path()) {
            Ok(lock) => {
                // The lock was free, so a note that still lies there is a killed server's.
                dir.remove_note();
                return Ok(lock);
            }
            Err(error) => error,
        };
        // Asked again each time: the holder may have become a server, or may have gone.
        // A program that a killed server was just starting holds its lock and address for a moment.
        let server = server_on(dir)
            .await
            .filter(ServerNote::is_of_living_process);
        if tries >= lock_tries_max(&error, server.as_ref()) {
            return explain_lock_error(&error, server.as_ref()).fail();
        }
        tries += 1;
        tokio::time::sleep(LOCK_PAUSE).await;
    }
}

/// How often to try. Waiting helps only if the holder will release the lock soon.
fn lock_tries_max(error: &LockError, server: Option<&ServerNote>) -> u32 {
    match (error, server) {
        (LockError::Held { .. }, None) => LOCK_TRIES_MAX,
        (LockError::Held { .. }, Some(note)) if note.passing => AGENT_TRIES_MAX,
        (LockError::Held { .. }, Some(_))
        | (LockError::ReadOnly { .. } | LockError::Io { .. }, _) => 0,
    }
}

/// The failure of a command that cannot lock the directory.
fn explain_lock_error(error: &LockError, server: Option<&ServerNote>) -> Failure {
    let hint = match (server, error) {
        (Some(note), _) if note.passing => {
            "an agent's `turnkeep mcp` serves it meanwhile: close that agent, start this command, then start the agent again"
                .to_owned()
        }
        (Some(note), _) => {
            format!("its server listens on {}: other commands reach it by themselves", note.http)
        }
        (None, LockError::Held { .. }) => {
            "wait for the other command to end, or use another directory with --data DIR".to_owned()
        }
        (None, LockError::ReadOnly { .. } | LockError::Io { .. }) => DENIED_HINT.to_owned(),
    };
    Failure::new(error.to_string()).hint(hint)
}

/// Makes the directory if it does not exist, and locks it.
async fn create_and_lock(dir: &DataDir) -> Result<DataDirLock> {
    dir.create()?;
    lock_dir(dir).await
}

/// Opens a directory for reading only. A directory that cannot be written needs no lock, and could
/// not hold one.
pub(crate) async fn lock_or_read_only(dir: &DataDir) -> Result<Access> {
    // A lock that is held proves that somebody can write there, so a server should be asked
    // instead.
    if dir.is_read_only() && !dir.is_held() {
        eprintln!(
            "note: {} is read-only: it is read without its lock",
            dir.path().display()
        );
        return Ok(Access::ReadOnly);
    }
    Ok(Access::Locked(create_and_lock(dir).await?))
}

/// Opens the store in a directory that cannot be written. What a start normally writes stays in
/// memory.
fn open_read_only(config: &Config, dir: &DataDir) -> Result<Store> {
    // The files are copied and not mapped: another user may be able to write them, and a mapping
    // of a file that shrinks would crash this process.
    let storage = ReadOnlyStorage::over(Arc::new(FileStorage::copying(dir.path())));
    let options = Options {
        read_only: true,
        ..store_options(config)?
    };
    let store = open_store_in(dir, Arc::new(storage), &options)?;
    if let Some(TornTail {
        file,
        offset,
        bytes,
        ..
    }) = store.torn_tail()
    {
        eprintln!(
            "note: a torn tail of {bytes} bytes at {file}:{offset} is left out; it stays there"
        );
    }
    Ok(store)
}

/// Opens the store in a directory that this process has locked.
pub(crate) fn open_store(config: &Config, dir: &DataDir) -> Result<Store> {
    let storage = Arc::new(FileStorage::new(dir.path()));
    let store = open_store_in(dir, storage, &store_options(config)?)?;
    if let Some(torn) = store.torn_tail() {
        eprintln!("{}", torn_text(torn));
    }
    Ok(store)
}

fn store_options(config: &Config) -> Result<Options> {
    Ok(Options {
        durability: config.durability.value,
        random: random_bytes()?,
        ..Options::default()
    })
}

fn open_store_in(dir: &DataDir, storage: Arc<dyn Storage>, options: &Options) -> Result<Store> {
    dir.refuse_unusable()?;
    let opened = Store::open(storage, options, Arc::new(WallClock));
    let store = opened.map_err(|error| {
        Failure::new(format!("cannot open the store in {}: {error}", dir.path().display()))
            .hint("`turnkeep verify` lists what is damaged; `turnkeep repair` copies what is sound to a new directory")
    })?;
    if let Some(lost) = store.lost_ids() {
        eprintln!("{}", lost_at_start_text(lost));
    }
    Ok(store)
}

fn lost_at_start_text(lost: &LostIds) -> String {
    let lost = lost_ids_text(lost.turns.as_ref(), lost.contexts.as_ref());
    format!(
        "warning: the log lost its end: {lost} had been acknowledged but did not reach the disk; their ids are not used again"
    )
}

/// Names turns and contexts by their ids.
pub(crate) fn lost_ids_text(
    turns: Option<&RangeInclusive<u64>>,
    contexts: Option<&RangeInclusive<u64>>,
) -> String {
    let turns = turns.map(|ids| ids_text("turn", ids));
    let contexts = contexts.map(|ids| ids_text("ctx", ids));
    let both: Vec<String> = [turns, contexts].into_iter().flatten().collect();
    both.join(", ")
}

/// Names ids of one kind.
pub(crate) fn ids_text(kind: &str, ids: &RangeInclusive<u64>) -> String {
    match (ids.start(), ids.end()) {
        (first, last) if first == last => format!("{kind}:{first}"),
        (first, last) => format!("{kind}:{first} to {kind}:{last}"),
    }
}

fn torn_text(torn: &TornTail) -> String {
    let TornTail {
        file,
        offset,
        bytes,
        copied_to,
    } = torn;
    format!(
        "note: a torn tail of {bytes} bytes at {file}:{offset} was cut; a copy is in {copied_to}"
    )
}
