//! A server that is killed in the middle of a turn.

use std::fs;

use serde_json::{Value, json};

use crate::processes::wait_until;
use crate::team::{Team, make_repository, skip};

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
    // The file is damaged while no server runs.
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
        .filter(|event| event["type"] == "message.user" && event["message"]["role"] == "user")
        .collect();
    assert_eq!(inputs.len(), 1, "no message was made up: {inputs:#?}");
    team.check_event_file(&run);
}

const PLANNING: &str = r#"
[[turn]]
when = "PLEASE PLAN"
steps = [
    { write = "docs/plan.md", content = "plan\n" },
    { write = "src/x", content = "forbidden\n" },
    { touch = "SANDBOX/wrote" },
    { wait_for_file = "SANDBOX/never" },
]
"#;

/// A planner that has written an allowed and a forbidden file when the server was killed and started
/// again.
struct LostPlan {
    team: Team,
    run: String,
    node: String,
}

impl LostPlan {
    fn make(in_repository: bool) -> Self {
        let mut team = Team::start(PLANNING);
        if in_repository {
            make_repository(&team.work());
        }
        let run = team.new_run(json!({"globalMode": "PLANNING"}));
        let node = team.add_node(&run, "planner", "claude", skip("planner"));
        team.chat(&run, &node, "PLEASE PLAN");
        wait_until("nothing is written", || team.sandbox.path("wrote").exists());
        team.kill();
        team.restart();
        assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.interrupted");
        Self { team, run, node }
    }

    /// The diff of the lost turn.
    fn diff(&self) -> Value {
        let diffs = self.team.artifacts_of(&self.run, &self.node, "diff");
        let [diff] = diffs.as_slice() else {
            panic!("the lost turn has a diff: {diffs:#?}")
        };
        diff["metadata"].clone()
    }
}

#[test]
fn a_crash_does_not_let_forbidden_files_land() {
    let LostPlan { team, run, node } = &LostPlan::make(true);
    let place = team.sandbox.data().join("worktrees").join(run).join(node);
    assert!(place.join("docs/plan.md").exists());
    assert!(!place.join("src/x").exists(), "it is restored");
    let applied = team.post(&format!("/api/runs/{run}/apply"), &json!({}));
    assert_eq!(applied["applied"], json!(["docs/plan.md"]));
}

#[test]
fn a_turn_that_a_crash_ended_has_its_diff() {
    for in_repository in [true, false] {
        let lost = LostPlan::make(in_repository);
        let diff = lost.diff();
        assert_eq!(diff["violation"], json!(["src/x"]), "{diff}");
        let expect = if in_repository {
            json!(["docs/plan.md"])
        } else {
            json!(["docs/plan.md", "src/x"])
        };
        assert_eq!(diff["filesChanged"], expect);
    }
}

#[test]
fn a_crash_in_a_shared_directory_leaves_forbidden_files_to_a_person() {
    let lost = LostPlan::make(false);
    let LostPlan { team, run, node } = &lost;
    let forbidden = team.work().join("src/x");
    assert!(forbidden.exists(), "no byte changes by itself");
    let shown = team.show_node(run, node);
    assert_eq!(shown["status"], "blocked", "{shown}");
    assert_eq!(shown["block"]["paths"], json!(["src/x"]));
    let turn = lost.diff()["turnId"].as_str().unwrap().to_owned();
    let revert = format!("/api/runs/{run}/turns/{turn}/revert");
    team.post(&revert, &json!({"paths": ["src/x"]}));
    assert!(!forbidden.exists());
    assert_eq!(team.show_node(run, node)["status"], "idle");
}

#[test]
fn a_run_goes_on_by_itself_after_a_restart_if_the_settings_say_so() {
    let mut team = Team::start_with(WAITING, |_| "[runs]\nresume_on_start = true\n".to_owned());
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("a"));
    team.chat(&run, &node, "Wait for it");
    team.wait_for(&run, "the text", |event| {
        event["type"] == "message.assistant.delta"
    });
    team.kill();
    fs::write(team.work().join("go"), "").unwrap();
    team.restart();
    assert_eq!(team.wait_for_turn_end(&run, &node, 2), "turn.completed");
    assert_eq!(team.show(&run)["status"], "running");
    let events = team.events(&run);
    let mut statuses = events.iter().map(|event| &event["patch"]["status"]);
    assert!(!statuses.any(|status| status == "paused"));
}
