//! `turnkeep node chat`.

use std::path::Path;

use anyhow::{Context, Result};
use turnkeep_wire::runs::{ChatAccepted, SendChat};

use crate::commands::App;
use crate::commands::run::client::{RunsClient, ServerAnswer, run_path};
use crate::commands::run::names::{RunName, find_node, node_title};
use crate::failure::Failure;
use crate::http::Call;
use crate::names::parse_text;
use crate::output::Style;
use crate::session::read_input;

/// Send a message to a node
///
/// It waits until the node's turn ends, or interrupts the turn with --interrupt. Without a node it
/// goes to the orchestrator, or to the only node. A message to a run that has ended reopens it.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
#[command(after_help = "Examples:
  turnkeep node chat \"How far are you?\"
  turnkeep node chat impl \"Use the existing function.\" --interrupt
  git diff | turnkeep node chat review -   # from standard input")]
pub(crate) struct NodeChatArgs {
    /// The node: its alias, its label, its id or a unique head of its id
    node: Option<String>,
    /// The message; - reads it from standard input
    #[arg(value_parser = parse_text)]
    text: String,
    /// The run [default: the only active one]
    #[arg(long, value_name = "RUN")]
    run: Option<RunName>,
    /// Interrupt its turn; the next one begins with this message
    #[arg(long)]
    interrupt: bool,
}

/// Who gets a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChatTarget<'a> {
    pub(crate) run: &'a str,
    /// None: the node that leads.
    pub(crate) node: Option<&'a str>,
}

pub(super) async fn run_node_chat(
    client: &mut RunsClient,
    args: &NodeChatArgs,
    app: &mut App,
) -> Result<()> {
    let run = client.fetch_run(args.run.as_ref()).await?.view.run;
    let node = match &args.node {
        Some(name) => Some(find_node(&run, name)?),
        None => None,
    };
    let target = ChatTarget {
        run: &run.id.0,
        node: node.map(|node| node.id.0.as_str()),
    };
    let text = message_text(&args.text)?;
    let sent = send_chat(client, target, &text, args.interrupt).await?;
    if app.out.is_json() {
        return app.out.json(&sent.json);
    }
    let receiver = node.map_or_else(|| "the leading node".to_owned(), node_title);
    let receiver = app.out.paint(Style::Name, &receiver);
    app.out.line(format!(
        "sent to {receiver}; `turnkeep run watch` shows what it does"
    ))
}

fn message_text(given: &str) -> Result<String> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let bytes = read_input(Path::new("-"))?;
    let text = String::from_utf8(bytes).context("standard input is not text")?;
    parse_text(&text).or_else(|_| Failure::usage("standard input is empty").fail())
}

/// Sends a message.
pub(crate) async fn send_chat(
    client: &mut RunsClient,
    target: ChatTarget<'_>,
    text: &str,
    interrupt: bool,
) -> Result<ServerAnswer<ChatAccepted>> {
    let body = SendChat {
        content: text.to_owned(),
        interrupt,
        node_id: target.node.map(str::to_owned),
    };
    let body = serde_json::to_value(&body)?;
    client
        .fetch(Call::post(run_path(target.run, "/chat"), &body))
        .await
}
