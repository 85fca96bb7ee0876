//! `turnkeep run`: makes runs of agents, shows and follows them, and brings their work home.

mod archive;
mod change;
pub(crate) mod client;
pub(crate) mod events;
mod failed_verification;
mod from;
mod graph_file;
mod list;
pub(crate) mod names;
mod new;
pub(crate) mod programs;
mod results;
#[cfg(test)]
pub(crate) mod samples;
mod start;
pub(crate) mod watch;
mod why;
pub(crate) mod words;

use anyhow::Result;
use clap::Subcommand;

use super::App;

/// Run agents: alone, in pairs or in teams, under your approval
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  turnkeep up                                  # in another terminal: agents work in the server
  turnkeep run new \"Fix the failing test\"      # one agent, in this directory
  turnkeep run new \"Add refunds\" --team team   # a lead and its workers
  turnkeep run list
  turnkeep run watch @last
  turnkeep approvals                           # what the agents ask you
  turnkeep run apply @last                     # their work into your directory

A run is named by its id, a unique head of its id, or @last. `turnkeep node`, `edge`, `approvals`,
`inbox` and `diff` work in a run.")]
pub(crate) enum RunCommand {
    New(new::RunNewArgs),
    From(from::RunFromArgs),
    List(list::RunListArgs),
    Show(list::RunShowArgs),
    Watch(watch::RunWatchArgs),
    Why(why::RunWhyArgs),
    Pause(change::RunPauseArgs),
    Resume(change::RunResumeArgs),
    Complete(change::RunCompleteArgs),
    Verify(results::RunVerifyArgs),
    Apply(results::RunApplyArgs),
    Fork(change::RunForkArgs),
    Delete(change::RunDeleteArgs),
    Export(archive::RunExportArgs),
    Import(archive::RunImportArgs),
    Record(archive::RunRecordArgs),
}

pub(crate) async fn run_run(command: &RunCommand, app: &mut App) -> Result<()> {
    match command {
        RunCommand::New(args) => new::run_run_new(args, app).await,
        RunCommand::From(args) => from::run_run_from(args, app).await,
        RunCommand::List(args) => list::run_run_list(args, app).await,
        RunCommand::Show(args) => list::run_run_show(args, app).await,
        RunCommand::Watch(args) => watch::run_run_watch(args, app).await,
        RunCommand::Why(args) => why::run_run_why(args, app).await,
        RunCommand::Pause(args) => change::run_run_pause(args, app).await,
        RunCommand::Resume(args) => change::run_run_resume(args, app).await,
        RunCommand::Complete(args) => change::run_run_complete(args, app).await,
        RunCommand::Verify(args) => results::run_run_verify(args, app).await,
        RunCommand::Apply(args) => results::run_run_apply(args, app).await,
        RunCommand::Fork(args) => change::run_run_fork(args, app).await,
        RunCommand::Delete(args) => change::run_run_delete(args, app).await,
        RunCommand::Export(args) => archive::run_run_export(args, app).await,
        RunCommand::Import(args) => archive::run_run_import(args, app).await,
        RunCommand::Record(args) => archive::run_run_record(args, app).await,
    }
}
