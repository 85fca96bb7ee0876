//! What `turnkeep run new` and `turnkeep run from` share: where a run works, its first message, and
//! following it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use turnkeep_wire::runs::{ProviderHealth, RunAnswer, RunView};

use super::client::{RunsClient, ServerAnswer, run_path};
use super::programs::{note_unready_program, program_text};
use super::watch::{FollowArgs, follow_run};
use crate::commands::App;
use crate::commands::node::chat::{ChatTarget, send_chat};
use crate::failure::Failure;
use crate::http::Call;
use crate::names::parse_text;
use crate::output::Style;
use crate::render::run_text::title_text;

/// How a run begins.
#[derive(Debug, clap::Args)]
pub(super) struct StartArgs {
    /// The directory in which the agents work [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Its title [default: the first line of the goal]
    #[arg(long, value_name = "TEXT", value_parser = parse_text)]
    pub(super) title: Option<String>,
    /// The program behind the nodes: claude, codex, gemini or a configured one; of those nodes of a
    /// graph file that name none
    #[arg(long, value_name = "PROGRAM")]
    pub(super) provider: Option<String>,
    /// Do not follow the run
    #[arg(long)]
    detach: bool,
}

impl StartArgs {
    /// The directory, absolute: the server works in another one.
    pub(super) fn working_directory(&self) -> Result<String> {
        let given = self.cwd.as_deref().unwrap_or(Path::new("."));
        let path = std::fs::canonicalize(given)
            .with_context(|| format!("cannot use the directory {}", given.display()))?;
        match path.to_str() {
            Some(path) => Ok(path.to_owned()),
            None => Failure::new(format!("the name of {} is not UTF-8", path.display())).fail(),
        }
    }
}

/// A run that was made, before it has its first message.
pub(super) struct MadeRun {
    pub(super) answer: ServerAnswer<RunAnswer>,
    pub(super) goal: Option<String>,
    /// The node that gets the goal; none if the server knows which one leads.
    pub(super) receiver: Option<String>,
}

/// Says which program was found. On standard error: standard output is for the result.
pub(super) fn announce_program(program: &ProviderHealth, app: &App) {
    if app.out.is_json() {
        return;
    }
    eprintln!("program: {}", program_text(program));
    note_unready_program(program, app);
}

/// Deletes a run that could not be made in full, so that no half of it stays.
pub(super) async fn undo_run(
    client: &mut RunsClient,
    run: &str,
    error: anyhow::Error,
) -> anyhow::Error {
    let deleted = client.send(Call::delete(run_path(run, ""))).await;
    let state = if deleted.is_ok() {
        "nothing is left of it"
    } else {
        "it is incomplete"
    };
    error.context(format!("the run could not be made, and {state}"))
}

/// Sends the goal, says what was made, and follows the run on a terminal.
pub(super) async fn start_run(
    client: &mut RunsClient,
    made: MadeRun,
    args: &StartArgs,
    app: &mut App,
) -> Result<()> {
    let run = &made.answer.view.run;
    send_goal(client, &made).await?;
    if app.out.is_json() {
        return app.out.json(&made.answer.json);
    }
    print_started(client, run, app).await?;
    // A run without a goal does nothing that could be followed.
    let is_followed = app.out.is_screen() && !args.detach && made.goal.is_some();
    if is_followed {
        return follow_run(client, &run.id.0, &FollowArgs::default(), app).await;
    }
    Ok(())
}

/// Sends the goal as the first message. A run waits for one: its nodes have nothing to do before.
async fn send_goal(client: &mut RunsClient, made: &MadeRun) -> Result<()> {
    let Some(goal) = &made.goal else {
        return Ok(());
    };
    let run = &made.answer.view.run.id.0;
    let target = ChatTarget {
        run,
        node: made.receiver.as_deref(),
    };
    let sent = send_chat(client, target, goal, false).await;
    sent.with_context(|| format!("the run {run} was made, but its goal could not be sent"))?;
    Ok(())
}

async fn print_started(client: &mut RunsClient, run: &RunView, app: &mut App) -> Result<()> {
    let short = client.known_runs().await?.short_id(&run.id.0);
    let id = app.out.paint(Style::Id, &short);
    app.out.line(format!(
        "run {id}: {}",
        title_text(&run.title, run.goal.as_deref())
    ))?;
    let how_long = if client.is_lasting() {
        "it goes on when this terminal closes"
    } else {
        "it stops when the agent whose `turnkeep mcp` is the server ends: `turnkeep up` lasts"
    };
    app.out
        .line(format!("{how_long}; `turnkeep run watch {short}` shows it"))?;
    app.out.flush()
}
