//! Runs over HTTP, without agent programs: creation, changes, pages of events, deletion, roles, teams
//! and directories.

mod files;
mod notify;
mod repeats;
mod socket;

use std::path::Path;

use serde_json::{Value, json};
use turnkeep_journal::MemoryStorage;
use turnkeep_server::ServerConfig;

use crate::client::{Reply, Server};

/// A server whose nodes run a program that is surely there and does nothing.
pub(super) async fn start(dir: &Path) -> Server {
    start_on(MemoryStorage::new(), dir, |_| {}).await
}

pub(super) async fn start_on(
    disk: MemoryStorage,
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
