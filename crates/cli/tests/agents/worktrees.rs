//! When the worktrees of nodes go, and what counts as a change.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::processes::wait_until;
use crate::team::{Team, is_completion, make_repository, skip};

const WRITING: &str = r#"
[[turn]]
when = "WRITE A"
repeat = true
steps = [
    { write = "a.txt", content = "from a\n" },
    { say = "a is written." },
]

[[turn]]
when = "WRITE MORE"
repeat = true
steps = [
    { write = "more.txt", content = "more\n" },
    { say = "More is written." },
]

[[turn]]
when = "FINISH IT"
repeat = true
steps = [
    { call = "complete_run", args = { summary = "All done", ok = true } },
    { say = "Finished." },
]

[[turn]]
repeat = true
steps = [{ say = "Nothing to write." }]
"#;

/// A run with two writers, so that both have worktrees, and a lead.
fn start() -> (Team, String, [String; 3]) {
    let team = Team::start(WRITING);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let a = team.add_node(&run, "implementer", "claude", skip("a"));
    let b = team.add_node(&run, "implementer", "claude", skip("b"));
    let lead = team.add_node(&run, "orchestrator", "claude", skip("lead"));
    (team, run, [a, b, lead])
}

fn worktree(team: &Team, run: &str, node: &str) -> PathBuf {
    team.sandbox.data().join("worktrees").join(run).join(node)
}

fn apply(team: &Team, run: &str) -> Value {
    let applied = team.post(&format!("/api/runs/{run}/apply"), &json!({}));
    applied["applied"].clone()
}

#[test]
fn an_applied_worktree_goes_and_its_node_works_on() {
    let (team, run, [a, b, _]) = start();
    team.chat(&run, &a, "WRITE A");
    team.chat(&run, &b, "Look around");
    for node in [&a, &b] {
        assert_eq!(team.wait_for_turn_end(&run, node, 1), "turn.completed");
        assert!(worktree(&team, &run, node).exists());
    }
    assert_eq!(apply(&team, &run), json!(["a.txt"]));
    for node in [&a, &b] {
        assert!(
            !worktree(&team, &run, node).exists(),
            "it holds nothing new"
        );
    }
    assert_eq!(apply(&team, &run), json!([]), "nothing is new");

    // The user goes on with the file; the next worktree begins there.
    fs::write(team.work().join("a.txt"), "edited\n").unwrap();
    team.chat(&run, &a, "WRITE MORE");
    assert_eq!(team.wait_for_turn_end(&run, &a, 2), "turn.completed");
    let place = worktree(&team, &run, &a);
    assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "edited\n");
    assert_eq!(apply(&team, &run), json!(["more.txt"]));
    let kept = fs::read_to_string(team.work().join("a.txt")).unwrap();
    assert_eq!(kept, "edited\n");
}

#[test]
fn a_turn_can_be_reverted_after_its_worktree_is_gone() {
    let (team, run, [a, _, _]) = start();
    team.chat(&run, &a, "WRITE A");
    team.wait_for_turn_end(&run, &a, 1);
    let started = team.wait_for(&run, "the turn", |event| event["status"] == "turn.started");
    assert_eq!(apply(&team, &run), json!(["a.txt"]));
    let turn = started["turnId"].as_str().unwrap();
    let path = format!("/api/runs/{run}/turns/{turn}/revert");
    assert_eq!(team.post(&path, &json!({}))["paths"], json!(["a.txt"]));
    assert!(!team.work().join("a.txt").exists());
}

#[test]
fn a_completed_run_keeps_only_worktrees_with_work() {
    let (team, run, [a, b, lead]) = start();
    team.chat(&run, &a, "WRITE A");
    team.chat(&run, &b, "Look around");
    for node in [&a, &b] {
        assert_eq!(team.wait_for_turn_end(&run, node, 1), "turn.completed");
    }
    team.chat(&run, &lead, "FINISH IT");
    team.wait_for(&run, "the completion", is_completion);
    let place = worktree(&team, &run, &a);
    wait_until("an empty worktree stays", || {
        !worktree(&team, &run, &b).exists()
    });
    assert!(place.join("a.txt").exists());
    assert_eq!(apply(&team, &run), json!(["a.txt"]));
    assert!(!place.exists());
}

#[test]
fn a_deleted_run_keeps_only_worktrees_with_work() {
    let (team, run, [a, b, _]) = start();
    team.chat(&run, &a, "WRITE A");
    team.chat(&run, &b, "Look around");
    for node in [&a, &b] {
        assert_eq!(team.wait_for_turn_end(&run, node, 1), "turn.completed");
    }
    team.delete(&format!("/api/runs/{run}"));
    wait_until("an empty worktree stays", || {
        !worktree(&team, &run, &b).exists()
    });
    let kept = worktree(&team, &run, &a).join("a.txt");
    assert_eq!(fs::read_to_string(kept).unwrap(), "from a\n");
}

#[test]
fn the_data_directory_inside_the_workspace_is_no_change() {
    let team = Team::start(WRITING);
    // The data directory of the server lies in it.
    let cwd = team.sandbox.path("");
    let run = team.new_run(json!({"cwd": cwd}));
    let node = team.add_node(&run, "implementer", "jsonl", skip("w"));
    team.chat(&run, &node, "WRITE A");
    assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.completed");
    let diffs = team.artifacts_of(&run, &node, "diff");
    assert_eq!(diffs[0]["metadata"]["filesChanged"], json!(["a.txt"]));
}
