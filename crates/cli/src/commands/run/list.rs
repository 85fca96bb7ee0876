//! `turnkeep run list` and `turnkeep run show`.

use std::collections::BTreeSet;

use anyhow::Result;
use turnkeep_types::{Clock, Timestamp};
use turnkeep_wire::runs::{
    ArtifactKind, NodeView, RunStatus, RunSummary, RunSummaryList, RunView, WorkspaceKind,
};

use super::client::{RunsClient, ServerAnswer};
use super::names::{KnownRuns, RunName, node_word, nodes_in_order};
use super::programs::program_name;
use crate::answer::list_at;
use crate::commands::App;
use crate::http::Call;
use crate::local::WallClock;
use crate::output::Output;
use crate::render::printable;
use crate::render::run_text::{
    cost_text, edge_text, one_line, run_status_style, run_status_text, title_text, tokens_text,
};
use crate::render::turn::{age_since, date_text};

/// How many files are listed by name.
const FILES_MAX: usize = 20;

/// List the runs, newest first, with what they cost so far
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run list
  turnkeep run list --active
  turnkeep run list --json | jq -r '.id + \" \" + .status'")]
pub(crate) struct RunListArgs {
    /// Only runs that are not completed or failed
    #[arg(long)]
    active: bool,
}

/// Show a run: its state, its nodes and edges, and what it changed
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run show
  turnkeep run show @last --json | jq .run.usage")]
pub(crate) struct RunShowArgs {
    /// The run: its id, a unique head of its id, or @last [default: the only active one]
    run: Option<RunName>,
}

pub(super) async fn run_run_list(args: &RunListArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    let call = Call::get("/api/runs").query("summary", 1);
    let list: ServerAnswer<RunSummaryList> = client.fetch(call).await?;
    let is_listed = |run: &RunSummary| {
        !args.active || !matches!(run.status, RunStatus::Completed | RunStatus::Failed)
    };
    if app.out.is_json() {
        // The server's own JSON is printed: a newer server may say more than the view has fields for.
        let listed = list_at(&list.json, "/runs").iter().zip(&list.view.runs);
        let listed: Vec<_> = listed
            .filter(|(_, run)| is_listed(run))
            .map(|(json, _)| json.clone())
            .collect();
        return app.out.json_lines(&listed);
    }
    let runs = KnownRuns::new(list.view);
    let now = WallClock.now();
    let rows: Vec<_> = runs
        .all()
        .iter()
        .filter(|run| is_listed(run))
        .map(|run| run_row(run, &runs, now))
        .collect();
    if rows.is_empty() {
        return app
            .out
            .line("there are no runs; `turnkeep run new \"what to do\"` starts one");
    }
    let header = [
        "RUN", "STATUS", "NODES", "TOKENS", "COST", "UPDATED", "TITLE",
    ];
    app.out.fitted_table(&header, &rows)
}

fn run_row(run: &RunSummary, runs: &KnownRuns, now: Timestamp) -> Vec<String> {
    let waits = match run.open_approvals {
        0 => String::new(),
        1 => ", 1 waits for you".to_owned(),
        count => format!(", {count} wait for you"),
    };
    vec![
        runs.short_id(&run.id.0),
        format!("{}{waits}", run_status_text(run.status, run.paused_reason)),
        format!("{}/{}", run.running_count, run.node_count),
        tokens_text(run.usage.total_tokens),
        cost_text(run.usage.cost_usd),
        format!("{} ago", age_since(run.updated_at.0, now)),
        title_text(&run.title, run.goal.as_deref()),
    ]
}

pub(super) async fn run_run_show(args: &RunShowArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    let answer = client.fetch_run(args.run.as_ref()).await?;
    if app.out.is_json() {
        return app.out.json(&answer.json);
    }
    let run = answer.view.run;
    app.out.pairs(&run_pairs(&run, &app.out))?;
    print_nodes(&run, &mut app.out)?;
    print_edges(&run, &mut app.out)?;
    print_outcome(&run, &mut app.out)
}

