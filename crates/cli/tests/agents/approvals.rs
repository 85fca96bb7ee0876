//! A program that asks, and a person who answers.

use serde_json::{Value, json};

use crate::processes::recorded;
use crate::team::{Team, make_repository, skip};

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

/// The protocols in which a program can ask. A custom program that speaks `stream-json` gets no
/// arguments of the server's, so only its own can make it ask; `raw` has no questions.
const ASKING_PROTOCOLS: [&str; 5] = ["claude", "codex", "gemini", "jsonl", "acp"];

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
    for protocol in ASKING_PROTOCOLS {
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

#[test]
fn a_repeated_answer_is_the_first_one_again() {
    let team = Team::start(ASKING);
    make_repository(&team.work());
    let (run, node, asked) = ask(&team, "claude");
    let id = asked["approvalId"].as_str().unwrap();
    let path = format!("/api/approvals/{id}/resolve");
    let answer =
        |body: &Value| team.request_with("POST", &path, Some(body), &[("Idempotency-Key", "k")]);
    let denied = json!({"status": "denied", "reason": "because"});
    let first = answer(&denied);
    assert_eq!(first.status, 200, "{}", first.body);
    team.wait_for_turn_end(&run, &node, 1);
    let again = answer(&denied);
    assert_eq!((again.status, again.body), (200, first.body));
    assert_eq!(answer(&json!({"status": "approved"})).status, 409);
}

/// The arguments of the only program that runs.
fn arguments_of_program(team: &Team) -> String {
    let programs = recorded(team);
    let [program] = programs[..] else {
        panic!("one program: {programs:?}");
    };
    let arguments = std::fs::read(format!("/proc/{program}/cmdline")).unwrap();
    String::from_utf8_lossy(&arguments).replace('\0', " ")
}

#[test]
fn a_planning_program_asks_also_if_its_node_skips_permissions() {
    let team = Team::start(ASKING);
    make_repository(&team.work());
    for protocol in ASKING_PROTOCOLS {
        let run = team.new_run(json!({"globalMode": "PLANNING"}));
        let node = team.add_node(&run, "implementer", protocol, skip("w"));
        team.chat(&run, &node, "Run it");
        let asked = team.wait_for(&run, "the question", |event| {
            event["type"] == "approval.requested"
        });
        let arguments = arguments_of_program(&team);
        for bypass in ["dangerously", "yolo", "never"] {
            assert!(!arguments.contains(bypass), "{protocol}: {arguments}");
        }
        // A person switches to the implementation while the turn is open: it goes on as it began.
        let path = format!("/api/runs/{run}");
        team.patch(&path, &json!({"globalMode": "IMPLEMENTATION"}));
        team.resolve(&asked, &json!({"status": "approved"}));
        assert_eq!(
            team.wait_for_turn_end(&run, &node, 1),
            "turn.completed",
            "{protocol}"
        );
        team.chat(&run, &node, "Run it");
        assert_eq!(team.wait_for_turn_end(&run, &node, 2), "turn.completed");
        let events = team.events(&run).into_iter();
        let asked = events.filter(|event| event["type"] == "approval.requested");
        assert_eq!(asked.count(), 1, "{protocol}: the implementation skips");
        team.delete(&path);
    }
}
