//! Sessions and captured turns over HTTP, with a real broker in the same process.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_server::broker::Outlets;
use turnkeep_server::{Auth, Token};
use turnkeep_types::Timestamp;
use turnkeep_types::broker::{
    AgentState, CompletedTurn, Register, Reply, Request, Role, StateChange,
};

use crate::broker_support::{Harness, Peer};
use crate::client::{Reply as Answer, Server};

/// The id of the session that most tests use.
const REVIEW: &str = "286d0c";

struct Bench {
    server: Server,
    harness: Harness,
}

impl Bench {
    async fn start() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut turnkeep_server::ServerConfig)) -> Self {
        let server = Server::start_with(change).await;
        let outlets = Outlets {
            keeper: Some(server.running.turn_keeper()),
            ..Outlets::default()
        };
        let harness = Harness::with(outlets, |config| {
            config.timeouts.settle = Duration::ZERO;
            config.settings.ring_turns_max = 2;
        });
        server.running.offer_broker(harness.broker.in_process());
        Self { server, harness }
    }

    /// A program with a name, and the wrapper that reports what it does.
    async fn session(&self, id: &str, name: &str) -> Peer {
        let mut wrapper = self.harness.greeted(Role::Wrapper).await;
        let register = Register {
            session: id.to_owned(),
            pid: 7,
            name: Some(name.to_owned()),
            preset: Some("bash".to_owned()),
            ..Register::default()
        };
        assert_eq!(
            wrapper.ask(Request::Register(register)).await,
            Ok(Reply::Done)
        );
        wrapper
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.server.post(path, body).send().await
    }

    async fn stop(self) {
        self.server.stop().await;
        self.harness.broker.shutdown().await;
    }
}

async fn set_state(wrapper: &mut Peer, session: &str, state: AgentState) {
    let change = StateChange {
        session: session.to_owned(),
        state,
        since: Timestamp(2_000),
        signal: None,
        unanswered: 0,
    };
    assert_eq!(wrapper.ask(Request::State(change)).await, Ok(Reply::Done));
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str, reason: &str) {
    assert_eq!(answer.error(status, code)["reason"], reason);
}

#[tokio::test]
async fn the_owner_sees_sessions_and_their_turns() {
    let bench = Bench::start().await;
    let mut wrapper = bench.session(REVIEW, "review").await;
    set_state(&mut wrapper, REVIEW, AgentState::Ready).await;
    let turn = CompletedTurn {
        session: REVIEW.to_owned(),
        content: Bytes::from_static(b"\x1b[1mThe parser\x1b[m is slow.\n"),
        raw: Some(Bytes::from_static(b"\x1b[2Jraw")),
        interrupted: true,
        incomplete: true,
        ..CompletedTurn::default()
    };
    let completed = Request::TurnCompleted(Box::new(turn));
    assert!(wrapper.ask(completed).await.is_ok());
    let list = bench.server.read("/v1/sessions").await;
    let expect = json!({"sessions": [{
        "session": REVIEW, "name": "review", "preset": "bash", "pid": 7, "state": "ready",
        "since": "1970-01-01T00:00:02.000Z", "unanswered": 0, "has_turn": true, "turns": 1,
        "last_turn_at": "1970-01-01T00:00:01.000Z", "connected": true, "shared": false,
        "preview": "The parser is slow.",
    }]});
    assert_eq!(list, expect);
    let info = json!({
        "turn_id": "286d0c:1", "seq": "1", "timestamp": "1970-01-01T00:00:01.000Z",
        "byte_length": 27, "interrupted": true, "truncated": false, "incomplete": true,
        "unprompted": false,
    });
    let mut listed = info.clone();
    listed["preview"] = "The parser is slow.".into();
    let mut shown = info;
    for (name, value) in [("session", REVIEW), ("name", "review"), ("preset", "bash")] {
        shown[name] = value.into();
    }
    // The wrapper sent no text, so it is what the content leaves on a terminal.
    shown["text"] = "The parser is slow.".into();
    for name in [REVIEW, "286", "review", "@last"] {
        let turns = bench
            .server
            .read(&format!("/v1/sessions/{name}/turns"))
            .await;
        assert_eq!(
            turns,
            json!({"session": REVIEW, "turns": [listed]}),
            "{name}"
        );
        let turn = bench
            .server
            .read(&format!("/v1/sessions/{name}/turns/1"))
            .await;
        assert_eq!(turn, shown, "{name}");
    }
    let raw = bench.server.read("/v1/sessions/review/turns/1?raw=1").await;
    assert_eq!(raw["content_b64"], "G1sxbVRoZSBwYXJzZXIbW20gaXMgc2xvdy4K");
    assert_eq!(raw["raw_b64"], "G1sySnJhdw==");
    drop(wrapper);
    bench.stop().await;
}

