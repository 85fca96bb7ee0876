//! Configured secrets never reach the data directory, whatever a program prints.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::team::{Team, make_repository, provider, skip};

const SECRET: &str = "sk-7f3a9c1e5b2d8046";

const LEAKING: &str = r#"
[[turn]]
steps = [
    { say = "The key is sk-7f3a9c1e5b2d8046, keep it.", chunk = 5, pause = 130 },
    { run = "printenv SECRET_KEY" },
    { tool = "fetch", args = { key = "sk-7f3a9c1e5b2d8046" }, result = "used sk-7f3a9c1e5b2d8046" },
    { stderr = "warning: sk-7f3a9c1e5b2d8046 is old" },
    { write = "leak.txt", content = "sk-7f3a9c1e5b2d8046" },
    { crash = { code = 3, stderr = "sk-7f3a9c1e5b2d8046 was refused" } },
]
"#;

fn contains_secret(bytes: &[u8]) -> bool {
    bytes
        .windows(SECRET.len())
        .any(|window| window == SECRET.as_bytes())
}

/// Reads every file below a directory.
fn check_files(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check_files(&path);
        } else if let Ok(bytes) = fs::read(&path) {
            assert!(!contains_secret(&bytes), "{}", path.display());
        }
    }
}

#[test]
fn a_secret_that_a_program_prints_is_recorded_nowhere() {
    let team = Team::start_with(LEAKING, |sandbox| {
        let lines = provider(sandbox, "leaky", Some("jsonl"));
        format!(
            "{}env = {{ SECRET_KEY = \"{SECRET}\" }}\n\n",
            lines.trim_end().to_owned() + "\n"
        )
    });
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "leaky", skip("w"));
    team.chat(&run, &node, "Work");
    assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.failed");
    team.check_event_file(&run);
    let events = team.events(&run);
    for event in &events {
        assert!(!contains_secret(event.to_string().as_bytes()), "{event}");
    }
    let of_type = |kind: &str| {
        let found = events.iter().find(|event| event["type"] == kind);
        found.unwrap_or_else(|| panic!("no {kind}")).to_string()
    };
    for kind in ["tool.completed", "node.log"] {
        assert!(of_type(kind).contains("*******************"), "{kind}");
    }
    let deltas = events.iter().filter_map(|event| event["delta"].as_str());
    let said: String = deltas.collect();
    assert!(!contains_secret(said.as_bytes()), "{said}");
    let diffs = team.artifacts_of(&run, &node, "diff");
    let patch = team.read_artifact(&run, &diffs[0]);
    assert!(patch.contains("+*******************"), "{patch}");
    let written = fs::read_to_string(team.work().join("leak.txt")).unwrap();
    assert_eq!(written, SECRET, "the file of the agent is its own");
    check_files(&team.sandbox.data());
}