fn run_pairs(run: &RunView, out: &Output) -> Vec<(&'static str, String)> {
    let status = run_status_text(run.status, run.paused_reason);
    let status = out.paint(run_status_style(run.status), &status);
    let mode = format!("{}, {}", run.mode.word(), run.global_mode.word());
    let used = format!(
        "{} tokens {}",
        tokens_text(run.usage.total_tokens),
        cost_text(run.usage.cost_usd)
    );
    let mut pairs = vec![
        ("Run", run.id.0.clone()),
        ("Title", title_text(&run.title, run.goal.as_deref())),
        ("Status", format!("{status}, {}", run.phase.word())),
        ("Mode", mode),
        ("Used", used.trim_end().to_owned()),
        ("Created", date_text(&run.created_at.to_string())),
    ];
    let optional = [
        ("Goal", &run.goal),
        ("Directory", &run.cwd),
        ("World", &run.world),
    ];
    for (name, value) in optional {
        pairs.extend(value.as_ref().map(|value| (name, one_line(value))));
    }
    if !run.verify.is_empty() {
        pairs.push(("Verify", one_line(&run.verify.join("; "))));
    }
    pairs
}

fn print_nodes(run: &RunView, out: &mut Output) -> Result<()> {
    if run.nodes.is_empty() {
        out.line("")?;
        return out.line("no nodes; `turnkeep node add ROLE` adds one");
    }
    let rows: Vec<_> = nodes_in_order(run)
        .into_iter()
        .map(|node| node_row(run, node))
        .collect();
    out.line("")?;
    out.fitted_table(
        &["NODE", "ROLE", "PROGRAM", "STATUS", "WAITING", "SUMMARY"],
        &rows,
    )
}

fn node_row(run: &RunView, node: &NodeView) -> Vec<String> {
    vec![
        node_word(run, node),
        one_line(&node.role_template),
        printable(program_name(node)),
        node.status.word().to_owned(),
        node.inbox_count.to_string(),
        one_line(&node.summary),
    ]
}

fn print_edges(run: &RunView, out: &mut Output) -> Result<()> {
    if run.edges.is_empty() {
        return Ok(());
    }
    let name = |id: &str| match run.nodes.get(id) {
        Some(node) => node_word(run, node),
        None => printable(id),
    };
    out.line("")?;
    for edge in run.edges.values() {
        out.line(edge_text(edge, &name(&edge.from.0), &name(&edge.to.0)))?;
    }
    Ok(())
}

/// Prints what a run changed and how that gets into the directory.
pub(super) fn print_outcome(run: &RunView, out: &mut Output) -> Result<()> {
    let lines = outcome_lines(run);
    if lines.is_empty() {
        return Ok(());
    }
    out.line("")?;
    lines.iter().try_for_each(|line| out.line(line))
}

/// The changed files, the branches that hold them, a commit message, and what becomes of worktrees.
fn outcome_lines(run: &RunView) -> Vec<String> {
    let files = changed_files(run);
    if files.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![format!(
        "changed {}: {}",
        count_text(files.len()),
        files_text(&files)
    )];
    if run.status != RunStatus::Completed {
        return lines;
    }
    let branches = worktree_branches(run);
    if branches.is_empty() {
        lines.push("the changes are in the directory already".to_owned());
    } else {
        lines.push(format!("the changes are on {}", branches.join(", ")));
        lines.push(
            "`turnkeep run apply` brings them into the directory; worktrees stay until then"
                .to_owned(),
        );
    }
    let title = title_text(&run.title, run.goal.as_deref());
    lines.push(format!("commit message: {title}"));
    lines
}

