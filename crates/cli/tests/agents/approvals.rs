//! A program that asks, and a person who answers.

use serde_json::{Value, json};

use crate::team::{Team, make_repository};

const ASKING: &str = r#"
[[turn]]
repeat = true
steps = [
    { run = "echo it ran", ask = "Run it?", save = "it", else = [
        { say = "I may not." },
    ] },
    { say = "Done." },
]
"#;

fn ask(team: &Team, protocol: &str) -> (String, String, Value) {
    let run = team.new_run(json!({}));
    let gated = json!({"permissions": {"cliPermissionsMode": "gated"}});
    let node = team.add_node(&run, "implementer", protocol, gated);
    team.chat(&run, &node, "Run it");
    let asked = team.wait_for(&run, "the question", |event| {
        event["type"] == "approval.requested"
    });
    (run, node, asked)
}

#[test]
fn an_approved_call_runs_and_a_denied_one_does_not() {
    let team = Team::start(ASKING);
    make_repository(&team.work());
    for protocol in ["claude", "codex", "gemini"] {
        for (verdict, ran) in [("approved", true), ("denied", false)] {
            let (run, node, asked) = ask(&team, protocol);
            let shown = team.get(&format!("/api/runs/{run}"));
            assert_eq!(shown["run"]["nodes"][&node]["status"], "blocked");
            let waiting = team.get("/api/attention");
            let kinds: Vec<&str> = waiting["items"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|item| item["runId"] == run)
                .filter_map(|item| item["kind"].as_str())
                .collect();
            assert_eq!(kinds, ["approval"], "{protocol}");
            let id = asked["approvalId"].as_str().unwrap();
            let path = format!("/api/approvals/{id}/resolve");
            team.post(&path, &json!({"status": verdict, "reason": "because"}));
            let again = team.request("POST", &path, Some(&json!({"status": "approved"})));
            assert_eq!(again.status, 409, "the first answer counts");
            assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.completed");
            let events = team.events(&run);
            let done = events
                .iter()
                .find(|event| event["type"] == "tool.completed");
            assert_eq!(
                done.unwrap()["result"]["ok"],
                ran,
                "{protocol} {verdict}: {events:#?}"
            );
        }
    }
    let unknown = "/api/approvals/0b5f1c9e-8a3d-4c55-9a67-0123456789ab/resolve";
    let answered = team.request("POST", unknown, Some(&json!({"status": "approved"})));
    assert_eq!(answered.status, 404);
}
