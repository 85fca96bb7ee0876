//! Reads recordings (terminal sessions as lines of JSON) and replays them with their own times.
//!
//! Only rows that a wrapper sees are used: `h` (the window), `o` output, `i` input, `r` resize and
//! `s` the tty's mode. Marks and unknown rows are skipped, so that the expected turns can be
//! recorded beside the bytes. An invalid row is an error that names the row.

use super::{Detection, Detector, Event, Profile, Size, TtyMode, Turn};
use base64::Engine as _;
use serde::Deserialize;
use std::time::Duration;

/// One row of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The time since the start of the session.
    pub at: Duration,
    /// The recorded event.
    pub what: Recorded,
}

/// The event in a row of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// The window at the start.
    Header(Size),
    /// The program wrote these bytes.
    Output(Vec<u8>),
    /// The program received these bytes.
    Input(Vec<u8>),
    /// The window changed.
    Resize(Size),
    /// The tty's mode changed.
    TtyMode(TtyMode),
    /// An event that a wrapper does not see.
    Other,
}

/// The reason why a row is rejected.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The row is not a JSON object of the expected shape.
    #[error("row {row}: {source}")]
    Json {
        /// The row, from 1.
        row: usize,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// The bytes are not base64.
    #[error("row {row}: b64: {source}")]
    Base64 {
        /// The row, from 1.
        row: usize,
        /// The decoder's error.
        source: base64::DecodeError,
    },
    /// The time is not a time since the start.
    #[error("row {row}: t is {seconds}")]
    Time {
        /// The row, from 1.
        row: usize,
        /// The time in the row.
        seconds: f64,
    },
}

#[derive(Deserialize)]
struct RawRow {
    t: f64,
    dir: String,
    #[serde(default)]
    b64: String,
    #[serde(default)]
    cols: u16,
    #[serde(default)]
    rows: u16,
    #[serde(default)]
    icanon: bool,
    #[serde(default)]
    echo: bool,
}

/// Parses a recording.
pub fn parse_recording(text: &str) -> Result<Vec<Entry>, RecordingError> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(at, line)| parse_row(at + 1, line)).collect()
}

fn parse_row(row: usize, line: &str) -> Result<Entry, RecordingError> {
    let raw: RawRow =
        serde_json::from_str(line).map_err(|source| RecordingError::Json { row, source })?;
    let at = Duration::try_from_secs_f64(raw.t).map_err(|_| RecordingError::Time {
        row,
        seconds: raw.t,
    })?;
    let bytes = || {
        let decoded = base64::engine::general_purpose::STANDARD.decode(&raw.b64);
        decoded.map_err(|source| RecordingError::Base64 { row, source })
    };
    let size = Size {
        cols: raw.cols,
        rows: raw.rows,
    };
    let what = match raw.dir.as_str() {
        "h" => Recorded::Header(size),
        "o" => Recorded::Output(bytes()?),
        "i" => Recorded::Input(bytes()?),
        "r" => Recorded::Resize(size),
        "s" => Recorded::TtyMode(TtyMode {
            canonical: raw.icanon,
            echo: raw.echo,
        }),
        _ => Recorded::Other,
    };
    Ok(Entry { at, what })
}

/// The window of a recording without a header.
const DEFAULT_SIZE: Size = Size { cols: 80, rows: 24 };

/// Replays a recording with its own times and returns its completed turns.
pub fn replay(profile: Profile, entries: &[Entry]) -> Vec<Turn> {
    let size = entries.iter().find_map(|entry| match entry.what {
        Recorded::Header(size) => Some(size),
        _ => None,
    });
    let mut detector = Detector::new(profile, size.unwrap_or(DEFAULT_SIZE));
    let mut turns = Vec::new();
    for entry in entries {
        let event = match &entry.what {
            Recorded::Output(bytes) => Event::Output(bytes),
            Recorded::Input(bytes) => Event::Input(bytes),
            Recorded::Resize(size) => Event::Resize(*size),
            Recorded::TtyMode(mode) => Event::TtyMode(*mode),
            Recorded::Header(_) | Recorded::Other => Event::Tick,
        };
        let detections = detector.feed(entry.at, event);
        turns.extend(detections.into_iter().filter_map(completed_turn));
    }
    // The last prompt may still need its rest, which no row of the recording waits for.
    while let Some(due) = detector.deadline() {
        let detections = detector.feed(due, Event::Tick);
        turns.extend(detections.into_iter().filter_map(completed_turn));
    }
    turns
}

fn completed_turn(detection: Detection) -> Option<Turn> {
    match detection {
        Detection::Turn(turn) => Some(*turn),
        Detection::Ready | Detection::State(_) => None,
    }
}
