//! `turnkeep deliver`: delivers the captured turn to a sink.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use turnkeep_client::broker::Connection;
use turnkeep_session::broker::NodeAddress;
use turnkeep_types::broker::{Deliver, Stored, TurnForm};

use super::App;
use super::run::client::RunsClient;
use super::run::names::{RunName, find_node};
use crate::broker::known_sessions::KnownSessions;
use crate::broker::{connect_to_broker, deliver_as, explain_broker_error};
use crate::failure::Failure;
use crate::names::SessionName;
use crate::output::Style;
use crate::runtime::block_on;

/// Deliver the captured turn to a sink: inject, clipboard, file, store or node
///
/// The turn's readable text is delivered; with --raw the captured bytes are. A file is replaced
/// whole or not at all. `store` appends the whole turn to the turn store, once, to the context of
/// its session, which has its session's id and name as labels. `node` sends the text to an agent of
/// a run, as your own message. Pasting lines into a shell with `inject` runs them; a program that shows a dialog would take them for the answer, which is
/// refused unless --force is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep deliver clipboard
  turnkeep deliver file --path answer.md
  turnkeep deliver inject --session tests
  turnkeep deliver store                  # says as which turn of which context
  turnkeep deliver node --run @last --node reviewer
  turnkeep ctx list --label name=review   # the contexts of a session's turns")]
pub(crate) struct DeliverArgs {
    /// The sink
    sink: String,
    /// inject: the session: its name, its id, a unique head of its id, or @last
    #[arg(long, value_name = "SESSION", conflicts_with = "path")]
    session: Option<SessionName>,
    /// file: where to write
    #[arg(long, value_name = "FILE")]
    path: Option<PathBuf>,
    /// node: the run: its id, a unique head of its id, or @last
    #[arg(long, value_name = "RUN")]
    run: Option<RunName>,
    /// node: the node: its alias, its label, its id or a unique head of its id
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// The captured bytes instead of the text: the terminal's own where they were kept
    #[arg(long)]
    raw: bool,
    /// inject: also into a program that shows a dialog
    #[arg(long)]
    force: bool,
    /// inject: frame it as a bracketed paste where the program asks for that
    #[arg(long)]
    bracketed: bool,
}

pub(crate) fn run_deliver(args: &DeliverArgs, app: &mut App) -> Result<()> {
    // Before the broker is asked, so a missing flag is a usage error with exit code 2.
    check_sink_flags(args)?;
    let mut broker = connect_to_broker()?;
    let session = match &args.session {
        Some(name) => Some(full_session_id(name, &mut broker)?),
        None => None,
    };
    let path = args.path.as_deref().map(absolute_path_text).transpose()?;
    let to = find_receiver(args, app)?;
    let deliver = |form: TurnForm| Deliver {
        sink: args.sink.clone(),
        session: session.clone(),
        path: path.clone(),
        run: to.as_ref().map(|to| to.run.clone()),
        node: to.as_ref().map(|to| to.node.clone()),
        form,
        bracketed: args.bracketed,
        unless_blocked: !args.force,
    };
    let stored = deliver_as(args.raw, |form| broker.deliver(deliver(form)));
    print_delivered(args, stored.map_err(explain_broker_error)?, app)
}

/// Names are resolved here. The broker knows sessions by their full ids only.
fn full_session_id(name: &SessionName, broker: &mut Connection) -> Result<String> {
    let sessions = KnownSessions::fetch(broker)?;
    Ok(sessions.find_session(name)?.session.clone())
}

/// The node that the flags name, by its ids: the broker knows no others.
fn find_receiver(args: &DeliverArgs, app: &App) -> Result<Option<NodeAddress>> {
    let (Some(run), Some(node)) = (&args.run, &args.node) else {
        return Ok(None);
    };
    block_on(async {
        let mut client = RunsClient::connect(app).await?;
        let run = client.fetch_run(Some(run)).await?.view.run;
        let node = find_node(&run, node)?;
        Ok(Some(NodeAddress {
            node: node.id.0.clone(),
            run: run.id.0,
        }))
    })
}

fn print_delivered(args: &DeliverArgs, stored: Option<Stored>, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        let mut ack = json!({ "sink": args.sink });
        if let Some(Stored { context, turn }) = stored {
            ack["context_id"] = context.to_string().into();
            ack["turn_id"] = turn.to_string().into();
        }
        return app.out.json(&ack);
    }
    let sink = &args.sink;
    let line = match stored {
        Some(Stored { context, turn }) => {
            let turn = app.out.paint(Style::Id, &format!("turn:{turn}"));
            format!("delivered to {sink} as {turn} of ctx:{context}")
        }
        None => format!("delivered to {sink}"),
    };
    app.out.line(line)
}

/// Checks the flags that a known sink needs. The broker answers for a sink that it does not know.
fn check_sink_flags(args: &DeliverArgs) -> Result<(), Failure> {
    let needs = match &*args.sink {
        "inject" if args.session.is_none() => "--session SESSION",
        "file" if args.path.is_none() => "--path FILE",
        "node" if args.run.is_none() => "--run RUN",
        "node" if args.node.is_none() => "--node NODE",
        _ => return Ok(()),
    };
    Err(Failure::usage(format!(
        "the sink {} needs {needs}",
        args.sink
    )))
}

/// The absolute form of a path, because the broker runs in another directory.
fn absolute_path_text(path: &Path) -> Result<String> {
    let path =
        std::path::absolute(path).with_context(|| format!("cannot name {}", path.display()))?;
    let text = path.into_os_string().into_string();
    text.map_err(|path| Failure::new(format!("{} is not UTF-8", path.display())).into())
}
