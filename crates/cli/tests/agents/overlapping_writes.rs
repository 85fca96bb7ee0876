//! Two turns in one directory at the same time: a file is a conflict only if both nodes wrote it.

use std::fs;

use serde_json::{Value, json};

use crate::processes::wait_until;
use crate::team::{Team, skip};

const SCRIPT: &str = r#"
[[turn]]
when = ["(writer) of run"]
steps = [
    { wait_for_file = "SANDBOX/other-runs" },
    { write = "both.txt", content = "of the writer\n" },
    { touch = "SANDBOX/writer-wrote" },
    { say = "Written." },
]

[[turn]]
when = ["(other) of run", "WATCH"]
steps = [
    { run = "true" },
    { touch = "SANDBOX/other-runs" },
    { wait_for_file = "SANDBOX/other-may-end" },
    { say = "Watched." },
]

[[turn]]
when = ["(other) of run", "WRITE"]
steps = [
    { touch = "SANDBOX/other-runs" },
    { wait_for_file = "SANDBOX/writer-wrote" },
    { append = "both.txt", content = "of the other\n" },
    { wait_for_file = "SANDBOX/other-may-end" },
    { say = "Written, too." },
]
"#;

/// The programs of the two nodes.
struct Pair {
    writer: &'static str,
    other: &'static str,
}

/// Every protocol whose programs report what they write, on both sides.
const PAIRS: [Pair; 5] = [
    Pair {
        writer: "claude",
        other: "codex",
    },
    Pair {
        writer: "codex",
        other: "gemini",
    },
    Pair {
        writer: "gemini",
        other: "acp",
    },
    Pair {
        writer: "acp",
        other: "jsonl",
    },
    Pair {
        writer: "jsonl",
        other: "claude",
    },
];

/// Lets the writer's turn begin and end within the other one's. Returns the diff of the other turn.
fn play(pair: &Pair, message: &str) -> (Team, Value) {
    let team = Team::start(SCRIPT);
    let run = team.new_run(json!({}));
    let writer = team.add_node(&run, "implementer", pair.writer, skip("writer"));
    let other = team.add_node(&run, "implementer", pair.other, skip("other"));
    team.chat(&run, &other, message);
    let runs = team.sandbox.path("other-runs");
    wait_until("the other turn does not begin", || runs.exists());
    team.chat(&run, &writer, "Write");
    assert_eq!(team.wait_for_turn_end(&run, &writer, 1), "turn.completed");
    fs::write(team.sandbox.path("other-may-end"), "").unwrap();
    assert_eq!(team.wait_for_turn_end(&run, &other, 1), "turn.completed");
    let diffs = [&writer, &other].map(|node| {
        let diff = team.artifacts_of(&run, node, "diff").remove(0);
        let metadata = diff["metadata"].clone();
        assert_eq!(metadata["shared"], json!(["both.txt"]), "{metadata}");
        metadata
    });
    let [_, last] = diffs;
    (team, last)
}

fn conflicts(team: &Team) -> usize {
    let attention = team.get("/api/attention");
    let items = attention["items"].as_array().unwrap();
    let of_kind = items.iter().filter(|item| item["kind"] == "conflict");
    of_kind.count()
}

#[test]
fn a_file_of_one_writer_waits_for_nobody() {
    for pair in &PAIRS {
        let (team, last) = play(pair, "WATCH");
        assert_eq!(last["conflicts"], Value::Null, "{}: {last}", pair.writer);
        assert_eq!(conflicts(&team), 0, "{} {}", pair.writer, pair.other);
    }
}

#[test]
fn a_file_of_two_writers_is_a_conflict_whatever_they_speak() {
    for pair in &PAIRS {
        let (team, last) = play(pair, "WRITE");
        let found = &last["conflicts"][0]["path"];
        assert_eq!(found, "both.txt", "{} {}: {last}", pair.writer, pair.other);
        assert_eq!(conflicts(&team), 2, "{} {}", pair.writer, pair.other);
    }
}
