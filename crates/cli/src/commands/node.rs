//! `turnkeep node`: adds nodes to a run, talks to them and controls them.

mod add;
pub(crate) mod chat;
mod control;
mod revert;

use anyhow::Result;
use clap::Subcommand;

use super::App;
use super::run::client::RunsClient;
use super::run::names::RunName;

/// Add agents to a run, talk to them and control them
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  turnkeep node add reviewer --provider codex --alias review
  turnkeep node chat impl \"The test in refund.rs still fails.\"
  turnkeep node interrupt impl

A node is named by its alias, its label, its id or a unique head of its id. Without --run, the only
active run is meant.")]
pub(crate) enum NodeCommand {
    Add(add::NodeAddArgs),
    Chat(chat::NodeChatArgs),
    Interrupt(control::NodeInterruptArgs),
    Reset(control::NodeResetArgs),
    Retry(control::NodeRetryArgs),
    Revert(revert::NodeRevertArgs),
}

/// A node of a run, as a person names them.
#[derive(Debug, clap::Args)]
pub(crate) struct NodeOfRun {
    /// The node: its alias, its label, its id or a unique head of its id
    node: String,
    /// The run [default: the only active one]
    #[arg(long, value_name = "RUN")]
    run: Option<RunName>,
}

pub(crate) async fn run_node(command: &NodeCommand, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    let client = &mut client;
    match command {
        NodeCommand::Add(args) => add::run_node_add(client, args, app).await,
        NodeCommand::Chat(args) => chat::run_node_chat(client, args, app).await,
        NodeCommand::Interrupt(args) => control::run_node_interrupt(client, args, app).await,
        NodeCommand::Reset(args) => control::run_node_reset(client, args, app).await,
        NodeCommand::Retry(args) => control::run_node_retry(client, args, app).await,
        NodeCommand::Revert(args) => revert::run_node_revert(client, args, app).await,
    }
}