#[tokio::test]
async fn what_does_not_exist_is_not_found_and_says_what() {
    let bench = Bench::start().await;
    let mut wrapper = bench.session(REVIEW, "review").await;
    let get = async |path: &str| bench.server.get(path).send().await;
    for path in ["/v1/sessions/other/turns", "/v1/sessions/other/turns/1"] {
        refused(&get(path).await, 404, "NotFound", "session_not_found");
    }
    refused(
        &get("/v1/sessions/@last/turns").await,
        404,
        "NotFound",
        "session_not_found",
    );
    for action in ["capture", "keep"] {
        let path = format!("/v1/sessions/review/{action}");
        refused(
            &bench.post(&path, &json!({})).await,
            404,
            "NotFound",
            "no_turn",
        );
        let unknown = json!({"seq": "9"});
        let answer = bench.post(&path, &unknown).await;
        refused(&answer, 404, "NotFound", "turn_not_found");
    }
    for text in [&b"one"[..], b"two", b"three"] {
        wrapper.complete(REVIEW, text).await.unwrap();
    }
    let evicted = get("/v1/sessions/review/turns/1").await;
    refused(&evicted, 404, "NotFound", "turn_not_found");
    assert_eq!(get("/v1/sessions/review/turns/2").await.status, 200);
    for seq in ["x", "-1", "+2", "99999999999999999999"] {
        let path = format!("/v1/sessions/review/turns/{seq}");
        get(&path).await.error(400, "BadRequest");
    }
    let limited = bench.server.read("/v1/sessions/review/turns?limit=1").await;
    assert_eq!(limited["turns"].as_array().unwrap().len(), 1);
    // Two sessions whose ids begin alike have no common short name.
    let _twin = bench.session("286dff", "twin").await;
    let ambiguous = get("/v1/sessions/286d/turns").await.error(409, "Conflict");
    assert_eq!(ambiguous["sessions"], json!([REVIEW, "286dff"]));
    drop(wrapper);
    bench.stop().await;
}

#[tokio::test]
async fn a_turn_is_captured_and_pasted_but_not_into_a_dialog() {
    let bench = Bench::start().await;
    let mut review = bench.session(REVIEW, "review").await;
    let mut notes = bench.session("4ea0aa", "notes").await;
    let paste = "/v1/sessions/notes/paste";
    let empty = bench.post(paste, &json!({})).await;
    refused(&empty, 409, "Conflict", "buffer_empty");
    review.complete(REVIEW, b"one").await.unwrap();
    review.complete(REVIEW, b"two").await.unwrap();
    let captured = bench.server.call("POST", "/v1/sessions/review/capture");
    let captured = captured.send().await;
    assert_eq!(captured.json(), json!({"turn_id": "286d0c:2", "size": 3}));
    let pasted = bench.post(paste, &json!({})).await;
    let expect = json!({"sink": "inject", "session": "4ea0aa"});
    assert_eq!((pasted.status, pasted.json()), (200, expect));
    assert_eq!(notes.injected().await, "two");
    // Names the turn, so that no other capture comes in between.
    let pasted = bench.post(paste, &json!({"turn": "review:1"})).await;
    assert_eq!(pasted.status, 200, "{}", pasted.text());
    assert_eq!(notes.injected().await, "one");
    set_state(&mut notes, "4ea0aa", AgentState::Blocked).await;
    let blocked = bench.post(paste, &json!({"turn": "@last"})).await;
    refused(&blocked, 409, "Conflict", "blocked");
    let force = json!({"turn": "@last", "force": true, "raw": true});
    assert_eq!(bench.post(paste, &force).await.status, 200);
    assert_eq!(notes.injected().await, "two");
    drop(notes);
    let gone = async || bench.post(paste, &json!({"force": true})).await;
    while gone().await.status == 200 {}
    refused(&gone().await, 409, "Conflict", "session_disconnected");
    bench
        .post(paste, &json!({"unknown": 1}))
        .await
        .error(400, "BadRequest");
    bench.stop().await;
}

