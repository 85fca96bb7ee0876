//! `turnkeep node interrupt`, `reset` and `retry`.

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_wire::runs::{NodeStatus, ResetNode};

use super::NodeOfRun;
use crate::commands::App;
use crate::commands::run::client::{RunsClient, node_path};
use crate::commands::run::names::{find_node, node_title};
use crate::http::Call;
use crate::output::Style;

/// Interrupt a node's turn
///
/// What it has done so far stays. `turnkeep node chat --interrupt` says at once what to do instead.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep node interrupt impl
  turnkeep node interrupt impl --run 3f2a")]
pub(crate) struct NodeInterruptArgs {
    #[command(flatten)]
    node: NodeOfRun,
}

/// Begin a new session of a node's program
///
/// Ends its turn and forgets the program's session, so the next prompt says everything again. The
/// transcript and the inputs that wait stay.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep node reset impl
  turnkeep node reset impl --clear-inbox")]
pub(crate) struct NodeResetArgs {
    #[command(flatten)]
    node: NodeOfRun,
    /// Drop the inputs that wait too
    #[arg(long)]
    clear_inbox: bool,
}

/// Try a failed turn again, with the same inputs
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep node retry impl")]
pub(crate) struct NodeRetryArgs {
    #[command(flatten)]
    node: NodeOfRun,
}

/// A request to one of a node's routes, and what to say when it worked.
struct Control<'a> {
    tail: &'static str,
    body: Value,
    node: &'a NodeOfRun,
    done: &'static str,
    /// What to say instead if the node was at rest.
    done_at_rest: &'static str,
}

pub(super) async fn run_node_interrupt(
    client: &mut RunsClient,
    args: &NodeInterruptArgs,
    app: &mut App,
) -> Result<()> {
    let control = Control {
        tail: "/interrupt",
        body: json!({}),
        node: &args.node,
        done: "is being interrupted",
        done_at_rest: "has no open turn",
    };
    control.send(client, app).await
}

pub(super) async fn run_node_reset(
    client: &mut RunsClient,
    args: &NodeResetArgs,
    app: &mut App,
) -> Result<()> {
    let reset = ResetNode {
        clear_inbox: args.clear_inbox,
    };
    let done = "begins a new session with its next turn";
    let control = Control {
        tail: "/reset",
        body: serde_json::to_value(reset)?,
        node: &args.node,
        done,
        done_at_rest: done,
    };
    control.send(client, app).await
}

pub(super) async fn run_node_retry(
    client: &mut RunsClient,
    args: &NodeRetryArgs,
    app: &mut App,
) -> Result<()> {
    let control = Control {
        tail: "/retry",
        body: json!({}),
        node: &args.node,
        done: "tries again",
        done_at_rest: "tries again",
    };
    control.send(client, app).await
}

impl Control<'_> {
    async fn send(self, client: &mut RunsClient, app: &mut App) -> Result<()> {
        let run = client.fetch_run(self.node.run.as_ref()).await?.view.run;
        let node = find_node(&run, &self.node.node)?;
        let path = node_path(&run.id.0, &node.id.0, self.tail);
        let answer = client.send(Call::post(path, &self.body)).await?;
        if app.out.is_json() {
            return app.out.json(&answer);
        }
        let name = app.out.paint(Style::Name, &node_title(node));
        let is_at_rest = matches!(node.status, NodeStatus::Idle | NodeStatus::Failed);
        let done = if is_at_rest {
            self.done_at_rest
        } else {
            self.done
        };
        app.out.line(format!("{name} {done}"))
    }
}
