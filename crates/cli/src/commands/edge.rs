//! `turnkeep edge`: connects nodes of a run.

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use turnkeep_wire::runs::{CreateEdge, EdgeAnswer, EdgeKind};

use super::App;
use super::run::client::{RunsClient, ServerAnswer, run_path};
use super::run::names::{RunName, find_node, node_title};
use crate::http::Call;
use crate::output::Style;
use crate::render::run_text::edge_text;

/// Connect nodes of a run
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  turnkeep edge add lead impl
  turnkeep edge add impl review --one-way")]
pub(crate) enum EdgeCommand {
    Add(EdgeAddArgs),
}

/// Let one node hand work to another
///
/// Agents can only send to nodes that an edge reaches. An edge that is there already gets the label,
/// the direction and the gate that you name, and keeps the rest.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep edge add lead impl
  turnkeep edge add impl review --one-way --label \"to review\"
  turnkeep edge add impl lead --gate   # a success must pass the verification commands first")]
pub(crate) struct EdgeAddArgs {
    /// The node that sends: its alias, its label, its id or a unique head of its id
    #[arg(value_name = "FROM")]
    from: String,
    /// The node that receives
    #[arg(value_name = "TO")]
    to: String,
    /// The run [default: the only active one]
    #[arg(long, value_name = "RUN")]
    run: Option<RunName>,
    /// What it carries [default: report to an orchestrator, else handoff]
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    kind: Option<EdgeWord>,
    /// Its label [default: task or report]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Only from the first to the second; otherwise replies come back along it
    #[arg(long)]
    one_way: bool,
    /// Run the verification commands before it delivers a success
    #[arg(long)]
    gate: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EdgeWord {
    Handoff,
    Report,
}

pub(crate) async fn run_edge(command: &EdgeCommand, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    match command {
        EdgeCommand::Add(args) => run_edge_add(&mut client, args, app).await,
    }
}

async fn run_edge_add(client: &mut RunsClient, args: &EdgeAddArgs, app: &mut App) -> Result<()> {
    let run = client.fetch_run(args.run.as_ref()).await?.view.run;
    let from = find_node(&run, &args.from)?;
    let to = find_node(&run, &args.to)?;
    let asked = CreateEdge {
        from: from.id.0.clone(),
        to: to.id.0.clone(),
        kind: args.kind.map(|kind| match kind {
            EdgeWord::Handoff => EdgeKind::Handoff,
            EdgeWord::Report => EdgeKind::Report,
        }),
        label: args.label.clone(),
        bidirectional: args.one_way.then_some(false),
        gate: args.gate.then_some(true),
    };
    let path = run_path(&run.id.0, "/edges");
    let call = Call::post(path, &serde_json::to_value(&asked)?);
    let answer: ServerAnswer<EdgeAnswer> = client.fetch(call).await?;
    let edge = answer.view.edge;
    let [from, to] = [from, to].map(|node| app.out.paint(Style::Name, &node_title(node)));
    if app.out.is_json() {
        return app.out.json(&answer.json);
    }
    let news = match run.edges.get(&edge.id.0) {
        Some(before) if *before == edge => "already there: ",
        Some(_) => "changed: ",
        None => "",
    };
    let text = edge_text(&edge, &from, &to);
    app.out.line(format!("{news}{text}"))
}
