//! Programs without a profile: which turns `generic` finds by itself, on recordings of real
//! programs.
//!
//! The full-screen detector must work for unknown programs, so it is measured on all recordings: it
//! must find most turns and invent none. Line programs follow the line rule exactly.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "scorecard/score.rs"]
mod score;
#[path = "scorecard/truth.rs"]
#[expect(
    dead_code,
    reason = "delays are not scored here, so it does not matter which truths are live"
)]
mod truth;

use score::{Score, score};
use std::path::{Path, PathBuf};
use truth::Truth;
use turnkeep_session::detector::{Entry, Profile, ProfileSpec, parse_recording, presets, replay};

/// Programs that paint the whole screen; every other recorded one reads lines.
const FULL_SCREEN: [&str; 11] = [
    "claude", "codex", "gemini", "opencode", "copilot", "pi", "qwen", "vibe", "cn", "kilo", "cline",
];

/// Recordings in which codex says by OSC 7501 that it works on a recalled `!command` and on a
/// refused request. Only its profile can tell these from prompts.
const COMMANDS_REPORTED_AS_WORK: [&str; 1] = ["codex-odd-live"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/terminals")
}

fn recording(name: &str) -> Vec<Entry> {
    let bytes = std::fs::read(directory().join(format!("{name}.jsonl.zst"))).unwrap();
    let text = zstd::decode_all(bytes.as_slice()).unwrap();
    parse_recording(std::str::from_utf8(&text).unwrap()).unwrap()
}

fn truth(name: &str) -> Truth {
    read_truth(&format!("{name}.truth.json"))
}

fn read_truth(file: &str) -> Truth {
    let text = std::fs::read_to_string(directory().join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The recordings of programs that paint the whole screen, or of all others.
fn names(full_screen: bool) -> Vec<String> {
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
    names.retain(|name| FULL_SCREEN.contains(&program(name)) == full_screen);
    names.sort();
    names
}

fn program(name: &str) -> &str {
    name.split(['-', '.']).next().unwrap()
}

fn generic() -> Profile {
    presets().get("generic").unwrap()
}

fn card(name: &str) -> Score {
    score(&truth(name), &replay(generic(), &recording(name)))
}

/// The scores of some recordings together.
#[derive(Debug, Default)]
struct Total {
    turns: usize,
    found: usize,
    /// Recordings with turns that end where none does, described.
    invented: Vec<String>,
    /// Turns that end while another one runs: too early, or after the next prompt was submitted.
    misplaced: usize,
}

impl Total {
    fn add(&mut self, other: Self) {
        self.turns += other.turns;
        self.found += other.found;
        self.invented.extend(other.invented);
        self.misplaced += other.misplaced;
    }
}

fn total(names: impl IntoIterator<Item = String>) -> Total {
    let mut total = Total::default();
    for name in names {
        let score = card(&name);
        println!("{name:22} {score}");
        total.turns += score.turns;
        total.found += score.found;
        total.misplaced += score.early;
        if score.invented > 0 && !COMMANDS_REPORTED_AS_WORK.contains(&name.as_str()) {
            total.invented.push(format!("{name}: {:?}", score.faults));
        }
    }
    println!("{} of {} turns found", total.found, total.turns);
    total
}

fn recordings_of(programs: &[&str]) -> Vec<String> {
    names(true)
        .into_iter()
        .filter(|name| programs.contains(&program(name)))
        .collect()
}

#[test]
fn programs_without_their_profile_are_learned() {
    let programs = ["copilot", "pi", "qwen", "vibe", "cn", "kilo", "cline"];
    let mut all = Total::default();
    for program in programs {
        let total = total(recordings_of(&[program]));
        assert!(
            total.found * 100 >= total.turns * 80,
            "{program}: {} of {}",
            total.found,
            total.turns
        );
        all.add(total);
    }
    println!("{} of {} turns found", all.found, all.turns);
    assert_eq!(all.invented, Vec::<String>::new());
    assert_eq!(all.misplaced, 0);
}

/// Live conversations with programs that had no profile when they were recorded.
const LIVE: [&str; 4] = ["copilot-live", "pi-live", "qwen-live", "vibe-live"];

/// What the score says against the truth of the recorder, before it was corrected by what the
/// recordings show. There a queued prompt is a turn of its own, and the Enter that answers a dialog
/// of qwen begins one.
const MISSED_UNCORRECTED: [(&str, usize); 4] = [
    ("copilot-live", 1),
    ("pi-live", 1),
    ("qwen-live", 1),
    ("vibe-live", 1),
];

#[test]
fn most_turns_of_each_live_conversation_are_found_and_none_is_invented() {
    for name in LIVE {
        let score = card(name);
        println!("{name:22} {score}");
        assert!(score.found * 100 >= score.turns * 80, "{name}: {score}");
        assert_eq!((score.invented, score.early), (0, 0), "{name}: {score}");
    }
    for (name, missed) in MISSED_UNCORRECTED {
        let turns = replay(generic(), &recording(name));
        let score = score(
            &read_truth(&format!("uncorrected/{name}.times.json")),
            &turns,
        );
        println!("{name:22} {score}  uncorrected");
        assert_eq!(
            score.turns - score.found,
            missed,
            "{name}: {:?}",
            score.faults
        );
        assert!(score.found * 100 >= score.turns * 80, "{name}: {score}");
    }
}

#[test]
fn programs_for_which_it_was_not_written_are_learned_too() {
    let total = total(recordings_of(&["claude", "codex", "gemini", "opencode"]));
    assert!(
        total.found * 100 >= total.turns * 75,
        "{} of {}",
        total.found,
        total.turns
    );
    assert_eq!(total.invented, Vec::<String>::new());
    // Short answers without a spinner, whose user goes on within the 1.5 s that the screen must
    // rest.
    assert!(
        total.misplaced <= 4,
        "{} of {}",
        total.misplaced,
        total.turns
    );
}

/// The profile as it was before it knew anything but lines.
fn line_rule_only() -> Profile {
    let known = presets();
    let spec = known.spec("generic").unwrap();
    let plain = ProfileSpec {
        status: false,
        marks: false,
        full_screen: false,
        ..spec.clone()
    };
    Profile::new("generic", &plain).unwrap()
}

#[test]
fn line_programs_keep_the_line_rule_to_the_letter() {
    for name in names(false) {
        let entries = recording(&name);
        assert!(
            replay(generic(), &entries) == replay(line_rule_only(), &entries),
            "{name}"
        );
    }
}
