//! `turnkeep turn`: prints one captured turn.

use anyhow::Result;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use turnkeep_types::broker::{FoundTurn, GetTurn, Reason};

use super::{App, turns};
use crate::broker::known_sessions::KnownSessions;
use crate::broker::{connect_to_broker, explain_broker_error};
use crate::names::CapturedName;
use crate::output::bytes_text;
use crate::render::printable;

/// Print a captured turn
///
/// Metadata goes to standard error. On a terminal the turn's readable text is shown; a file or a
/// pipe gets the content, byte for byte. --text and --raw choose one of them wherever it goes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep turn @last
  turnkeep turn review:2 --text | wc -w
  turnkeep turn 3f2a:7 --meta --json
  turnkeep turn 3f2a:7 --raw > turn.bin   # the terminal's bytes, where kept")]
pub(crate) struct TurnArgs {
    /// The turn, such as review:3 or @last:3; a session alone means its latest
    #[arg(value_name = "SESSION[:NUMBER]")]
    turn: CapturedName,
    #[command(flatten)]
    part: TurnPart,
}

#[derive(Debug, Default, clap::Args)]
#[group(multiple = false)]
struct TurnPart {
    /// Only its metadata, on standard output
    #[arg(long)]
    meta: bool,
    /// The captured bytes: the terminal's own where they were kept, else the content
    #[arg(long)]
    raw: bool,
    /// Its readable text
    #[arg(long)]
    text: bool,
}

pub(crate) fn run_turn(args: &TurnArgs, app: &mut App) -> Result<()> {
    show_captured(&args.turn, &args.part, app)
}

/// Shows a captured turn without any options, for `turnkeep show`.
pub(super) fn show_turn(turn: &CapturedName, app: &mut App) -> Result<()> {
    show_captured(turn, &TurnPart::default(), app)
}

fn show_captured(turn: &CapturedName, part: &TurnPart, app: &mut App) -> Result<()> {
    // Only the request for raw bytes tells whether they were kept, which the metadata shows.
    let turn = fetch_captured(turn, part.raw || part.meta)?;
    if app.out.is_json() {
        return app.out.json(&turn_json(&turn, part.meta));
    }
    let mut lines = fact_lines(&turn);
    if part.meta {
        lines.extend(aligned_lines(&[("Raw", raw_fact(&turn))]));
        return lines.iter().try_for_each(|line| app.out.line(line));
    }
    // Standard output gets the content and nothing else.
    for line in lines {
        eprintln!("{line}");
    }
    write_content(&turn, part, app)
}

/// Fetches a captured turn, with its raw bytes if they are wanted and were kept.
pub(super) fn fetch_captured(turn: &CapturedName, raw: bool) -> Result<FoundTurn> {
    let mut broker = connect_to_broker()?;
    let turn_id = KnownSessions::fetch(&mut broker)?.turn_id(&mut broker, turn)?;
    let get = |raw| GetTurn {
        turn_id: turn_id.clone(),
        raw,
    };
    let found = match broker.turn(get(raw)) {
        Err(error) if error.reason() == Some(Reason::NoRaw) => broker.turn(get(false)),
        found => found,
    };
    found.map_err(explain_broker_error)
}

fn write_content(turn: &FoundTurn, part: &TurnPart, app: &mut App) -> Result<()> {
    let is_terminal = app.out.is_terminal();
    let wanted = if part.raw {
        turn.raw.as_deref()
    } else if part.text || is_terminal {
        turn.text.as_deref().map(str::as_bytes)
    } else {
        None
    };
    // Every turn has a content, but not every turn has a text or raw bytes.
    let bytes = wanted.unwrap_or(&turn.content);
    // A pipe or a file gets every byte unchanged. A terminal gets escaped text.
    if part.raw || !is_terminal {
        return app.out.bytes(bytes);
    }
    String::from_utf8_lossy(bytes)
        .lines()
        .try_for_each(|line| app.out.line(printable(line)))
}

fn fact_lines(turn: &FoundTurn) -> Vec<String> {
    let session = turn.name.as_ref().unwrap_or(&turn.session);
    let mut facts = vec![
        ("Turn", turn.info.turn_id.clone()),
        ("Session", session.clone()),
        ("Preset", turn.preset.clone().unwrap_or_default()),
        ("Completed", turns::completed_text(&turn.info)),
        ("Size", bytes_text(turn.info.byte_length.into())),
        ("Flags", turns::flag_words(&turn.info).join(" ")),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    aligned_lines(&facts)
}

fn aligned_lines(facts: &[(&str, String)]) -> Vec<String> {
    facts
        .iter()
        .map(|(name, value)| format!("{:11}{}", format!("{name}:"), printable(value)))
        .collect()
}

/// How much is kept of the terminal's own bytes.
fn raw_fact(turn: &FoundTurn) -> String {
    let Some(raw) = &turn.raw else {
        return "not kept".to_owned();
    };
    let size = bytes_text(raw.len() as u64);
    if turn.raw_truncated {
        format!("{size}, truncated")
    } else {
        size
    }
}

fn turn_json(turn: &FoundTurn, only_meta: bool) -> Value {
    let mut json = turns::info_json(&turn.info);
    json["session"] = turn.session.as_str().into();
    set_text(&mut json, "name", turn.name.as_deref());
    set_text(&mut json, "preset", turn.preset.as_deref());
    set_text(&mut json, "text_source", turn.text_source.as_deref());
    if only_meta {
        json["raw_kept"] = turn.raw.is_some().into();
        json["raw_truncated"] = turn.raw_truncated.into();
        return json;
    }
    set_text(&mut json, "text", turn.text.as_deref());
    json["content_b64"] = BASE64_STANDARD.encode(&turn.content).into();
    if let Some(raw) = &turn.raw {
        json["raw_b64"] = BASE64_STANDARD.encode(raw).into();
        json["raw_truncated"] = turn.raw_truncated.into();
    }
    json
}

/// Sets a field. A text that the turn does not have leaves no field, and no `null` either.
fn set_text(json: &mut Value, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        json[name] = text.into();
    }
}
