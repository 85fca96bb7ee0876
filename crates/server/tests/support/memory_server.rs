//! A server in this process, on a store in memory and a clock that the test moves. The groups of
//! tests add their own clients to it.

#[path = "folded_run.rs"]
mod folded_run;
#[path = "run_checks.rs"]
mod run_checks;

use std::net::SocketAddr;
use std::sync::Arc;

use turnkeep_journal::{MemoryStorage, Storage};
use turnkeep_server::{Auth, Running, ServeError, ServerConfig, Token, UiFiles, serve};
use turnkeep_store::{Options, Store};
use turnkeep_types::{ManualClock, Timestamp};

/// The time on the store's clock at the start.
pub(crate) const NOW_MS: u64 = 1_766_174_400_123;

pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) store: Store,
    #[allow(dead_code, reason = "not every group of tests moves the clock")]
    pub(crate) clock: Arc<ManualClock>,
    /// `None` if the server requires none.
    owner_token: Option<Token>,
}

#[allow(dead_code, reason = "not every group of tests needs all of it")]
impl Server {
    /// Starts a server that requires no token.
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::start_on(MemoryStorage::new(), change).await
    }

    /// Starts a server on a disk that may have been used before.
    pub(crate) async fn start_on(
        disk: impl Storage + 'static,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        Self::try_start_on(disk, change).await.unwrap()
    }

    /// Starts a server that may refuse its configuration.
    pub(crate) async fn try_start_on(
        disk: impl Storage + 'static,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Result<Self, ServeError> {
        let clock = Arc::new(ManualClock::new(Timestamp(NOW_MS)));
        let store = Store::open(Arc::new(disk), &Options::default(), clock.clone()).unwrap();
        let free_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut config = ServerConfig {
            tcp_addr: free_port,
            http_addr: free_port,
            data_dir: "/data/turnkeep".into(),
            // Not the one that may have been built here.
            ui: UiFiles::Embedded(&[]),
            ..ServerConfig::default()
        };
        change(&mut config);
        let owner_token = match &config.auth {
            Auth::Token(token) => Some(token.clone()),
            Auth::Off(_) => None,
        };
        match serve(config, store.clone(), clock.clone()).await {
            Ok(running) => Ok(Self {
                running,
                store,
                clock,
                owner_token,
            }),
            Err(error) => {
                close(store).await;
                Err(error)
            }
        }
    }

    pub(crate) fn tcp_addr(&self) -> SocketAddr {
        self.running.tcp_addr()
    }

    pub(crate) fn http_addr(&self) -> SocketAddr {
        self.running.http_addr()
    }

    /// The header that makes a request the owner's, with its line break. Empty if none is needed.
    pub(super) fn owner_header(&self) -> String {
        let header = |token: &Token| format!("Authorization: Bearer {}\r\n", token.reveal());
        self.owner_token.as_ref().map(header).unwrap_or_default()
    }

    /// Stops the server, after the checks of its runs.
    pub(crate) async fn stop(self) {
        run_checks::check_all_runs(&self).await;
        self.running.shutdown().await;
        close(self.store).await;
    }
}

/// Closes a store, which waits for its writer thread.
async fn close(store: Store) {
    tokio::task::spawn_blocking(move || store.close())
        .await
        .unwrap();
}
