//! `turnkeep approvals`: what waits for a person's decision, and the decisions.

mod earlier;
pub(crate) mod editor;
pub(crate) mod resolve;

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use turnkeep_wire::runs::{
    ApprovalKind, ApprovalList, ApprovalOfRun, ApprovalView, RunView, Scope, WorkspaceKind,
};

use self::earlier::not_open_failure;
use self::editor::edit_json;
use self::resolve::{Decision, resolve_approval};
use super::App;
use super::run::client::{RunCache, RunsClient, ServerAnswer};
use super::run::names::{RunName, approval_word, find_approval, node_title};
use crate::answer::{list_at, text_at};
use crate::failure::Failure;
use crate::http::Call;
use crate::names::parse_text;
use crate::output::{Output, Style};
use crate::render::printable;
use crate::render::run_text::{one_line, tool_text};
use crate::render::turn::date_text;

/// List what waits for your decision, and decide
///
/// Lists the oldest first. A node that waits for a decision does nothing else.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  turnkeep approvals
  turnkeep approvals approve 9c4e
  turnkeep approvals approve 9c4e --scope run   # and calls like it from now on
  turnkeep approvals deny 9c4e --reason \"use the test database\"
  turnkeep approvals edit 9c4e                  # change the arguments first
  turnkeep approvals answer 9c4e \"the second one\"")]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    command: Option<ApprovalsCommand>,
    /// Only those of this run
    #[arg(long, value_name = "RUN")]
    run: Option<RunName>,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    Approve(ApproveArgs),
    Deny(DenyArgs),
    Edit(EditArgs),
    Answer(AnswerArgs),
}

/// Allow a call
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep approvals approve 9c4e
  turnkeep approvals approve 9c4e --scope node

A wider scope allows the tool for the same file, or for commands that begin with the same words.
A command with shell characters such as ; | & > always asks.")]
struct ApproveArgs {
    /// The approval: its id or a unique head of its id
    approval: String,
    /// Which later calls like this one are allowed too
    #[arg(long, value_enum, default_value_t)]
    scope: ScopeWord,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum ScopeWord {
    /// None
    #[default]
    Once,
    /// Those of this node
    Node,
    /// Those of all nodes of the run
    Run,
}

/// Refuse a call; the turn goes on without it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep approvals deny 9c4e --reason \"never touch the migration\"
  turnkeep approvals deny 9c4e --stop")]
struct DenyArgs {
    /// The approval: its id or a unique head of its id
    approval: String,
    /// Why: the agent reads it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Interrupt the node's turn too
    #[arg(long)]
    stop: bool,
}

/// Change the arguments of a call in $EDITOR, then allow it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep approvals edit 9c4e
  EDITOR=nano turnkeep approvals edit 9c4e")]
struct EditArgs {
    /// The approval: its id or a unique head of its id
    approval: String,
}

/// Answer an agent's question
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep approvals answer 9c4e \"keep the old format\"")]
struct AnswerArgs {
    /// The question: its id or a unique head of its id
    approval: String,
    /// The answer
    #[arg(value_parser = parse_text)]
    text: String,
}

pub(crate) async fn run_approvals(args: &ApprovalsArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    match &args.command {
        None => list_approvals(&mut client, args, app).await,
        Some(ApprovalsCommand::Approve(args)) => approve(&mut client, args, app).await,
        Some(ApprovalsCommand::Deny(args)) => deny(&mut client, args, app).await,
        Some(ApprovalsCommand::Edit(args)) => edit(&mut client, args, app).await,
        Some(ApprovalsCommand::Answer(args)) => answer(&mut client, args, app).await,
    }
}

/// The open approvals, oldest first.
async fn fetch_open(
    client: &mut RunsClient,
    run: Option<&str>,
) -> Result<ServerAnswer<ApprovalList>> {
    client
        .fetch(Call::get("/api/approvals").query_if("runId", run))
        .await
}

/// The open approval that a person names.
async fn find_open<'a>(
    client: &mut RunsClient,
    open: &'a [ApprovalOfRun],
    name: &str,
) -> Result<&'a ApprovalOfRun> {
    match find_approval(open, name)? {
        Some(item) => Ok(item),
        None => Err(not_open_failure(client, name).await?.into()),
    }
}

async fn list_approvals(
    client: &mut RunsClient,
    args: &ApprovalsArgs,
    app: &mut App,
) -> Result<()> {
    let run = match &args.run {
        Some(name) => Some(client.find_run(Some(name)).await?),
        None => None,
    };
    let open = fetch_open(client, run.as_deref()).await?;
    if app.out.is_json() {
        return app.out.json_lines(list_at(&open.json, "/approvals"));
    }
    let open = open.view.approvals;
    if open.is_empty() {
        return app.out.line("nothing waits for your decision");
    }
    let mut runs = RunCache::default();
    for item in &open {
        let run = runs.load(client, &item.run_id.0).await?;
        print_approval(&open, item, run, &mut app.out)?;
    }
    Ok(())
}

/// Prints an approval: its id, its time, its node and run, then what is asked.
fn print_approval(
    open: &[ApprovalOfRun],
    item: &ApprovalOfRun,
    run: Option<&RunView>,
    out: &mut Output,
) -> Result<()> {
    let approval = &item.approval;
    let id = out.paint(Style::Id, &approval_word(open, &approval.approval_id.0));
    let since = out.paint(Style::Faint, &date_text(&approval.created_at.to_string()));
    let node = run.and_then(|run| run.nodes.get(&approval.node_id.0));
    let node = node.map_or_else(|| printable(&approval.node_id.0), node_title);
    let node = out.paint(Style::Name, &node);
    let title = run.map(|run| one_line(&run.title)).unwrap_or_default();
    out.line(format!("{id} {since} {node} in {title}").trim_end())?;
    approval_lines(approval, run)
        .iter()
        .try_for_each(|line| out.line(format!("    {line}")))
}

