//! `turnkeep paste`: types the captured turn into a session.

use anyhow::Result;
use serde_json::json;
use turnkeep_types::broker::Paste;

use super::App;
use crate::broker::known_sessions::KnownSessions;
use crate::broker::{connect_to_broker, deliver_as, explain_broker_error};
use crate::names::SessionName;
use crate::output::Style;

/// Type the captured turn into a session's program
///
/// The turn's readable text arrives as if it were typed. A program that reads lines takes each line
/// as it comes: pasted into a shell, every line runs. A program that shows a dialog would take the
/// text for the answer, so that the paste is refused unless --force is given. With --raw the
/// captured bytes are typed, colours and switches of the terminal included, which a program takes
/// for keys. Look at what you captured first: `turnkeep turn ID`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep capture review && turnkeep paste tests
  turnkeep paste tests --bracketed   # as one paste, if the program asks for that")]
pub(crate) struct PasteArgs {
    /// The session: its name, its id, a unique head of its id, or @last
    session: SessionName,
    /// Frame it as a bracketed paste where the program asks for that
    #[arg(long)]
    bracketed: bool,
    /// The captured bytes instead of the text: the terminal's own where they were kept
    #[arg(long)]
    raw: bool,
    /// Also into a program that shows a dialog
    #[arg(long)]
    force: bool,
}

pub(crate) fn run_paste(args: &PasteArgs, app: &mut App) -> Result<()> {
    let mut broker = connect_to_broker()?;
    let sessions = KnownSessions::fetch(&mut broker)?;
    let session = sessions.find_session(&args.session)?;
    let paste = |form| Paste {
        session: session.session.clone(),
        form,
        bracketed: args.bracketed,
        unless_blocked: !args.force,
    };
    deliver_as(args.raw, |form| broker.paste(paste(form))).map_err(explain_broker_error)?;
    if app.out.is_json() {
        return app.out.json(&json!({ "session": session.session }));
    }
    let name = app.out.paint(Style::Name, &sessions.display_name(session));
    app.out.line(format!("pasted into {name}"))
}
