//! A turn from a message to its diff, over every protocol.

use std::fs;

use serde_json::{Value, json};

use crate::team::{PROTOCOLS, Team, make_repository, names};

const HAPPY: &str = r#"
[agent]
usage = { input = 100, output = 50 }

[[turn]]
repeat = true
steps = [
    { say = "I will create it." },
    { write = "hello.txt", content = "hello\n" },
    { say = "The file hello.txt now exists." },
]
"#;

#[test]
fn a_message_becomes_a_turn_with_a_diff_over_every_protocol() {
    let team = Team::start(HAPPY);
    make_repository(&team.work());
    for protocol in PROTOCOLS {
        fs::remove_file(team.work().join("hello.txt")).ok();
        let run = team.new_run(json!({}));
        let skip = json!({"permissions": {"cliPermissionsMode": "skip"}});
        let node = team.add_node(&run, "implementer", protocol, skip);
        team.chat(&run, &node, "Please write the file");
        assert_eq!(
            team.wait_for_turn_end(&run, &node, 1),
            "turn.completed",
            "{protocol}: {:#?}",
            team.events(&run)
        );
        let content = fs::read_to_string(team.work().join("hello.txt")).unwrap();
        assert_eq!(content, "hello\n", "{protocol}");
        check_order(&team.events(&run), protocol);
        // The copies of artifacts are there when their events are in the file.
        team.check_event_file(&run);
        check_diff(&team, &run, protocol);
    }
}

/// The order of events that every client may rely on.
fn check_order(events: &[Value], protocol: &str) {
    let names = names(events);
    let order = [
        "message.user",
        "turn.started",
        "artifact.created",
        "waiting_for_model",
        "message.assistant.final",
        "artifact.created",
        "turn.completed",
        "node.patch",
    ];
    let mut rest = names.as_slice();
    for wanted in order {
        let found = rest.iter().position(|name| name == wanted);
        let place = found.unwrap_or_else(|| panic!("{protocol}: no {wanted} in {names:?}"));
        rest = &rest[place + 1..];
    }
    let proposed = names.iter().filter(|name| *name == "tool.proposed");
    let completed = names.iter().filter(|name| *name == "tool.completed");
    assert_eq!(proposed.count(), completed.count(), "{protocol}: {names:?}");
}

fn check_diff(team: &Team, run: &str, protocol: &str) {
    let artifacts = team.get(&format!("/api/runs/{run}/artifacts"));
    let artifacts = artifacts["artifacts"].as_array().unwrap();
    let diff = artifacts.iter().find(|artifact| artifact["kind"] == "diff");
    let diff = diff.unwrap();
    assert_eq!(
        diff["metadata"]["filesChanged"],
        json!(["hello.txt"]),
        "{protocol}"
    );
    let id = diff["id"].as_str().unwrap();
    let patch = team.get(&format!("/api/runs/{run}/artifacts/{id}?raw=1"));
    assert!(patch.as_str().unwrap().contains("+hello"), "{patch}");
    let path = diff["path"].as_str().unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), patch.as_str().unwrap());
}

#[test]
fn the_prompt_is_an_artifact_before_the_program_has_it_and_the_second_is_a_delta() {
    let team = Team::start(HAPPY);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let skip = json!({"permissions": {"cliPermissionsMode": "skip"}});
    let node = team.add_node(&run, "implementer", "claude", skip);
    for (count, kind) in [(1, "full"), (2, "delta")] {
        team.chat(&run, &node, "Go on");
        team.wait_for_turn_end(&run, &node, count);
        let events = team.events(&run);
        let sent: Vec<&Value> = events
            .iter()
            .filter(|event| event["status"] == "waiting_for_model")
            .collect();
        assert_eq!(sent.last().unwrap()["promptKind"], kind);
    }
    let artifacts = team.get(&format!("/api/runs/{run}/artifacts"));
    let names: Vec<&str> = artifacts["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|artifact| artifact["kind"] == "prompt")
        .map(|artifact| artifact["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names
            .iter()
            .filter(|name| **name == "prompt.full.txt")
            .count(),
        2
    );
    assert_eq!(
        names
            .iter()
            .filter(|name| **name == "prompt.sent.txt")
            .count(),
        1,
        "a full prompt is sent as it is"
    );
}

const LEAD: &str = r#"
[[turn]]
when = "Split the work"
steps = [
    { call = "send_handoff", args = { to = "implementer", message = "Write part.txt" } },
    { say = "Handed off." },
]

[[turn]]
when = "Write part.txt"
steps = [
    { write = "part.txt", content = "part\n" },
    { say = "The part is written." },
]

[[turn]]
when = "The part is written"
steps = [
    { call = "complete_run", args = { summary = "All done", ok = true } },
    { say = "Finished." },
]
"#;

#[test]
fn a_lead_hands_work_off_gets_the_report_and_completes_the_run() {
    let team = Team::start(LEAD);
    make_repository(&team.work());
    let run = team.new_run(json!({"verify": ["test -f README.md"]}));
    let skip = json!({"permissions": {"cliPermissionsMode": "skip"}});
    let lead = team.add_node(&run, "orchestrator", "claude", skip.clone());
    let worker = team.add_node(&run, "implementer", "codex", skip);
    let edge = json!({"from": lead, "to": worker});
    let made = team.post(&format!("/api/runs/{run}/edges"), &edge);
    assert_eq!(made["edge"]["type"], "handoff");
    team.chat(&run, &lead, "Split the work");
    team.wait_for(&run, "the completed run", |event| {
        event["type"] == "run.patch" && event["patch"]["status"] == "completed"
    });
    let events = team.events(&run);
    let handoffs: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "handoff.sent")
        .collect();
    assert_eq!(handoffs.len(), 2, "a task and its report");
    assert_eq!(handoffs[1]["envelope"]["meta"]["synthesized"], true);
    let shown = team.get(&format!("/api/runs/{run}"));
    assert_eq!(shown["run"]["phase"], "DONE");
    assert!(
        team.work().join("part.txt").exists(),
        "the only writer shares the directory"
    );
    team.check_event_file(&run);
}
