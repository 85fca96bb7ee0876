//! Calls of the server's tools by agents: each is one tool in the log, and is made once.

use std::fs;

use serde_json::{Value, json};

use crate::processes::wait_until;
use crate::team::{Team, make_repository, skip};

const CALLING: &str = r#"
[[turn]]
when = "CALL THEM"
repeat = true
steps = [
    { call = "list_nodes", args = {} },
    { call = "send_handoff", args = { to = "b", message = "Work" } },
    { call = "send_handoff", args = { to = "nobody", message = "Work" }, else = [{ say = "Well." }] },
    { say = "Called." },
]

[[turn]]
when = "SPAWN ONE"
steps = [
    { call = "spawn_node", args = { label = "P", roleTemplate = "pilot", alias = "p", provider = "custom", providerName = "jsonl" } },
    { call = "spawn_node", args = { label = "Q", roleTemplate = "nonesuch" }, else = [{ say = "No such role." }] },
    { say = "Spawned." },
]

[[turn]]
when = "HAND OVER"
steps = [
    { run = "printf %s \"$TURNKEEP_MCP_TOKEN\" > SANDBOX/token" },
    { wait_for_file = "SANDBOX/go" },
]

[[turn]]
repeat = true
steps = [{ say = "Fine." }]
"#;

fn tools(events: &[Value], kind: &str, node: &str) -> Vec<String> {
    let of_node = |event: &&Value| event["type"] == kind && event["nodeId"] == node;
    let name = |event: &Value| match kind {
        "tool.proposed" => event["tool"]["name"].as_str().unwrap().to_owned(),
        _ => event["toolId"].as_str().unwrap().to_owned(),
    };
    events.iter().filter(of_node).map(name).collect()
}

#[test]
fn each_call_of_a_tool_of_the_server_is_one_tool_in_the_log() {
    let team = Team::start(CALLING);
    make_repository(&team.work());
    for protocol in ["claude", "codex", "gemini"] {
        let run = team.new_run(json!({}));
        let a = team.add_node(&run, "orchestrator", protocol, skip("a"));
        let b = team.add_node(&run, "reviewer", "claude", skip("b"));
        team.connect(&run, &a, &b);
        team.chat(&run, &a, "CALL THEM");
        assert_eq!(team.wait_for_turn_end(&run, &a, 1), "turn.completed");
        let events = team.events(&run);
        let proposed = tools(&events, "tool.proposed", &a);
        let completed = tools(&events, "tool.completed", &a);
        assert_eq!(proposed.len(), completed.len(), "{protocol}: {proposed:?}");
        let count = |tool| proposed.iter().filter(|name| name.contains(tool)).count();
        assert_eq!(count("send_handoff"), 2, "{protocol}: {proposed:?}");
        assert_eq!(count("list_nodes"), 1, "{protocol}: {proposed:?}");
        assert_eq!(proposed.len(), 3, "{protocol}: {proposed:?}");
        let approvals = events
            .iter()
            .filter(|event| event["type"] == "approval.requested");
        assert_eq!(approvals.count(), 0, "{protocol}");
    }
}

#[test]
fn a_spawned_node_has_the_rights_of_its_role_and_of_its_own_program() {
    let team = Team::start(CALLING);
    make_repository(&team.work());
    let roles = team.work().join(".turnkeep/roles");
    fs::create_dir_all(&roles).unwrap();
    let template = "---\nwriteCode: false\nrunCommands: false\n---\nYou fly.\n";
    fs::write(roles.join("pilot.md"), template).unwrap();
    let run = team.new_run(json!({}));
    let lead = team.add_node(&run, "orchestrator", "claude", skip("lead"));
    team.chat(&run, &lead, "SPAWN ONE");
    assert_eq!(team.wait_for_turn_end(&run, &lead, 1), "turn.completed");
    let shown = team.show(&run);
    let nodes = shown["nodes"].as_object().unwrap();
    assert_eq!(nodes.len(), 2, "an unknown role spawns nothing");
    let child = nodes.values().find(|node| node["alias"] == "p").unwrap();
    assert_eq!(child["capabilities"]["writeCode"], false);
    assert_eq!(child["capabilities"]["runCommands"], false);
    assert_eq!(child["capabilities"]["writeDocs"], true);
    assert_eq!(
        child["permissions"]["cliPermissionsMode"], "gated",
        "its program can ask"
    );
}

/// Calls a tool as the program of a node would.
fn call_tool(team: &Team, token: &str, id: &Value, arguments: &Value) -> Value {
    let params = json!({"name": "send_handoff", "arguments": arguments});
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let answered = team.request_with("POST", "/mcp", Some(&body), &headers);
    assert_eq!(answered.status, 200, "{}", answered.body);
    answered.body["result"].clone()
}

#[test]
fn a_repeated_request_is_carried_out_once() {
    let team = Team::start(CALLING);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let a = team.add_node(&run, "orchestrator", "jsonl", skip("a"));
    let b = team.add_node(&run, "reviewer", "claude", skip("b"));
    team.connect(&run, &a, &b);
    team.chat(&run, &a, "HAND OVER");
    let file = team.sandbox.path("token");
    let read = || fs::read_to_string(&file).unwrap_or_default();
    wait_until("no token came", || !read().is_empty());
    let token = read();
    let payload = |answer: &Value| answer["structuredContent"]["payloadId"].clone();

    let first = json!({"to": "b", "message": "One"});
    let sent = call_tool(&team, &token, &json!(7), &first);
    assert_eq!(sent["isError"], false, "{sent}");
    let again = call_tool(&team, &token, &json!(7), &first);
    assert_eq!(payload(&again), payload(&sent), "the same request");
    let other = json!({"to": "b", "message": "Two"});
    let other = call_tool(&team, &token, &json!(7), &other);
    assert_ne!(payload(&other), payload(&sent), "another call with its id");

    let named = json!({"to": "b", "message": "Three", "request_id": "r1"});
    let sent = call_tool(&team, &token, &json!(8), &named);
    let again = call_tool(&team, &token, &json!("nine"), &named);
    assert_eq!(payload(&again), payload(&sent), "the same name");
    let changed = json!({"to": "b", "message": "Four", "request_id": "r1"});
    let refused = call_tool(&team, &token, &json!(10), &changed);
    assert_eq!(refused["isError"], true, "{refused}");

    fs::write(team.sandbox.path("go"), "").unwrap();
    team.wait_for_turn_end(&run, &a, 1);
    let events = team.events(&run);
    let messages: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "handoff.sent" && event["nodeId"] == a.as_str())
        .filter_map(|event| event["envelope"]["payload"]["message"].as_str())
        .collect();
    assert_eq!(messages, ["One", "Two", "Three"]);
}
