//! Requests that are repeated, and clients that go away.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use turnkeep_journal::MemoryStorage;
use turnkeep_runtime::ids::{EventId, Uuid as _};
use turnkeep_runtime::{Event, Fact, record};
use turnkeep_store::{Append, AppendPart, Command, Context, NewBlob, NewTurn};
use turnkeep_types::Timestamp;

use super::{start, start_on};
use crate::client::{NOW_MS, Reply, Server};

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
        (
            at(&format!("/nodes/{a}/stop")),
            json!({}),
            json!({"other": 1}),
        ),
        (at("/verify"), json!({}), json!({"other": 1})),
        (at("/fork"), json!({}), json!({"seq": 1})),
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
            assert_eq!(reused.error(409, "Conflict")["reason"], "key_reused");
        }
        assert_eq!(
            lasting_state(&server, &run).await,
            state,
            "nothing happened twice"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_repeated_import_makes_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let run = server.paused_run().await;
    let archive = server.get(&format!("/api/runs/{run}/export")).send().await;
    assert_eq!(archive.status, 200);
    let import = async |archive: bytes::Bytes| {
        let call = server.call("POST", "/api/runs/import?copy=1");
        let call = call.header("idempotency-key", "k").body(archive);
        call.send().await
    };
    let first = import(archive.body.clone()).await;
    assert_eq!(first.status, 201, "{}", first.text());
    let again = import(archive.body.clone()).await;
    assert_eq!(again.status, 201);
    assert_eq!(ids_of(&again.json()), ids_of(&first.json()));
    server.add_node(&run, "a", "implementer").await;
    let other = server.get(&format!("/api/runs/{run}/export")).send().await;
    import(other.body).await.error(409, "Conflict");
    let listed = server.read("/api/runs?summary=1").await;
    assert_eq!(listed["runs"].as_array().unwrap().len(), 2);
    server.stop().await;
}

#[tokio::test]
async fn a_repeated_retry_puts_the_inputs_back_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let body = json!({"goal": "g", "cwd": dir.path()});
    let created = server.post("/api/runs", &body).send().await.json();
    let run = created["run"]["id"].as_str().unwrap().to_owned();
    let node = server.add_node(&run, "a", "implementer").await;
    // A run whose nodes have all failed has failed.
    server.add_node(&run, "b", "implementer").await;
    let of_run = format!("/api/runs/{run}");
    // The program ends at once, and the turn fails.
    let chat = json!({"content": "Work", "nodeId": "a"});
    server.post(&format!("{of_run}/chat"), &chat).send().await;
    let shown = loop {
        let shown = server.read(&of_run).await["run"]["nodes"][&node].take();
        if shown["status"] == "failed" {
            break shown;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(shown["inboxCount"], 0);
    let paused = server.patch(&of_run, &json!({"status": "paused"})).await;
    assert_eq!(paused.status, 200, "{}", paused.text());
    let retry = format!("{of_run}/nodes/{node}/retry");
    for _ in 0..2 {
        let reply = server.post_once(&retry, &json!({}), "k").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.json()["node"]["inboxCount"], 1);
    }
    let reused = server.post_once(&retry, &json!({"other": 1}), "k").await;
    reused.error(409, "Conflict");
    server.stop().await;
}

/// Another writer appends to the log of a run, as a second server on the same log would. The server
/// applies what it finds and decides again.
#[tokio::test]
async fn a_decision_is_made_again_behind_the_events_of_another_writer() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let run = server.paused_run().await;
    let node = server.add_node(&run, "a", "implementer").await;
    let shown = server.read(&format!("/api/runs/{run}")).await;
    let last_seq = shown["run"]["lastSeq"].as_u64().unwrap();
    let foreign = Event {
        id: EventId::from_bits(1),
        seq: last_seq + 1,
        at: Timestamp(NOW_MS),
        node: Some(node.parse().unwrap()),
        turn: None,
        request: None,
        made: None,
        fact: Fact::NodeLogged("of another writer".to_owned()),
    };
    append_event(&server, &run, &foreign).await;

    let body = json!({"content": "of this server", "nodeId": "a"});
    let chat = format!("/api/runs/{run}/chat");
    let reply = server.post_once(&chat, &body, "k").await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let again = server.post_once(&chat, &body, "k").await;
    assert_eq!(ids_of(&again.json()), ids_of(&reply.json()));
    let page = server
        .read(&format!("/api/runs/{run}/events?limit=200"))
        .await;
    let events = page["events"].as_array().unwrap();
    let numbers: Vec<u64> = events
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let names: Vec<&str> = events
        .iter()
        .skip(usize::try_from(last_seq).unwrap())
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["node.log", "message.user", "node.patch"]);
    server.stop().await;
}

/// Appends to the context of a run's events, past the server.
async fn append_event(server: &Server, run: &str, event: &Event) {
    let encoded = record::encode(event);
    let is_meant = |context: &Context| {
        let label = |name: &str| context.labels.get(name).map(String::as_str);
        label("turnkeep.run") == Some(run) && label("turnkeep.node").is_none()
    };
    let store = server.store.clone();
    let found = store.contexts(None).into_iter().find(is_meant);
    let append = Append {
        parts: vec![AppendPart {
            context: found.unwrap().id,
            parent: None,
            expected_head: None,
            turns: vec![NewTurn {
                declared: record::event_type(),
                encoding: 1,
                payload: NewBlob::from_raw(encoded.payload, 1 << 20).unwrap(),
                fs_root: None,
            }],
        }],
        key: None,
        strict: false,
    };
    let run = move || store.run(Command::Append(append));
    tokio::task::spawn_blocking(run).await.unwrap().unwrap();
}

/// The ids in an answer: the rest is the state, which may go on.
fn ids_of(answer: &Value) -> Vec<String> {
    let pointers = [
        "/run/id",
        "/node/id",
        "/edge/id",
        "/messageId",
        "/payloadId",
        "/artifact/id",
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
