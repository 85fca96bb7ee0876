//! `turnkeep capture`: takes a turn into the relay buffer.

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
/// What was captured stays until the next capture, whatever becomes of its session.
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
    let preview = fetch_preview(&mut broker, &session, &turn_id);
    if app.out.is_json() {
        return app
            .out
            .json(&json!({ "turn_id": turn_id, "size": size, "preview": preview }));
    }
    let id = sessions.short_turn(&turn_id);
    let head = format!("captured {id}, {}", bytes_text(size));
    let quote = preview
        .map(|preview| quote_in_line(&preview, head.len(), &app.out))
        .unwrap_or_default();
    let id = app.out.paint(Style::Id, &id);
    app.out
        .line(format!("captured {id}, {}{quote}", bytes_text(size)))
}

/// The first words of the turn that was taken. A turn that has left its ring since has none.
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

/// A quotation behind what stands in a line already, cut where the terminal's line ends.
fn quote_in_line(text: &str, taken: usize, out: &Output) -> String {
    const MARKS: usize = 4;
    let text = printable(text);
    let text = match out.columns() {
        Some(columns) => shorten_to_columns(&text, columns.saturating_sub(taken + MARKS)),
        None => text,
    };
    format!(": \"{text}\"")
}
