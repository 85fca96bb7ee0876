//! The scorecard: every recording of a real program against its ground truth.
//!
//! Found, missed, invented and early turns, the interrupted flag, the text and the delay, by the rules
//! that `docs/turn-detection.md` states. Run it with `--nocapture` to see the table.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod score;
mod truth;

use score::{Score, score};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use truth::Truth;
use turnkeep_session::detector::{Entry, Profile, parse_recording, presets, replay};

/// Recordings and their presets.
const RECORDINGS: [(&str, &str); 26] = [
    ("aider", "aider"),
    ("aider-plain", "aider"),
    ("aider-stall", "aider"),
    ("bash", "bash"),
    ("claude", "claude"),
    ("claude-ax", "claude"),
    ("claude-hooks", "claude"),
    ("claude-idlekeys", "claude"),
    ("claude-reject", "claude"),
    ("claude-slash", "claude"),
    ("claude-stall", "claude"),
    ("claude-status", "claude"),
    ("claude-tool", "claude"),
    ("claude-wide", "claude"),
    ("codex", "codex"),
    ("codex-queue", "codex"),
    ("codex-tool", "codex"),
    ("codex-wide", "codex"),
    ("gemini", "gemini"),
    ("gemini-screen-reader", "gemini"),
    ("gemini-stall", "gemini"),
    ("gemini-wide", "gemini"),
    ("node", "node"),
    ("opencode", "opencode"),
    ("python3.11", "python"),
    ("sqlite3", "sqlite3"),
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/terminals")
}

fn recording(name: &str) -> Vec<Entry> {
    let bytes = std::fs::read(directory().join(format!("{name}.jsonl.zst"))).unwrap();
    let text = zstd::decode_all(bytes.as_slice()).unwrap();
    parse_recording(std::str::from_utf8(&text).unwrap()).unwrap()
}

fn truth(name: &str) -> Truth {
    let text = std::fs::read_to_string(directory().join(format!("{name}.truth.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn card(name: &str, preset: &str) -> Score {
    let turns = replay(presets().get(preset).unwrap(), &recording(name));
    score(&truth(name), &turns)
}

#[test]
fn every_recorded_turn_is_found_at_its_time_with_its_text() {
    let mut table =
        String::from("recording              turns found missed invented early flags text  worst delay\n");
    let mut delays = Vec::new();
    let mut wrong = String::new();
    for (name, preset) in RECORDINGS {
        let score = card(name, preset);
        writeln!(table, "{name:22} {score}").unwrap();
        for fault in &score.faults {
            writeln!(wrong, "{name}: {fault}").unwrap();
        }
        delays.extend(score.delays);
    }
    delays.sort_by(f64::total_cmp);
    let p95 = delays.get(delays.len() * 95 / 100).copied().unwrap_or(f64::INFINITY);
    println!("{table}delay p95 {:.0} ms of {} turns", p95 * 1000.0, delays.len());
    assert!(wrong.is_empty(), "{table}\n{wrong}");
    assert!(p95 <= 0.3, "delay p95 {p95}");
}

/// What a wrapper may lack: an old program, a terminal without titles, a tty that cannot be read.
#[derive(Debug, Clone, Copy)]
enum Without {
    Status,
    StatusAndTitle,
    TtyMode,
}

fn weakened(preset: &str, without: Without) -> Profile {
    let mut spec = presets().spec(preset).unwrap().clone();
    match without {
        Without::Status => spec.status = false,
        Without::StatusAndTitle => (spec.status, spec.title) = (false, None),
        Without::TtyMode => spec.prompt.as_mut().unwrap().tty = false,
    }
    Profile::new(preset, &spec).unwrap()
}

#[test]
fn a_missing_signal_is_made_up_for_by_the_next() {
    let cases = [
        (Without::Status, &["claude-status", "claude-tool"][..], "claude"),
        (Without::Status, &["codex", "codex-tool", "codex-wide"], "codex"),
        (Without::StatusAndTitle, &["claude", "claude-hooks", "claude-ax", "claude-idlekeys"], "claude"),
        (
            Without::StatusAndTitle,
            &["claude-reject", "claude-slash", "claude-stall", "claude-wide"],
            "claude",
        ),
        (Without::StatusAndTitle, &["claude-status", "claude-tool"], "claude"),
        (
            Without::StatusAndTitle,
            &["gemini", "gemini-screen-reader", "gemini-stall", "gemini-wide"],
            "gemini",
        ),
        (Without::TtyMode, &["aider", "aider-stall"], "aider"),
        (Without::TtyMode, &["bash"], "bash"),
        (Without::TtyMode, &["sqlite3"], "sqlite3"),
        (Without::TtyMode, &["python3.11"], "python"),
        (Without::TtyMode, &["node"], "node"),
    ];
    let mut wrong = String::new();
    for (without, names, preset) in cases {
        for name in names {
            let score = score(&truth(name), &replay(weakened(preset, without), &recording(name)));
            println!("{name:22} {score}  without {without:?}");
            for fault in &score.faults {
                writeln!(wrong, "{name} without {without:?}: {fault}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_recording_that_is_kept_is_scored() {
    let mut kept: Vec<String> = std::fs::read_dir(directory())
        .unwrap()
        .filter_map(|file| Some(file.unwrap().file_name().to_str()?.strip_suffix(".jsonl.zst")?.to_owned()))
        .collect();
    let mut scored: Vec<&str> = RECORDINGS.iter().map(|(name, _)| *name).collect();
    kept.sort();
    scored.sort_unstable();
    assert_eq!(kept, scored);
}
