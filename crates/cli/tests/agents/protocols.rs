//! The same small story over every protocol: a lead hands work off, the worker does it, the lead
//! hears of it and completes the run, and the work is verified.

use std::fs;

use serde_json::{Value, json};

use crate::team::{Team, is_completion, make_repository, names, provider, skip};

const SCRIPT: &str = r#"
[[turn]]
when = ["(lead) of run", "PLEASE LEAD"]
steps = [
    { call = "send_handoff", args = { to = "worker", message = "WRITE IT" } },
    { say = "Handed off." },
]

[[turn]]
when = ["(worker) of run", "WRITE IT"]
steps = [
    { say = "I write." },
    { write = "part.txt", content = "part\n" },
    { prompt_copy = "SANDBOX/worker.prompt" },
    { say = "The part is written." },
]

[[turn]]
when = ["(lead) of run", "The part is written"]
steps = [
    { call = "complete_run", args = { summary = "All done", ok = true } },
    { say = "Finished." },
]
"#;

/// The programs of the lead and of the worker.
struct Pair {
    lead: &'static str,
    worker: &'static str,
}

/// A raw program is a new process for each prompt and keeps its place in a file, so the two nodes need
/// a file each.
const PAIRS: [Pair; 6] = [
    Pair {
        lead: "claude",
        worker: "claude",
    },
    Pair {
        lead: "codex",
        worker: "codex",
    },
    Pair {
        lead: "gemini",
        worker: "acp",
    },
    Pair {
        lead: "stream-json",
        worker: "stream-json",
    },
    Pair {
        lead: "jsonl",
        worker: "jsonl",
    },
    Pair {
        lead: "raw",
        worker: "raw-worker",
    },
];

#[test]
fn every_protocol_plays_the_same_story() {
    let team = Team::start_with(SCRIPT, |sandbox| {
        let lines = provider(sandbox, "raw-worker", Some("raw"));
        assert!(lines.contains("raw-worker.state"));
        lines
    });
    make_repository(&team.work());
    for pair in PAIRS {
        fs::remove_file(team.work().join("part.txt")).ok();
        play(&team, &pair);
    }
}

fn play(team: &Team, pair: &Pair) {
    let verify = json!(["grep -q part part.txt"]);
    let run = team.new_run(json!({"verify": verify, "limits": {"fanInMs": 0}}));
    let lead = team.add_node(&run, "orchestrator", pair.lead, skip("lead"));
    let worker = team.add_node(&run, "implementer", pair.worker, skip("worker"));
    team.connect(&run, "lead", "worker");
    team.chat(&run, "lead", "PLEASE LEAD");
    team.wait_for(&run, "the completion", is_completion);
    assert_eq!(
        team.wait_for_turn_end(&run, &lead, 2),
        "turn.completed",
        "{}",
        pair.lead
    );
    let events = team.events(&run);
    check_order(&events, &worker, pair);
    check_sent(team, &run, &worker, pair);
    let diffs = team.artifacts_of(&run, &worker, "diff");
    assert_eq!(diffs.len(), 1, "{}", pair.worker);
    assert_eq!(diffs[0]["metadata"]["filesChanged"], json!(["part.txt"]));
    team.check_event_file(&run);
}

/// The worker's turn has the order that every client may rely on.
fn check_order(events: &[Value], worker: &str, pair: &Pair) {
    let of_worker = events.iter().filter(|event| event["nodeId"] == worker);
    let names = names(&of_worker.cloned().collect::<Vec<_>>());
    let order = [
        "node.patch",
        "turn.started",
        "node.patch",
        "artifact.created",
        "artifact.created",
        "waiting_for_model",
        "message.assistant.final",
        "artifact.created",
        "handoff.sent",
        "turn.completed",
        "node.patch",
    ];
    let mut rest = names.as_slice();
    for wanted in order {
        let found = rest.iter().position(|name| name == wanted);
        let place = found.unwrap_or_else(|| panic!("{}: no {wanted} in {names:?}", pair.worker));
        rest = &rest[place + 1..];
    }
    let count = |wanted: &str| names.iter().filter(|name| *name == wanted).count();
    assert_eq!(
        count("tool.proposed"),
        count("tool.completed"),
        "{}",
        pair.worker
    );
    assert_eq!(count("turn.started"), 1, "{}", pair.worker);
}

/// The program received exactly the bytes that the artifacts show.
fn check_sent(team: &Team, run: &str, worker: &str, pair: &Pair) {
    let prompts = team.artifacts_of(run, worker, "prompt");
    let full = team.read_artifact(run, &prompts[0]);
    let received = fs::read_to_string(team.sandbox.path("worker.prompt")).unwrap();
    assert_eq!(received, full, "{}", pair.worker);
}
