//! Event streams: replay, follow, resume, end.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use turnkeep_server::Timeouts;
use turnkeep_store::{Append, AppendPart, Command, NewBlob, NewTurn};
use turnkeep_types::{BlobHash, ContextId, TurnId, TypeRef};

use crate::client::{NOW, Server, Stream, within};
use crate::limits::NEVER;
use crate::stopped_time::StoppedTime;

/// An event's id, kind and data.
fn parts(event: &str) -> (u64, String, Value) {
    let lines: Vec<_> = event.lines().collect();
    let [id, kind, data] = lines[..] else {
        panic!("three lines: {event}")
    };
    let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    (
        id.strip_prefix("id: ").unwrap().parse().unwrap(),
        kind.strip_prefix("event: ").unwrap().to_owned(),
        data,
    )
}

async fn next(stream: &mut Stream) -> (u64, String, Value) {
    parts(&stream.event().await.expect("an event"))
}

#[tokio::test]
async fn a_replay_tells_everything_in_order_and_then_follows() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    server
        .append(
            &context,
            json!({"payload_b64": "gA==", "type_id": "t", "type_version": 3}),
        )
        .await;
    let mut stream = server.get("/v1/events?after=0").stream().await;
    assert_eq!(stream.response.status(), 200);
    assert_eq!(
        stream.response.headers()["content-type"],
        "text/event-stream"
    );
    let bundle = (
        1,
        "registry.put".to_owned(),
        json!({"bundle_id": "2025-12-19T20:00:00Z#abc/123"}),
    );
    assert_eq!(next(&mut stream).await, bundle);
    let created = (
        2,
        "context.created".to_owned(),
        json!({"context_id": "1", "created_at": NOW}),
    );
    assert_eq!(next(&mut stream).await, created);
    let appended = json!({
        "context_id": "1", "turn_id": "1", "parent_turn_id": "0", "depth": 0,
        "declared_type": {"type_id": "t", "type_version": 3}, "encoding": 1,
        "content_hash_b3": BlobHash::of(&[0x80]).to_string(), "uncompressed_len": 1, "created_at": NOW,
    });
    assert_eq!(
        next(&mut stream).await,
        (3, "turn.appended".to_owned(), appended)
    );
    server.append(&context, json!({"payload_b64": ""})).await;
    let (position, kind, data) = next(&mut stream).await;
    assert_eq!(
        (position, kind.as_str(), &data["turn_id"]),
        (4, "turn.appended", &json!("2"))
    );
    server.stop().await;
}

#[tokio::test]
async fn an_append_with_a_filesystem_says_so() {
    let server = Server::start().await;
    let context = server.context().await;
    let root = BlobHash::of(&[0x90]).to_string();
    server
        .put(&format!("/v1/blobs/{root}"))
        .body(vec![0x90])
        .send()
        .await;
    let mut stream = server.get("/v1/events").stream().await;
    server
        .append(&context, json!({"payload_b64": "", "fs_root_hash": root}))
        .await;
    assert_eq!(next(&mut stream).await.2["fs_root_hash"], json!(root));
    server.append(&context, json!({"payload_b64": ""})).await;
    assert_eq!(next(&mut stream).await.2.get("fs_root_hash"), None);
    server.stop().await;
}

#[tokio::test]
async fn a_stream_starts_now_or_after_a_position() {
    let server = Server::start().await;
    let context = server.context().await;
    for _ in 0..3 {
        server.append(&context, json!({"payload_b64": ""})).await;
    }
    let mut now = server.get("/v1/events").stream().await;
    let mut after = server.get("/v1/events?after=2").stream().await;
    // A browser repeats the address and adds the last id that it saw: that wins.
    let mut resumed = server
        .get("/v1/events?after=0")
        .header("last-event-id", "3")
        .stream()
        .await;
    assert_eq!(next(&mut after).await.0, 3);
    assert_eq!(next(&mut resumed).await.0, 4);
    server.append(&context, json!({"payload_b64": ""})).await;
    assert_eq!(next(&mut now).await.0, 5);
    server.stop().await;
}

