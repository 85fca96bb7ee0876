//! `turnkeep up`: runs the server, and a broker beside it.

mod demo;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use turnkeep_server::broker::RunningBroker;
use turnkeep_store::Durability;

use self::demo::DemoDirectory;
use super::App;
use crate::broker::broker_socket_path;
use crate::broker::serve::{self, ServerParts};
use crate::config::{BrokerFlags, Config, ServeFlags, durability_text};
use crate::data_dir::{DataDir, ServerNote};
use crate::local::LocalServer;
use crate::output::Style;
use crate::shutdown_signals::ShutdownSignals;

/// Start the server and print where it listens
///
/// Serves the binary protocol and HTTP on the data directory, which it makes if it is not there.
/// The printed link opens the web UI. Ctrl-C or SIGTERM finishes what is under way and ends
/// it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep up
  turnkeep up --demo            look around: all of it is removed at the end
  turnkeep up --data ./store --http 127.0.0.1:8080
  turnkeep up --listen 127.0.0.1:0 --http 127.0.0.1:0 --json    free ports, printed as JSON
  turnkeep up --listen 0.0.0.0:9009 --http 0.0.0.0:9010 --tls-cert cert.pem --tls-key key.pem \\
              --allow-host store.example.org")]
pub(crate) struct UpArgs {
    #[command(flatten)]
    serve: ServeFlags,
    #[command(flatten)]
    broker: BrokerFlags,
    /// Serve a demo: agents without a model work in a temporary directory, which is removed at the
    /// end. Your own data and configuration are not used; the ports are free ones unless given
    #[arg(long)]
    demo: bool,
}

pub(crate) async fn run_up(args: &UpArgs, app: &mut App) -> Result<()> {
    // Before a demo makes its directory: a signal that arrives early must not leave it behind.
    let mut shutdown = ShutdownSignals::listen()?;
    if args.demo {
        return run_demo(args, app, &mut shutdown).await;
    }
    let plan = ServePlan {
        config: app.config_of_files(&args.serve)?,
        broker: args.broker,
        demo: None,
    };
    serve_until_asked(&plan, app, &mut shutdown).await?;
    say_good_bye(app, "everything acknowledged is kept.");
    Ok(())
}

/// Serves a demo, and removes its directory at the end, however the end comes.
async fn run_demo(args: &UpArgs, app: &mut App, shutdown: &mut ShutdownSignals) -> Result<()> {
    demo::refuse_options(app, &args.serve)?;
    let directory = DemoDirectory::create()?;
    let served = async {
        let plan = ServePlan {
            config: directory.config(&args.serve)?,
            broker: args.broker,
            demo: Some(&directory),
        };
        serve_until_asked(&plan, app, shutdown).await
    };
    let served = served.await;
    let removed = directory.remove().await;
    served.and(removed)?;
    say_good_bye(app, "the demo and its directory are removed.");
    Ok(())
}

/// What is served, and how.
struct ServePlan<'a> {
    config: Config,
    broker: BrokerFlags,
    demo: Option<&'a DemoDirectory>,
}

async fn serve_until_asked(
    plan: &ServePlan<'_>,
    app: &mut App,
    shutdown: &mut ShutdownSignals,
) -> Result<()> {
    let config = &plan.config;
    let dir = DataDir::new(
        std::path::absolute(&config.data.value).context("cannot name the data directory")?,
    );
    // Wrong flags of the broker end the command before the store is opened.
    config.broker.with_flags(plan.broker)?;
    let local = match plan.demo {
        Some(_) => LocalServer::start_demo(config, &dir).await?,
        None => LocalServer::start_configured(config, &dir).await?,
    };
    let broker = try_start_broker(plan, &local);
    if let Some(broker) = &broker {
        local.offer_broker(broker);
    }
    // The note comes last, so that a command that reads it finds a complete server.
    let noted = note_of(&local, config).and_then(|note| dir.leave_note(&note));
    let announced = noted.and_then(|()| announce_server(&local, broker.as_ref(), plan, &dir, app));
    if announced.is_ok() {
        wait_until_asked(plan, &local, app, shutdown).await;
        tracing::info!("stopping");
    }
    // Removed first: a command that reads it now would reach a server that accepts no more work.
    dir.remove_note();
    stop_server(local, broker, shutdown).await;
    announced
}

/// Waits for a signal. A demo is filled meanwhile.
async fn wait_until_asked(
    plan: &ServePlan<'_>,
    local: &LocalServer,
    app: &mut App,
    shutdown: &mut ShutdownSignals,
) {
    let Some(directory) = plan.demo else {
        return shutdown.requested().await;
    };
    let fill = async {
        // The terminal is kept until the server stops.
        let _terminal = demo::fill_demo(directory, local, app).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = shutdown.requested() => {}
        () = fill => {}
    }
}

