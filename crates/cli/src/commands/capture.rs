//! `turnkeep capture`: takes a turn into the relay buffer.

use anyhow::Result;
use serde_json::json;

use super::App;
use crate::broker::{connect, explained, name};
use crate::output::{Style, bytes_text};
use crate::render::printable;

/// Capture a session's latest turn, or any turn by its id, for paste and deliver
///
/// What was captured stays until the next capture, whatever becomes of its session.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep capture review                 the latest turn of the session named review
  turnkeep capture @last
  turnkeep capture review:3               its third turn")]
pub(crate) struct Args {
    /// The session (its id, a unique head of it, its name, or @last), or a turn of it: SESSION:NUMBER
    #[arg(value_name = "SESSION|ID")]
    what: String,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<()> {
    let mut broker = connect()?;
    let captured = if args.what.contains(':') {
        let turn_id = name::turn_id(&mut broker, &args.what)?;
        broker.capture_by_id(&turn_id)
    } else {
        let session = name::session(&mut broker, &args.what)?.session;
        broker.capture(&session)
    };
    let (turn_id, size) = captured.map_err(explained)?;
    if app.out.is_json() {
        return app.out.json(&json!({ "turn_id": turn_id, "size": size }));
    }
    let turn = app.out.paint(Style::Id, &printable(&turn_id));
    app.out.line(format!("captured {turn}, {}", bytes_text(size)))
}
