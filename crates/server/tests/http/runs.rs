//! Runs over HTTP, without agent programs: creation, changes, pages of events, deletion, roles, teams
//! and directories.

mod append_then_act;
mod ends;
mod files;
mod held_disk;
mod notify;
mod pending_calls;
mod permissions;
mod programs;
mod repeats;
mod socket;
mod why;

use std::path::Path;

use serde_json::{Value, json};
use turnkeep_agents::launch::{AgentProgram, CustomProtocol, ProgramKind};
use turnkeep_journal::{MemoryStorage, Storage};
use turnkeep_server::ServerConfig;

use crate::client::{Reply, Server};

/// A server whose nodes run a program that is surely there and does nothing.
pub(super) async fn start(dir: &Path) -> Server {
    start_on(MemoryStorage::new(), dir, |_| {}).await
}

pub(super) async fn start_on(
    disk: impl Storage + 'static,
    dir: &Path,
    change: impl FnOnce(&mut ServerConfig),
) -> Server {
    let dir = dir.to_owned();
    Server::start_on(disk, move |config| {
        config.data_dir = dir.join("data").display().to_string();
        config.runs.roles_dir = Some(dir.join("roles"));
        config.runs.teams_dir = Some(dir.join("teams"));
        config.runs.fs_roots = vec![dir.join("home")];
        "/bin/true".clone_into(&mut config.runs.claude.command);
        change(config);
    })
    .await
}

impl Server {
    pub(super) async fn patch(&self, path: &str, body: &Value) -> Reply {
        self.call("PATCH", path).json(body).send().await
    }

    pub(super) async fn delete(&self, path: &str) -> Reply {
        self.call("DELETE", path).send().await
    }

    /// A new run that is paused, so that nothing happens in it by itself.
    pub(super) async fn paused_run(&self) -> String {
        let reply = self.post("/api/runs", &json!({"goal": "g"})).send().await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        let run = reply.json()["run"]["id"].as_str().unwrap().to_owned();
        let paused = json!({"status": "paused"});
        let reply = self.patch(&format!("/api/runs/{run}"), &paused).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        run
    }