fn note_of(local: &LocalServer, config: &Config) -> Result<ServerNote> {
    let certificate = config.tls_cert.value.as_deref();
    Ok(ServerNote {
        pid: std::process::id(),
        http: local_address(local.http_addr()),
        tcp: local_address(local.tcp_addr()),
        tls_cert: certificate.map(std::path::absolute).transpose()?,
        passing: false,
    })
}

async fn stop_server(
    local: LocalServer,
    broker: Option<RunningBroker>,
    shutdown: &mut ShutdownSignals,
) {
    tokio::select! {
        () = local.stop() => {}
        // A second signal means that the person does not want to wait.
        () = shutdown.requested() => {}
    }
    // The broker stops after the server. In the other order, those who watch a terminal would see
    // the program end instead of the server.
    if let Some(broker) = broker {
        broker.shutdown().await;
    }
}

/// Tells a person that the server has ended. The terminal may be gone, so a failure is ignored.
fn say_good_bye(app: &mut App, what_stays: &str) {
    if app.out.is_json() {
        return;
    }
    let line = format!("turnkeep has stopped. Good-bye: {what_stays}");
    let said = app.out.line(line);
    said.and_then(|()| app.out.flush()).ok();
}

/// Starts a broker in the same process. The server runs without one if that fails, for example
/// because another broker runs already.
fn try_start_broker(plan: &ServePlan<'_>, local: &LocalServer) -> Option<RunningBroker> {
    let beside = ServerParts {
        store: local.turn_keeper(),
        nodes: local.node_chat(),
        memory: local.memory_budget(),
    };
    let started = broker_socket(plan)
        .and_then(|socket| serve::start_broker(socket, &plan.config, plan.broker, Some(&beside)));
    match started {
        Ok(broker) => Some(broker),
        Err(error) => {
            eprintln!("note: no broker is started here: {error:#}");
            None
        }
    }
}

/// Where the broker listens. A demo has a broker of its own.
fn broker_socket(plan: &ServePlan<'_>) -> Result<PathBuf> {
    match plan.demo {
        Some(directory) => Ok(directory.broker_socket()),
        None => broker_socket_path(),
    }
}

/// The address by which a command on this machine reaches a listener. A listener on all addresses
/// has no address of its own.
fn local_address(addr: SocketAddr) -> String {
    if addr.ip().is_unspecified() {
        format!("localhost:{}", addr.port())
    } else {
        addr.to_string()
    }
}

fn announce_server(
    local: &LocalServer,
    broker: Option<&RunningBroker>,
    plan: &ServePlan<'_>,
    dir: &DataDir,
    app: &mut App,
) -> Result<()> {
    let config = &plan.config;
    let socket = broker.map(RunningBroker::socket);
    if app.out.is_json() {
        app.out.json(&json!({
            "pid": std::process::id(),
            "data": dir.path(),
            "tcp": local.tcp_addr().to_string(),
            "http": local.http_addr().to_string(),
            "durability": durability_text(config.durability.value),
            "broker": socket,
            "link": local.link(),
        }))?;
    } else {
        print_addresses(local, socket, config, dir, app)?;
        if let Some(directory) = plan.demo {
            let path = directory.path().display();
            app.out.line("")?;
            app.out.line(format!(
                "This is a demo. All of it is in {path}, which is removed when it stops."
            ))?;
            let data = dir.path().display();
            app.out.line(format!(
                "For commands in another terminal: export TURNKEEP_DATA={data}"
            ))?;
        }
    }
    // A program that waits for these lines reads them from a pipe, which is buffered.
    app.out.flush()
}

fn print_addresses(
    local: &LocalServer,
    socket: Option<&Path>,
    config: &Config,
    dir: &DataDir,
    app: &mut App,
) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    app.out
        .line(format!("turnkeep {version} is up. Ctrl-C stops it."))?;
    app.out.line("")?;
    let has_tls = config.tls_cert.value.is_some();
    let scheme = if has_tls { "https" } else { "http" };
    let socket = socket.map_or_else(|| "none".to_owned(), |path| path.display().to_string());
    let link = app.out.paint(Style::Name, &local.link());
    app.out.pairs(&[
        ("Binary", local.tcp_addr().to_string()),
        ("HTTP", format!("{scheme}://{}", local.http_addr())),
        ("Broker", socket),
        ("Data", dir.path().display().to_string()),
        ("Durability", durability_promise(config, app)),
        ("Open", link),
    ])
}

fn durability_promise(config: &Config, app: &App) -> String {
    match config.durability.value {
        Durability::Fsync => {
            "fsync: what is acknowledged survives kill -9 and power loss".to_owned()
        }
        Durability::Os => app.out.paint(
            Style::Warning,
            "os: what is acknowledged survives kill -9, but power loss may take the last 100 ms",
        ),
    }
}
