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
use crate::http::{Call, HttpRefusal};
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
    let diff = choose_diff(&diffs, node, args.turn)?;
    let action = if args.keep { "keep" } else { "revert" };
    let turn = percent_encode(turn_of(diff)?);
    let path = run_path(&run.id.0, &format!("/turns/{turn}/{action}"));
    let body = TurnFiles {
        paths: (!args.paths.is_empty()).then(|| args.paths.clone()),
    };
    if args.keep {
        check_violation(diff)?;
    } else if changed_files(diff).is_empty() && !app.out.is_json() {
        return app.out.line("the turn changed no files");
    }
    let call = Call::post(path, &serde_json::to_value(body)?);
    let answer = client.fetch(call).await;
    let files: ServerAnswer<TurnFilesAnswer> = answer.map_err(explain_conflict)?;
    if app.out.is_json() {
        return app.out.json(&files.json);
    }
    let TurnFilesAnswer { paths, already } = files.view;
    let already = already.unwrap_or_default();
    let done = if args.keep { "kept" } else { "restored" };
    for path in &paths {
        app.out.line(format!("{done} {}", printable(path)))?;
    }
    for path in &already {
        app.out
            .line(format!("as before already: {}", printable(path)))?;
    }
    let done = [paths, already].concat();
    for path in left_out(diff, args, &done) {
        app.out.line(format!(
            "left as it is: {path}; another turn may have changed it, and --path restores it"
        ))?;
    }
    check_all_done(diff, args, &done)
}

/// Files that another turn may have changed are restored only if they are named.
fn left_out(diff: &ArtifactView, args: &NodeRevertArgs, done: &[String]) -> Vec<String> {
    if args.keep || !args.paths.is_empty() {
        return Vec::new();
    }
    let metadata = diff.metadata.iter();
    let shared = metadata.flat_map(|metadata| metadata.shared.iter().flatten());
    let left_out = shared.filter(|path| !done.contains(path));
    left_out.map(|path| printable(path)).collect()
}

/// Only files that the node was not allowed to write can be kept.
fn check_violation(diff: &ArtifactView) -> Result<()> {
    let metadata = diff.metadata.as_ref();
    let violation = metadata.and_then(|metadata| metadata.violation.as_ref());
    if violation.is_none_or(Vec::is_empty) {
        return Failure::new("the turn wrote no file that the node may not write").fail();
    }
    Ok(())
}

fn changed_files(diff: &ArtifactView) -> &[String] {
    let metadata = diff.metadata.as_ref();
    metadata.map_or(&[], |metadata| metadata.files_changed.as_slice())
}

/// The server leaves out files that the turn did not change.
fn check_all_done(diff: &ArtifactView, args: &NodeRevertArgs, done: &[String]) -> Result<()> {
    let left_out = args.paths.iter().filter(|path| !done.contains(path));
    let left_out: Vec<String> = left_out.map(|path| printable(path)).collect();
    if left_out.is_empty() {
        return Ok(());
    }
    let changed = changed_files(diff).iter();
    let changed: Vec<String> = changed.map(|path| printable(path)).collect();
    Failure::new(format!("the turn did not change {}", left_out.join(", ")))
        .hint(format!("it changed {}", changed.join(", ")))
        .fail()
}

/// Nothing is restored if one file was changed since.
fn explain_conflict(error: anyhow::Error) -> anyhow::Error {
    let Some(files) = HttpRefusal::conflicting_files(&error) else {
        return error;
    };
    let files = printable(&files.join(", "));
    Failure::new(format!(
        "nothing was restored, because these files were changed since: {files}"
    ))
    .hint("--path FILE restores another file of the turn alone")
    .into()
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