#[tokio::test]
async fn a_turn_is_delivered_to_every_sink_and_kept() {
    let bench = Bench::start().await;
    let mut review = bench.session(REVIEW, "review").await;
    let mut notes = bench.session("4ea0aa", "notes").await;
    review.complete(REVIEW, b"one").await.unwrap();
    review.complete(REVIEW, b"two").await.unwrap();
    let deliver = async |body: Value| bench.post("/v1/sessions/review/deliver", &body).await;
    let path = bench.harness.path("answer.txt");
    let file = json!({"sink": "file", "path": path, "seq": "1"});
    assert_eq!(deliver(file).await.json(), json!({"sink": "file"}));
    assert_eq!(std::fs::read(&path).unwrap(), b"one");
    let inject = json!({"sink": "inject", "session": "notes"});
    assert_eq!(deliver(inject).await.status, 200);
    assert_eq!(notes.injected().await, "two");
    let stored = deliver(json!({"sink": "store", "seq": 1})).await.json();
    assert_eq!(
        stored,
        json!({"sink": "store", "context_id": "1", "turn_id": "1"})
    );
    for (body, status, code, reason) in [
        (json!({"sink": "mail"}), 400, "BadRequest", "unknown_sink"),
        (
            json!({"sink": "inject"}),
            400,
            "BadRequest",
            "missing_field",
        ),
        (
            json!({"sink": "file", "path": "a"}),
            400,
            "BadRequest",
            "bad_path",
        ),
        (
            json!({"sink": "clipboard"}),
            409,
            "Conflict",
            "no_clipboard",
        ),
        (
            json!({"sink": "store", "seq": "9"}),
            404,
            "NotFound",
            "turn_not_found",
        ),
    ] {
        refused(&deliver(body).await, status, code, reason);
    }
    // Keeping the second turn leaves the first one, which was delivered last, in the buffer.
    let capture = bench
        .post("/v1/sessions/review/capture", &json!({"seq": "1"}))
        .await;
    assert_eq!(capture.status, 200);
    let keep = async || {
        bench
            .post("/v1/sessions/review/keep", &json!({}))
            .await
            .json()
    };
    let kept = json!({"captured": "286d0c:2", "context_id": "1", "turn_id": "2"});
    assert_eq!(keep().await, kept);
    assert_eq!(keep().await, kept, "once");
    let pasted = bench.post("/v1/sessions/notes/paste", &json!({})).await;
    assert_eq!(pasted.status, 200);
    assert_eq!(notes.injected().await, "one");
    bench.stop().await;
}

/// A request with an idempotency key: what was answered, and whether it repeats an earlier answer.
async fn post_once(bench: &Bench, path: &str, key: &str, body: &Value) -> (Answer, bool) {
    let call = bench.server.post(path, body).header("idempotency-key", key);
    let answer = call.send().await;
    let is_repeat = answer.header("idempotency-replayed") == Some("true");
    (answer, is_repeat)
}

#[tokio::test]
async fn a_repeated_request_is_carried_out_once() {
    let bench = Bench::start().await;
    let mut review = bench.session(REVIEW, "review").await;
    let mut notes = bench.session("4ea0aa", "notes").await;
    review.complete(REVIEW, b"one").await.unwrap();
    for (action, body) in [
        ("capture", json!({"seq": "1"})),
        ("keep", json!({"seq": "1"})),
        ("deliver", json!({"sink": "store"})),
        ("paste", json!({"turn": "review:1"})),
    ] {
        let session = if action == "paste" { "notes" } else { "review" };
        let path = format!("/v1/sessions/{session}/{action}");
        let (first, is_repeat) = post_once(&bench, &path, action, &body).await;
        assert_eq!((first.status, is_repeat), (200, false), "{}", first.text());
        let (again, is_repeat) = post_once(&bench, &path, action, &body).await;
        assert_eq!((again.status, is_repeat), (200, true), "{action}");
        assert_eq!(again.json(), first.json());
        let other = json!({"seq": "1", "sink": "store", "raw": true});
        let (reused, _) = post_once(&bench, "/v1/sessions/notes/deliver", action, &other).await;
        refused(&reused, 409, "Conflict", "key_reused");
    }
    assert_eq!(notes.injected().await, "one");
    // Without a key, and with another one, the same request is carried out again.
    let paste = "/v1/sessions/notes/paste";
    review.complete(REVIEW, b"two").await.unwrap();
    let latest = json!({"turn": "review:2"});
    assert_eq!(bench.post(paste, &latest).await.status, 200);
    assert_eq!(notes.injected().await, "two");
    assert_eq!(
        post_once(&bench, paste, "second", &latest).await.0.status,
        200
    );
    assert_eq!(notes.injected().await, "two");
    let (bad, _) = post_once(&bench, paste, &"k".repeat(257), &latest).await;
    bad.error(400, "BadRequest");
    bench.stop().await;
}

