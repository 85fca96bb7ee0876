//! What a program prints in a turn is kept as a file of the turn, byte for byte, with secrets masked.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::team::{PROTOCOLS, Team, is_turn_end, name_of, provider, skip};

/// Runs the scripted agent and writes each line into the file of its process before the server reads
/// it.
const RECORDING_AGENT: &str = r#"#!/bin/sh
{ PRINTED/../real/turnkeep-agent-script "$@"; echo $? > PRINTED/../real/exit-code.$$; } |
while IFS= read -r line; do
    printf '%s\n' "$line" >> "PRINTED/$$"
    printf '%s\n' "$line"
done
exit "$(cat PRINTED/../real/exit-code.$$)"
"#;

/// Puts the recording agent in the place of the scripted one.
fn record_agents(sandbox: &Sandbox) {
    let agent = sandbox.path("turnkeep-agent-script");
    fs::create_dir(sandbox.path("printed")).unwrap();
    fs::create_dir(sandbox.path("real")).unwrap();
    let real = sandbox.path("real/turnkeep-agent-script");
    symlink(fs::read_link(&agent).unwrap(), real).unwrap();
    fs::remove_file(&agent).unwrap();
    let printed = sandbox.path("printed");
    let text = RECORDING_AGENT.replace("PRINTED", printed.to_str().unwrap());
    fs::write(&agent, text).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Takes what agents have printed since the last call.
fn take_printed(team: &Team) -> Vec<u8> {
    let mut printed = Vec::new();
    for file in fs::read_dir(team.sandbox.path("printed")).unwrap() {
        let path = file.unwrap().path();
        printed.extend(fs::read(&path).unwrap());
        fs::remove_file(path).unwrap();
    }
    printed
}

/// The bytes of the logs of a node, the oldest first.
fn kept_lines(team: &Team, run: &str, node: &str) -> Vec<Vec<u8>> {
    // The copies of artifacts are there when their events are in the file.
    team.check_event_file(run);
    let logs = team.artifacts_of(run, node, "log");
    let read = |log: &Value| fs::read(log["path"].as_str().unwrap()).unwrap();
    logs.iter().map(read).collect()
}

const TWO_TURNS: &str = r#"
[agent]
usage = { input = 100, output = 50 }

[[turn]]
when = "FIRST"
repeat = true
steps = [
    { say = "I will look." },
    { tool = "Read", args = { path = "a.txt" }, result = "grün" },
    { stderr = "not on standard output" },
    { garbage = "no record at all\n" },
    { garbage = { hex = "fffe0a" } },
    { say = "The file is there." },
]

[[turn]]
when = "SECOND"
repeat = true
steps = [{ say = "Now it is too late." }, { fail = "out of luck" }]
"#;

#[test]
fn the_lines_of_each_turn_are_kept_byte_for_byte_over_every_protocol() {
    let team = Team::start_with(TWO_TURNS, |sandbox| {
        record_agents(sandbox);
        String::new()
    });
    for protocol in PROTOCOLS {
        let run = team.new_run(json!({}));
        let node = team.add_node(&run, "implementer", protocol, skip("node"));
        let mut printed = Vec::new();
        for (count, word, end) in [(1, "FIRST", "turn.completed"), (2, "SECOND", "turn.failed")] {
            team.chat(&run, &node, word);
            let ended = team.wait_for_turn_end(&run, &node, count);
            assert_eq!(ended, end, "{protocol}");
            printed.push(take_printed(&team));
        }
        let kept = kept_lines(&team, &run, &node);
        for (kept, printed) in kept.iter().zip(&printed) {
            let (kept, printed) = (kept.escape_ascii(), printed.escape_ascii());
            assert_eq!(kept.to_string(), printed.to_string(), "{protocol}");
        }
        assert_eq!(kept.len(), 2, "{protocol}");
        assert!(printed.iter().all(|lines| !lines.is_empty()), "{protocol}");
        check_places(&team, &run, protocol);
    }
}

/// The lines are the artifact before the diff, and belong to its turn.
fn check_places(team: &Team, run: &str, protocol: &str) {
    let events = team.events(run);
    let name = |event: &Value| event["artifact"]["name"].as_str().map(str::to_owned);
    let file = match protocol {
        "raw" => "provider.txt",
        _ => "provider.jsonl",
    };
    let logs = events.iter().zip(&events[1..]);
    let logs = logs.filter(|(event, _)| event["artifact"]["kind"] == "log");
    for (log, next) in logs {
        assert_eq!(name(log).as_deref(), Some(file), "{protocol}");
        assert_eq!(name(next).as_deref(), Some("diff.patch"), "{protocol}");
        assert_eq!(log["turnId"], next["turnId"], "{protocol}");
    }
}

const SECRET: &str = "sk-7f3a9c1e5b2d8046";

const LEAKING: &str = r#"
[[turn]]
steps = [
    { say = "The key is sk-7f3a9c1e5b2d8046, keep it.", chunk = 5 },
    { tool = "fetch", args = { key = "sk-7f3a9c1e5b2d8046" }, result = "used sk-7f3a9c1e5b2d8046" },
    { garbage = "sk-7f3a9c1e5b2d8046\n" },
    { crash = { code = 3 } },
]
"#;

#[test]
fn secrets_are_masked_in_the_lines_of_a_turn_also_in_pieces() {
    for protocol in ["claude", "codex", "acp", "jsonl"] {
        let team = Team::start_with(LEAKING, |sandbox| {
            let lines = provider(sandbox, "leaky", Some("jsonl"));
            format!("{}\nenv = {{ KEY = \"{SECRET}\" }}\n", lines.trim_end())
        });
        let run = team.new_run(json!({}));
        let node = team.add_node(&run, "implementer", protocol, skip("node"));
        team.chat(&run, &node, "Work");
        team.wait_for(&run, "the end of the turn", is_turn_end);
        let kept = kept_lines(&team, &run, &node).remove(0);
        let text = String::from_utf8(kept).unwrap();
        assert!(!text.contains(SECRET), "{protocol}: {text}");
        assert!(text.contains(&"*".repeat(SECRET.len())), "{protocol}");
        let records = text.lines().filter_map(|line| {
            let record: Value = serde_json::from_str(line).ok()?;
            Some(pieces_of(&record))
        });
        let joined: String = records.collect();
        assert!(joined.contains("he key is "), "{protocol}: {joined}");
        assert!(!joined.contains(SECRET), "{protocol}: {joined}");
    }
}

/// The text of a record that has a piece of a message, in one of the protocols.
fn pieces_of(record: &Value) -> String {
    let places = [
        "/event/delta/text",
        "/params/delta",
        "/delta",
        "/params/update/content/text",
        "/text",
    ];
    let pieces = places.iter().filter_map(|place| record.pointer(place));
    pieces.filter_map(Value::as_str).collect()
}

const HANGING: &str = r#"
[[turn]]
when = "Talk"
steps = [{ say = "I begin." }, "end_message", "silence"]

[[turn]]
when = "Hush"
steps = ["silence"]
"#;

/// The lines of a turn that is interrupted after an event.
fn interrupt_after(team: &Team, protocol: &str, word: &str, what: &str) -> Vec<Vec<u8>> {
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", protocol, skip("node"));
    team.chat(&run, &node, word);
    team.wait_for(&run, what, |event| name_of(event) == what);
    let route = format!("/api/runs/{run}/nodes/{node}/interrupt");
    team.post(&route, &json!({}));
    assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.interrupted");
    kept_lines(team, &run, &node)
}

#[test]
fn an_interrupted_turn_keeps_its_lines_and_a_silent_one_has_no_file() {
    let team = Team::start(HANGING);
    let kept = interrupt_after(&team, "jsonl", "Talk", "message.assistant.final");
    let text = String::from_utf8(kept[0].clone()).unwrap();
    assert!(text.contains("I begin."), "{text}");
    let kept = interrupt_after(&team, "raw", "Hush", "waiting_for_model");
    assert_eq!(kept, Vec::<Vec<u8>>::new());
}
