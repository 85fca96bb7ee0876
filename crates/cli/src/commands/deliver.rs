//! `turnkeep deliver`: hands what was captured to a sink.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use turnkeep_types::broker::{Deliver, Stored, TurnForm};

use super::App;
use crate::broker::name::Sessions;
use crate::broker::{connect, deliver_as, explained};
use crate::failure::Failure;
use crate::names::SessionName;
use crate::output::Style;

/// Hand what was captured to a sink: inject, clipboard, file, store or node
///
/// The turn's readable text is delivered; with --raw the captured bytes are. A file is replaced
/// whole or not at all. `store` appends the whole turn to the turn store, once, to the context of
/// its session, which has its session's id and name as labels. Pasting lines into a shell with
/// `inject` runs them; a program that shows a dialog would take them for the answer, which is
/// refused unless --force is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep deliver clipboard
  turnkeep deliver file --path answer.md
  turnkeep deliver inject --session tests
  turnkeep deliver store                  # says as which turn of which context
  turnkeep ctx list --label name=review   # the contexts of a session's turns")]
pub(crate) struct Args {
    /// The sink
    sink: String,
    /// inject: the session: its name, its id, a unique head of its id, or @last
    #[arg(long, value_name = "SESSION", conflicts_with = "path")]
    session: Option<SessionName>,
    /// file: where to write
    #[arg(long, value_name = "FILE")]
    path: Option<PathBuf>,
    /// node: the run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// node: the node
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

pub(crate) fn run(args: &Args, app: &mut App) -> Result<()> {
    check(args)?;
    let mut broker = connect()?;
    let session = match &args.session {
        Some(name) => Some(Sessions::ask(&mut broker)?.find(name)?.session.clone()),
        None => None,
    };
    let path = args.path.as_deref().map(absolute).transpose()?;
    let deliver = |form: TurnForm| Deliver {
        sink: args.sink.clone(),
        session: session.clone(),
        path: path.clone(),
        run: args.run.clone(),
        node: args.node.clone(),
        form,
        bracketed: args.bracketed,
        unless_blocked: !args.force,
    };
    let stored = deliver_as(args.raw, |form| broker.deliver(deliver(form))).map_err(explained)?;
    if app.out.is_json() {
        let mut ack = json!({ "sink": args.sink });
        if let Some(Stored { context, turn }) = stored {
            ack["context_id"] = context.to_string().into();
            ack["turn_id"] = turn.to_string().into();
        }
        return app.out.json(&ack);
    }
    let place = stored.map(|Stored { context, turn }| {
        format!(
            " as {} of ctx:{context}",
            app.out.paint(Style::Id, &format!("turn:{turn}"))
        )
    });
    app.out.line(format!(
        "delivered to {}{}",
        args.sink,
        place.unwrap_or_default()
    ))
}

/// Says which flag a sink lacks; what a sink that is not known needs, the broker says.
fn check(args: &Args) -> Result<(), Failure> {
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

/// The path as the broker, which is in another directory, has to be told it.
fn absolute(path: &Path) -> Result<String> {
    let path =
        std::path::absolute(path).with_context(|| format!("cannot name {}", path.display()))?;
    let text = path.into_os_string().into_string();
    text.map_err(|path| Failure::new(format!("{} is not UTF-8", path.display())).into())
}
