//! Keeping files that a node was not allowed to write: only those can be kept.

use serde_json::{Value, json};

use crate::team::{Team, skip};

const WRITING: &str = r#"
[[turn]]
steps = [
    { write = "docs/plan.md", content = "plan\n" },
    { write = "src/x", content = "x\n" },
    { write = "src/y", content = "y\n" },
    { say = "Planned." },
]
"#;

#[test]
fn only_forbidden_files_are_kept() {
    // Without a repository the directory is shared, so nothing is restored.
    let team = Team::start(WRITING);
    let run = team.new_run(json!({}));
    let planner = team.add_node(&run, "planner", "claude", skip("planner"));
    team.chat(&run, &planner, "Plan");
    assert_eq!(team.wait_for_turn_end(&run, &planner, 1), "turn.completed");
    let diffs = team.artifacts_of(&run, &planner, "diff");
    let turn = diffs[0]["metadata"]["turnId"].as_str().unwrap();
    let route = format!("/api/runs/{run}/turns/{turn}/keep");
    let blocked = || team.show_node(&run, &planner)["block"]["paths"].clone();
    for paths in [json!(["docs/plan.md"]), json!(["src/x", "src/none"])] {
        let refused = team.request("POST", &route, Some(&json!({"paths": paths})));
        assert_eq!(refused.status, 400, "{}", refused.body);
        let details: &Value = &refused.body["error"]["details"];
        assert_eq!(details["path"], "paths", "{}", refused.body);
        assert_eq!(details["violations"], json!(["src/x", "src/y"]));
        assert_eq!(blocked(), json!(["src/x", "src/y"]), "nothing is decided");
    }
    let kept = team.post(&route, &json!({"paths": ["src/x"]}));
    assert_eq!(kept["paths"], json!(["src/x"]));
    assert_eq!(blocked(), json!(["src/y"]));
    team.post(&route, &json!({}));
    assert_eq!(team.show_node(&run, &planner)["status"], "idle");
}
