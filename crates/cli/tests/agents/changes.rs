//! What becomes of the files that nodes write: worktrees, apply, revert and forbidden files.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::team::{Team, make_repository};

const WRITING: &str = r#"
[[turn]]
when = "Write a"
repeat = true
steps = [
    { write = "a.txt", content = "from a\n" },
    { say = "a is written." },
]

[[turn]]
when = "Write b"
repeat = true
steps = [
    { write = "b.txt", content = "from b\n" },
    { say = "b is written." },
]

[[turn]]
when = "Plan"
steps = [
    { write = "docs/plan.md", content = "plan\n" },
    { write = "src.txt", content = "forbidden\n" },
    { say = "Planned." },
]
"#;

fn skip(alias: &str) -> Value {
    json!({"alias": alias, "permissions": {"cliPermissionsMode": "skip"}})
}

fn git(team: &Team, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(team.work())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn two_writers_work_apart_and_their_work_is_applied_together() {
    let team = Team::start(WRITING);
    make_repository(&team.work());
    fs::write(team.work().join("mine.txt"), "uncommitted\n").unwrap();
    let before = (
        git(&team, &["rev-parse", "HEAD"]),
        git(&team, &["status", "--short"]),
    );
    let run = team.new_run(json!({}));
    let a = team.add_node(&run, "implementer", "claude", skip("a"));
    let b = team.add_node(&run, "implementer", "codex", skip("b"));
    team.chat(&run, &a, "Write a");
    team.chat(&run, &b, "Write b");
    assert_eq!(team.wait_for_turn_end(&run, &a, 1), "turn.completed");
    assert_eq!(team.wait_for_turn_end(&run, &b, 1), "turn.completed");
    assert!(
        !team.work().join("a.txt").exists(),
        "each has a worktree of its own"
    );
    let after = (
        git(&team, &["rev-parse", "HEAD"]),
        git(&team, &["status", "--short"]),
    );
    assert_eq!(before, after, "the user's repository is as it was");

    let apply = format!("/api/runs/{run}/apply");
    let applied = team.post(&apply, &json!({}));
    assert_eq!(applied["applied"], json!(["a.txt", "b.txt"]));
    assert_eq!(applied["verified"], false);
    for (name, content) in [
        ("a.txt", "from a\n"),
        ("b.txt", "from b\n"),
        ("mine.txt", "uncommitted\n"),
    ] {
        assert_eq!(fs::read_to_string(team.work().join(name)).unwrap(), content);
    }
    assert_eq!(
        team.post(&apply, &json!({}))["applied"],
        json!([]),
        "nothing is new"
    );
}

#[test]
fn a_conflict_applies_nothing_and_names_the_file() {
    let team = Team::start(WRITING);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let a = team.add_node(&run, "implementer", "claude", skip("a"));
    team.add_node(&run, "implementer", "codex", skip("b"));
    team.chat(&run, &a, "Write a");
    assert_eq!(team.wait_for_turn_end(&run, &a, 1), "turn.completed");
    fs::write(team.work().join("a.txt"), "the user's own\n").unwrap();
    let answered = team.request("POST", &format!("/api/runs/{run}/apply"), Some(&json!({})));
    assert_eq!(answered.status, 409, "{}", answered.body);
    assert!(answered.body.to_string().contains("a.txt"));
    let kept = fs::read_to_string(team.work().join("a.txt")).unwrap();
    assert_eq!(kept, "the user's own\n");
}

#[test]
fn a_turn_is_reverted_unless_its_file_changed_since() {
    let team = Team::start(WRITING);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("a"));
    team.chat(&run, &node, "Write a");
    team.wait_for_turn_end(&run, &node, 1);
    let started = team.wait_for(&run, "the turn", |event| event["status"] == "turn.started");
    let revert = format!(
        "/api/runs/{run}/turns/{}/revert",
        started["turnId"].as_str().unwrap()
    );
    fs::write(team.work().join("a.txt"), "edited\n").unwrap();
    let refused = team.request("POST", &revert, Some(&json!({})));
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert_eq!(
        fs::read_to_string(team.work().join("a.txt")).unwrap(),
        "edited\n"
    );
    fs::write(team.work().join("a.txt"), "from a\n").unwrap();
    assert_eq!(team.post(&revert, &json!({}))["paths"], json!(["a.txt"]));
    assert!(!team.work().join("a.txt").exists());
}

