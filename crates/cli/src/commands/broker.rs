//! `turnkeep broker`: the broker alone.

use anyhow::{Context, Result};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::App;
use crate::broker::serve;
use crate::config::BrokerFlags;

/// Run the broker, which wrapped sessions hand their turns to
///
/// It listens on a socket in `$XDG_RUNTIME_DIR` that only this user reaches, and keeps turns in memory only.
/// `turnkeep up` runs one too. Ctrl-C or SIGTERM ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep broker
  turnkeep broker --ring 100 --max-turn-bytes 1000000
  turnkeep broker --linger 3600            turns of ended sessions stay for an hour")]
pub(crate) struct Args {
    #[command(flatten)]
    bounds: BrokerFlags,
}

pub(crate) async fn run(args: &Args, app: &mut App) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let broker = serve::begin(&app.config()?, args.bounds)?;
    let told = announce(broker.socket(), app);
    if told.is_ok() {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
    broker.shutdown().await;
    told
}

fn announce(socket: &std::path::Path, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        app.out.json(&json!({ "pid": std::process::id(), "socket": socket }))?;
    } else {
        app.out.line(format!("the broker listens on {}. Ctrl-C stops it.", socket.display()))?;
    }
    app.out.flush()
}
