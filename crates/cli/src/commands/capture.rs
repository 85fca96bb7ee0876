//! `turnkeep capture`: copies a turn into the relay buffer.

use anyhow::Result;
use serde_json::json;
use turnkeep_client::broker::Connection;
use turnkeep_types::broker::ListTurns;

use super::App;
use crate::broker::known_sessions::KnownSessions;
use crate::broker::{connect_to_broker, explain_broker_error};
use crate::names::CapturedName;
use crate::output::{Output, Style, bytes_text};
use crate::render::{printable, shorten_to_columns};

/// Capture a session's latest turn, or any turn by its id, for paste and deliver
///
/// The captured turn stays until the next capture, even if its session ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep capture review       # the latest turn of the session named review
  turnkeep capture @last
  turnkeep capture review:3     # its third turn")]
pub(crate) struct CaptureArgs {
    /// The turn, such as review:3 or @last:3; a session alone means its latest
    #[arg(value_name = "SESSION[:NUMBER]")]
    what: CapturedName,
}

pub(crate) fn run_capture(args: &CaptureArgs, app: &mut App) -> Result<()> {
    let mut broker = connect_to_broker()?;
    let sessions = KnownSessions::fetch(&mut broker)?;
    let session = sessions.find_session(&args.what.session)?.session.clone();
    let captured = match args.what.number {
        Some(number) => broker.capture_by_id(&format!("{session}:{number}")),
        None => broker.capture(&session),
    };
    let (turn_id, size) = captured.map_err(explain_broker_error)?;
    // The answer to a capture has no preview. The list of turns has.
    let preview = fetch_preview(&mut broker, &session, &turn_id);
    if app.out.is_json() {
        return app
            .out
            .json(&json!({ "turn_id": turn_id, "size": size, "preview": preview }));
    }
    let (id, size) = (sessions.short_turn(&turn_id), bytes_text(size));
    print_captured(&id, &size, preview.as_deref(), &mut app.out)
}

fn print_captured(id: &str, size: &str, preview: Option<&str>, out: &mut Output) -> Result<()> {
    // The width is measured without colours, which take no columns.
    let taken = format!("captured {id}, {size}").len();
    let quote = preview.map(|preview| quote_in_line(preview, taken, out));
    let id = out.paint(Style::Id, id);
    out.line(format!(
        "captured {id}, {size}{}",
        quote.unwrap_or_default()
    ))
}

/// The first words of the captured turn. None if the broker has discarded the turn since.
fn fetch_preview(broker: &mut Connection, session: &str, turn_id: &str) -> Option<String> {
    let list = ListTurns {
        session: session.to_owned(),
        preview: true,
        ..ListTurns::default()
    };
    let turns = broker.list_turns(list).ok()?;
    let turn = turns.into_iter().find(|turn| turn.turn_id == turn_id)?;
    turn.preview.filter(|preview| !preview.is_empty())
}

/// A quotation at the end of a line of which `taken` columns are used, cut to the terminal's width.
fn quote_in_line(text: &str, taken: usize, out: &Output) -> String {
    /// The columns of the colon, the space and the two quotation marks.
    const MARKS: usize = 4;
    let text = printable(text);
    let text = match out.columns() {
        Some(columns) => shorten_to_columns(&text, columns.saturating_sub(taken + MARKS)),
        None => text,
    };
    format!(": \"{text}\"")
}
