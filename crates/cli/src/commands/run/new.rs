//! `turnkeep run new`.

use anyhow::Result;
use turnkeep_wire::runs::{
    BudgetRequest, ChangeNode, CliPermissions, CreateRun, GlobalMode, NodeView, PermissionsRequest,
    ProviderHealth, RunAnswer, RunMode,
};

use super::client::{RunsClient, ServerAnswer, node_path, run_path};
use super::programs::{NodeProgram, can_work, choose_program, fetch_programs, program_name};
use super::start::{MadeRun, StartArgs, announce_program, start_run, undo_run};
use crate::commands::App;
use crate::http::Call;
use crate::names::parse_text;

/// Start agents on a goal, in this directory
///
/// Without --team, one agent works alone: the first program that the server finds. The run belongs
/// to the server that `turnkeep up` starts, so it goes on when this terminal closes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run new \"Fix the failing test\"
  turnkeep run new \"Add refunds\" --team team --verify \"make test\" --auto
  turnkeep run new \"Plan the migration\" --planning --provider codex
  turnkeep run new \"Tidy up\" --detach --json | jq -r .run.id")]
pub(crate) struct RunNewArgs {
    /// What is to be done
    #[arg(value_parser = parse_text)]
    goal: String,
    /// The nodes to begin with: solo, pair, team, or a team of your own
    #[arg(long, value_name = "TEAM", default_value = "solo")]
    team: String,
    /// Prompt the orchestrators by themselves while the goal is not reached
    #[arg(long)]
    auto: bool,
    /// Let the agents write plans and documents only
    #[arg(long)]
    planning: bool,
    /// A command that must pass before the run may be completed; may be repeated
    #[arg(long, value_name = "COMMAND")]
    verify: Vec<String>,
    /// A command that runs once in each new worktree; may be repeated
    #[arg(long, value_name = "COMMAND")]
    setup: Vec<String>,
    /// The world whose persons the nodes are
    #[arg(long, value_name = "WORLD")]
    world: Option<String>,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    start: StartArgs,
}

/// What a run may use.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct BudgetArgs {
    /// Pause when so many tokens are used
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    budget_tokens: Option<u64>,
    /// Pause when so many dollars are used
    #[arg(long, value_name = "USD", value_parser = parse_dollars, allow_negative_numbers = true)]
    budget_usd: Option<f64>,
}

impl BudgetArgs {
    pub(super) fn request(&self) -> Option<BudgetRequest> {
        let is_given = self.budget_tokens.is_some() || self.budget_usd.is_some();
        is_given.then_some(BudgetRequest {
            tokens: self.budget_tokens,
            cost_usd: self.budget_usd,
        })
    }
}

fn parse_dollars(text: &str) -> Result<f64, &'static str> {
    let amount = text.parse::<f64>().ok();
    let amount = amount.filter(|amount| amount.is_finite() && *amount > 0.0);
    amount.ok_or("expected an amount above 0, such as 2.50")
}

pub(super) async fn run_run_new(args: &RunNewArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    let programs = fetch_programs(&mut client).await?;
    let program = choose_program(&programs, args.start.provider.as_deref())?;
    announce_program(program, app);
    let body = serde_json::to_value(new_run_request(args)?)?;
    let answer: ServerAnswer<RunAnswer> = client.fetch(Call::post("/api/runs", &body)).await?;
    let wanted = ProgramChange {
        program,
        programs: &programs,
        replaces_all: args.start.provider.is_some(),
    };
    let run = answer.view.run.id.0.clone();
    // A run with other programs than the wanted ones must not start.
    let answer = match wanted.apply(&mut client, answer).await {
        Ok(answer) => answer,
        Err(error) => return Err(undo_run(&mut client, &run, error).await),
    };
    let made = MadeRun {
        answer,
        goal: Some(args.goal.clone()),
        receiver: None,
    };
    start_run(&mut client, made, &args.start, app).await
}

fn new_run_request(args: &RunNewArgs) -> Result<CreateRun> {
    Ok(CreateRun {
        verify: args.verify.clone(),
        setup: args.setup.clone(),
        cwd: Some(args.start.working_directory()?),
        goal: Some(args.goal.clone()),
        title: args.start.title.clone(),
        mode: args.auto.then_some(RunMode::Auto),
        global_mode: args.planning.then_some(GlobalMode::Planning),
        team: Some(args.team.clone()),
        world: args.world.clone(),
        docs_node: None,
        budget: args.budget.request(),
        limits: None,
    })
}

/// Which nodes of a team get another program: all of them, or those whose program cannot work.
struct ProgramChange<'a> {
    program: &'a ProviderHealth,
    programs: &'a [ProviderHealth],
    replaces_all: bool,
}

impl ProgramChange<'_> {
    async fn apply(
        &self,
        client: &mut RunsClient,
        made: ServerAnswer<RunAnswer>,
    ) -> Result<ServerAnswer<RunAnswer>> {
        let run = &made.view.run;
        let concerned: Vec<_> = run
            .nodes
            .values()
            .filter(|node| self.concerns(node))
            .collect();
        if concerned.is_empty() {
            return Ok(made);
        }
        for node in concerned {
            let change = serde_json::to_value(self.change_of(node))?;
            let path = node_path(&run.id.0, &node.id.0, "");
            client.send(Call::patch(path, &change)).await?;
        }
        client.fetch(Call::get(run_path(&run.id.0, ""))).await
    }

    fn concerns(&self, node: &NodeView) -> bool {
        let is_wanted = program_name(node) == self.program.name;
        let can_work = self.current(node).is_some_and(can_work);
        !is_wanted && (self.replaces_all || !can_work)
    }

    fn current(&self, node: &NodeView) -> Option<&ProviderHealth> {
        let name = program_name(node);
        self.programs.iter().find(|program| program.name == name)
    }

    fn change_of(&self, node: &NodeView) -> ChangeNode {
        let NodeProgram {
            provider,
            provider_name,
        } = NodeProgram::of(self.program);
        let could_ask = self
            .current(node)
            .is_none_or(|program| program.features.approvals);
        let mode = match (could_ask, self.program.features.approvals) {
            // A program that cannot ask must not be told to.
            (_, false) => Some(CliPermissions::Skip),
            // The node asked nothing only because its program could not.
            (false, true) => Some(CliPermissions::Gated),
            (true, true) => None,
        };
        ChangeNode {
            provider: Some(provider),
            // Null, so that the name of a configured program does not stay.
            provider_name: Some(provider_name),
            permissions: mode.map(|mode| PermissionsRequest {
                cli_permissions_mode: Some(mode),
                spawn_requires_approval: None,
            }),
            ..ChangeNode::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_an_amount_that_can_be_used_up() {
        assert_eq!(parse_dollars("2.50"), Ok(2.5));
        for wrong in ["0", "-1", "nan", "inf", "two", ""] {
            assert!(parse_dollars(wrong).is_err(), "{wrong}");
        }
    }
}