#[test]
fn a_planner_keeps_its_plan_and_loses_what_it_may_not_write() {
    let team = Team::start(WRITING);
    make_repository(&team.work());
    let run = team.new_run(json!({"globalMode": "PLANNING"}));
    let node = team.add_node(&run, "planner", "claude", skip("p"));
    team.chat(&run, &node, "Plan");
    assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.completed");
    let artifacts = team.get(&format!("/api/runs/{run}/artifacts"));
    let artifacts = artifacts["artifacts"].as_array().unwrap();
    let diff = artifacts
        .iter()
        .find(|artifact| artifact["kind"] == "diff")
        .unwrap();
    assert_eq!(diff["metadata"]["filesChanged"], json!(["docs/plan.md"]));
    assert_eq!(diff["metadata"]["violation"], json!(["src.txt"]), "{diff}");
    let shown = team.get(&format!("/api/runs/{run}"));
    assert_eq!(
        shown["run"]["nodes"][&node]["status"], "idle",
        "nothing waits"
    );
}

#[test]
fn a_node_loses_what_its_capabilities_forbid() {
    for (capabilities, kept, forbidden) in [
        (
            json!({"delegateOnly": true}),
            json!([]),
            json!(["docs/plan.md", "src.txt"]),
        ),
        (
            json!({"writeDocs": false}),
            json!(["src.txt"]),
            json!(["docs/plan.md"]),
        ),
    ] {
        let team = Team::start(WRITING);
        make_repository(&team.work());
        let run = team.new_run(json!({}));
        // The second writer has a worktree, and so has a node that only delegates.
        team.add_node(&run, "implementer", "claude", skip("first"));
        let mut settings = skip("b");
        settings["capabilities"] = capabilities.clone();
        let node = team.add_node(&run, "implementer", "claude", settings);
        team.chat(&run, &node, "Plan");
        assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.completed");
        let shown = team.show_node(&run, &node);
        assert_eq!(shown["workspace"]["kind"], "worktree", "{capabilities}");
        assert_eq!(shown["status"], "idle", "nothing waits");
        let diff = team.artifacts_of(&run, &node, "diff").remove(0);
        assert_eq!(diff["metadata"]["filesChanged"], kept, "{capabilities}");
        assert_eq!(diff["metadata"]["violation"], forbidden, "{capabilities}");
        let applied = team.post(&format!("/api/runs/{run}/apply"), &json!({}));
        assert_eq!(applied["applied"], kept);
    }
}

#[test]
fn in_a_shared_directory_forbidden_files_wait_for_a_decision() {
    let team = Team::start(WRITING);
    let run = team.new_run(json!({"globalMode": "PLANNING"}));
    let node = team.add_node(&run, "planner", "claude", skip("p"));
    team.chat(&run, &node, "Plan");
    assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.completed");
    team.wait_for(&run, "the block", |event| {
        event["type"] == "node.patch" && event["patch"]["status"] == "blocked"
    });
    assert!(
        team.work().join("src.txt").exists(),
        "nothing is restored by itself"
    );
    let started = team.wait_for(&run, "the turn", |event| event["status"] == "turn.started");
    let turn = started["turnId"].as_str().unwrap();
    let revert = format!("/api/runs/{run}/turns/{turn}/revert");
    let reverted = team.post(&revert, &json!({"paths": ["src.txt"]}));
    assert_eq!(reverted["paths"], json!(["src.txt"]));
    assert!(!team.work().join("src.txt").exists());
    assert!(team.work().join("docs/plan.md").exists());
    let shown = team.get(&format!("/api/runs/{run}"));
    assert_eq!(shown["run"]["nodes"][&node]["status"], "idle");
}

#[test]
fn a_team_begins_with_its_nodes_and_edges() {
    let team = Team::start(WRITING);
    make_repository(&team.work());
    let run = team.new_run(json!({"team": "team"}));
    let shown = team.get(&format!("/api/runs/{run}"));
    assert_eq!(shown["run"]["nodes"].as_object().unwrap().len(), 5);
    assert_eq!(shown["run"]["edges"].as_object().unwrap().len(), 4);
    let unknown = team.request("POST", "/api/runs", Some(&json!({"team": "crowd"})));
    assert_eq!(unknown.status, 400);
    let providers = team.get("/api/providers");
    assert_eq!(providers["providers"][0]["name"], "claude");
    assert_eq!(providers["providers"][0]["found"], true);
}
