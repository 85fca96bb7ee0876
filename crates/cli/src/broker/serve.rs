//! A broker inside this process: alone, or beside the server.

use std::sync::Arc;

use anyhow::Result;
use turnkeep_server::MemoryBudget;
use turnkeep_server::broker::{
    BrokerConfig, BrokerError, RunningBroker, SocketError, TurnKeeper, start,
};

use super::outlets::outlets;
use super::socket;
use crate::config::{BrokerFlags, Config};
use crate::failure::Failure;
use crate::local::WallClock;

/// What a broker gets from the server in the same process.
pub(crate) struct ServerParts {
    /// Keeps captured turns in the server's store.
    pub(crate) store: Arc<dyn TurnKeeper>,
    /// Large messages share the server's memory budget.
    pub(crate) memory: MemoryBudget,
}

/// Starts the broker on the current runtime. Without a server beside it, the broker keeps turns in
/// the store that every command finds, and has a memory budget of its own.
pub(crate) fn begin(
    config: &Config,
    flags: BrokerFlags,
    beside: Option<ServerParts>,
) -> Result<RunningBroker> {
    let settings = config.broker.with(flags)?;
    let (own_store, memory) = match beside {
        Some(ServerParts { store, memory }) => (Some(store), Some(memory)),
        None => (None, None),
    };
    let broker = BrokerConfig {
        settings,
        memory,
        ..BrokerConfig::new(socket()?)
    };
    let outlets = outlets(config, own_store);
    start(broker, outlets, Arc::new(WallClock)).map_err(|error| explained(&error))
}

fn explained(error: &BrokerError) -> anyhow::Error {
    let failure = Failure::new(error.to_string());
    let hint = match error {
        BrokerError::Socket(SocketError::AlreadyRunning(_)) => {
            "one is enough: other commands reach it by themselves"
        }
        BrokerError::Socket(SocketError::NotASocket(_)) => "move it away and try again",
        BrokerError::Socket(SocketError::NotOurs(_)) => {
            "XDG_RUNTIME_DIR must name a directory of the user who runs the broker"
        }
        BrokerError::Socket(SocketError::Io { .. }) => {
            "check XDG_RUNTIME_DIR: it must be there and writable"
        }
        BrokerError::Settings(_) => "see `turnkeep broker --help`",
    };
    failure.hint(hint).into()
}
