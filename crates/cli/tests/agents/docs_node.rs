//! The node that brings the documents up to date before a run is completed.

use std::fs;

use serde_json::json;

use crate::processes::wait_until;
use crate::team::{Team, is_completion, make_repository, skip};

const SCRIPT: &str = r#"
[[turn]]
when = "WRITE A"
steps = [
    { write = "a.txt", content = "from a\n" },
    { say = "a is written." },
]

[[turn]]
when = "FINISH IT"
steps = [
    { call = "complete_run", args = { summary = "All done", ok = true } },
    { say = "Finished." },
]

[[turn]]
when = ["(docs) of run"]
repeat = true
steps = [
    { touch = "SANDBOX/docs-run" },
    { wait_for_file = "SANDBOX/docs-may-fail" },
    { fail = "no idea how" },
]

[[turn]]
repeat = true
steps = [{ say = "Nothing to do." }]
"#;

#[test]
fn the_docs_node_gets_everything_that_changed_once_and_cannot_undo_the_completion() {
    for (protocol, in_repository) in [("claude", true), ("codex", false)] {
        let mut team = Team::start(SCRIPT);
        if in_repository {
            make_repository(&team.work());
        }
        fs::write(team.work().join("mine.txt"), "the user's\n").unwrap();
        let run = team.new_run(json!({}));
        let lead = team.add_node(&run, "orchestrator", protocol, skip("lead"));
        let a = team.add_node(&run, "implementer", protocol, skip("a"));
        let docs = team.add_node(&run, "docs", protocol, skip("docs"));
        team.patch(&format!("/api/runs/{run}"), &json!({"docsNode": "docs"}));
        team.chat(&run, &a, "WRITE A");
        assert_eq!(team.wait_for_turn_end(&run, &a, 1), "turn.completed");
        team.chat(&run, &lead, "FINISH IT");
        wait_until("the docs node does not work", || {
            team.sandbox.path("docs-run").exists()
        });
        assert_eq!(team.show(&run)["phase"], "DOCS_SYNC");
        let prompts = team.artifacts_of(&run, &docs, "prompt");
        let prompt = team.read_artifact(&run, &prompts[0]);
        assert!(prompt.contains("changes.patch"), "{prompt}");

        fs::remove_file(team.sandbox.path("docs-run")).unwrap();
        team.kill();
        team.restart();
        assert_eq!(team.show(&run)["status"], "paused");
        team.resume(&run);
        fs::write(team.sandbox.path("docs-may-fail"), "").unwrap();
        team.wait_for(&run, "the completion", is_completion);
        assert_eq!(team.show(&run)["phase"], "DONE");
        assert_eq!(team.show_node(&run, &docs)["status"], "failed");

        let events = team.events(&run);
        let mut sent = events.iter().filter(|event| {
            event["type"] == "handoff.sent" && event["envelope"]["toNodeId"] == docs.as_str()
        });
        let payload = &sent.next().unwrap()["envelope"]["payload"];
        assert!(sent.next().is_none(), "it is handed over once");
        let artifacts = payload["artifacts"].as_array().unwrap();
        let [reference] = artifacts.as_slice() else {
            panic!("one diff: {payload}")
        };
        let id = reference["ref"].as_str().unwrap();
        let id = id.strip_prefix("artifact://").unwrap();
        let diff = team.get(&format!("/api/runs/{run}/artifacts/{id}"));
        let diff = &diff["artifact"];
        assert_eq!(diff["kind"], "diff");
        assert_eq!(diff["metadata"]["filesChanged"], json!(["a.txt"]), "{diff}");
        let patch = team.read_artifact(&run, diff);
        assert!(patch.contains("+from a"), "{patch}");
        assert!(
            !patch.contains("the user's"),
            "it was there before: {patch}"
        );
    }
}