#[tokio::test]
async fn a_request_that_failed_may_be_repeated_with_its_key() {
    let bench = Bench::start().await;
    let mut review = bench.session(REVIEW, "review").await;
    let mut notes = bench.session("4ea0aa", "notes").await;
    review.complete(REVIEW, b"one").await.unwrap();
    set_state(&mut notes, "4ea0aa", AgentState::Blocked).await;
    let body = json!({"turn": "review:1"});
    let paste = async || post_once(&bench, "/v1/sessions/notes/paste", "k", &body).await;
    refused(&paste().await.0, 409, "Conflict", "blocked");
    set_state(&mut notes, "4ea0aa", AgentState::Ready).await;
    let (answer, is_repeat) = paste().await;
    assert_eq!(
        (answer.status, is_repeat),
        (200, false),
        "{}",
        answer.text()
    );
    assert_eq!(notes.injected().await, "one");
    bench.stop().await;
}

#[tokio::test]
async fn a_turn_of_many_megabytes_is_sent_whole() {
    let bench = Bench::start().await;
    let mut review = bench.session(REVIEW, "review").await;
    let text = "one line of it\n".repeat(200_000);
    let turn = CompletedTurn {
        session: REVIEW.to_owned(),
        content: Bytes::from(text.clone()),
        text: Some(text.clone()),
        ..CompletedTurn::default()
    };
    let completed = Request::TurnCompleted(Box::new(turn));
    assert!(review.ask(completed).await.is_ok());
    let turn = bench.server.read("/v1/sessions/review/turns/1?raw=1").await;
    assert_eq!(turn["text"], text);
    assert_eq!(turn["content_b64"].as_str().unwrap().len(), 4_000_000);
    bench.stop().await;
}

#[tokio::test]
async fn only_the_owner_sees_sessions_and_only_where_a_broker_runs() {
    let server = Server::start().await;
    for (method, tail) in [
        ("GET", ""),
        ("GET", "/review/turns"),
        ("GET", "/review/turns/1"),
        ("POST", "/review/capture"),
        ("POST", "/review/keep"),
    ] {
        let path = format!("/v1/sessions{tail}");
        let answer = server.call(method, &path).send().await;
        refused(&answer, 404, "NotFound", "no_broker");
    }
    server.stop().await;
    let bench = Bench::with(|config| config.auth = Auth::Token(Token::new("s3cret"))).await;
    let list = || bench.server.get("/v1/sessions");
    list().send().await.error(401, "Unauthorized");
    let owner = |call: crate::client::Call| call.header("authorization", "Bearer s3cret");
    assert_eq!(owner(list()).send().await.status, 200);
    let world = json!({"world_id": "team", "profile": "WORKSPACE",
        "persons": [{"person_id": "ANN"}]});
    let made = owner(bench.server.post("/v1/worlds", &world)).send().await;
    assert_eq!(made.status, 201, "{}", made.text());
    let mint = json!({"person_id": "ANN", "write": true});
    let minted = owner(bench.server.post("/v1/worlds/team/tokens", &mint))
        .send()
        .await;
    let token = format!("Bearer {}", minted.json()["token"].as_str().unwrap());
    let person = list().header("authorization", &token).send().await;
    person.error(403, "Forbidden");
    bench.stop().await;
}

#[tokio::test]
async fn the_feed_says_which_session_changed() {
    let server = Server::start().await;
    let mut feed = server.get("/v1/events").stream().await;
    assert!(feed.chunk().await.unwrap().starts_with(": open"));
    // A broker that starts after the feed is followed too.
    let harness = Harness::start();
    server.running.offer_broker(harness.broker.in_process());
    let changed = "event: session.changed\ndata: {\"ref\":\"session:s\"}";
    let mut wrapper = harness.wrapper("s").await;
    assert_eq!(feed.event().await.unwrap(), changed);
    wrapper.complete("s", b"one").await.unwrap();
    assert_eq!(feed.event().await.unwrap(), changed);
    set_state(&mut wrapper, "s", AgentState::Working).await;
    assert_eq!(feed.event().await.unwrap(), changed);
    drop(wrapper);
    assert_eq!(feed.event().await.unwrap(), changed);
    let clock = Arc::clone(&harness.clock);
    clock.set(Timestamp(10_000_000));
    let mut client = harness.client().await;
    let list = Request::ListSessions(turnkeep_types::broker::ListSessions::default());
    assert_eq!(client.ask(list).await, Ok(Reply::Sessions(Vec::new())));
    assert_eq!(feed.event().await.unwrap(), changed, "it is gone");
    server.stop().await;
    harness.broker.shutdown().await;
}
