//! The text of every recorded turn of a screen profile, gathered with the times of the ground
//! truth.
//!
//! No detector takes part: the turn begins when the truth says that Enter was pressed, and is read
//! when the truth says that the program was ready. So a wrong line here is the screen's fault.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use base64::Engine;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use turnkeep_session::screen::{Ending, Gathered, Gatherer, Screen, Size, TextRules};

/// How long after the ready signal the last paragraph may still be painted.
const SETTLE_SECONDS: f64 = 0.45;

/// Programs whose profile is a stream, or that have none: their text is not taken from a screen by
/// rules.
const STREAMS: [&str; 9] = [
    "bash", "cline", "fish", "gdb", "node", "psql", "python3", "sqlite3", "zsh",
];

#[test]
fn the_text_of_every_recorded_screen_turn_is_the_text_that_was_said() {
    let mut table = String::new();
    let mut wrong = Vec::new();
    let mut turns = 0;
    for truth in truths() {
        for verdict in play(&truth) {
            turns += 1;
            if verdict.fault.is_some() {
                wrong.push(format!("{}: {}", verdict.recording, verdict.turn));
            }
            writeln!(table, "{verdict}").unwrap();
        }
    }
    println!("{table}{turns} turns, {} wrong", wrong.len());
    assert!(turns > 0, "no recordings under testdata/terminals");
    assert_eq!(wrong, Vec::<String>::new(), "\n{table}");
}

struct Verdict {
    recording: String,
    turn: String,
    fault: Option<String>,
    early: bool,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            recording,
            turn,
            fault,
            early,
        } = self;
        let state = if fault.is_some() { "WRONG" } else { "right" };
        let early = if *early {
            ""
        } else {
            " (not yet at the signal)"
        };
        write!(
            out,
            "{recording:22} {turn:10} {state}{early} {}",
            fault.as_deref().unwrap_or("")
        )
    }
}

fn terminals() -> PathBuf {
    std::env::var_os("TURNKEEP_RECORDINGS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/terminals"),
        PathBuf::from,
    )
}

fn truths() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![terminals()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(".truth.json") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn recording(truth: &Path) -> (String, String) {
    let name = truth
        .file_name()
        .unwrap()
        .to_string_lossy()
        .replace(".truth.json", "");
    let plain = truth.with_file_name(format!("{name}.jsonl"));
    let bytes = std::fs::read(&plain).or_else(|_| {
        let packed = std::fs::read(plain.with_extension("jsonl.zst"))?;
        zstd::decode_all(packed.as_slice())
    });
    (name, String::from_utf8(bytes.unwrap()).unwrap())
}

fn play(truth: &Path) -> Vec<Verdict> {
    let (recording, lines) = recording(truth);
    let truth: Value = serde_json::from_str(&std::fs::read_to_string(truth).unwrap()).unwrap();
    if truth["live"] == true {
        // When the program was ready is not known there: the scorecard has these.
        return Vec::new();
    }
    let program = recording.split(['-', '.']).next().unwrap();
    if STREAMS.iter().any(|stream| stream.starts_with(program)) {
        return Vec::new();
    }
    let rules = TextRules::preset(program).unwrap();
    let events: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let turns = truth["turns"].as_array().unwrap();
    let readable = turns.iter().filter(|turn| turn["unreadable"].is_null());
    let judged = readable.map(|turn| {
        let ready = turn["ready_t"].as_f64().unwrap();
        let next = turn["next_t"].as_f64().unwrap();
        let at_signal = gather(&events, &rules, turn, ready);
        let settled = gather(
            &events,
            &rules,
            turn,
            (ready + SETTLE_SECONDS).min(next - 0.001),
        );
        Verdict {
            recording: recording.clone(),
            turn: turn["turn"].as_str().unwrap().to_owned(),
            fault: fault(turn, &settled),
            early: fault(turn, &at_signal).is_none(),
        }
    });
    judged.collect()
}

fn gather(events: &[Value], rules: &TextRules, turn: &Value, until: f64) -> Gathered {
    let enter = turn["enter_t"].as_f64().unwrap();
    let mut screen = Screen::new(Size { cols: 80, rows: 24 });
    let mut gatherer = Gatherer::new(rules).unwrap();
    let mut begun = false;
    for event in events {
        let time = event["t"].as_f64().unwrap();
        if time > until {
            break;
        }
        if time >= enter && !begun {
            begun = true;
            gatherer.begin_turn(&screen);
        }
        match event["dir"].as_str().unwrap() {
            "h" => screen = Screen::new(size(event)),
            "r" => screen.resize(size(event)),
            "o" => screen.feed(&bytes(event), |screen| gatherer.apply_frame(screen)),
            _ => {}
        }
    }
    let interrupted = turn["interrupted"].as_bool().unwrap();
    let mut gathered = gatherer.text(if interrupted {
        Ending::Interrupted
    } else {
        Ending::Complete
    });
    if let Some(prompt) = turn["prompt"]
        .as_str()
        .filter(|_| gathered.text.is_empty() && !interrupted)
    {
        gathered.text = gatherer.answer_again(prompt);
    }
    gathered
}

fn size(event: &Value) -> Size {
    let side = |name: &str| u16::try_from(event[name].as_u64().unwrap()).unwrap();
    Size {
        cols: side("cols"),
        rows: side("rows"),
    }
}

fn bytes(event: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD
        .decode(event["b64"].as_str().unwrap())
        .unwrap()
}

/// What is wrong with the text of a turn, if anything.
fn fault(turn: &Value, gathered: &Gathered) -> Option<String> {
    let expected = turn["expected"].as_str().unwrap();
    if !turn["unreadable"].is_null() {
        return None;
    }
    if gathered.incomplete {
        return Some(format!("incomplete: {:?}", gathered.text));
    }
    if turn["wraps"].as_bool() == Some(true) {
        let (got, want) = (letters(&gathered.text), letters(expected));
        return (got != want).then(|| difference(&[got], &[want]));
    }
    let (got, mut want) = (key(&gathered.text), key(expected));
    if let Some(last) = turn["stays"].as_u64() {
        want.truncate(usize::try_from(last).unwrap());
        return (!got.starts_with(&want)).then(|| difference(&got, &want));
    }
    if turn["interrupted"].as_bool() == Some(true) {
        let shown = usize::try_from(turn["shown"].as_u64().unwrap()).unwrap();
        let right = want.starts_with(&got) && got.len() >= shown;
        return (!right).then(|| format!("shown {shown}, {}", difference(&got, &want)));
    }
    (got != want).then(|| difference(&got, &want))
}

fn difference(got: &[String], want: &[String]) -> String {
    let at = got
        .iter()
        .zip(want)
        .take_while(|(got, want)| got == want)
        .count();
    let show = |lines: &[String]| {
        let line = lines
            .get(at)
            .map_or("(end)".to_owned(), |line| format!("{line:?}"));
        if lines.len() == 1 {
            line
        } else {
            line.chars().take(100).collect()
        }
    };
    format!(
        "{} lines of {}: at {at} got {} want {}",
        got.len(),
        want.len(),
        show(got),
        show(want)
    )
}

/// The lines of a text as the score compares them.
fn key(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("```"));
    let bare = lines.map(|line| {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || ">▎│▌•*+-".contains(c));
        let line = line.replace("**", "").replace('`', "");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    bare.filter(|line| !line.is_empty()).collect()
}

fn letters(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("```"));
    lines
        .flat_map(str::chars)
        .filter(|c| c.is_alphanumeric())
        .collect()
}
