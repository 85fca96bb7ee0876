//! `turnkeep inbox`: everything in all runs that waits for a person.

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;
use turnkeep_wire::runs::{
    AttentionAction, AttentionItem, AttentionKind, AttentionList, RunAnswer, RunView,
};

use super::App;
use super::run::client::{RunCache, RunsClient, ServerAnswer, run_path};
use super::run::names::{KnownRuns, RunName, node_word};
use crate::answer::list_at;
use crate::http::Call;
use crate::output::{Output, Style};
use crate::render::printable;
use crate::render::run_text::{one_line, title_text};
use crate::render::turn::date_text;

/// Show what waits for you in all runs, oldest first
///
/// Decisions, questions, agents that failed or go in circles, budgets that are used up, and runs
/// that have finished. Each item has the commands that take care of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep inbox
  turnkeep inbox dismiss 3f2a            # you have seen that this run has finished
  turnkeep inbox --json | jq -r .ref")]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    command: Option<InboxCommand>,
}

#[derive(Debug, Subcommand)]
enum InboxCommand {
    Dismiss(DismissArgs),
}

/// Take runs that have ended off the list
///
/// The runs stay as they are. One that is reopened and ends again is listed again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep inbox dismiss 3f2a
  turnkeep inbox dismiss --all")]
struct DismissArgs {
    /// The run: its id, a unique head of its id, or @last; several may be named
    #[arg(value_name = "RUN", required_unless_present = "all")]
    runs: Vec<RunName>,
    /// All runs that have ended
    #[arg(long, conflicts_with = "runs")]
    all: bool,
}

pub(crate) async fn run_inbox(args: &InboxArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    match &args.command {
        None => list_items(&mut client, app).await,
        Some(InboxCommand::Dismiss(args)) => dismiss(&mut client, args, app).await,
    }
}

async fn fetch_items(client: &mut RunsClient) -> Result<ServerAnswer<AttentionList>> {
    client.fetch(Call::get("/api/attention")).await
}

async fn dismiss(client: &mut RunsClient, args: &DismissArgs, app: &mut App) -> Result<()> {
    let ended = if args.all {
        list_ended(&fetch_items(client).await?.view)
    } else {
        let known = client.known_runs().await?;
        let chosen = args.runs.iter().map(|name| known.choose(Some(name)));
        let ids = chosen.map(|run| Ok(run?.id.0.clone()));
        ids.collect::<Result<_>>()?
    };
    for id in &ended {
        let call = Call::post(run_path(id, "/dismiss"), &json!({}));
        let answer: ServerAnswer<RunAnswer> = client.fetch(call).await?;
        if app.out.is_json() {
            app.out.json(&answer.json)?;
            continue;
        }
        let run = answer.view.run;
        let title = title_text(&run.title, run.goal.as_deref());
        app.out.line(format!("dismissed {title}"))?;
    }
    if ended.is_empty() && !app.out.is_json() {
        return app.out.line("no run has ended that you have not dismissed");
    }
    Ok(())
}

/// The runs whose end waits to be seen.
fn list_ended(list: &AttentionList) -> Vec<String> {
    let items = list.items.iter();
    let ended = items.filter(|item| item.actions.contains(&AttentionAction::Dismiss));
    ended.map(|item| item.run_id.0.clone()).collect()
}

async fn list_items(client: &mut RunsClient, app: &mut App) -> Result<()> {
    let list = fetch_items(client).await?;
    if app.out.is_json() {
        return app.out.json_lines(list_at(&list.json, "/items"));
    }
    if list.view.items.is_empty() {
        return app.out.line("nothing waits for you");
    }
    let known = client.known_runs().await?;
    let mut runs = RunCache::default();
    for item in &list.view.items {
        let run = runs.load(client, &item.run_id.0).await?;
        let words = ItemWords::new(item, run, &known);
        print_item(item, &words, &mut app.out)?;
    }
    Ok(())
}