    /// A node of a run.
    pub(super) async fn add_node(&self, run: &str, alias: &str, role: &str) -> String {
        let body =
            json!({"label": alias, "alias": alias, "roleTemplate": role, "provider": "claude"});
        let path = format!("/api/runs/{run}/nodes");
        let reply = self.post(&path, &body).send().await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()["node"]["id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn chat(&self, run: &str, content: &str) {
        let path = format!("/api/runs/{run}/chat");
        let reply = self.post(&path, &json!({"content": content})).send().await;
        assert_eq!(reply.status, 201, "{}", reply.text());
    }
}

#[tokio::test]
async fn changes_at_once_do_not_undo_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let run = server.paused_run().await;
    let node = server.add_node(&run, "a", "implementer").await;
    let of_run = format!("/api/runs/{run}");
    let of_node = format!("/api/runs/{run}/nodes/{node}");
    for round in 0..10 {
        let (title, goal, label) = (
            format!("title {round}"),
            format!("goal {round}"),
            format!("label {round}"),
        );
        let wake = if round % 2 == 0 { "all" } else { "any" };
        let (title_change, goal_change) = (json!({"title": title}), json!({"goal": goal}));
        let (label_change, wake_change) = (json!({"label": label}), json!({"wakeOn": wake}));
        let (a, b, c, d) = tokio::join!(
            server.patch(&of_run, &title_change),
            server.patch(&of_run, &goal_change),
            server.patch(&of_node, &label_change),
            server.patch(&of_node, &wake_change),
        );
        for reply in [a, b, c, d] {
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
        let shown = server.read(&of_run).await;
        let shown = &shown["run"];
        assert_eq!(
            (&shown["title"], &shown["goal"]),
            (&json!(title), &json!(goal))
        );
        let node = &shown["nodes"][&node];
        assert_eq!(
            (&node["label"], &node["wakeOn"]),
            (&json!(label), &json!(wake))
        );
    }
    let unknown = server.patch(&of_run, &json!({"docsNode": "nobody"})).await;
    assert_eq!(unknown.error(400, "BadRequest")["path"], "docsNode");
    server.stop().await;
}

#[tokio::test]
async fn a_run_that_finds_no_free_program_waits_and_answers() {
    let dir = tempfile::tempdir().unwrap();
    let server = start_on(MemoryStorage::new(), dir.path(), |config| {
        let limits = &mut config.runs.capacity.program_turns_max;
        limits.insert("claude".to_owned(), 0);
    })
    .await;
    let created = server.post("/api/runs", &json!({"mode": "AUTO", "goal": "g"}));
    let run = created.send().await.json()["run"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    // The automatic prompt of the orchestrator finds no free turn.
    server.add_node(&run, "lead", "orchestrator").await;
    server.chat(&run, "go on").await;
    let shown = server.read(&format!("/api/runs/{run}")).await;
    let nodes = shown["run"]["nodes"].as_object().unwrap();
    assert!(
        nodes.values().all(|node| node["status"] == "idle"),
        "{nodes:#?}"
    );
    server.stop().await;
}

#[tokio::test]
async fn the_directory_of_a_run_must_exist() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    for bad in [
        "work".to_owned(),
        String::new(),
        file.display().to_string(),
        dir.path().join("gone").display().to_string(),
    ] {
        let reply = server.post("/api/runs", &json!({"cwd": bad})).send().await;
        assert_eq!(reply.error(400, "BadRequest")["path"], "cwd", "{bad}");
    }
    assert_eq!(server.read("/api/runs").await, json!({"runs": []}));
    let good = json!({"cwd": dir.path()});
    assert_eq!(server.post("/api/runs", &good).send().await.status, 201);
    server.stop().await;
}

#[tokio::test]
async fn a_run_whose_directory_is_gone_at_the_start_has_failed() {
    let dir = tempfile::tempdir().unwrap();
    let disk = MemoryStorage::new();
    let server = start_on(disk.clone(), dir.path(), |_| {}).await;
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let reply = server.post("/api/runs", &json!({"cwd": work})).send().await;
    let run = reply.json()["run"]["id"].as_str().unwrap().to_owned();
    server.stop().await;
    std::fs::remove_dir(&work).unwrap();
    let server = start_on(disk, dir.path(), |_| {}).await;
    let shown = server.read(&format!("/api/runs/{run}")).await;
    assert_eq!(shown["run"]["status"], "failed");
    server.stop().await;
}

#[tokio::test]
async fn a_long_page_of_events_ends_early_and_keeps_to_the_memory() {
    const TEXT_BYTES: usize = 1_000_000;
    const MESSAGES: usize = 12;
    let dir = tempfile::tempdir().unwrap();
    let server = start_on(MemoryStorage::new(), dir.path(), |config| {
        config.memory_budget_bytes = 16 << 20;
    })
    .await;
    let run = server.paused_run().await;
    server.add_node(&run, "a", "implementer").await;
    for _ in 0..MESSAGES {
        server.chat(&run, &"x".repeat(TEXT_BYTES)).await;
    }
    let events = format!("/api/runs/{run}/events");
    let page = server
        .read(&format!("{events}?limit=2000&types=message.user"))
        .await;
    let shown = page["events"].as_array().unwrap().len();
    assert!((1..MESSAGES).contains(&shown), "{shown}");
    assert_eq!(page["page"]["hasMore"], true);
    for order in ["before", "after"] {
        let seqs = walk(&server, &events, order).await;
        assert_eq!(seqs.len(), MESSAGES, "{order}: {seqs:?}");
    }
    let metrics = server.get("/metrics").send().await.text();
    assert!(
        metrics.contains("turnkeep_memory_used_bytes 0\n"),
        "{metrics}"
    );
    server.stop().await;
}

/// The numbers of all messages, page by page.
async fn walk(server: &Server, events: &str, order: &str) -> Vec<u64> {
    let mut seqs = Vec::new();
    let mut cursor = if order == "after" { 0 } else { u64::MAX };
    loop {
        let query = format!("{events}?limit=2000&types=message.user&{order}={cursor}");
        let page = server.read(&query).await;
        let events = page["events"].as_array().unwrap();
        seqs.extend(events.iter().map(|event| event["seq"].as_u64().unwrap()));
        if page["page"]["hasMore"] == false {
            seqs.sort_unstable();
            seqs.dedup();
            return seqs;
        }
        cursor = page["page"]["nextCursor"].as_u64().unwrap();
    }
}

#[tokio::test]
async fn a_deleted_run_is_gone_for_good_and_not_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let disk = MemoryStorage::new();
    let server = start_on(disk.clone(), dir.path(), |_| {}).await;
    let create = |server: &Server| {
        let call = server.post("/api/runs", &json!({"goal": "g"}));
        call.header("idempotency-key", "the one").send()
    };
    let run = create(&server).await.json()["run"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/api/runs/{run}");
    let files = dir.path().join("data/runs").join(&run);
    assert_eq!(server.delete(&path).await.json(), json!({"runId": run}));
    assert_eq!(server.delete(&path).await.status, 404);
    let labelled = |server: &Server| {
        let contexts = server.store.contexts(None);
        let is_deleted = |labels: &std::collections::BTreeMap<String, String>| {
            labels.get("turnkeep.run") == Some(&run) && labels.contains_key("turnkeep.run.deleted")
        };
        contexts
            .into_iter()
            .any(|context| is_deleted(&context.labels))
    };
    assert!(labelled(&server), "the next start need not read it");
    server.stop().await;
    assert!(!files.exists(), "its files are gone");
    let server = start_on(disk, dir.path(), |_| {}).await;
    assert_eq!(server.get(&path).send().await.status, 404);
    assert_eq!(server.read("/api/runs").await, json!({"runs": []}));
    let again = create(&server).await;
    assert_eq!(
        again.error(404, "NotFound")["runId"],
        json!(run),
        "it is not made again"
    );
    server.stop().await;
}

#[tokio::test]
async fn an_unknown_role_changes_no_node() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let run = server.paused_run().await;
    let node = server.add_node(&run, "a", "implementer").await;
    let path = format!("/api/runs/{run}/nodes/a");
    let unknown = json!({"roleTemplate": "wizard", "label": "Merlin"});
    let refused = server.patch(&path, &unknown).await;
    assert_eq!(refused.error(400, "BadRequest")["path"], "roleTemplate");
    let shown = server.read(&format!("/api/runs/{run}")).await;
    let kept = &shown["run"]["nodes"][&node];
    assert_eq!(
        (&kept["roleTemplate"], &kept["label"]),
        (&json!("implementer"), &json!("a"))
    );
    let known = json!({"roleTemplate": "reviewer"});
    let changed = server.patch(&path, &known).await;
    assert_eq!(changed.json()["node"]["roleTemplate"], "reviewer");
    server.stop().await;
}