#[tokio::test]
async fn a_context_s_stream_has_what_was_appended_to_it_and_not_what_it_inherited() {
    let server = Server::with_messages().await;
    let first = server.context().await;
    server.append(&first, json!({"payload_b64": ""})).await;
    server
        .post("/v1/contexts/fork", &json!({"base_turn_id": "1"}))
        .send()
        .await;
    server.append("2", json!({"payload_b64": ""})).await;
    server.append(&first, json!({"payload_b64": ""})).await;
    let mut stream = server.get("/v1/contexts/2/events?after=0").stream().await;
    let (_, kind, data) = next(&mut stream).await;
    assert_eq!(
        (kind.as_str(), &data["context_id"]),
        ("context.created", &json!("2"))
    );
    let (_, kind, data) = next(&mut stream).await;
    assert_eq!(
        (kind.as_str(), &data["turn_id"]),
        ("turn.appended", &json!("2"))
    );
    server.append("2", json!({"payload_b64": ""})).await;
    assert_eq!(next(&mut stream).await.2["turn_id"], "4");
    server
        .get("/v1/contexts/9/events")
        .send()
        .await
        .error(404, "NotFound");
    server.stop().await;
}

#[tokio::test]
async fn a_position_beyond_the_end_is_a_conflict() {
    let server = Server::start().await;
    server.context().await;
    let details = server
        .get("/v1/events?after=2")
        .send()
        .await
        .error(409, "Conflict");
    assert_eq!(details, json!({"last_position": "1"}));
    server
        .get("/v1/events")
        .header("last-event-id", "9")
        .send()
        .await
        .error(409, "Conflict");
    server
        .get("/v1/events")
        .header("last-event-id", "x")
        .send()
        .await
        .error(400, "BadRequest");
    server
        .get("/v1/events?after=x")
        .send()
        .await
        .error(400, "BadRequest");
    server.stop().await;
}

#[tokio::test]
async fn an_idle_stream_is_kept_alive_and_ends_with_the_server() {
    let time = StoppedTime::begin();
    let server = Server::start().await;
    let mut stream = server.get("/v1/events").stream().await;
    assert_eq!(stream.chunk().await.unwrap(), ": open\n\n");
    let ping = time.advance_until(Timeouts::default().sse_ping, stream.chunk());
    assert_eq!(ping.await.unwrap(), ": ping\n\n");
    let reader = tokio::spawn(async move { stream.event().await });
    drop(time);
    server.stop().await;
    assert_eq!(reader.await.unwrap(), None);
}