/// The words by which commands name an item's run and node.
struct ItemWords {
    run: String,
    /// Empty for an item about the whole run.
    node: String,
}

impl ItemWords {
    fn new(item: &AttentionItem, run: Option<&RunView>, known: &KnownRuns) -> Self {
        let id = item.node_id.as_ref().map_or("", |node| node.0.as_str());
        let node = run.and_then(|run| Some(node_word(run, run.nodes.get(id)?)));
        Self {
            run: known.short_id(&item.run_id.0),
            // A node that was deleted meanwhile is still named in the item.
            node: node.unwrap_or_else(|| printable(id)),
        }
    }
}

fn print_item(item: &AttentionItem, words: &ItemWords, out: &mut Output) -> Result<()> {
    let run = out.paint(Style::Id, &words.run);
    let since = out.paint(Style::Faint, &date_text(&item.since.to_string()));
    let kind = out.paint(kind_style(item.kind), item.kind.word());
    out.line(format!("{run} {since} {kind} {}", one_line(&item.summary)))?;
    for command in commands_for(item, words) {
        out.line(format!("    {command}"))?;
    }
    Ok(())
}

fn kind_style(kind: AttentionKind) -> Style {
    match kind {
        AttentionKind::Finished => Style::Good,
        AttentionKind::Failure | AttentionKind::Conflict => Style::Bad,
        _ => Style::Warning,
    }
}

/// The commands that take care of an item, in the order in which the server suggests them.
fn commands_for(item: &AttentionItem, words: &ItemWords) -> Vec<String> {
    // The reference is a kind, a colon and an id; the commands take the id.
    let id = item.target.split_once(':').map_or("", |(_, id)| id);
    let ItemWords { run, node } = words;
    let commands = item.actions.iter().map(|action| match action {
        AttentionAction::Approve => format!("turnkeep approvals approve {id}"),
        AttentionAction::Deny => format!("turnkeep approvals deny {id} --reason \"…\""),
        AttentionAction::Answer => format!("turnkeep approvals answer {id} \"…\""),
        AttentionAction::Continue | AttentionAction::Resume => format!("turnkeep run resume {run}"),
        AttentionAction::Chat if node.is_empty() => format!("turnkeep node chat --run {run} \"…\""),
        AttentionAction::Chat => format!("turnkeep node chat --run {run} {node} \"…\""),
        AttentionAction::Reset => format!("turnkeep node reset --run {run} {node}"),
        AttentionAction::Retry => format!("turnkeep node retry --run {run} {node}"),
        AttentionAction::Keep => format!("turnkeep node revert --run {run} {node} --keep"),
        AttentionAction::Revert => format!("turnkeep node revert --run {run} {node}"),
        AttentionAction::ChangeBudget => format!("turnkeep run resume {run} --budget-usd N"),
        AttentionAction::Apply => format!("turnkeep run apply {run}"),
        AttentionAction::Dismiss => format!("turnkeep inbox dismiss {run}"),
    });
    commands.map(|command| printable(&command)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn each_action_names_its_command() {
        let check = |kind: &str, target: &str, actions: &[&str], expect: &[&str]| {
            let item: AttentionItem = from_value(json!({
                "ref": target, "kind": kind, "runId": "run1", "nodeId": "n1", "summary": "x",
                "since": "2026-01-01T12:00:00Z", "actions": actions,
            }))
            .unwrap();
            let words = ItemWords {
                run: "run1".to_owned(),
                node: "impl".to_owned(),
            };
            assert_eq!(commands_for(&item, &words), expect);
        };
        check(
            "approval",
            "approval:a1",
            &["approve"],
            &["turnkeep approvals approve a1"],
        );
        check(
            "violation",
            "turn:u1",
            &["keep", "revert"],
            &[
                "turnkeep node revert --run run1 impl --keep",
                "turnkeep node revert --run run1 impl",
            ],
        );
    }
}
