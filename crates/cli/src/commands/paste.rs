//! `turnkeep paste`: types what was captured into a session.

use anyhow::Result;
use serde_json::json;
use turnkeep_types::broker::Paste;

use super::App;
use crate::broker::{connect, explained, name};
use crate::output::Style;

/// Type what was captured into a session's program
///
/// The bytes arrive as if they were typed, none added and none removed. A program that reads lines takes
/// each line as it comes: pasted into a shell, every line runs. What a shell or a REPL printed holds its
/// colours and switches too (bash turns bracketed paste off before each command), which another shell
/// takes for keys. Look at what you captured first: `turnkeep turn ID`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep capture review && turnkeep paste tests
  turnkeep paste tests --bracketed        as one paste, where the program asks for that")]
pub(crate) struct Args {
    /// The session: its id, a unique head of it, its name, or @last
    session: String,
    /// Frame it as a bracketed paste where the program asks for that
    #[arg(long)]
    bracketed: bool,
    /// The terminal's own bytes instead of the content, where they were kept
    #[arg(long)]
    raw: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<()> {
    let mut broker = connect()?;
    let session = name::session(&mut broker, &args.session)?;
    let paste = Paste { session: session.session.clone(), raw: args.raw, bracketed: args.bracketed };
    broker.paste(paste).map_err(explained)?;
    if app.out.is_json() {
        return app.out.json(&json!({ "session": session.session }));
    }
    let id = app.out.paint(Style::Name, &name::short(&session.session));
    app.out.line(format!("pasted into {id}"))
}
