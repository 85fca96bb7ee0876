//! `turnkeep broker`: the broker alone.

use anyhow::Result;
use serde_json::json;

use super::App;
use crate::broker::serve;
use crate::config::BrokerFlags;
use crate::ending::Ending;
use crate::failure::Failure;

/// Run the broker, which wrapped sessions hand their turns to
///
/// It listens on a socket in `$XDG_RUNTIME_DIR` that only this user reaches, and keeps turns in
/// memory only. `turnkeep up` runs one too. Ctrl-C, SIGTERM or SIGHUP ends it.
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
    let mut ending = Ending::listen()?;
    let broker = serve::begin(&app.config()?, args.bounds, None)?;
    let mut told = announce(broker.socket(), app);
    if told.is_ok() {
        tokio::select! {
            () = ending.asked() => {}
            () = broker.replaced() => told = Err(Failure::new("another broker has taken the place of this one").into()),
        }
    }
    broker.shutdown().await;
    told
}

fn announce(socket: &std::path::Path, app: &mut App) -> Result<()> {
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