#[tokio::test]
async fn the_events_of_a_node_are_found_by_its_alias_and_later_by_its_id() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let run = server.paused_run().await;
    let node = server.add_node(&run, "a", "implementer").await;
    server.add_node(&run, "b", "implementer").await;
    let events = format!("/api/runs/{run}/events?nodeId=");
    let by_id = server.read(&format!("{events}{node}")).await;
    assert_eq!(by_id["events"].as_array().unwrap().len(), 1, "{by_id:#}");
    assert_eq!(server.read(&format!("{events}A")).await, by_id);
    let gone = server.delete(&format!("/api/runs/{run}/nodes/a")).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    let deleted = server.read(&format!("{events}{node}")).await;
    assert!(deleted["events"].as_array().unwrap().len() > 1);
    for unknown in ["a", "nobody", "0b5f1c9e-8a3d-4c55-9a67-0123456789ab"] {
        let reply = server.get(&format!("{events}{unknown}")).send().await;
        reply.error(404, "NotFound");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_edge_that_exists_gets_what_the_request_names() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let run = server.paused_run().await;
    for alias in ["a", "b"] {
        server.add_node(&run, alias, "implementer").await;
    }
    let path = format!("/api/runs/{run}/edges");
    let first = json!({"from": "a", "to": "b", "bidirectional": false, "gate": true});
    let made = server.post(&path, &first).send().await;
    assert_eq!(made.status, 201, "{}", made.text());
    let edge = made.json()["edge"].clone();
    assert_eq!(
        (&edge["bidirectional"], &edge["gate"]),
        (&json!(false), &json!(true))
    );
    let with = |changes: &[(&str, Value)]| {
        let mut changed = edge.clone();
        for (name, value) in changes {
            changed[*name] = value.clone();
        }
        changed
    };
    let both_ways = ("bidirectional", json!(true));
    for (request, expect) in [
        (json!({"from": "a", "to": "b"}), with(&[])),
        (
            json!({"from": "A", "to": "B", "bidirectional": true, "label": "x"}),
            with(&[both_ways.clone(), ("label", json!("x"))]),
        ),
        (
            json!({"from": "a", "to": "b", "gate": false}),
            with(&[both_ways, ("label", json!("x")), ("gate", json!(false))]),
        ),
    ] {
        let again = server.post(&path, &request).send().await;
        assert_eq!(
            (again.status, &again.json()["edge"]),
            (200, &expect),
            "{request}"
        );
        let id = edge["id"].as_str().unwrap();
        let shown = server.read(&format!("/api/runs/{run}")).await;
        assert_eq!(shown["run"]["edges"][id], expect, "{request}");
    }
    let another = json!({"from": "a", "to": "b", "type": "report"});
    assert_eq!(server.post(&path, &another).send().await.status, 201);
    let shown = server.read(&format!("/api/runs/{run}")).await;
    assert_eq!(shown["run"]["edges"].as_object().unwrap().len(), 2);
    server.stop().await;
}

