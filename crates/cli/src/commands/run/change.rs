//! `turnkeep run pause`, `resume`, `complete`, `fork` and `delete`.

use anyhow::Result;
use std::io::{IsTerminal, Write};
use turnkeep_wire::runs::{ChangeRun, ForkRun, RunAnswer, RunGone, RunStatus, RunView};

use super::client::{RunsClient, ServerAnswer, run_path};
use super::list::print_outcome;
use super::names::RunName;
use super::new::BudgetArgs;
use crate::commands::App;
use crate::failure::Failure;
use crate::http::Call;
use crate::names::parse_text;
use crate::output::Style;
use crate::render::run_text::{run_status_style, run_status_text, title_text};

/// Pause a run: no turn starts any more
///
/// Open turns finish, and what waits for you can still be answered.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run pause
  turnkeep run pause 3f2a --interrupt")]
pub(crate) struct RunPauseArgs {
    /// The run: its id, a unique head of its id, or @last [default: the only active one]
    run: Option<RunName>,
    /// Interrupt open turns too; they go on when the run is resumed
    #[arg(long)]
    interrupt: bool,
}

/// Let a run go on: one that is paused, stalled, completed or failed
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run resume
  turnkeep run resume 3f2a --budget-usd 20   # its budget was used up")]
pub(crate) struct RunResumeArgs {
    /// The run: its id, a unique head of its id, or @last [default: the only active one]
    run: Option<RunName>,
    #[command(flatten)]
    budget: BudgetArgs,
}

/// Declare a run completed
///
/// No agent is prompted any more. A message reopens the run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run complete
  turnkeep run complete 3f2a")]
pub(crate) struct RunCompleteArgs {
    /// The run: its id, a unique head of its id, or @last [default: the only active one]
    run: Option<RunName>,
}

/// Make a run that begins like another, paused
///
/// It shares the past up to an event. Its programs begin new sessions.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run fork @last
  turnkeep run fork 3f2a --at 120 --title \"Another way\"")]
pub(crate) struct RunForkArgs {
    /// The run: its id, a unique head of its id, or @last
    run: RunName,
    /// The number of the last event that both share [default: the newest]
    #[arg(long, value_name = "SEQ")]
    at: Option<u64>,
    /// Its title
    #[arg(long, value_name = "TEXT", value_parser = parse_text)]
    title: Option<String>,
}

/// Delete a run: its programs end, its files go
///
/// Its events stay in the log, which erases nothing. Changes that were not applied are lost.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run delete 3f2a
  turnkeep run delete 3f2a --yes")]
pub(crate) struct RunDeleteArgs {
    /// The run: its id, a unique head of its id, or @last
    run: RunName,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run_run_pause(args: &RunPauseArgs, app: &mut App) -> Result<()> {
    let change = ChangeRun {
        status: Some(RunStatus::Paused),
        interrupt: args.interrupt,
        ..ChangeRun::default()
    };
    change_run(args.run.as_ref(), &change, app).await?;
    Ok(())
}

pub(super) async fn run_run_resume(args: &RunResumeArgs, app: &mut App) -> Result<()> {
    let change = ChangeRun {
        status: Some(RunStatus::Running),
        budget: args.budget.request().map(Some),
        ..ChangeRun::default()
    };
    change_run(args.run.as_ref(), &change, app).await?;
    Ok(())
}

pub(super) async fn run_run_complete(args: &RunCompleteArgs, app: &mut App) -> Result<()> {
    let change = ChangeRun {
        status: Some(RunStatus::Completed),
        ..ChangeRun::default()
    };
    let run = change_run(args.run.as_ref(), &change, app).await?;
    if app.out.is_json() {
        return Ok(());
    }
    print_outcome(&run, &mut app.out)
}

/// Changes a run and prints its new status.
async fn change_run(name: Option<&RunName>, change: &ChangeRun, app: &mut App) -> Result<RunView> {
    let mut client = RunsClient::connect(app).await?;
    let id = client.find_run(name).await?;
    let call = Call::patch(run_path(&id, ""), &serde_json::to_value(change)?);
    let changed: ServerAnswer<RunAnswer> = client.fetch(call).await?;
    let run = changed.view.run;
    if app.out.is_json() {
        app.out.json(&changed.json)?;
        return Ok(run);
    }
    let status = run_status_text(run.status, run.paused_reason);
    let status = app.out.paint(run_status_style(run.status), &status);
    app.out.line(format!(
        "{}: {status}",
        title_text(&run.title, run.goal.as_deref())
    ))?;
    Ok(run)
}

pub(super) async fn run_run_fork(args: &RunForkArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    let id = client.find_run(Some(&args.run)).await?;
    let body = ForkRun {
        seq: args.at,
        title: args.title.clone(),
    };
    let call = Call::post(run_path(&id, "/fork"), &serde_json::to_value(body)?);
    let forked: ServerAnswer<RunAnswer> = client.fetch(call).await?;
    if app.out.is_json() {
        return app.out.json(&forked.json);
    }
    let run = forked.view.run;
    let short = client.known_runs().await?.short_id(&run.id.0);
    let short_id = app.out.paint(Style::Id, &short);
    app.out.line(format!(
        "run {short_id}: {}, {}",
        title_text(&run.title, run.goal.as_deref()),
        run.status.word()
    ))?;
    app.out
        .line(format!("`turnkeep run resume {short}` lets it go on"))
}

pub(super) async fn run_run_delete(args: &RunDeleteArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    let run = client.fetch_run(Some(&args.run)).await?.view.run;
    if !args.yes {
        confirm_delete(&run)?;
    }
    let gone: ServerAnswer<RunGone> = client.fetch(Call::delete(run_path(&run.id.0, ""))).await?;
    if app.out.is_json() {
        return app.out.json(&gone.json);
    }
    app.out.line(format!(
        "deleted {}; its events stay in the log",
        title_text(&run.title, run.goal.as_deref())
    ))
}

/// Asks the user before a run is deleted. Fails without a terminal, where no user could answer.
fn confirm_delete(run: &RunView) -> Result<()> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Failure::usage("deleting a run must be confirmed")
            .hint("add --yes")
            .fail();
    }
    // On standard error: standard output may be a file or a pipe, and the user would not see the
    // question.
    eprint!(
        "Delete \"{}\", its files and its worktrees? Its events stay in the log. [y/N] ",
        title_text(&run.title, run.goal.as_deref())
    );
    std::io::stderr().flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Failure::new("nothing was deleted").fail()
}
