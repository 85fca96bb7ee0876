//! `turnkeep broker`: runs the broker without a server.

use anyhow::Result;
use serde_json::json;

use super::App;
use crate::broker::{broker_socket_path, serve};
use crate::config::BrokerFlags;
use crate::failure::Failure;
use crate::shutdown_signals::ShutdownSignals;

/// Run the broker, to which wrapped sessions send their turns
///
/// It listens on a socket in `$XDG_RUNTIME_DIR` that only this user reaches, and keeps turns in
/// memory only. `turnkeep up` runs one too. Ctrl-C, SIGTERM or SIGHUP ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep broker
  turnkeep broker --ring 100 --max-turn-bytes 1000000
  turnkeep broker --linger 3600            turns of ended sessions stay for an hour")]
pub(crate) struct BrokerArgs {
    #[command(flatten)]
    bounds: BrokerFlags,
}

pub(crate) async fn run_broker(args: &BrokerArgs, app: &mut App) -> Result<()> {
    // Before the socket exists: a signal that arrives early must not leave it behind.
    let mut shutdown = ShutdownSignals::listen()?;
    let broker = serve::start_broker(broker_socket_path()?, &app.config()?, args.bounds, None)?;
    let mut told = announce_socket(broker.socket(), app);
    if told.is_ok() {
        tokio::select! {
            () = shutdown.requested() => {}
            // Another broker may bind the same path, for example after the directory was cleaned.
            () = broker.wait_until_replaced() => told = Err(Failure::new("another broker has taken the place of this one").into()),
        }
    }
    broker.shutdown().await;
    told
}

fn announce_socket(socket: &std::path::Path, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        app.out
            .json(&json!({ "pid": std::process::id(), "socket": socket }))?;
    } else {
        app.out.line(format!(
            "the broker listens on {}. Ctrl-C stops it.",
            socket.display()
        ))?;
    }
    app.out.flush()
}