#[tokio::test]
async fn a_context_s_stream_is_the_whole_stream_filtered_by_hand() {
    let server = Server::with_messages().await;
    let root = BlobHash::of(&[0x90]);
    server
        .put(&format!("/v1/blobs/{root}"))
        .body(vec![0x90])
        .send()
        .await;
    for n in 1..=4 {
        let context = server.context().await;
        server.append(&context, json!({"payload_b64": ""})).await;
        server.append("1", json!({"payload_b64": ""})).await;
        // A branch, and a fork from a turn of another context.
        let branch = json!({"payload_b64": "", "parent_turn_id": "1"});
        server.append("1", branch).await;
        let fork = json!({"base_turn_id": n.to_string()});
        server.post("/v1/contexts/fork", &fork).send().await;
        let attach = Command::AttachFs {
            turn: TurnId::new(n).unwrap(),
            root,
        };
        server.store.run(attach).unwrap();
        server
            .append(&(2 * n).to_string(), json!({"payload_b64": ""}))
            .await;
    }
    let last = server.store.last_position();
    let mut whole = server.get("/v1/events?after=0").stream().await;
    let mut events = Vec::new();
    for _ in 0..last {
        events.push(next(&mut whole).await);
    }
    let attached = events.iter().filter(|(_, kind, _)| kind == "fs.attached");
    assert_eq!(attached.count(), 4);
    for context in (1..=8).map(|id| id.to_string()) {
        for after in [0, last / 3, last - 2] {
            let path = format!("/v1/contexts/{context}/events?after={after}");
            let mut stream = server.get(&path).stream().await;
            let by_hand = events.iter().filter(|(position, _, data)| {
                *position > after && data["context_id"] == context.as_str()
            });
            for event in by_hand {
                assert_eq!(&next(&mut stream).await, event, "{path}");
            }
            server.append(&context, json!({"payload_b64": ""})).await;
            let position = server.store.last_position();
            let appended = next(&mut stream).await;
            assert_eq!(appended.0, position, "{path} has no more");
            events.push(appended);
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_context_s_stream_looks_at_no_event_of_other_contexts() {
    let server = Server::start().await;
    let (noise, quiet) = (server.context().await, server.context().await);
    server.append(&quiet, json!({"payload_b64": ""})).await;
    flood(&server, noise.parse().unwrap());
    let before = server.store.feed_steps();
    let path = format!("/v1/contexts/{quiet}/events?after=0");
    let mut stream = server.get(&path).stream().await;
    assert_eq!(next(&mut stream).await.0, 2);
    assert_eq!(next(&mut stream).await.0, 3);
    // The stream waits now, and is woken by each of these.
    for _ in 0..50 {
        server.append(&noise, json!({"payload_b64": ""})).await;
    }
    server.append(&quiet, json!({"payload_b64": ""})).await;
    let position = server.store.last_position();
    assert_eq!(next(&mut stream).await.0, position);
    let steps = server.store.feed_steps() - before;
    assert!(steps <= 30, "{steps} for three events of 41 014");
    server.stop().await;
}

#[tokio::test]
async fn a_quiet_context_s_stream_is_kept_alive_while_others_are_busy() {
    let time = StoppedTime::begin();
    let server = Server::start().await;
    let (noise, quiet) = (server.context().await, server.context().await);
    let path = format!("/v1/contexts/{quiet}/events");
    let mut stream = server.get(&path).stream().await;
    assert_eq!(stream.chunk().await.unwrap(), ": open\n\n");
    let mut ping = std::pin::pin!(stream.chunk());
    let ping = loop {
        tokio::select! {
            biased;
            chunk = &mut ping => break chunk,
            () = tokio::task::yield_now() => {}
        }
        server.append(&noise, json!({"payload_b64": ""})).await;
        time.advance(Timeouts::default().sse_ping / 2).await;
    };
    assert_eq!(ping.unwrap(), ": ping\n\n");
    drop(time);
    server.stop().await;
}

/// Appends so many turns that their events fill every buffer on the way to a reader.
fn flood(server: &Server, context: ContextId) {
    let turn = NewTurn {
        declared: TypeRef::new("com.example.Flood", 1),
        encoding: 1,
        payload: NewBlob::from_raw(Bytes::new(), 0).unwrap(),
        fs_root: None,
    };
    for _ in 0..40 {
        let part = AppendPart {
            context,
            parent: None,
            expected_head: None,
            turns: vec![turn.clone(); 1024],
        };
        let append = Append {
            parts: vec![part],
            key: None,
            strict: false,
        };
        server.store.run(Command::Append(append)).unwrap();
    }
}

#[tokio::test]
async fn a_reader_who_takes_nothing_is_disconnected() {
    let time = StoppedTime::begin();
    // No other time-out may end a connection here.
    let server = Server::start_with(|config| {
        config.timeouts = Timeouts {
            http_head: NEVER,
            ..Timeouts::default()
        };
    })
    .await;
    let context = server.context().await;
    flood(&server, context.parse().unwrap());
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut reader = socket.connect(server.http_addr()).await.unwrap();
    let request = format!(
        "GET /v1/events?after=0 HTTP/1.1\r\nhost: {}\r\n\r\n",
        server.http_addr()
    );
    reader.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(
        within(reader.read_u8()).await.unwrap(),
        b'H',
        "the answer has begun"
    );
    // The connection's place becomes free again although the reader still holds his end.
    let connections = async || {
        server.read("/v1/stats").await["connections"]
            .as_u64()
            .unwrap()
    };
    while connections().await > 1 {
        time.advance(Timeouts::default().write_stall + Duration::from_secs(1))
            .await;
    }
    let mut rest = Vec::new();
    let cut = within(reader.read_to_end(&mut rest)).await;
    assert!(
        cut.is_err() || !rest.ends_with(b"0\r\n\r\n"),
        "a stream that was cut has no end mark"
    );
    drop(time);
    server.stop().await;
}
