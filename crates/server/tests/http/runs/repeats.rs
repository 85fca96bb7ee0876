//! Requests that are repeated, and clients that go away.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use turnkeep_journal::MemoryStorage;

use super::{start, start_on};
use crate::client::{Reply, Server};

impl Server {
    async fn post_once(&self, path: &str, body: &Value, key: &str) -> Reply {
        let call = self.post(path, body).header("idempotency-key", key);
        call.send().await
    }
}

#[tokio::test]
async fn a_client_that_goes_away_neither_hides_nor_doubles_its_run() {
    const RUNS: usize = 12;
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let body = json!({"goal": "g", "team": "team"});
    for number in 0..RUNS {
        let text = body.to_string();
        let mut stream = TcpStream::connect(server.http_addr()).await.unwrap();
        let head = format!(
            "POST /api/runs HTTP/1.1\r\nHost: {}\r\nIdempotency-Key: run {number}\r\n\
             Content-Length: {}\r\n\r\n{text}",
            server.http_addr(),
            text.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server sees the end of the connection at different points of its work.
        for _ in 0..number {
            tokio::task::yield_now().await;
        }
        drop(stream);
    }
    for number in 0..RUNS {
        let reply = server
            .post_once("/api/runs", &body, &format!("run {number}"))
            .await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        let nodes = reply.json()["run"]["nodes"].as_object().unwrap().len();
        assert_eq!(nodes, 5, "the team is whole");
    }
    let listed = server.read("/api/runs?summary=1").await;
    assert_eq!(listed["runs"].as_array().unwrap().len(), RUNS);
    server.stop().await;
}

#[tokio::test]
async fn a_repeat_gets_the_first_answer_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let disk = MemoryStorage::new();
    let mut server = start_on(disk.clone(), dir.path(), |_| {}).await;
    let run = server.paused_run().await;
    let a = server.add_node(&run, "a", "implementer").await;
    server.add_node(&run, "b", "implementer").await;
    let at = |tail: &str| format!("/api/runs/{run}{tail}");
    let node = json!({"label": "c", "roleTemplate": "docs", "provider": "claude"});
    let requests = [
        (
            "/api/runs".to_owned(),
            json!({"goal": "g", "team": "pair"}),
            json!({"goal": "h"}),
        ),
        (
            at("/nodes"),
            node.clone(),
            json!({"label": "d", "roleTemplate": "docs", "provider": "claude"}),
        ),
        (
            at("/edges"),
            json!({"from": "a", "to": "b"}),
            json!({"from": "b", "to": "a"}),
        ),
        (
            at("/chat"),
            json!({"content": "x", "nodeId": "a"}),
            json!({"content": "y", "nodeId": "a"}),
        ),
        (
            at("/handoffs"),
            json!({"from": "a", "to": "b", "message": "x"}),
            json!({"from": "a", "to": "b", "message": "y"}),
        ),
        // Nothing happens, but the key is kept all the same.
        (
            at(&format!("/nodes/{a}/interrupt")),
            json!({}),
            json!({"other": 1}),
        ),
        (
            at(&format!("/nodes/{a}/start")),
            json!({}),
            json!({"other": 1}),
        ),
        (
            at(&format!("/nodes/{a}/reset")),
            json!({}),
            json!({"clearInbox": true}),
        ),
    ];
    let mut first = Vec::new();
    for (path, body, _) in &requests {
        let reply = server.post_once(path, body, path).await;
        assert!(reply.status < 300, "{path}: {}", reply.text());
        first.push((reply.status, ids_of(&reply.json())));
    }
    let state = lasting_state(&server, &run).await;
    for is_restarted in [false, true] {
        if is_restarted {
            server.stop().await;
            server = start_on(disk.clone(), dir.path(), |_| {}).await;
        }
        for ((path, body, other), first) in requests.iter().zip(&first) {
            let again = server.post_once(path, body, path).await;
            assert_eq!(&(again.status, ids_of(&again.json())), first, "{path}");
            let reused = server.post_once(path, other, path).await;
            reused.error(409, "Conflict");
        }
        assert_eq!(
            lasting_state(&server, &run).await,
            state,
            "nothing happened twice"
        );
    }
    server.stop().await;
}

/// The ids in an answer: the rest is the state, which may go on.
fn ids_of(answer: &Value) -> Vec<String> {
    let pointers = [
        "/run/id",
        "/node/id",
        "/edge/id",
        "/messageId",
        "/payloadId",
    ];
    let found = pointers
        .iter()
        .filter_map(|pointer| answer.pointer(pointer));
    found.map(Value::to_string).collect()
}

/// How much there is of everything that a repeat could double.
async fn lasting_state(server: &Server, run: &str) -> Value {
    let shown = server.read(&format!("/api/runs/{run}")).await;
    let count = |field: &str| shown["run"][field].as_object().unwrap().len();
    let events = format!("/api/runs/{run}/events?types=message.user,handoff.sent");
    let events = server.read(&events).await;
    let runs = server.read("/api/runs?summary=1").await;
    json!({
        "nodes": count("nodes"),
        "edges": count("edges"),
        "inputs": events["events"].as_array().unwrap().len(),
        "runs": runs["runs"].as_array().unwrap().len(),
    })
}
