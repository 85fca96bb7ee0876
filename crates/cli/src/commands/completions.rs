//! `turnkeep completions`: prints a shell's completion script.
//!
//! The scripts of bash, zsh and fish call `turnkeep complete` at every key, so they also suggest
//! sessions, presets, worlds, contexts and types. The scripts of other shells know commands and
//! options only.

use anyhow::Result;
use clap_complete::Shell;
use serde_json::json;

use super::App;
use crate::command_line;

const BASH: &str = include_str!("completions/turnkeep.bash");
const ZSH: &str = include_str!("completions/turnkeep.zsh");
const FISH: &str = include_str!("completions/turnkeep.fish");

/// Print a completion script for a shell
///
/// In bash, zsh and fish the script also suggests sessions, presets, worlds, contexts and types.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  source <(turnkeep completions bash)   # for this shell
  turnkeep completions bash > ~/.local/share/bash-completion/completions/turnkeep
  turnkeep completions zsh > ~/.zfunc/_turnkeep
  turnkeep completions fish > ~/.config/fish/completions/turnkeep.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run_completions(args: &CompletionsArgs, app: &mut App) -> Result<()> {
    let script = completion_script(args.shell);
    if app.out.is_json() {
        return app
            .out
            .json(&json!({ "shell": args.shell.to_string(), "script": script }));
    }
    app.out.bytes(script.as_bytes())
}

fn completion_script(shell: Shell) -> String {
    match shell {
        Shell::Bash => BASH.to_owned(),
        Shell::Zsh => ZSH.to_owned(),
        Shell::Fish => FISH.to_owned(),
        other => {
            let mut script = Vec::new();
            clap_complete::generate(other, &mut command_line(), "turnkeep", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
    }
}
