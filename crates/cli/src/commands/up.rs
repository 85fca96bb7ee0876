//! `turnkeep up`: the server.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use serde_json::json;
use turnkeep_server::broker::RunningBroker;
use turnkeep_store::Durability;

use super::App;
use crate::broker::serve::{self, ServerParts};
use crate::config::{BrokerFlags, Config, ServeFlags};
use crate::data_dir::{DataDir, ServerNote};
use crate::ending::Ending;
use crate::local::Local;
use crate::output::Style;

/// Start the server and print where it listens
///
/// Serves the binary protocol and HTTP on the data directory, which it makes if it is not there.
/// The printed link opens the status page. Ctrl-C or SIGTERM finishes what is under way and ends
/// it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep up
  turnkeep up --data ./store --http 127.0.0.1:8080
  turnkeep up --listen 127.0.0.1:0 --http 127.0.0.1:0 --json    free ports, printed as JSON
  turnkeep up --listen 0.0.0.0:9009 --http 0.0.0.0:9010 --tls-cert cert.pem --tls-key key.pem \\
              --allow-host store.example.org")]
pub(crate) struct Args {
    #[command(flatten)]
    serve: ServeFlags,
    #[command(flatten)]
    broker: BrokerFlags,
}

pub(crate) async fn run(args: &Args, app: &mut App) -> Result<()> {
    let config = app.config_of_files(&args.serve)?;
    let dir = DataDir::new(
        std::path::absolute(&config.data.value).context("cannot name the data directory")?,
    );
    let mut ending = Ending::listen()?;
    config.broker.with(args.broker)?;
    let local = Local::up(&config, &dir).await?;
    let note = ServerNote {
        pid: std::process::id(),
        http: from_here(local.http_addr()),
        tcp: from_here(local.tcp_addr()),
        tls_cert: config
            .tls_cert
            .value
            .as_deref()
            .map(std::path::absolute)
            .transpose()?,
        passing: false,
    };
    let broker = broker_beside(&config, args.broker, &local);
    if let Some(broker) = &broker {
        local.show_terminals(broker);
    }
    // Whoever reads the note finds everything there.
    let noted = dir.leave_note(&note);
    let told = noted.and_then(|()| announce(&local, broker.as_ref(), &config, &dir, app));
    if told.is_ok() {
        ending.asked().await;
        tracing::info!("stopping");
    }
    dir.remove_note();
    tokio::select! {
        () = local.stop() => {}
        // Somebody who asks twice does not want to wait.
        () = ending.asked() => {}
    }
    // Last, so that those who watch a terminal hear that the server stops, and not that the program
    // ended.
    if let Some(broker) = broker {
        broker.shutdown().await;
    }
    if told.is_ok() {
        say_good_bye(app);
    }
    told
}

/// Says that the server has ended, to a person. A terminal that is gone hears nothing.
fn say_good_bye(app: &mut App) {
    if app.out.is_json() {
        return;
    }
    let said = app
        .out
        .line("turnkeep has stopped. Good-bye: everything acknowledged is kept.");
    said.and_then(|()| app.out.flush()).ok();
}

/// A broker in the same process. Without one the store serves all the same.
fn broker_beside(config: &Config, flags: BrokerFlags, local: &Local) -> Option<RunningBroker> {
    let beside = ServerParts {
        store: local.turn_keeper(),
        memory: local.memory_budget(),
    };
    match serve::begin(config, flags, Some(beside)) {
        Ok(broker) => Some(broker),
        Err(error) => {
            eprintln!("note: no broker is started here: {error:#}");
            None
        }
    }
}

/// How a command on this machine reaches an address that is listened on.
fn from_here(addr: SocketAddr) -> String {
    if addr.ip().is_unspecified() {
        format!("localhost:{}", addr.port())
    } else {
        addr.to_string()
    }
}

fn announce(
    local: &Local,
    broker: Option<&RunningBroker>,
    config: &Config,
    dir: &DataDir,
    app: &mut App,
) -> Result<()> {
    let socket = broker.map(RunningBroker::socket);
    let durability = config.durability.value;
    if app.out.is_json() {
        let line = json!({
            "pid": std::process::id(),
            "data": dir.path(),
            "tcp": local.tcp_addr().to_string(),
            "http": local.http_addr().to_string(),
            "durability": if durability == Durability::Fsync { "fsync" } else { "os" },
            "broker": socket,
            "link": local.link(),
        });
        app.out.json(&line)?;
        return app.out.flush();
    }
    let durability = match durability {
        Durability::Fsync => {
            "fsync: what is acknowledged survives kill -9 and power loss".to_owned()
        }
        Durability::Os => app.out.paint(
            Style::Warning,
            "os: what is acknowledged survives kill -9, but power loss may take the last 100 ms",
        ),
    };
    app.out.line(format!(
        "turnkeep {} is up. Ctrl-C stops it.",
        env!("CARGO_PKG_VERSION")
    ))?;
    app.out.line("")?;
    let scheme = if config.tls_cert.value.is_some() {
        "https"
    } else {
        "http"
    };
    app.out.pairs(&[
        ("Binary", local.tcp_addr().to_string()),
        ("HTTP", format!("{scheme}://{}", local.http_addr())),
        (
            "Broker",
            socket.map_or_else(|| "none".to_owned(), |socket| socket.display().to_string()),
        ),
        ("Data", dir.path().display().to_string()),
        ("Durability", durability),
        ("Open", app.out.paint(Style::Name, &local.link())),
    ])?;
    app.out.flush()
}