fn changed_files(run: &RunView) -> Vec<String> {
    let diffs = run
        .artifacts
        .values()
        .filter(|artifact| artifact.kind == ArtifactKind::Diff);
    let files = diffs.filter_map(|diff| diff.metadata.as_ref());
    let files: BTreeSet<&String> = files.flat_map(|metadata| &metadata.files_changed).collect();
    files.into_iter().map(|file| printable(file)).collect()
}

/// The branches of worktrees that may hold changes. A worktree that was applied has no branch any
/// more, and that of a node that changed nothing goes with the completion of its run.
fn worktree_branches(run: &RunView) -> Vec<String> {
    let has_changed_files = |node: &&NodeView| {
        let mut diffs = run.artifacts.values().filter(|artifact| {
            artifact.kind == ArtifactKind::Diff && artifact.node_id.as_ref() == Some(&node.id)
        });
        diffs.any(|diff| {
            let metadata = diff.metadata.as_ref();
            metadata.is_some_and(|metadata| !metadata.files_changed.is_empty())
        })
    };
    let workspaces = nodes_in_order(run)
        .into_iter()
        .filter(has_changed_files)
        .filter_map(|node| node.workspace.as_ref());
    let worktrees = workspaces.filter(|workspace| workspace.kind == WorkspaceKind::Worktree);
    worktrees
        .filter_map(|workspace| workspace.branch.as_deref())
        .map(printable)
        .collect()
}

fn count_text(files: usize) -> String {
    match files {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    }
}

fn files_text(files: &[String]) -> String {
    let listed = files.get(..FILES_MAX.min(files.len())).unwrap_or_default();
    match files.len() - listed.len() {
        0 => listed.join(", "),
        more => format!("{}, {more} more", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::run::samples;

    #[test]
    fn a_completed_run_says_where_its_work_is() {
        let mut run = samples::run();
        let diff = serde_json::from_value(json!({
            "id": "d1", "runId": "run1", "nodeId": "n2", "kind": "diff", "name": "diff.patch",
            "path": "/x", "createdAt": "2026-01-01T12:00:00Z", "contentHash": "0".repeat(64),
            "bytes": 0, "metadata": { "filesChanged": ["b", "a"], "summary": "", "added": 1,
                                      "removed": 0, "baseTree": "", "headTree": "" },
        }));
        assert!(outcome_lines(&run).is_empty());
        run.artifacts.insert("d1".to_owned(), diff.unwrap());
        assert_eq!(outcome_lines(&run), ["changed 2 files: a, b"]);
        run.status = RunStatus::Completed;
        let workspace = json!({ "kind": "worktree", "branch": "turnkeep/run1/impl" });
        let node = run.nodes.get_mut("n2").unwrap();
        node.workspace = serde_json::from_value(workspace).unwrap();
        assert_eq!(
            outcome_lines(&run),
            [
                "changed 2 files: a, b",
                "the changes are on turnkeep/run1/impl",
                "`turnkeep run apply` brings them into the directory; worktrees stay until then",
                "commit message: Fix the refund",
            ]
        );
        // An apply removes the worktree and its branch.
        let node = run.nodes.get_mut("n2").unwrap();
        node.workspace = serde_json::from_value(json!({ "kind": "worktree" })).unwrap();
        assert_eq!(
            outcome_lines(&run)[1],
            "the changes are in the directory already"
        );
        // A worktree without changes is no place to look for them.
        let other = run
            .nodes
            .values_mut()
            .find(|node| node.id.0 != "n2")
            .unwrap();
        let workspace = json!({ "kind": "worktree", "branch": "turnkeep/run1/lead" });
        other.workspace = serde_json::from_value(workspace).unwrap();
        assert_eq!(
            outcome_lines(&run)[1],
            "the changes are in the directory already"
        );
    }

    #[test]
    fn many_files_are_counted() {
        let files: Vec<String> = (0..22).map(|number| number.to_string()).collect();
        assert!(files_text(&files).ends_with("18, 19, 2 more"));
    }
}
