//! `turnkeep detect`: the turns of a recorded terminal session, as a wrapper would have found them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use serde_json::{Value, json};
use turnkeep_session::detector::{Entry, Presets, Profile, Turn, parse_recording, replay};

use super::App;
use crate::failure::Failure;
use crate::output::Style;
use crate::render::printable;

/// How large a recording may be, unpacked.
const RECORDING_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Find the turns of a recorded terminal session
///
/// Replays a recording made by `turnkeep wrap --record` with its own times. A last row that was cut
/// off, as when the disk was full, is left out with a note. Without --preset and --pattern the name
/// of the file decides: claude-slow.jsonl gets the preset claude.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep detect session.jsonl --preset claude
  turnkeep detect session.jsonl.zst --pattern '^ready> $' --json")]
pub(crate) struct DetectArgs {
    /// The recording, .jsonl or .jsonl.zst
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Profile of the program, shipped or from the configuration
    #[arg(long, value_name = "NAME", conflicts_with = "pattern")]
    preset: Option<String>,
    /// Prompt pattern, tested on each line
    #[arg(long, value_name = "REGEX")]
    pattern: Option<String>,
    /// Also what the program said although nothing was submitted
    #[arg(long)]
    all: bool,
}

pub(crate) fn run_detect(args: &DetectArgs, app: &mut App) -> Result<()> {
    let profile = choose_profile(args, &app.config()?.presets)?;
    let entries = read_recording(&args.file)?;
    let mut turns = replay(profile, &entries);
    turns.retain(|turn| args.all || !turn.unprompted);
    for (at, turn) in turns.iter().enumerate() {
        if app.out.is_json() {
            app.out.line(turn_json(at + 1, turn).to_string())?;
        } else {
            print_turn(at + 1, turn, app)?;
        }
    }
    if turns.is_empty() && !app.out.is_json() {
        app.out.line("no completed turn")?;
    }
    Ok(())
}

fn choose_profile(args: &DetectArgs, presets: &Presets) -> Result<Profile> {
    if let Some(pattern) = &args.pattern {
        let compiled = Profile::from_pattern(pattern);
        return compiled.map_err(|error| Failure::usage(format!("--pattern: {error}")).into());
    }
    let stem = args
        .file
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let program = stem.split(['-', '.']).next().unwrap_or_default();
    let name = args
        .preset
        .as_deref()
        .unwrap_or_else(|| presets.name_for(program));
    presets
        .get(name)
        .map_err(|error| Failure::usage(error.to_string()).into())
}

/// What was recorded.
fn read_recording(path: &Path) -> Result<Vec<Entry>> {
    let bytes = read_unpacked(path)?;
    let refuse = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", path.display()));
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let rows = |bytes: &[u8]| -> Result<Vec<Entry>, Failure> {
        let text = std::str::from_utf8(bytes).map_err(|error| refuse(&error))?;
        parse_recording(text).map_err(|error| refuse(&error))
    };
    match rows(&bytes) {
        // Only the row without its end may be wrong.
        Err(error) if whole > 0 && whole < bytes.len() => {
            let entries = rows(bytes.get(..whole).unwrap_or_default()).map_err(|_| error)?;
            eprintln!(
                "note: {}: the last row is cut off and left out",
                path.display()
            );
            Ok(entries)
        }
        read => Ok(read?),
    }
}

/// The recording's bytes; of a packed one that was cut off, what can be unpacked.
fn read_unpacked(path: &Path) -> Result<Vec<u8>> {
    use std::io::Read as _;
    let file =
        std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let packed = path.extension().is_some_and(|extension| extension == "zst");
    let mut bytes = Vec::new();
    let read = if packed {
        zstd::Decoder::new(file)?
            .take(RECORDING_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
    } else {
        file.take(RECORDING_BYTES_MAX + 1).read_to_end(&mut bytes)
    };
    match read {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof && !bytes.is_empty() => {
            eprintln!("note: {}: the file is cut off", path.display());
        }
        read => drop(read.with_context(|| format!("cannot read {}", path.display()))?),
    }
    if bytes.len() as u64 > RECORDING_BYTES_MAX {
        let message = format!(
            "{} is larger than {RECORDING_BYTES_MAX} bytes unpacked",
            path.display()
        );
        return Err(Failure::new(message).into());
    }
    Ok(bytes)
}

fn turn_json(number: usize, turn: &Turn) -> Value {
    json!({
        "turn": number,
        "start_t": rounded_seconds(turn.start),
        "end_t": rounded_seconds(turn.end),
        "interrupted": turn.interrupted,
        "incomplete": turn.incomplete,
        "unprompted": turn.unprompted,
        "signal": turn.signal.to_string(),
        "text": turn.text,
        "content_b64": base64::engine::general_purpose::STANDARD.encode(&turn.content),
    })
}

/// Seconds with four digits, as recordings have them.
fn rounded_seconds(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10_000.0
}

fn print_turn(number: usize, turn: &Turn, app: &mut App) -> Result<()> {
    let flags = [
        (turn.interrupted, ", interrupted"),
        (turn.incomplete, ", incomplete"),
        (turn.unprompted, ", unprompted"),
    ];
    let flags: String = flags
        .iter()
        .filter(|(set, _)| *set)
        .map(|(_, word)| *word)
        .collect();
    let head = format!(
        "turn {number}  {:.3} to {:.3} s, by {}{flags}",
        turn.start.as_secs_f64(),
        turn.end.as_secs_f64(),
        turn.signal
    );
    let head = app.out.paint(Style::Good, &head);
    app.out.line(head)?;
    for line in turn.text.lines() {
        app.out.line(format!("  {}", printable(line)))?;
    }
    app.out.line("")
}
