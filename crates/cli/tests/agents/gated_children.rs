//! A node whose program must ask spawns no child whose program cannot.

use serde_json::{Value, json};

use crate::team::Team;

const SPAWNING: &str = r#"
[[turn]]
when = "SPAWN"
repeat = true
steps = [
    { call = "spawn_node", args = { label = "R", roleTemplate = "implementer", alias = "raw", provider = "custom", providerName = "raw" }, else = [{ say = "Not raw." }] },
    { call = "spawn_node", args = { label = "J", roleTemplate = "implementer", alias = "asking", provider = "custom", providerName = "jsonl" } },
    { say = "Spawned." },
]

[[turn]]
repeat = true
steps = [{ say = "Fine." }]
"#;

/// The aliases of a run's nodes after a lead with this mode has spawned.
fn spawn_as(team: &Team, mode: &str) -> (String, Vec<String>) {
    let run = team.new_run(json!({}));
    let lead = json!({"alias": "lead", "permissions": {"cliPermissionsMode": mode}});
    let lead = team.add_node(&run, "orchestrator", "jsonl", lead);
    team.chat(&run, &lead, "SPAWN");
    assert_eq!(team.wait_for_turn_end(&run, &lead, 1), "turn.completed");
    let shown = team.show(&run);
    let nodes = shown["nodes"].as_object().unwrap().values();
    let aliases = nodes.map(|node| node["alias"].as_str().unwrap().to_owned());
    (run, aliases.collect())
}

#[test]
fn a_gated_parent_spawns_only_children_that_can_ask() {
    let team = Team::start(SPAWNING);
    let (run, mut aliases) = spawn_as(&team, "gated");
    aliases.sort_unstable();
    assert_eq!(aliases, ["asking", "lead"]);
    let events = team.events(&run);
    let finals = events
        .iter()
        .filter(|event| event["type"] == "message.assistant.final");
    let said: Vec<&Value> = finals.map(|event| &event["content"]).collect();
    assert!(
        said.iter()
            .any(|text| text.as_str().unwrap().contains("Not raw.")),
        "{said:?}"
    );

    let (_, mut aliases) = spawn_as(&team, "skip");
    aliases.sort_unstable();
    assert_eq!(aliases, ["asking", "lead", "raw"]);
}