/// What is asked, and where it would happen.
fn approval_lines(approval: &ApprovalView, run: Option<&RunView>) -> Vec<String> {
    let mut lines: Vec<String> = approval.context.lines().map(printable).collect();
    if approval.kind == ApprovalKind::Question {
        lines.extend(
            approval
                .options
                .iter()
                .map(|option| format!("- {}", one_line(option))),
        );
        return lines;
    }
    lines.push(tool_text(&approval.tool));
    let own = approval.tool.args.get("cwd").and_then(Value::as_str);
    let directory = own.or_else(|| run.and_then(|run| shared_directory(run, &approval.node_id.0)));
    // The context usually names it.
    let directory = directory.filter(|directory| !approval.context.contains(directory));
    lines.extend(directory.map(|directory| format!("in {}", printable(directory))));
    lines
}

/// The run's directory, if the node works there and not in a worktree of its own.
fn shared_directory<'a>(run: &'a RunView, node: &str) -> Option<&'a str> {
    let node = run.nodes.get(node)?;
    let workspace = node.workspace.as_ref();
    let has_worktree = workspace.is_some_and(|place| place.kind == WorkspaceKind::Worktree);
    run.cwd.as_deref().filter(|_| !has_worktree)
}

async fn approve(client: &mut RunsClient, args: &ApproveArgs, app: &mut App) -> Result<()> {
    let open = fetch_open(client, None).await?.view.approvals;
    let item = find_open(client, &open, &args.approval).await?;
    if item.approval.kind == ApprovalKind::Question {
        let id = approval_word(&open, &item.approval.approval_id.0);
        return Failure::usage("this is a question")
            .hint(format!("answer it: turnkeep approvals answer {id} \"…\""))
            .fail();
    }
    let decision = match args.scope {
        ScopeWord::Once => Decision::Approve,
        ScopeWord::Node => Decision::ApproveFor(Scope::Node),
        ScopeWord::Run => Decision::ApproveFor(Scope::Run),
    };
    decide(client, item, decision, app).await
}

async fn deny(client: &mut RunsClient, args: &DenyArgs, app: &mut App) -> Result<()> {
    let open = fetch_open(client, None).await?.view.approvals;
    let item = find_open(client, &open, &args.approval).await?;
    let decision = Decision::Deny {
        reason: args.reason.clone(),
        stop: args.stop,
    };
    decide(client, item, decision, app).await
}

async fn edit(client: &mut RunsClient, args: &EditArgs, app: &mut App) -> Result<()> {
    let open = fetch_open(client, None).await?.view.approvals;
    let item = find_open(client, &open, &args.approval).await?;
    if item.can_edit == Some(false) {
        let id = approval_word(&open, &item.approval.approval_id.0);
        return Failure::new("the program takes no other arguments")
            .hint(format!(
                "say what to do instead: turnkeep approvals deny {id} --reason \"…\""
            ))
            .fail();
    }
    let before = match item.approval.kind {
        ApprovalKind::Tool => item.approval.tool.args.clone(),
        ApprovalKind::Question => json!({ "answer": "" }),
    };
    match edit_json(&before)? {
        Some(edited) => decide(client, item, Decision::Edit(edited), app).await,
        None => Failure::new("nothing was changed, so nothing was sent")
            .hint("`turnkeep approvals approve` allows the call as it is")
            .fail(),
    }
}

async fn answer(client: &mut RunsClient, args: &AnswerArgs, app: &mut App) -> Result<()> {
    let open = fetch_open(client, None).await?.view.approvals;
    let item = find_open(client, &open, &args.approval).await?;
    // The server takes an answer as permission with other arguments: "no" would allow the call.
    if item.approval.kind != ApprovalKind::Question {
        let id = approval_word(&open, &item.approval.approval_id.0);
        return Failure::usage("this is no question, but a call that waits for your permission")
            .hint(format!(
                "decide: turnkeep approvals approve {id}, or deny {id}"
            ))
            .fail();
    }
    decide(client, item, Decision::Answer(args.text.clone()), app).await
}

async fn decide(
    client: &mut RunsClient,
    item: &ApprovalOfRun,
    decision: Decision,
    app: &mut App,
) -> Result<()> {
    let resolved = resolve_approval(client, &item.approval.approval_id.0, decision).await?;
    if app.out.is_json() {
        return app.out.json(&resolved);
    }
    let status = text_at(&resolved, "/resolution/status").unwrap_or_default();
    let what = tool_text(&item.approval.tool);
    app.out.line(format!("{}: {what}", printable(&status)))
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;
    use crate::commands::run::samples;

    #[test]
    fn an_approval_shows_the_command_and_the_directory() {
        let approval: ApprovalView = from_value(json!({
            "approvalId": "a1", "nodeId": "n2", "turnId": "u1", "kind": "tool",
            "tool": samples::tool("Bash", &json!({ "command": "rm \u{1b}[2Jx" })),
            "context": "wants to run a command", "createdAt": "2026-01-01T12:00:00Z", "options": [],
        }))
        .unwrap();
        let mut run = samples::run();
        run.cwd = Some("/repo".to_owned());
        let shown = ["wants to run a command", "Bash: rm \\u{1b}[2Jx", "in /repo"];
        assert_eq!(approval_lines(&approval, Some(&run)), shown);
        // A node with a worktree works elsewhere, and the context says where.
        let workspace = json!({ "kind": "worktree", "branch": "turnkeep/run1/impl" });
        run.nodes.get_mut("n2").unwrap().workspace = from_value(workspace).unwrap();
        assert_eq!(approval_lines(&approval, Some(&run)), shown[..2]);
    }
}
