//! `turnkeep turns`: the turns of a session that are still kept.

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_types::broker::TurnInfo;

use super::App;
use crate::broker::{connect, explained, name};
use crate::output::bytes_text;
use crate::render::printable;

/// List a session's captured turns, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep turns review                   by the name given to `turnkeep wrap --name`
  turnkeep turns 3f2a --limit 5           by the head of its id
  turnkeep turns @last --json             the session with the latest turn")]
pub(crate) struct Args {
    /// The session: its id, a unique head of it, its name, or @last
    session: String,
    /// At most so many turns
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u32>,
    /// Also what the program said although nothing was submitted
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<()> {
    let mut broker = connect()?;
    let session = name::session(&mut broker, &args.session)?.session;
    let listed =
        if args.all { broker.all_turns(&session, args.limit) } else { broker.turns(&session, args.limit) };
    let turns = listed.map_err(explained)?;
    if app.out.is_json() {
        return turns.iter().try_for_each(|turn| app.out.json(&to_json(turn)));
    }
    let rows: Vec<Vec<String>> = turns.iter().map(row).collect();
    app.out.table(&["TURN", "COMPLETED", "SIZE", "FLAGS"], &rows)
}

fn row(turn: &TurnInfo) -> Vec<String> {
    let size = bytes_text(turn.byte_length.into());
    vec![printable(&turn.turn_id), completed(turn), size, flags(turn).join(" ")]
}

/// When a turn was completed.
pub(super) fn completed(turn: &TurnInfo) -> String {
    let millis = i64::try_from(turn.timestamp.0).ok();
    let time = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    time.map_or_else(|| "unknown".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// What is special about a turn.
pub(super) fn flags(turn: &TurnInfo) -> Vec<&'static str> {
    let all = [
        (turn.interrupted, "interrupted"),
        (turn.truncated, "truncated"),
        (turn.incomplete, "incomplete"),
        (turn.unprompted, "unprompted"),
    ];
    all.into_iter().filter(|(set, _)| *set).map(|(_, word)| word).collect()
}

/// A turn's metadata for programs.
pub(super) fn to_json(turn: &TurnInfo) -> Value {
    json!({
        "turn_id": turn.turn_id,
        "timestamp": turn.timestamp.0,
        "byte_length": turn.byte_length,
        "interrupted": turn.interrupted,
        "truncated": turn.truncated,
        "incomplete": turn.incomplete,
        "unprompted": turn.unprompted,
    })
}
