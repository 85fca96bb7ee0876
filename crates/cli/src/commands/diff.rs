//! `turnkeep diff`: what a turn of a node changed.
//!
//! Every turn of a node has exactly one diff, also one that changed nothing. So the turns of a node
//! are counted by its diffs, from 1.

mod pager;

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_wire::percent_encode;
use turnkeep_wire::runs::{ArtifactKind, ArtifactList, ArtifactView, DiffMetadata, NodeView};

use super::App;
use super::run::client::{RunsClient, ServerAnswer, run_path};
use super::run::names::{RunName, find_node, node_title};
use crate::failure::Failure;
use crate::http::Call;
use crate::output::{Output, Style};
use crate::render::printable;
use crate::render::run_text::one_line;

/// Show what a turn of a node changed
///
/// On a terminal in colour and through $PAGER; otherwise as a patch that `git apply` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep diff impl                       # its latest turn
  turnkeep diff impl --turn 2
  turnkeep diff impl --run @last > impl.patch")]
pub(crate) struct DiffArgs {
    /// The node: its alias, its label, its id or a unique head of its id
    node: String,
    /// The turn of the node, counted from 1 [default: the latest]
    #[arg(long, value_name = "N")]
    turn: Option<u64>,
    /// The run [default: the only active one]
    #[arg(long, value_name = "RUN")]
    run: Option<RunName>,
}

pub(crate) async fn run_diff(args: &DiffArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    let run = client.fetch_run(args.run.as_ref()).await?.view.run;
    let node = find_node(&run, &args.node)?;
    let diffs = fetch_diffs(&mut client, &run.id.0, node).await?;
    let diff = choose_diff(&diffs, node, args.turn)?;
    let tail = format!("/artifacts/{}", percent_encode(&diff.id.0));
    let call = Call::get(run_path(&run.id.0, &tail)).query("raw", 1);
    let (_, patch) = client.http().bytes(call).await?;
    if app.out.is_json() {
        return app.out.json(&diff_json(diff, &patch)?);
    }
    if app.out.is_screen() {
        let lines = screen_lines(diff, &String::from_utf8_lossy(&patch), &app.out);
        return pager::show_lines(&lines, &mut app.out);
    }
    // A program wants the bytes: a patch of a file that is not UTF-8 must still apply.
    app.out.bytes(&patch)
}

/// The diffs of a node's turns, oldest first.
pub(super) async fn fetch_diffs(
    client: &mut RunsClient,
    run: &str,
    node: &NodeView,
) -> Result<Vec<ArtifactView>> {
    let call = Call::get(run_path(run, "/artifacts"));
    let list: ServerAnswer<ArtifactList> = client.fetch(call).await?;
    let mut diffs = list.view.artifacts;
    diffs.retain(|artifact| {
        artifact.kind == ArtifactKind::Diff && artifact.node_id.as_ref() == Some(&node.id)
    });
    Ok(diffs)
}

/// The diff of a turn, or of the latest one.
pub(super) fn choose_diff<'a>(
    diffs: &'a [ArtifactView],
    node: &NodeView,
    turn: Option<u64>,
) -> Result<&'a ArtifactView, Failure> {
    let found = match turn {
        None => diffs.last(),
        Some(number) => usize::try_from(number)
            .ok()
            .and_then(|number| diffs.get(number.checked_sub(1)?)),
    };
    found.ok_or_else(|| {
        let name = node_title(node);
        match (turn, diffs.len()) {
            (_, 0) => Failure::new(format!("{name} has completed no turn yet")),
            (_, count) => Failure::usage(format!("{name} has no such turn")).hint(format!(
                "it has completed {count}: --turn takes 1 to {count}"
            )),
        }
    })
}

fn diff_json(diff: &ArtifactView, patch: &[u8]) -> Result<Value> {
    let mut json = serde_json::to_value(diff)?;
    json["patch"] = json!(String::from_utf8_lossy(patch));
    Ok(json)
}

/// A summary and the patch, coloured as git does.
fn screen_lines(diff: &ArtifactView, patch: &str, out: &Output) -> Vec<String> {
    let mut lines: Vec<String> = diff
        .metadata
        .iter()
        .flat_map(|metadata| head_lines(metadata, out))
        .collect();
    if patch.trim().is_empty() {
        lines.push("no changes".to_owned());
    }
    lines.extend(patch.lines().map(|line| paint_line(line, out)));
    lines
}

fn head_lines(metadata: &DiffMetadata, out: &Output) -> Vec<String> {
    let list = |files: &Option<Vec<String>>| {
        let files: Vec<String> = files.iter().flatten().map(|file| printable(file)).collect();
        (!files.is_empty()).then(|| files.join(", "))
    };
    let mut lines = Vec::new();
    if !metadata.summary.is_empty() {
        lines.push(out.paint(Style::Faint, &one_line(&metadata.summary)));
    }
    let violation = list(&metadata.violation).map(|files| format!("not allowed to write: {files}"));
    lines.extend(violation.map(|text| out.paint(Style::Bad, &text)));
    let shared = list(&metadata.shared).map(|files| format!("perhaps of another turn: {files}"));
    lines.extend(shared.map(|text| out.paint(Style::Warning, &text)));
    lines
}

fn paint_line(line: &str, out: &Output) -> String {
    let text = printable(line);
    match line.as_bytes() {
        // Headers begin like changes, so they come first.
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => {
            out.paint(Style::Faint, &text)
        }
        [b'd', b'i', b'f', b'f', b' ', ..] => out.paint(Style::Id, &text),
        [b'@', b'@', ..] => out.paint(Style::Name, &text),
        [b'+', ..] => out.paint(Style::Good, &text),
        [b'-', ..] => out.paint(Style::Bad, &text),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::run::samples;

    fn diff(id: &str) -> ArtifactView {
        serde_json::from_value(json!({
            "id": id, "runId": "run1", "nodeId": "n2", "kind": "diff", "name": "diff.patch",
            "path": "/x", "createdAt": "2026-01-01T12:00:00Z", "contentHash": "0".repeat(64),
            "bytes": 0,
        }))
        .unwrap()
    }

    #[test]
    fn turns_are_counted_by_their_diffs() {
        let node = samples::node("n2", "impl", "implementer");
        let diffs = [diff("d1"), diff("d2")];
        let check = |diffs: &[ArtifactView], turn, expect: &str| {
            let chosen = choose_diff(diffs, &node, turn);
            let chosen = chosen.map_or_else(|error| error.to_string(), |diff| diff.id.0.clone());
            assert_eq!(chosen, expect, "{turn:?}");
        };
        check(&diffs, None, "d2");
        check(&diffs, Some(1), "d1");
        check(&diffs, Some(0), "impl has no such turn");
        check(&diffs, Some(3), "impl has no such turn");
        check(&[], None, "impl has completed no turn yet");
    }

    #[test]
    fn a_patch_is_shown_without_its_escapes() {
        let out = Output::silent();
        let lines = screen_lines(
            &diff("d1"),
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\u{1b}[2J\n+b",
            &out,
        );
        assert_eq!(
            lines,
            ["--- a/x", "+++ b/x", "@@ -1 +1 @@", "-\\u{1b}[2J", "+b"]
        );
        assert_eq!(screen_lines(&diff("d1"), "", &out), ["no changes"]);
    }
}
