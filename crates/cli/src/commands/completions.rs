//! `turnkeep completions`: what the shell may suggest.

use anyhow::Result;
use clap_complete::Shell;
use serde_json::json;

use super::App;
use crate::command_line;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep completions bash > ~/.local/share/bash-completion/completions/turnkeep
  turnkeep completions zsh > ~/.zfunc/_turnkeep
  turnkeep completions fish > ~/.config/fish/completions/turnkeep.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command_line(), "turnkeep", &mut script);
    if app.out.is_json() {
        let script = String::from_utf8_lossy(&script);
        return app.out.json(&json!({ "shell": args.shell.to_string(), "script": script }));
    }
    app.out.bytes(&script)
}
