//! `turnkeep run why`: what a run waits for, and who can end each wait.

use std::collections::BTreeMap;

use anyhow::Result;
use turnkeep_wire::runs::{NodeView, OwnerKind, RunView, WaitKind, WaitView, WhyGraph};

use super::client::{RunsClient, ServerAnswer, run_path};
use super::names::{RunName, node_title};
use crate::commands::App;
use crate::http::Call;
use crate::output::Style;
use crate::render::printable;
use crate::render::run_text::{age_text, run_status_text};
use crate::render::turn::date_text;

/// Say why a run does not go on
///
/// Every wait has a reason, an age and somebody who can end it. The waits that hold up the others
/// are marked with an arrow.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run why
  turnkeep run why 3f2a --json | jq '.waits[].reason'")]
pub(crate) struct RunWhyArgs {
    /// The run: its id, a unique head of its id, or @last [default: the only active one]
    run: Option<RunName>,
}

pub(super) async fn run_run_why(args: &RunWhyArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    let run = client.fetch_run(args.run.as_ref()).await?.view.run;
    let why: ServerAnswer<WhyGraph> = client.fetch(Call::get(run_path(&run.id.0, "/why"))).await?;
    if app.out.is_json() {
        return app.out.json(&why.json);
    }
    let names = Names(&run.nodes);
    for circle in &why.view.deadlocks {
        let nodes: Vec<String> = circle.iter().map(|id| names.of(&id.0)).collect();
        let text = format!(
            "deadlock: {} wait for each other's replies",
            nodes.join(", ")
        );
        app.out.line(app.out.paint(Style::Bad, &text))?;
    }
    if why.view.waits.is_empty() {
        return app.out.line("nothing waits");
    }
    for (place, wait) in (0..).zip(&why.view.waits) {
        let is_root = why.view.root_causes.contains(&place);
        let mark = if is_root { "→" } else { " " };
        let line = format!("{mark} {}", wait_text(wait, &run, &names));
        let line = if is_root {
            app.out.paint(Style::Warning, &line)
        } else {
            line
        };
        app.out.line(line)?;
    }
    Ok(())
}

/// The names of a run's nodes.
struct Names<'a>(&'a BTreeMap<String, NodeView>);

impl Names<'_> {
    fn of(&self, id: &str) -> String {
        self.0.get(id).map_or_else(|| printable(id), node_title)
    }
}

/// A wait in one line: who waits, for what, for how long, and who can end it.
fn wait_text(wait: &WaitView, run: &RunView, names: &Names<'_>) -> String {
    let who = match &wait.node_id {
        Some(id) => names.of(&id.0),
        None => "the run".to_owned(),
    };
    let mut text = format!("{who} {}", reason_text(wait, run, names));
    if let Some(until) = &wait.until {
        text = format!("{text} until {}", date_text(&until.to_string()));
    }
    let age = age_text(wait.age_ms);
    format!("{text} ({age}{})", owner_text(wait, names))
}

fn reason_text(wait: &WaitView, run: &RunView, names: &Names<'_>) -> String {
    let text = match wait.reason {
        WaitKind::RunStopped => {
            let status = run_status_text(wait.run_status.unwrap_or(run.status), wait.paused_reason);
            return format!("is {status}: `turnkeep run resume` lets it go on");
        }
        WaitKind::Verification => "runs the verification commands",
        WaitKind::NoNodes => "has no nodes: `turnkeep node add` adds one",
        WaitKind::NoInput => "has nothing to do",
        WaitKind::Preparing => "prepares its workspace",
        WaitKind::Working => "works",
        WaitKind::Interrupting => "is being interrupted",
        WaitKind::Approval => {
            let id = wait.approval_id.as_ref().map_or("", |id| id.0.as_str());
            return format!(
                "waits for your decision: `turnkeep approvals approve {}`",
                printable(id)
            );
        }
        WaitKind::Question => {
            let id = wait.approval_id.as_ref().map_or("", |id| id.0.as_str());
            return format!("asked you: `turnkeep approvals answer {}`", printable(id));
        }
        WaitKind::Failure => {
            let detail = wait.detail.as_deref().map(printable).unwrap_or_default();
            return format!("failed: {detail}: `turnkeep node retry` or a message lets it go on");
        }
        WaitKind::Stall => "goes in circles: `turnkeep run resume` or a message lets it go on",
        WaitKind::Violation => {
            let paths = wait.paths.iter().flatten().map(|path| printable(path));
            let paths: Vec<String> = paths.collect();
            return format!(
                "wrote what it may not: {}: `turnkeep node revert`",
                paths.join(", ")
            );
        }
        WaitKind::Reply => {
            let node = wait.owner.node_id.as_ref().map(|id| names.of(&id.0));
            return format!("waits for a reply of {}", node.unwrap_or_default());
        }
        WaitKind::Interrupted => {
            "was interrupted before its program saw the input: a message or `turnkeep node retry` lets it go on"
        }
        WaitKind::FanIn => "waits briefly for more handoffs",
        WaitKind::RetryAt => "waits for its program's rate limit",
        WaitKind::ProgramParked => "waits for a rate limit that another node met",
        WaitKind::ProgramFull => "waits for a turn of its program",
        WaitKind::RunFull => "waits for a turn in this run",
        WaitKind::ServerFull => "waits for a turn on this server",
        WaitKind::Blocked => "is blocked",
        WaitKind::TurnOpen => "has input for its next turn",
    };
    text.to_owned()
}

fn owner_text(wait: &WaitView, names: &Names<'_>) -> String {
    let owner = &wait.owner;
    match owner.kind {
        OwnerKind::Person => ", you".to_owned(),
        OwnerKind::Daemon => ", the server".to_owned(),
        OwnerKind::Node => {
            let node = owner
                .node_id
                .as_ref()
                .map(|id| format!(", {}", names.of(&id.0)));
            node.unwrap_or_default()
        }
        OwnerKind::Program => {
            let program = owner.program.as_deref().unwrap_or("its program");
            format!(", {}", printable(program))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::commands::run::samples;

    #[test]
    fn a_wait_says_who_for_what_how_long_and_who_can_end_it() {
        fn check(wait: &Value, expect: &str) {
            let mut whole =
                json!({ "since": "2026-01-01T12:00:00Z", "ageMs": 65_000, "nodeId": "n2" });
            for (name, value) in wait.as_object().unwrap() {
                whole[name] = value.clone();
            }
            let run = samples::run();
            let wait = serde_json::from_value(whole).unwrap();
            assert_eq!(wait_text(&wait, &run, &Names(&run.nodes)), expect);
        }
        check(
            &json!({ "reason": "reply", "owner": { "kind": "node", "nodeId": "n1" } }),
            "impl waits for a reply of lead (1 min, lead)",
        );
        check(
            &json!({ "reason": "approval", "approvalId": "a1", "owner": { "kind": "person" } }),
            "impl waits for your decision: `turnkeep approvals approve a1` (1 min, you)",
        );
        check(
            &json!({ "reason": "working", "owner": { "kind": "program", "program": "claude" } }),
            "impl works (1 min, claude)",
        );
        check(
            &json!({
                "reason": "run-stopped", "nodeId": null, "runStatus": "paused", "pausedReason": "stall",
                "owner": { "kind": "person" },
            }),
            "the run is paused (stall): `turnkeep run resume` lets it go on (1 min, you)",
        );
    }
}
