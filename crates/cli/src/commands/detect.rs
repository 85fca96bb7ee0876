//! `turnkeep detect`: finds the turns of a recorded terminal session, as a wrapper would find them.

use std::fs::File;
use std::io::{ErrorKind, Read};
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
    /// Include output that no input caused
    #[arg(long)]
    all: bool,
}

pub(crate) fn run_detect(args: &DetectArgs, app: &mut App) -> Result<()> {
    let profile = choose_profile(args, &app.config()?.presets)?;
    let entries = read_recording(&args.file)?;
    let mut turns = replay(profile, &entries);
    // What a program prints by itself, such as its welcome text, is rarely wanted.
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
    let file_name = args.file.file_name().and_then(|name| name.to_str());
    // `claude-slow.jsonl.zst` belongs to the program claude.
    let program = file_name.and_then(|name| name.split(['-', '.']).next());
    ProfileChoice {
        pattern: args.pattern.as_deref(),
        preset: args.preset.as_deref(),
        program: program.unwrap_or_default(),
    }
    .find(presets)
}

/// What says which profile fits a program, the strongest first.
pub(super) struct ProfileChoice<'a> {
    /// `--pattern`.
    pub(super) pattern: Option<&'a str>,
    /// `--preset`.
    pub(super) preset: Option<&'a str>,
    /// The program's name or path.
    pub(super) program: &'a str,
}

impl ProfileChoice<'_> {
    pub(super) fn find(&self, presets: &Presets) -> Result<Profile> {
        if let Some(pattern) = self.pattern {
            let compiled = Profile::from_pattern(pattern);
            return compiled.map_err(|error| Failure::usage(format!("--pattern: {error}")).into());
        }
        let name = self
            .preset
            .unwrap_or_else(|| presets.name_for(self.program));
        let found = presets.get(name);
        found.map_err(|error| Failure::usage(error.to_string()).into())
    }
}

/// Reads the rows of a recording. A last row that was cut off is left out with a note.
fn read_recording(path: &Path) -> Result<Vec<Entry>> {
    let bytes = read_unpacked(path)?;
    let error = match parse_rows(path, &bytes) {
        Ok(entries) => return Ok(entries),
        Err(error) => error,
    };
    // Only the last row may be incomplete, and only if its line has no end. If the rows before it
    // are wrong too, the first error is the one to report.
    let last_end = bytes.iter().rposition(|byte| *byte == b'\n');
    let (complete, rest) = bytes.split_at(last_end.map_or(0, |end| end + 1));
    if complete.is_empty() || rest.is_empty() {
        return error.fail();
    }
    let entries = parse_rows(path, complete).map_err(|_| error)?;
    let name = path.display();
    eprintln!("note: {name}: the last row is cut off and left out");
    Ok(entries)
}

fn parse_rows(path: &Path, bytes: &[u8]) -> Result<Vec<Entry>, Failure> {
    let refuse = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", path.display()));
    let text = std::str::from_utf8(bytes).map_err(|error| refuse(&error))?;
    parse_recording(text).map_err(|error| refuse(&error))
}

/// The recording's bytes. Of a compressed file that was cut off, as much as can be unpacked.
fn read_unpacked(path: &Path) -> Result<Vec<u8>> {
    let name = path.display();
    let cannot_read = || format!("cannot read {name}");
    let file = File::open(path).with_context(cannot_read)?;
    let input = unpacked_reader(path, file)?;
    let mut bytes = Vec::new();
    // One byte more than allowed: it shows that the file is too large.
    let read = input.take(RECORDING_BYTES_MAX + 1).read_to_end(&mut bytes);
    match read {
        // A copy that broke off ends inside a compressed block. The turns before it can be found.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof && !bytes.is_empty() => {
            eprintln!("note: {name}: the file is cut off");
        }
        Err(error) => return Err(error).with_context(cannot_read),
        Ok(_) => {}
    }
    if bytes.len() as u64 > RECORDING_BYTES_MAX {
        let message = format!("{name} is larger than {RECORDING_BYTES_MAX} bytes unpacked");
        return Failure::new(message).fail();
    }
    Ok(bytes)
}

fn unpacked_reader(path: &Path, file: File) -> Result<Box<dyn Read>> {
    let is_packed = path.extension().is_some_and(|extension| extension == "zst");
    if is_packed {
        Ok(Box::new(zstd::Decoder::new(file)?))
    } else {
        Ok(Box::new(file))
    }
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
    let head = format!(
        "turn {number}  {:.3} to {:.3} s, by {}{}",
        turn.start.as_secs_f64(),
        turn.end.as_secs_f64(),
        turn.signal,
        flag_words(turn)
    );
    let head = app.out.paint(Style::Good, &head);
    app.out.line(head)?;
    for line in turn.text.lines() {
        app.out.line(format!("  {}", printable(line)))?;
    }
    app.out.line("")
}

fn flag_words(turn: &Turn) -> String {
    let flags = [
        (turn.interrupted, ", interrupted"),
        (turn.incomplete, ", incomplete"),
        (turn.unprompted, ", unprompted"),
    ];
    let set = flags.iter().filter(|(is_set, _)| *is_set);
    set.map(|(_, word)| *word).collect()
}
