//! `turnkeep agent-terminal`: runs an interactive program for a node of a run.
//!
//! The server starts this command for a program with `protocol = "pty"` and speaks JSON lines with
//! it. People have no use for it, so the help does not list it.

use std::ffi::OsString;

use anyhow::{Context as _, Result};
use turnkeep_pty::wrap::AgentTerminalOptions;

use super::App;
use super::detect::ProfileChoice;
use super::wrap::{end_as, explain_wrap_error};

/// Run an interactive program for a node of a run
#[derive(Debug, clap::Args)]
pub(crate) struct AgentTerminalArgs {
    /// Profile by which turns are detected [default: by the program's name, else generic]
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The words that start this command, before those of the program.
pub(crate) fn launcher(profile: Option<&str>) -> Result<Vec<String>> {
    let turnkeep = std::env::current_exe().context("cannot find the path of turnkeep itself")?;
    let turnkeep = turnkeep.to_string_lossy().into_owned();
    let mut words = vec![turnkeep, "agent-terminal".to_owned()];
    if let Some(profile) = profile {
        words.extend(["--preset".to_owned(), profile.to_owned()]);
    }
    words.push("--".to_owned());
    Ok(words)
}

pub(crate) fn run_agent_terminal(args: &AgentTerminalArgs, app: &mut App) -> Result<()> {
    let presets = app.config()?.presets;
    let program = args
        .command
        .first()
        .map(|program| program.to_string_lossy());
    let program = program.unwrap_or_default();
    let choice = ProfileChoice {
        pattern: None,
        preset: args.preset.as_deref(),
        program: &program,
    };
    let name = args.preset.as_deref().unwrap_or(presets.name_for(&program));
    let options = AgentTerminalOptions {
        profile: choice.find(&presets)?,
        escapes: AgentTerminalOptions::escapes_of(presets.spec(name)),
        command: args.command.clone(),
    };
    let ended = turnkeep_pty::wrap::run_agent_terminal(options);
    end_as(ended.map_err(explain_wrap_error)?)
}
