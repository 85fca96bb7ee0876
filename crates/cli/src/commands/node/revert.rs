//! `turnkeep node revert`.

use anyhow::Result;
use turnkeep_wire::percent_encode;
use turnkeep_wire::runs::{ArtifactView, TurnFiles, TurnFilesAnswer};

use super::NodeOfRun;
use crate::commands::App;
use crate::commands::diff::{choose_diff, fetch_diffs};
use crate::commands::run::client::{RunsClient, ServerAnswer, run_path};
use crate::commands::run::names::find_node;
use crate::failure::Failure;
use crate::http::Call;
use crate::render::printable;

/// Restore the files that a turn changed
///
/// They get the content from before the turn. Refused if one of them was changed since. With --keep
/// the opposite: files that the node may not write stay as the turn left them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep node revert impl                # all files of its latest turn
  turnkeep node revert impl --turn 2 --path src/lib.rs
  turnkeep node revert plan --keep --path src/x.rs")]
pub(crate) struct NodeRevertArgs {
    #[command(flatten)]
    node: NodeOfRun,
    /// The turn of the node, counted from 1 [default: the latest]
    #[arg(long, value_name = "N")]
    turn: Option<u64>,
    /// Only this file; may be repeated
    #[arg(long = "path", value_name = "FILE")]
    paths: Vec<String>,
    /// Keep what the node was not allowed to write
    #[arg(long)]
    keep: bool,
}

pub(super) async fn run_node_revert(
    client: &mut RunsClient,
    args: &NodeRevertArgs,
    app: &mut App,
) -> Result<()> {
    let run = client.fetch_run(args.node.run.as_ref()).await?.view.run;
    let node = find_node(&run, &args.node.node)?;
    let diffs = fetch_diffs(client, &run.id.0, node).await?;
    let turn = turn_of(choose_diff(&diffs, node, args.turn)?)?;
    let action = if args.keep { "keep" } else { "revert" };
    let path = run_path(
        &run.id.0,
        &format!("/turns/{}/{action}", percent_encode(turn)),
    );
    let body = TurnFiles {
        paths: (!args.paths.is_empty()).then(|| args.paths.clone()),
    };
    let call = Call::post(path, &serde_json::to_value(body)?);
    let files: ServerAnswer<TurnFilesAnswer> = client.fetch(call).await?;
    if app.out.is_json() {
        return app.out.json(&files.json);
    }
    let done = if args.keep { "kept" } else { "restored" };
    let paths = files.view.paths;
    if paths.is_empty() {
        return app.out.line("there was nothing to do");
    }
    paths
        .iter()
        .try_for_each(|path| app.out.line(format!("{done} {}", printable(path))))
}

fn turn_of(diff: &ArtifactView) -> Result<&str> {
    let turn = diff
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.turn_id.as_ref());
    match turn {
        Some(turn) => Ok(&turn.0),
        None => Failure::new("the server does not say to which turn the diff belongs").fail(),
    }
}