#[tokio::test]
async fn a_run_whose_goal_or_title_says_nothing_is_refused_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    for field in ["goal", "title"] {
        for text in ["", " \n\t"] {
            let body = json!({field: text, "team": "solo"});
            let refused = server.post("/api/runs", &body).send().await;
            assert_eq!(refused.error(400, "BadRequest")["path"], field, "{body}");
        }
    }
    assert_eq!(server.read("/api/runs").await, json!({"runs": []}));
    let run = server.paused_run().await;
    let path = format!("/api/runs/{run}");
    for field in ["goal", "title"] {
        let refused = server.patch(&path, &json!({field: ""})).await;
        assert_eq!(refused.error(400, "BadRequest")["path"], field);
    }
    let cleared = server.patch(&path, &json!({"goal": null})).await;
    assert_eq!(cleared.json()["run"]["goal"], Value::Null);
    server.stop().await;
}

#[tokio::test]
async fn a_program_that_is_not_configured_is_refused_with_the_list_of_those_that_are() {
    let dir = tempfile::tempdir().unwrap();
    let server = start_on(MemoryStorage::new(), dir.path(), |config| {
        let kind = ProgramKind::Custom(CustomProtocol::Jsonl);
        let program = AgentProgram::new(kind, "/bin/true");
        config.runs.custom.insert("mine".to_owned(), program);
    })
    .await;
    let run = server.paused_run().await;
    let node = json!({"label": "a", "alias": "a", "roleTemplate": "implementer",
        "provider": "custom", "providerName": "nosuch"});
    let nodes = format!("/api/runs/{run}/nodes");
    let refused = server.post(&nodes, &node).send().await;
    let details = refused.error(400, "BadRequest");
    let known = json!(["codex", "claude", "gemini", "mine"]);
    assert_eq!(
        (&details["path"], &details["programs"]),
        (&json!("providerName"), &known)
    );
    server.add_node(&run, "a", "implementer").await;
    let change = json!({"provider": "custom", "providerName": "nosuch"});
    let refused = server.patch(&format!("{nodes}/a"), &change).await;
    refused.error(400, "BadRequest");
    let change = json!({"provider": "custom", "providerName": "mine"});
    let changed = server.patch(&format!("{nodes}/a"), &change).await;
    assert_eq!(changed.status, 200, "{}", changed.text());

    // A team with such a program makes no run.
    let team = "[[nodes]]\nalias = \"a\"\nrole = \"implementer\"\nprovider = \"nosuch\"\n";
    let saved = server.put("/api/teams/odd").json(&json!({"text": team}));
    assert_eq!(saved.send().await.status, 200);
    let before = server.read("/api/runs?summary=1").await;
    let refused = server.post("/api/runs", &json!({"goal": "g", "team": "odd"}));
    let details = refused.send().await.error(400, "BadRequest");
    assert_eq!(details["programs"], known);
    assert_eq!(server.read("/api/runs?summary=1").await, before);
    server.stop().await;
}

#[tokio::test]
async fn a_run_without_a_free_turn_is_queued_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let server = start_on(MemoryStorage::new(), dir.path(), |config| {
        config.runs.capacity.open_turns_max = 0;
    })
    .await;
    let created = server.post("/api/runs", &json!({"goal": "g"})).send().await;
    assert_eq!(created.json()["run"]["status"], "queued");
    let run = created.json()["run"]["id"].as_str().unwrap().to_owned();
    server.add_node(&run, "a", "implementer").await;
    server.chat(&run, "go").await;
    let why = server.read(&format!("/api/runs/{run}/why")).await;
    let waits = why["waits"].as_array().unwrap();
    assert_eq!(waits.len(), 2, "{why:#}");
    assert!(
        waits.iter().all(|wait| wait["owner"]["kind"] == "daemon"),
        "{why:#}"
    );
    let paused = server
        .patch(&format!("/api/runs/{run}"), &json!({"status": "paused"}))
        .await;
    assert_eq!(paused.json()["run"]["status"], "paused");
    server.stop().await;
}

/// The tests check events and bodies against the schemas of the wire crate, which clients get here.
#[tokio::test]
async fn every_schema_is_listed_and_served() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let listed = server.read("/api/schemas").await;
    let listed: Vec<&str> = listed["schemas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let schemas = turnkeep_wire::runs::schemas();
    assert_eq!(listed, schemas.keys().collect::<Vec<_>>());
    for (name, (_, schema)) in &schemas {
        for ending in ["", ".json"] {
            let reply = server
                .get(&format!("/api/schemas/{name}{ending}"))
                .send()
                .await;
            assert_eq!(
                (reply.status, reply.header("content-type")),
                (200, Some("application/schema+json")),
                "{name}"
            );
            assert_eq!(reply.json(), *schema, "{name}");
        }
    }
    let unknown = server.get("/api/schemas/run.flying").send().await;
    unknown.error(404, "NotFound");
    server.stop().await;
}
