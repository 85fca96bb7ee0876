//! A store that this process opens itself: the lock, the log, a server on it.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Result;
use turnkeep_journal::{DataDirLock, FileStorage, LockError, ReadOnlyStorage, Storage, TornTail};
use turnkeep_server::broker::{RunningBroker, TurnKeeper};
use turnkeep_server::{Auth, MemoryBudget, Running, ServeError, ServerConfig, TlsFiles, Token};
use turnkeep_store::{LostIds, Options, Store};
use turnkeep_types::{Clock, Timestamp};

use crate::config::Config;
use crate::data_dir::{DENIED_HINT, DataDir, ServerNote, random_bytes};
use crate::failure::Failure;
use crate::listener::{self, Listener};
use crate::session::{Need, server_on};

/// An open store and its server.
pub(crate) struct Local {
    running: Running,
    store: Store,
    token: String,
    /// Held until the store is closed.
    _access: Access,
}

/// How this process may use a data directory.
pub(crate) enum Access {
    /// It has the directory for itself, as long as this lives.
    Locked(#[expect(dead_code, reason = "held, not looked at")] DataDirLock),
    /// Nothing can be written there; it is read without a lock.
    ReadOnly,
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

impl Local {
    /// Opens the directory for one command: on free ports of the loopback, always with the token.
    pub(crate) async fn start(config: &Config, dir: &DataDir, need: Need) -> Result<Self> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = ServerConfig {
            tcp_addr: any,
            http_addr: any,
            ..server_config(config)
        };
        let access = match need {
            Need::Read => lock_or_read_only(dir).await?,
            Need::Change | Need::Write => Access::Locked(lock_new(dir).await?),
        };
        Self::serve(
            config,
            dir,
            ServerConfig {
                tls: None,
                ..server
            },
            AuthMode::Token,
            access,
        )
        .await
    }

    /// Opens the directory and serves it as configured.
    pub(crate) async fn up(config: &Config, dir: &DataDir) -> Result<Self> {
        let auth = if config.no_auth.value {
            AuthMode::Off
        } else {
            AuthMode::Token
        };
        let access = Access::Locked(lock_new(dir).await?);
        Self::serve(config, dir, server_config(config), auth, access).await
    }

    async fn serve(
        config: &Config,
        dir: &DataDir,
        server: ServerConfig,
        auth: AuthMode,
        access: Access,
    ) -> Result<Self> {
        let token = match access {
            Access::Locked(_) => dir.ensure_token()?,
            // It cannot be kept, and nobody but this command needs it.
            Access::ReadOnly => hex::encode(random_bytes()?),
        };
        let auth = match auth {
            AuthMode::Token => Auth::Token(Token::new(&token)),
            AuthMode::Off => Auth::Off(Some(Token::new(&token))),
        };
        let store = match access {
            Access::Locked(_) => open(config, dir)?,
            Access::ReadOnly => open_read_only(config, dir)?,
        };
        let serving = turnkeep_server::serve(
            ServerConfig { auth, ..server },
            store.clone(),
            Arc::new(WallClock),
        )
        .await;
        match serving {
            Ok(running) => Ok(Self {
                running,
                store,
                token,
                _access: access,
            }),
            Err(error) => {
                store.close();
                Err(refused(&error).into())
            }
        }
    }

    pub(crate) fn http_addr(&self) -> SocketAddr {
        self.running.http_addr()
    }

    pub(crate) fn tcp_addr(&self) -> SocketAddr {
        self.running.tcp_addr()
    }

    /// Lets the owner watch the broker's terminals over HTTP.
    pub(crate) fn show_terminals(&self, broker: &RunningBroker) {
        self.running.show_terminals(broker.terminals());
    }

    /// The memory that large requests and answers share.
    pub(crate) fn memory_budget(&self) -> MemoryBudget {
        self.running.memory_budget()
    }

    /// Keeps captured turns in this store.
    pub(crate) fn turn_keeper(&self) -> Arc<dyn TurnKeeper> {
        self.running.turn_keeper()
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The address of the status page, with the token that opens it.
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
        if let Err(error) = tokio::task::spawn_blocking(move || store.close()).await {
            tracing::error!(%error, "the store did not close");
        }
    }
}

/// Why the server does not start. A port that another server of ours has is named with that server.
fn refused(error: &ServeError) -> Failure {
    let taken = match error {
        ServeError::Bind { addr, source } if source.kind() == ErrorKind::AddrInUse => {
            listener::ours_on(*addr).map(|listener| (addr, listener))
        }
        _ => None,
    };
    let Some((addr, Listener { pid, data })) = taken else {
        return Failure::new(error.to_string()).hint(serve_hint(error));
    };
    let whose = data
        .map(|data| format!(" of {}", data.display()))
        .unwrap_or_default();
    let failure = Failure::new(format!(
        "{addr} is taken by the turnkeep server{whose}, process {pid}"
    ));
    failure.hint(format!("stop that one, or {}", serve_hint(error)))
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
        ..ServerConfig::default()
    }
}

