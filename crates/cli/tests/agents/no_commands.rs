//! Nodes that may not run commands.

use serde_json::{Value, json};

use crate::team::Team;

const RUNNING: &str = r#"
[[turn]]
repeat = true
steps = [
    { run = "touch ran.txt", ask = true, else = [{ say = "Not allowed." }] },
    { say = "Done." },
]
"#;

#[test]
fn a_command_is_denied_whatever_the_program_calls_it() {
    let team = Team::start(RUNNING);
    for protocol in ["claude", "codex", "gemini", "acp", "jsonl"] {
        let run = team.new_run(json!({}));
        let limited = json!({"alias": "n", "capabilities": {"runCommands": false}});
        let node = team.add_node(&run, "implementer", protocol, limited);
        team.chat(&run, &node, "Run it");
        assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.completed");
        assert!(!team.work().join("ran.txt").exists(), "{protocol}");
        let events = team.events(&run);
        let asked: Vec<&Value> = events
            .iter()
            .filter(|event| event["type"] == "approval.requested")
            .collect();
        assert_eq!(asked, [&json!(null); 0], "{protocol}: nobody is asked");
    }
}
