//! Nodes that should ask before they use a tool, on programs that cannot ask.

use std::fs;

use serde_json::{Value, json};
use turnkeep_agents::launch::{AgentProgram, CustomProtocol, ProgramKind};
use turnkeep_journal::MemoryStorage;

use super::start_on;
use crate::client::{Reply, Server};

const PATH: &str = "permissions.cliPermissionsMode";

async fn start(dir: &std::path::Path) -> Server {
    start_on(MemoryStorage::new(), dir, |config| {
        for (name, protocol) in [
            ("raw", CustomProtocol::Raw),
            ("terminal", CustomProtocol::Pty),
            ("asking", CustomProtocol::Jsonl),
        ] {
            let program = AgentProgram::new(ProgramKind::Custom(protocol), "/bin/true");
            config.runs.custom.insert(name.to_owned(), program);
        }
    })
    .await
}

fn node_on(program: &str, more: Value) -> Value {
    let mut body = json!({"label": "n", "roleTemplate": "implementer", "provider": "custom",
        "providerName": program});
    if let Value::Object(fields) = more {
        body.as_object_mut().unwrap().extend(fields);
    }
    body
}

fn mode(mode: &str) -> Value {
    json!({"permissions": {"cliPermissionsMode": mode}})
}

#[track_caller]
fn check_refused(reply: &Reply, program: &str) {
    let error = reply.error(422, "Unprocessable");
    assert_eq!(
        (&error["path"], &error["program"]),
        (&json!(PATH), &json!(program))
    );
    assert!(reply.text().contains("cannot ask"), "{}", reply.text());
    assert!(reply.text().contains("`skip`"), "{}", reply.text());
}

#[tokio::test]
async fn a_program_that_cannot_ask_gets_no_gated_node() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let run = server.paused_run().await;
    let nodes = format!("/api/runs/{run}/nodes");
    for program in ["raw", "terminal"] {
        let refused = server
            .post(&nodes, &node_on(program, mode("gated")))
            .send()
            .await;
        check_refused(&refused, program);
        let added = server
            .post(&nodes, &node_on(program, json!({})))
            .send()
            .await;
        assert_eq!(added.status, 201, "{}", added.text());
        let node = &added.json()["node"];
        assert_eq!(node["permissions"]["cliPermissionsMode"], "skip");
        let route = format!("{nodes}/{}", node["id"].as_str().unwrap());
        check_refused(&server.patch(&route, &mode("gated")).await, program);
        let renamed = server.patch(&route, &json!({"label": "m"})).await;
        assert_eq!(renamed.status, 200, "{}", renamed.text());
    }
    let asking = server
        .post(&nodes, &node_on("asking", mode("gated")))
        .send()
        .await;
    assert_eq!(asking.status, 201, "{}", asking.text());
    let shown = server.read(&format!("/api/runs/{run}")).await;
    assert_eq!(shown["run"]["nodes"].as_object().unwrap().len(), 3);
    server.stop().await;
}

#[tokio::test]
async fn a_gated_node_moves_to_such_a_program_only_as_skip() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let run = server.paused_run().await;
    let node = server.add_node(&run, "a", "implementer").await;
    let route = format!("/api/runs/{run}/nodes/{node}");
    let raw = json!({"provider": "custom", "providerName": "raw"});
    check_refused(&server.patch(&route, &raw).await, "raw");
    let shown = server.read(&format!("/api/runs/{run}")).await;
    assert_eq!(shown["run"]["nodes"][&node]["provider"], "claude");
    let moved = json!({"provider": "custom", "providerName": "raw",
        "permissions": {"cliPermissionsMode": "skip"}});
    let moved = server.patch(&route, &moved).await;
    assert_eq!(moved.status, 200, "{}", moved.text());
    assert_eq!(moved.json()["node"]["providerName"], "raw");
    server.stop().await;
}

#[tokio::test]
async fn a_team_with_such_a_node_makes_no_run() {
    let dir = tempfile::tempdir().unwrap();
    let teams = dir.path().join("teams");
    fs::create_dir(&teams).unwrap();
    let node = "[[nodes]]\nrole = 'implementer'\nalias = 'a'\nprovider = 'raw'\n";
    let gated = format!("{node}permissions = {{ cliPermissionsMode = 'gated' }}\n");
    fs::write(teams.join("plain.toml"), node).unwrap();
    fs::write(teams.join("gated.toml"), gated).unwrap();
    let server = start(dir.path()).await;
    let of_team = |team: &str| server.post("/api/runs", &json!({"goal": "g", "team": team}));
    check_refused(&of_team("gated").send().await, "raw");
    assert_eq!(server.read("/api/runs").await["runs"], json!([]));
    let created = of_team("plain").send().await;
    assert_eq!(created.status, 201, "{}", created.text());
    server.stop().await;
}
