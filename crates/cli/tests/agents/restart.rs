//! A server that is killed in the middle of a turn.

use std::fs;

use serde_json::{Value, json};

use crate::team::{Team, make_repository};

const WAITING: &str = r#"
[[turn]]
repeat = true
steps = [
    { say = "I wait." },
    { wait_for_file = "go" },
    { say = "I went on." },
]
"#;

#[test]
fn a_killed_server_pauses_its_run_and_loses_no_input() {
    let mut team = Team::start(WAITING);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let skip = json!({"permissions": {"cliPermissionsMode": "skip"}});
    let node = team.add_node(&run, "implementer", "jsonl", skip);
    team.chat(&run, &node, "Wait for it");
    team.wait_for(&run, "the text", |event| {
        event["type"]
            .as_str()
            .unwrap()
            .starts_with("message.assistant")
    });
    team.kill();
    // The file is garbled while nobody watches it.
    let file = team.run_dir(&run).join("events.jsonl");
    fs::write(&file, "garbage").unwrap();
    team.restart();
    let shown = team.get(&format!("/api/runs/{run}"));
    assert_eq!(shown["run"]["status"], "paused");
    assert_eq!(shown["run"]["pausedReason"], "daemon-restart");
    assert_eq!(shown["run"]["nodes"][&node]["inboxCount"], 1);
    team.check_event_file(&run);
    fs::write(team.work().join("go"), "").unwrap();
    let resumed = team.request(
        "PATCH",
        &format!("/api/runs/{run}"),
        Some(&json!({"status": "running"})),
    );
    assert_eq!(resumed.status, 200, "{}", resumed.body);
    assert_eq!(team.wait_for_turn_end(&run, &node, 2), "turn.completed");
    let events = team.events(&run);
    let inputs: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "message.user")
        .collect();
    assert_eq!(inputs.len(), 1, "no message was made up: {inputs:#?}");
    team.check_event_file(&run);
}
