//! The scorecard: every recording of a real program against its ground truth.
//!
//! Found, missed, invented and early turns, the interrupted flag, the text and the delay, by the
//! rules that `docs/turn-detection.md` states. Run it with `--nocapture` to see the table.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod score;
mod stuck;
mod truth;

use score::{Score, score};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use truth::Truth;
use turnkeep_session::detector::{Entry, Profile, Recorded, parse_recording, presets, replay};

/// How many recordings there are, so that none is lost unseen.
const RECORDINGS: usize = 100;

/// A program that has no profile; `tests/generic.rs` is about such programs.
const WITHOUT_PROFILE: &str = "cline";

/// What cannot be right from the bytes alone: the recording and the fault, as
/// `docs/turn-detection.md` tells them.
const KNOWN: [(&str, &str); 7] = [
    ("aider-plain-stall", "stall: missed"),
    (
        "aider-plain-stall",
        "no turn ends at 15.771 (start 13.960, by line)  \"Let me think about that for a while.\"",
    ),
    // In five rows a queued prompt hides the answer that is still written, and no row tells where
    // it ends.
    (
        "opencode-small-live",
        "slowb with queued queued: letters differ at 489: want \"Point13thevalueis169anditsnameisspot13Point14theva\" got \"Point13theAndthisanswersthemessagethatyouqueued\"",
    ),
    ("opencode-small-live", "queued (queued): missed"),
    // Rows of the fast list were never painted, as the turn says; the number 16 stands there twice.
    (
        "opencode-small-live",
        "count: \"16Thesixteenthsteptakes20minutes\" was not said there",
    ),
    // The answer is laid out anew for another width while it is written, and rows stand twice, as
    // the turn says.
    (
        "qwen-live",
        "essay resized 80x24 120x36: letters differ at 89: want \"ainthemTheharbourmasterofasmallportkeptaslatebythe\" got \"ainthemTheTideswerewrittendownlongbeforeanybodycou\"",
    ),
    // Rows scroll away between two frames, as the turn says.
    (
        "qwen-live",
        "burst: letters differ at 54: want \"s14minutes3Thethirdsteptakes21minutes4Thefourthste\" got \"s14minutes71Theeleventhsteptakes14minutes72Thetwel\"",
    ),
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

/// The names of all recordings, in order.
fn names() -> Vec<String> {
    let name = |file: std::io::Result<std::fs::DirEntry>| {
        Some(
            file.unwrap()
                .file_name()
                .to_str()?
                .strip_suffix(".jsonl.zst")?
                .to_owned(),
        )
    };
    let mut names: Vec<String> = std::fs::read_dir(directory())
        .unwrap()
        .filter_map(name)
        .collect();
    names.retain(|name| name != WITHOUT_PROFILE);
    names.sort();
    names
}

/// The shipped profile of the program that a recording is named after.
fn profile(name: &str) -> Profile {
    let known = presets();
    let program = name.split(['-', '.']).next().unwrap();
    known.get(known.name_for(program)).unwrap()
}

fn card(name: &str) -> Score {
    score(&truth(name), &replay(profile(name), &recording(name)))
}

#[test]
fn every_recorded_turn_is_found_at_its_time_with_its_text() {
    let mut table = String::from(
        "recording              turns found missed invented early flags text n/c worst delay\n",
    );
    let mut delays = Vec::new();
    let mut wrong = String::new();
    let names = names();
    for name in &names {
        let score = card(name);
        writeln!(table, "{name:22} {score}").unwrap();
        let known: Vec<&str> = KNOWN
            .iter()
            .filter(|(of, _)| of == name)
            .map(|(_, fault)| *fault)
            .collect();
        if score.faults != known {
            writeln!(wrong, "{name}: {:#?}", score.faults).unwrap();
        }
        if !truth(name).live {
            delays.extend(score.delays);
        }
    }
    assert_eq!(names.len(), RECORDINGS);
    delays.sort_by(f64::total_cmp);
    let p95 = delays
        .get(delays.len() * 95 / 100)
        .copied()
        .unwrap_or(f64::INFINITY);
    println!(
        "{table}delay p95 {:.0} ms of {} turns",
        p95 * 1000.0,
        delays.len()
    );
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
        (
            Without::Status,
            &["claude-status", "claude-tool"][..],
            "claude",
        ),
        (
            Without::Status,
            &["codex", "codex-tool", "codex-wide"],
            "codex",
        ),
        (
            Without::StatusAndTitle,
            &["claude", "claude-hooks", "claude-ax", "claude-idlekeys"],
            "claude",
        ),
        (
            Without::StatusAndTitle,
            &[
                "claude-reject",
                "claude-slash",
                "claude-stall",
                "claude-wide",
            ],
            "claude",
        ),
        (
            Without::StatusAndTitle,
            &["claude-status", "claude-tool"],
            "claude",
        ),
        (
            Without::StatusAndTitle,
            &[
                "gemini",
                "gemini-screen-reader",
                "gemini-stall",
                "gemini-wide",
            ],
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
            let score = score(
                &truth(name),
                &replay(weakened(preset, without), &recording(name)),
            );
            println!("{name:22} {score}  without {without:?}");
            for fault in &score.faults {
                writeln!(wrong, "{name} without {without:?}: {fault}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The recording with its bytes one by one.
fn in_bytes(entries: &[Entry]) -> Vec<Entry> {
    let single = |entry: &Entry| match &entry.what {
        Recorded::Output(bytes) => bytes
            .iter()
            .map(|byte| Recorded::Output(vec![*byte]))
            .collect(),
        Recorded::Input(bytes) => bytes
            .iter()
            .map(|byte| Recorded::Input(vec![*byte]))
            .collect(),
        other => vec![other.clone()],
    };
    let at = |entry: &Entry, what| Entry { at: entry.at, what };
    entries
        .iter()
        .flat_map(|entry| single(entry).into_iter().map(move |what| at(entry, what)))
        .collect()
}

#[test]
fn a_recording_fed_byte_by_byte_yields_the_same_turns() {
    for name in names() {
        let entries = recording(&name);
        assert!(
            replay(profile(&name), &in_bytes(&entries)) == replay(profile(&name), &entries),
            "{name}"
        );
    }
}
