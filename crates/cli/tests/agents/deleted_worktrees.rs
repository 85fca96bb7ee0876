//! The worktree of a node that is deleted: it goes with the node, unless it holds work.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::processes::wait_until;
use crate::team::{Team, make_repository, skip};

const WRITING: &str = r#"
[[turn]]
when = "WRITE A"
repeat = true
steps = [
    { write = "a.txt", content = "from a\n" },
    { say = "a is written." },
]

[[turn]]
when = "NEVER END"
repeat = true
steps = [
    { touch = "SANDBOX/begun" },
    "silence",
]

[[turn]]
repeat = true
steps = [{ say = "Nothing to write." }]
"#;

/// A run with two writers, so that both have worktrees.
fn start() -> (Team, String, [String; 2]) {
    let team = Team::start(WRITING);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let nodes = ["a", "b"].map(|alias| team.add_node(&run, "implementer", "claude", skip(alias)));
    (team, run, nodes)
}

fn worktree(team: &Team, run: &str, node: &str) -> PathBuf {
    team.sandbox.data().join("worktrees").join(run).join(node)
}

fn delete(team: &Team, run: &str, node: &str) {
    team.delete(&format!("/api/runs/{run}/nodes/{node}"));
}

fn apply(team: &Team, run: &str) -> Value {
    team.post(&format!("/api/runs/{run}/apply"), &json!({}))["applied"].clone()
}

#[test]
fn an_unchanged_worktree_goes_with_its_node() {
    let (team, run, [a, b]) = start();
    team.chat(&run, &a, "Look around");
    assert_eq!(team.wait_for_turn_end(&run, &a, 1), "turn.completed");
    let begun = team.sandbox.path("begun");
    team.chat(&run, &b, "NEVER END");
    wait_until("the turn does not begin", || begun.exists());
    // The second one still works in its worktree.
    for node in [&a, &b] {
        let place = worktree(&team, &run, node);
        assert!(place.exists());
        delete(&team, &run, node);
        wait_until("an unchanged worktree stays", || !place.exists());
    }
}

#[test]
fn work_of_a_deleted_node_stays_and_the_log_says_where() {
    let (mut team, run, [a, _]) = start();
    team.chat(&run, &a, "WRITE A");
    assert_eq!(team.wait_for_turn_end(&run, &a, 1), "turn.completed");
    let place = worktree(&team, &run, &a);
    let branch = team.show_node(&run, &a)["workspace"]["branch"].clone();
    delete(&team, &run, &a);
    let note = team.wait_for(&run, "the note", |event| {
        event["type"] == "node.log" && event["nodeId"] == a.as_str()
    });
    let text = note["text"].as_str().unwrap();
    for part in [place.to_str().unwrap(), branch.as_str().unwrap(), "a.txt"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let written = place.join("a.txt");
    // It is no work of the run any more, also after a restart.
    team.restart();
    assert_eq!(apply(&team, &run), json!([]));
    assert!(!team.work().join("a.txt").exists());
    assert_eq!(fs::read_to_string(&written).unwrap(), "from a\n");

    // A person has taken it over. The next apply finds nothing in the worktree and removes it.
    fs::remove_file(&written).unwrap();
    assert_eq!(apply(&team, &run), json!([]));
    assert!(!place.exists());
}

#[test]
fn a_deleted_run_takes_the_unchanged_worktrees_of_its_deleted_nodes_along() {
    let (team, run, [a, b]) = start();
    for node in [&a, &b] {
        team.chat(&run, node, "WRITE A");
        assert_eq!(team.wait_for_turn_end(&run, node, 1), "turn.completed");
    }
    let places = [&a, &b].map(|node| {
        delete(&team, &run, node);
        team.wait_for(&run, "the note", |event| {
            event["type"] == "node.log" && event["nodeId"] == node.as_str()
        });
        worktree(&team, &run, node)
    });
    fs::remove_file(places[0].join("a.txt")).unwrap();
    team.delete(&format!("/api/runs/{run}"));
    wait_until("an unchanged worktree stays", || !places[0].exists());
    assert!(places[1].join("a.txt").exists(), "work stays");
}
