//! `turnkeep run from`.
//!
//! A run, its nodes and its edges are several requests. If one of them is refused, the command
//! deletes the run again, so no half of a graph is left.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::json;
use turnkeep_wire::runs::{CreateRun, GraphFile, RunAnswer};

use super::client::{RunsClient, ServerAnswer, run_path};
use super::graph_file::{node_requests, parse_graph};
use super::programs::{NodeProgram, choose_program, fetch_programs};
use super::start::{MadeRun, StartArgs, announce_program, start_run, undo_run};
use crate::commands::App;
use crate::http::Call;
use crate::names::parse_text;
use crate::session::{input_name, read_input};

/// Start the agents of a graph file
///
/// The file is TOML: goal, verify, nodes and edges. A node needs only its role; one without
/// a provider gets the first program that the server finds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run from pair.toml
  turnkeep run from pair.toml --goal \"Fix the failing test\"

A file with two agents:

  goal = 'Make the tests pass'
  verify = ['make test']
  [[nodes]]
  alias = 'lead'
  role = 'orchestrator'
  [[nodes]]
  alias = 'impl'
  role = 'implementer'
  provider = 'codex'
  [[edges]]
  from = 'lead'
  to = 'impl'")]
pub(crate) struct RunFromArgs {
    /// The file; - reads standard input
    file: PathBuf,
    /// What is to be done, instead of the file's goal
    #[arg(long, value_name = "TEXT", value_parser = parse_text)]
    goal: Option<String>,
    #[command(flatten)]
    start: StartArgs,
}

pub(super) async fn run_run_from(args: &RunFromArgs, app: &mut App) -> Result<()> {
    let graph = read_graph(args)?;
    let mut client = RunsClient::connect(app).await?;
    let program = default_program(&mut client, &graph, args, app).await?;
    let goal = args.goal.clone().or_else(|| graph.goal.clone());
    let request = graph.run_request();
    let request = CreateRun {
        cwd: Some(args.start.working_directory()?),
        goal: goal.clone(),
        title: args.start.title.clone().or(request.title.clone()),
        ..request
    };
    let call = Call::post("/api/runs", &serde_json::to_value(request)?);
    let made: ServerAnswer<RunAnswer> = client.fetch(call).await?;
    let run = made.view.run.id.0;
    let parts = part_requests(&graph, &run, &program)?;
    make_parts(&mut client, &run, parts).await?;
    let made = MadeRun {
        answer: client.fetch(Call::get(run_path(&run, ""))).await?,
        goal,
        receiver: graph.first_receiver().map(str::to_owned),
    };
    start_run(&mut client, made, &args.start, app).await
}

fn read_graph(args: &RunFromArgs) -> Result<GraphFile> {
    let name = input_name(&args.file);
    let text = String::from_utf8(read_input(&args.file)?);
    parse_graph(&text.with_context(|| format!("{name} is not text"))?, &name)
}

/// The program of the nodes for which the file names none.
async fn default_program(
    client: &mut RunsClient,
    graph: &GraphFile,
    args: &RunFromArgs,
    app: &App,
) -> Result<NodeProgram> {
    let wanted = args.start.provider.as_deref();
    if wanted.is_none() && !graph.needs_program() {
        // Never used: every node names its own.
        return Ok(NodeProgram::called(""));
    }
    let programs = fetch_programs(client).await?;
    let program = choose_program(&programs, wanted)?;
    announce_program(program, app);
    Ok(NodeProgram::of(program))
}

/// The requests that make the nodes and edges, in their order.
fn part_requests(graph: &GraphFile, run: &str, program: &NodeProgram) -> Result<Vec<Call>> {
    fn post(run: &str, tail: &str, body: impl Serialize) -> Result<Call> {
        let body = serde_json::to_value(body)?;
        Ok(Call::post(run_path(run, tail), &body))
    }
    let mut requests = Vec::new();
    for node in node_requests(graph, program) {
        requests.push(post(run, "/nodes", node)?);
    }
    for edge in graph.edge_requests() {
        requests.push(post(run, "/edges", edge)?);
    }
    // The node must be there before the run can name it.
    if let Some(docs_node) = &graph.docs_node {
        let change = json!({ "docsNode": docs_node });
        requests.push(Call::patch(run_path(run, ""), &change));
    }
    Ok(requests)
}

/// Makes the nodes and edges of a run, or deletes it.
async fn make_parts(client: &mut RunsClient, run: &str, requests: Vec<Call>) -> Result<()> {
    for request in requests {
        if let Err(error) = client.send(request).await {
            return Err(undo_run(client, run, error).await);
        }
    }
    Ok(())
}
