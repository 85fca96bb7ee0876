//! Starts a broker inside this process, alone or beside the server.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use turnkeep_server::MemoryBudget;
use turnkeep_server::broker::{
    BrokerConfig, BrokerError, NodeChat, RunningBroker, SocketError, TurnKeeper, start,
};

use super::outlets::outlets;
use crate::config::{BrokerFlags, Config};
use crate::failure::Failure;
use crate::local::WallClock;

/// What a broker gets from the server in the same process.
pub(crate) struct ServerParts {
    /// Keeps captured turns in the server's store.
    pub(crate) store: Arc<dyn TurnKeeper>,
    /// Sends messages to the nodes of the server's runs.
    pub(crate) nodes: Arc<dyn NodeChat>,
    /// Large messages share the server's memory budget.
    pub(crate) memory: MemoryBudget,
}

/// Starts the broker on the current runtime, at this socket. Without a server beside it, the broker keeps turns in
/// the store that every command finds, reaches runs over HTTP, and has a memory budget of its own.
pub(crate) fn start_broker(
    socket: PathBuf,
    config: &Config,
    flags: BrokerFlags,
    beside: Option<&ServerParts>,
) -> Result<RunningBroker> {
    // Flags are resolved here and not in the configuration, because `up` and `broker` both have
    // them.
    let settings = config.broker.with_flags(flags)?;
    let memory = beside.map(|beside| beside.memory.clone());
    let broker = BrokerConfig {
        settings,
        memory,
        ..BrokerConfig::new(socket)
    };
    let outlets = outlets(config, beside);
    start(broker, outlets, Arc::new(WallClock)).map_err(|error| explain_start_error(&error))
}

fn explain_start_error(error: &BrokerError) -> anyhow::Error {
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