/// How often the lock is tried again, and the pause before the next time.
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// While another command has it, or a server that ends gives it back. On a busy disk that takes its
/// time.
const LOCK_TRIES_MAX: u32 = 200;
/// While an agent's server has it: the agent may be about to end.
const AGENT_TRIES_MAX: u32 = 20;

/// Takes the directory for this process alone. A note that is there was left by a killed server.
/// Another command that has it is waited for, and an agent's server for a moment; a server that
/// stays is not.
pub(crate) async fn lock(dir: &DataDir) -> Result<DataDirLock> {
    let mut tries = 0;
    loop {
        let error = match DataDirLock::acquire(dir.path()) {
            Ok(lock) => {
                dir.remove_note();
                return Ok(lock);
            }
            Err(error) => error,
        };
        let server = server_on(dir).await;
        let tries_max = match (&error, &server) {
            (LockError::Held { .. }, None) => LOCK_TRIES_MAX,
            (LockError::Held { .. }, Some(note)) if note.passing => AGENT_TRIES_MAX,
            (LockError::Held { .. }, Some(_))
            | (LockError::ReadOnly { .. } | LockError::Io { .. }, _) => 0,
        };
        if tries >= tries_max {
            return Err(locked(&error, server.as_ref()).into());
        }
        tries += 1;
        tokio::time::sleep(LOCK_PAUSE).await;
    }
}

/// The failure of a command that cannot have the directory.
fn locked(error: &LockError, server: Option<&ServerNote>) -> Failure {
    let hint = match (server, error) {
        (Some(note), _) if note.passing => {
            "an agent's `turnkeep mcp` serves it meanwhile: close that agent, start this, then the agents find it"
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

/// Makes the directory if need be, and takes it.
async fn lock_new(dir: &DataDir) -> Result<DataDirLock> {
    dir.create()?;
    lock(dir).await
}

/// Takes a directory that is only going to be read. One that cannot be written needs no lock.
pub(crate) async fn lock_or_read_only(dir: &DataDir) -> Result<Access> {
    let is_held = || {
        matches!(
            DataDirLock::acquire(dir.path()),
            Err(LockError::Held { .. })
        )
    };
    if dir.is_read_only() && !is_held() {
        eprintln!(
            "note: {} is read-only: it is read without its lock",
            dir.path().display()
        );
        return Ok(Access::ReadOnly);
    }
    Ok(Access::Locked(lock_new(dir).await?))
}

/// Opens the store in a directory that cannot be written: what a start changes is changed in
/// memory.
fn open_read_only(config: &Config, dir: &DataDir) -> Result<Store> {
    // Copied, not mapped: somebody else may be able to write there after all.
    let storage = ReadOnlyStorage::over(Arc::new(FileStorage::copying(dir.path())));
    let options = Options {
        read_only: true,
        ..options(config)?
    };
    let store = open_in(dir, Arc::new(storage), &options)?;
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

/// Opens the store in a directory that this process has for itself.
pub(crate) fn open(config: &Config, dir: &DataDir) -> Result<Store> {
    let storage = Arc::new(FileStorage::new(dir.path()));
    let store = open_in(dir, storage, &options(config)?)?;
    if let Some(torn) = store.torn_tail() {
        eprintln!("{}", torn_text(torn));
    }
    Ok(store)
}

fn options(config: &Config) -> Result<Options> {
    Ok(Options {
        durability: config.durability.value,
        random: random_bytes()?,
        ..Options::default()
    })
}

fn open_in(dir: &DataDir, storage: Arc<dyn Storage>, options: &Options) -> Result<Store> {
    dir.refuse_unfinished()?;
    dir.refuse_unreadable()?;
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
        "warning: the log went back: {lost} had been acknowledged but did not reach the disk; their ids are not given again"
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
