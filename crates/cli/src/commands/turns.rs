//! `turnkeep turns`: lists the turns of a session that the broker still keeps.

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_types::broker::{ListTurns, TurnInfo};

use super::App;
use crate::broker::known_sessions::KnownSessions;
use crate::broker::{connect_to_broker, explain_broker_error};
use crate::names::SessionName;
use crate::output::bytes_text;
use crate::render::printable;

/// List a session's captured turns, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep turns review           # by the name given to `turnkeep wrap --name`
  turnkeep turns 3f2a --limit 5   # by the head of its id
  turnkeep turns @last --json     # the session with the latest turn")]
pub(crate) struct TurnsArgs {
    /// The session: its name, its id, a unique head of its id, or @last
    session: SessionName,
    /// At most this many turns
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u32>,
    /// Include output that no input caused
    #[arg(long)]
    all: bool,
}

pub(crate) fn run_turns(args: &TurnsArgs, app: &mut App) -> Result<()> {
    let mut broker = connect_to_broker()?;
    let sessions = KnownSessions::fetch(&mut broker)?;
    let session = sessions.find_session(&args.session)?.session.clone();
    let list = ListTurns {
        session,
        limit: args.limit,
        preview: true,
        all: args.all,
    };
    let turns = broker.list_turns(list).map_err(explain_broker_error)?;
    if app.out.is_json() {
        return turns
            .iter()
            .try_for_each(|turn| app.out.json(&info_json(turn)));
    }
    let rows: Vec<Vec<String>> = turns.iter().map(|turn| turn_row(turn, &sessions)).collect();
    app.out.fitted_table(
        &["TURN", "COMPLETED", "SIZE", "FLAGS", "FIRST WORDS"],
        &rows,
    )
}

fn turn_row(turn: &TurnInfo, sessions: &KnownSessions) -> Vec<String> {
    let size = bytes_text(turn.byte_length.into());
    let words = turn.preview.as_deref().map(printable).unwrap_or_default();
    vec![
        sessions.short_turn(&turn.turn_id),
        completed_text(turn),
        size,
        flag_words(turn).join(" "),
        words,
    ]
}

/// When a turn was completed.
pub(super) fn completed_text(turn: &TurnInfo) -> String {
    let millis = i64::try_from(turn.timestamp.0).ok();
    match millis.map(jiff::Timestamp::from_millisecond) {
        Some(Ok(time)) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        // A wrapper of another version may send any number.
        Some(Err(_)) | None => "unknown".to_owned(),
    }
}

/// What is special about a turn.
pub(super) fn flag_words(turn: &TurnInfo) -> Vec<&'static str> {
    let all = [
        (turn.interrupted, "interrupted"),
        (turn.truncated, "truncated"),
        (turn.incomplete, "incomplete"),
        (turn.unprompted, "unprompted"),
    ];
    all.into_iter()
        .filter(|(set, _)| *set)
        .map(|(_, word)| word)
        .collect()
}

/// A turn's metadata for programs.
pub(super) fn info_json(turn: &TurnInfo) -> Value {
    let mut value = json!({
        "turn_id": turn.turn_id,
        "timestamp": turn.timestamp.0,
        "byte_length": turn.byte_length,
        "interrupted": turn.interrupted,
        "truncated": turn.truncated,
        "incomplete": turn.incomplete,
        "unprompted": turn.unprompted,
    });
    if let Some(preview) = &turn.preview {
        value["preview"] = preview.as_str().into();
    }
    value
}
