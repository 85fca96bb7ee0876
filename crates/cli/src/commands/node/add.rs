//! `turnkeep node add`.

use anyhow::Result;
use clap::ValueEnum;
use turnkeep_wire::runs::{CliPermissions, CreateNode, NodeAnswer, PermissionsRequest, WakeOn};

use crate::commands::App;
use crate::commands::run::client::{RunsClient, ServerAnswer, run_path};
use crate::commands::run::names::{RunName, node_word};
use crate::commands::run::programs::{
    NodeProgram, choose_program, fetch_programs, note_unready_program, program_name,
};
use crate::http::Call;
use crate::output::Style;
use crate::render::printable;
use crate::render::run_text::one_line;

/// Add a node: one more agent in the run
///
/// It does nothing before it gets a message or a handoff: `turnkeep node chat` sends the one,
/// `turnkeep edge add` lets others send it work.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep node add reviewer --alias review
  turnkeep node add implementer --provider codex --label \"Backend\" --run 3f2a
  turnkeep node add tester --skip-approvals")]
pub(crate) struct NodeAddArgs {
    /// Its role: orchestrator, planner, implementer, reviewer, tester, docs, or one of your own
    role: String,
    /// The run [default: the only active one]
    #[arg(long, value_name = "RUN")]
    run: Option<RunName>,
    /// The program behind it: claude, codex, gemini, or a configured one [default: the first found]
    #[arg(long, value_name = "PROGRAM")]
    provider: Option<String>,
    /// A short name for commands and agents: letters, digits, - and _
    #[arg(long, value_name = "NAME")]
    alias: Option<String>,
    /// Its name for people [default: the alias, else the role]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// The person of the run's world that it is
    #[arg(long, value_name = "PERSON")]
    person: Option<String>,
    /// Text that replaces the role's own
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Which replies wake it when it has asked several nodes
    #[arg(long, value_name = "WHICH", value_enum)]
    wake_on: Option<WakeWord>,
    /// Let the program use its tools without asking you
    #[arg(long)]
    skip_approvals: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WakeWord {
    /// Each reply
    Any,
    /// The last one
    All,
}

pub(super) async fn run_node_add(
    client: &mut RunsClient,
    args: &NodeAddArgs,
    app: &mut App,
) -> Result<()> {
    let run = client.find_run(args.run.as_ref()).await?;
    let programs = fetch_programs(client).await?;
    let program = choose_program(&programs, args.provider.as_deref())?;
    note_unready_program(program, app);
    let body = serde_json::to_value(node_request(args, NodeProgram::of(program)))?;
    let call = Call::post(run_path(&run, "/nodes"), &body);
    let node: ServerAnswer<NodeAnswer> = client.fetch(call).await?;
    if app.out.is_json() {
        return app.out.json(&node.json);
    }
    let node = node.view.node;
    // How short an id may be depends on all nodes, the new one included.
    let run = client.run_view(&run).await?;
    let word = app.out.paint(Style::Name, &node_word(&run, &node));
    let role = one_line(&node.role_template);
    let program = printable(program_name(&node));
    app.out.line(format!("added {word}: {role}, {program}"))
}

fn node_request(args: &NodeAddArgs, program: NodeProgram) -> CreateNode {
    let label = args.label.as_ref().or(args.alias.as_ref());
    let skip = PermissionsRequest {
        cli_permissions_mode: Some(CliPermissions::Skip),
        spawn_requires_approval: None,
    };
    CreateNode {
        label: label.unwrap_or(&args.role).clone(),
        role_template: args.role.clone(),
        provider: program.provider,
        provider_name: program.provider_name,
        alias: args.alias.clone(),
        person: args.person.clone(),
        capabilities: None,
        permissions: args.skip_approvals.then_some(skip),
        custom_system_prompt: args.prompt.clone(),
        wake_on: args.wake_on.map(|which| match which {
            WakeWord::Any => WakeOn::Any,
            WakeWord::All => WakeOn::All,
        }),
        position: None,
        session: None,
        budget: None,
    }
}
