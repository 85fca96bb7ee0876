//! Bounds: sizes, nesting, routes, methods, connections, patience.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use turnkeep_server::Timeouts;

use crate::client::{Server, within};
use crate::stopped_time::StoppedTime;

/// For time-outs that must not end a connection while another one is tested.
pub(crate) const NEVER: Duration = Duration::from_hours(24 * 365);

/// Everything that the server says to these bytes, until it closes.
async fn raw(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.http_addr()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // A reset after the answer is as good as a close.
    drop(within(stream.read_to_end(&mut answer)).await);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends bytes and moves the clock by `step` until the server has ended the connection; returns its
/// answer.
async fn raw_while_time_passes(server: &Server, bytes: &[u8], step: Duration) -> String {
    let time = StoppedTime::begin();
    let mut stream = TcpStream::connect(server.http_addr()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // A reset after the answer is as good as a close.
    drop(
        time.advance_until(step, stream.read_to_end(&mut answer))
            .await,
    );
    tokio::time::resume();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn unknown_routes_and_methods_have_the_error_form() {
    let server = Server::start().await;
    for path in [
        "/nowhere",
        "/v1",
        "/v1/contexts/",
        "/v1/turns",
        "/v1/registry/bundles/",
        "/v1/contexts/1/2/3",
    ] {
        server.get(path).send().await.error(404, "NotFound");
    }
    for (method, path) in [
        ("DELETE", "/v1/contexts"),
        ("POST", "/v1/stats"),
        ("BREW", "/healthz"),
        ("PUT", "/v1/turns/1"),
    ] {
        let reply = server.call(method, path).send().await;
        reply.error(405, "MethodNotAllowed");
        assert!(reply.header("allow").is_some(), "{method} {path}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_whether_announced_or_not() {
    let server = Server::start_with(|config| config.limits.http_body_bytes_max = 1000).await;
    let body = json!({"labels": {"a": "x".repeat(1000)}}).to_string();
    let details = server
        .call("POST", "/v1/contexts")
        .body(body.clone())
        .send()
        .await
        .error(413, "TooLarge");
    assert_eq!(
        (&details["limit"], &details["actual"]),
        (&json!(1000), &json!(body.len()))
    );
    let head = format!(
        "POST /v1/contexts HTTP/1.1\r\nhost: {}\r\ntransfer-encoding: chunked\r\n\r\n",
        server.http_addr()
    );
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let answer = raw(&server, format!("{head}{chunks}").as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 413 ") && answer.contains("TooLarge"),
        "{answer}"
    );
    assert_eq!(server.store.stats().contexts, 0);
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_refused_before_it_is_sent() {
    let server = Server::start_with(|config| config.limits.http_body_bytes_max = 1000).await;
    for (path, expect) in [
        ("PUT /v1/blobs/ab", "100-continue"),
        ("POST /v1/contexts", ""),
        ("POST /v1/contexts", "100-continue"),
    ] {
        let path = path.replace("ab", &"ab".repeat(32));
        let expect = if expect.is_empty() {
            String::new()
        } else {
            format!("expect: {expect}\r\n")
        };
        let head = format!(
            "{path} HTTP/1.1\r\nhost: {}\r\ncontent-length: 99999999\r\n{expect}\r\n",
            server.http_addr()
        );
        let answer = raw(&server, head.as_bytes()).await;
        assert!(
            answer.starts_with("HTTP/1.1 413 ") && answer.contains("\"actual\":99999999"),
            "{answer}"
        );
    }
    let head = format!(
        "POST /v1/contexts HTTP/1.1\r\nhost: {}\r\ncontent-length: 2\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n{{}}",
        server.http_addr()
    );
    let answer = raw(&server, head.as_bytes()).await;
    assert!(answer.contains("HTTP/1.1 201 "), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn a_body_without_an_end_is_refused_at_the_limit_and_its_sender_hears_it() {
    let server = Server::start_with(|config| config.limits.http_body_bytes_max = 1000).await;
    let stream = TcpStream::connect(server.http_addr()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let head = format!(
        "POST /v1/contexts HTTP/1.1\r\nhost: {}\r\ntransfer-encoding: chunked\r\n\r\n",
        server.http_addr()
    );
    writer.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(1 << 16));
    let endless = async {
        let mut sent = 0_usize;
        while writer.write_all(chunk.as_bytes()).await.is_ok() {
            sent += chunk.len();
        }
        sent
    };
    let answer = async {
        let mut answer = Vec::new();
        drop(reader.read_to_end(&mut answer).await);
        String::from_utf8_lossy(&answer).into_owned()
    };
    let (sent, answer) = within(async { tokio::join!(endless, answer) }).await;
    assert!(
        answer.starts_with("HTTP/1.1 413 ") && answer.contains("TooLarge"),
        "{answer}"
    );
    assert!(sent < 64 << 20, "{sent} bytes were taken");
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_sent_plainly_is_refused() {
    let server = Server::start().await;
    let post = |coding: &str| {
        server
            .post("/v1/contexts", &json!({}))
            .header("content-encoding", coding)
    };
    for coding in ["gzip", "zstd", "identity, gzip"] {
        post(coding).send().await.error(415, "UnsupportedMediaType");
    }
    assert_eq!(post("Identity").send().await.status, 201);
    for path in [
        "/v1/registry/bundles/a%",
        "/v1/registry/bundles/%zz",
        "/v1/registry/types/%4/versions/1",
        "/v1/turns/1/fs/%q",
    ] {
        server.get(path).send().await.error(400, "BadRequest");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_body_is_an_object_whose_names_come_once() {
    let server = Server::start().await;
    let context = server.context().await;
    let turns = format!("/v1/contexts/{context}/turns");
    let own = format!("/v1/contexts/{context}");
    for (method, path, body) in [
        ("POST", "/v1/contexts", "[null,null,null]"),
        ("POST", "/v1/contexts/fork", "[\"1\",null,null]"),
        ("PATCH", &own, "[{}]"),
        ("POST", &turns, "[\"\",0,null,\"gA==\",null,null,null,null]"),
        ("POST", "/v1/contexts", "null"),
        (
            "POST",
            "/v1/contexts",
            "{\"labels\":{\"a\":\"1\",\"a\":\"2\"}}",
        ),
        (
            "POST",
            &turns,
            "{\"type_id\":\"t\",\"type_version\":1,\"data\":{\"a\":{\"b\":1,\"b\":1}}}",
        ),
    ] {
        let reply = server.call(method, path).body(body.to_owned()).send().await;
        reply.error(400, "BadRequest");
        assert!(!reply.text().contains("struct"), "{}", reply.text());
    }
    let stats = server.store.stats();
    assert_eq!((stats.contexts, stats.turns), (1, 0));
    server.stop().await;
}

#[tokio::test]
async fn data_of_128_levels_is_appended_and_shown() {
    let server = Server::start().await;
    let bundle = json!({"registry_version": 1, "bundle_id": "b", "enums": {}, "types": {"t": {"versions": {"1": {
        "fields": {"1": {"name": "any", "type": "any"}}}}}}});
    let put = server
        .put("/v1/registry/bundles/b")
        .json(&bundle)
        .send()
        .await;
    assert_eq!(put.status, 201, "{}", put.text());
    let context = server.context().await;
    let append = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
        let body =
            format!("{{\"type_id\":\"t\",\"type_version\":1,\"data\":{{\"any\":{open}{close}}}}}");
        server
            .call("POST", &format!("/v1/contexts/{context}/turns"))
            .body(body)
            .send()
    };
    let reply = append(128).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let details = append(129).await.error(413, "TooLarge");
    assert_eq!(
        details,
        json!({"limit": 129, "actual": 130}),
        "the request is a level too"
    );
    let shown = server.get("/v1/turns/1").send().await.text();
    assert!(shown.contains(&"[".repeat(127)), "{shown}");
    server.stop().await;
}

#[tokio::test]
async fn deep_json_is_over_a_limit() {
    let server = Server::start().await;
    let context = server.context().await;
    let deep = format!(
        "{{\"data\":{}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let reply = server
        .call("POST", &format!("/v1/contexts/{context}/turns"))
        .body(deep)
        .send()
        .await;
    reply.error(413, "TooLarge");
    server.stop().await;
}

#[tokio::test]
async fn bytes_that_are_no_http_end_only_their_own_connection() {
    let server = Server::start().await;
    for bytes in [
        &b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"[..],
        b"GET\r\n\r\n",
        b"\xff\xfe\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ] {
        let answer = raw(&server, bytes).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 400 "),
            "{answer}"
        );
    }
    let endless = [b"GET / HTTP/1.1\r\nx: ".as_slice(), &vec![b'y'; 1 << 20]].concat();
    let answer = raw(&server, &endless).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431 "),
        "{answer}"
    );
    assert_eq!(server.get("/healthz").send().await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_lower_nesting_limit_holds_for_bodies_and_bundles() {
    let server = Server::start_with(|config| config.limits.nesting_max = 6).await;
    let context = server.context().await;
    let path = format!("/v1/contexts/{context}/turns");
    let nested = |depth: usize| format!("{{\"data\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let reply = server.call("POST", &path).body(nested(7)).send().await;
    assert_eq!(
        reply.error(413, "TooLarge")["limit"],
        7,
        "its values and the request around them"
    );
    server
        .call("POST", &path)
        .body(nested(6))
        .send()
        .await
        .error(422, "MissingTypeHint");
    let deep = format!(
        "{{\"bundle_id\":\"b\",\"x\":{}{}}}",
        "[".repeat(6),
        "]".repeat(6)
    );
    let reply = server.put("/v1/registry/bundles/b").body(deep).send().await;
    assert_eq!(
        reply.error(413, "TooLarge"),
        json!({"limit": 6, "actual": 7})
    );
    server.stop().await;
}

#[tokio::test]
async fn what_is_parsed_where_it_is_read_is_small() {
    let server = Server::start().await;
    let context = server.context().await;
    let body = json!({"labels": {"a": "x".repeat(256 << 10)}});
    for (method, path) in [
        ("POST", "/v1/contexts"),
        ("POST", "/v1/contexts/create"),
        ("POST", "/v1/contexts/fork"),
        ("PATCH", &format!("/v1/contexts/{context}")),
    ] {
        let details = server
            .call(method, path)
            .json(&body)
            .send()
            .await
            .error(413, "TooLarge");
        assert_eq!(details["limit"], 256 << 10, "{method} {path}");
    }
    server.stop().await;
}

/// A connection that has sent all of a large body but its end.
async fn hoarder(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.http_addr()).await.unwrap();
    let hash = "ab".repeat(32);
    let head = format!(
        "PUT /v1/blobs/{hash} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n",
        server.http_addr(),
        1 << 20
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![7; 1_000_000]).await.unwrap();
    stream
}

async fn metric(server: &Server, name: &str) -> u64 {
    let metrics = server.get("/metrics").send().await.text();
    let value = metrics
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap().parse().unwrap()
}

pub(crate) async fn memory_used(server: &Server) -> u64 {
    metric(server, "turnkeep_memory_used_bytes").await
}

/// Waits until the server has given back the memory of earlier requests. It may do so a moment
/// after it has answered.
pub(crate) async fn until_no_memory_is_used(server: &Server) {
    within(async { while memory_used(server).await > 0 {} }).await;
}

async fn until_a_request_waits_for_memory(server: &Server) {
    let waiting = async || metric(server, "turnkeep_memory_waiting_requests").await;
    while waiting().await == 0 {}
}

#[tokio::test]
async fn large_bodies_share_the_memory_budget_and_small_ones_need_none() {
    let time = StoppedTime::begin();
    let server = Server::start_with(|config| config.memory_budget_bytes = 4 << 20).await;
    let mut hoarders = Vec::new();
    for _ in 0..4 {
        hoarders.push(hoarder(&server).await);
    }
    let blob = vec![7; 600 << 10];
    let path = format!("/v1/blobs/{}", turnkeep_types::BlobHash::of(&blob));
    let put = || server.put(&path).body(blob.clone()).send();
    // How far each permit reaches beyond the bytes that came depends on the pieces they came in.
    while memory_used(&server).await < 4_000_000 {}
    let past_memory_wait = async {
        until_a_request_waits_for_memory(&server).await;
        let wait_max = Timeouts::default().memory + Duration::from_secs(1);
        time.advance(wait_max).await;
    };
    let (refused, ()) = tokio::join!(put(), past_memory_wait);
    refused.error(429, "TooManyRequests");
    assert_eq!(refused.header("retry-after"), Some("1"));
    let context = server.context().await;
    server
        .append(&context, json!({"payload_b64": "AAAA"}))
        .await;
    drop(hoarders);
    assert_eq!(put().await.status, 201, "it waits until they are gone");
    drop(time);
    server.stop().await;
}

#[tokio::test]
async fn a_body_has_its_time_however_it_trickles() {
    let server = Server::start_with(|config| {
        config.timeouts = Timeouts {
            http_head: NEVER,
            http_body_stall: NEVER,
            ..Timeouts::default()
        };
    })
    .await;
    let head = format!(
        "POST /v1/contexts HTTP/1.1\r\nhost: {}\r\ncontent-length: 10\r\n\r\n{{",
        server.http_addr()
    );
    let answer =
        raw_while_time_passes(&server, head.as_bytes(), Timeouts::default().http_body).await;
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.contains("did not arrive in time"),
        "{answer}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_request_without_a_host_is_refused() {
    let server = Server::start().await;
    let answer = raw(
        &server,
        b"GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.contains("names no host"),
        "{answer}"
    );
    let answer = raw(
        &server,
        b"GET http://evil.example/healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert!(
        answer.starts_with("HTTP/1.1 403 "),
        "the request line's host counts: {answer}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_connection_whose_request_has_no_whole_head_is_ended() {
    let server = Server::start().await;
    let step = Timeouts::default().http_head;
    assert_eq!(raw_while_time_passes(&server, b"", step).await, "");
    let cut = raw_while_time_passes(&server, b"GET /healthz HT", step).await;
    assert!(cut.is_empty() || cut.starts_with("HTTP/1.1 4"), "{cut}");
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_stops_arriving_is_answered_with_an_error() {
    let server = Server::start_with(|config| {
        config.timeouts = Timeouts {
            http_head: NEVER,
            http_body: NEVER,
            ..Timeouts::default()
        };
    })
    .await;
    let head = format!(
        "POST /v1/contexts HTTP/1.1\r\nhost: {}\r\ncontent-length: 10\r\n\r\n{{",
        server.http_addr()
    );
    let answer = raw_while_time_passes(
        &server,
        head.as_bytes(),
        Timeouts::default().http_body_stall,
    )
    .await;
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.contains("stopped arriving"),
        "{answer}"
    );
    server.stop().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_hear_so() {
    let server = Server::start_with(|config| config.connections_max = Some(1)).await;
    let held = TcpStream::connect(server.http_addr()).await.unwrap();
    let answer = within(async {
        loop {
            let answer = raw(
                &server,
                b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
            )
            .await;
            if !answer.starts_with("HTTP/1.1 200 ") {
                return answer;
            }
        }
    })
    .await;
    assert!(
        answer.is_empty()
            || (answer.starts_with("HTTP/1.1 503 ") && answer.contains("Unavailable")),
        "{answer}"
    );
    drop(held);
    within(async {
        while raw(
            &server,
            b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        )
        .await
        .is_empty()
        {}
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request_and_closed_at_shutdown() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.http_addr()).await.unwrap();
    let request = format!(
        "GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n",
        server.http_addr()
    );
    for _ in 0..3 {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let len = within(stream.read(&mut answer)).await.unwrap();
        assert!(String::from_utf8_lossy(&answer[..len]).starts_with("HTTP/1.1 200 "));
    }
    server.stop().await;
    assert_eq!(within(stream.read(&mut [0; 16])).await.unwrap(), 0);
}

#[tokio::test]
async fn short_values_count_by_the_memory_that_they_take() {
    let server = Server::start_with(|config| config.memory_budget_bytes = 16 << 20).await;
    let context = server.context().await;
    // Half a megabyte of text, and dozens of megabytes of values.
    let body = format!(
        r#"{{"type_id":"x","type_version":1,"data":[{}0]}}"#,
        "0,".repeat(256 << 10)
    );
    let path = format!("/v1/contexts/{context}/turns");
    server
        .call("POST", &path)
        .body(body.into_bytes())
        .send()
        .await
        .error(413, "TooLarge");
    server
        .append(&context, json!({"payload_b64": "AAAA"}))
        .await;
    server.stop().await;
}

#[tokio::test]
async fn short_values_of_a_small_body_count_too() {
    let server = Server::start_with(|config| config.memory_budget_bytes = 4 << 20).await;
    let context = server.context().await;
    let values = "0,".repeat(100 << 10);
    for (path, body) in [
        (
            format!("/v1/contexts/{context}/turns"),
            format!(r#"{{"type_id":"x","type_version":1,"data":[{values}0]}}"#),
        ),
        (
            "/v1/worlds".to_owned(),
            format!(r#"{{"world_id":"team","profile":"WORKSPACE","persons":[{values}0]}}"#),
        ),
    ] {
        let refused = server
            .call("POST", &path)
            .body(body.into_bytes())
            .send()
            .await;
        refused.error(413, "TooLarge");
    }
    server.stop().await;
}

/// A context with one turn of 40 KB whose text is 20 MB: each of its bytes stands for a long label.
async fn turn_of_labels(server: &Server) -> String {
    let bundle = json!({
        "registry_version": 1,
        "bundle_id": "labels",
        "types": { "com.example.Labels": { "versions": { "1": { "fields": {
            "1": { "name": "all", "type": "array", "items": { "type": "u8", "enum": "com.example.Long" } },
        } } } } },
        "enums": { "com.example.Long": { "1": "l".repeat(500) } }
    });
    let put = server
        .put("/v1/registry/bundles/labels")
        .json(&bundle)
        .send()
        .await;
    assert_eq!(put.status, 201, "{}", put.text());
    let context = server.context().await;
    let data = json!({ "all": vec![1; 40_000] });
    let body = json!({"type_id": "com.example.Labels", "type_version": 1, "data": data});
    server.append(&context, body).await;
    context
}

/// Asks for something and reads no more than the status of the answer.
pub(crate) async fn reader_that_stops(server: &Server, path: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(server.http_addr()).await.unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n",
        server.http_addr()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = vec![0; 12];
    within(stream.read_exact(&mut status)).await.unwrap();
    (stream, String::from_utf8(status).unwrap())
}

#[tokio::test]
async fn a_long_text_of_a_short_payload_counts_until_it_was_read() {
    let server = Server::start_with(|config| {
        config.memory_budget_bytes = 100 << 20;
        config.timeouts.memory = Duration::from_millis(20);
    })
    .await;
    let context = turn_of_labels(&server).await;
    for path in [
        "/v1/turns/1".to_owned(),
        format!("/v1/contexts/{context}/turns"),
    ] {
        let (reader, status) = reader_that_stops(&server, &path).await;
        assert_eq!(status, "HTTP/1.1 200");
        assert!(memory_used(&server).await > 20_000_000, "{path}");
        let refused = server.get(&path).send().await;
        refused.error(429, "TooManyRequests");
        drop(reader);
        within(async { while memory_used(&server).await > 0 {} }).await;
        let whole = server.get(&path).send().await;
        assert!(
            whole.status == 200 && whole.body.len() > 20_000_000,
            "{path}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_text_that_the_budget_cannot_hold_is_an_error_of_its_turn() {
    let server = Server::start_with(|config| config.memory_budget_bytes = 8 << 20).await;
    let context = turn_of_labels(&server).await;
    server
        .append(
            &context,
            json!({"payload_b64": "AAAA", "type_id": "x", "type_version": 1}),
        )
        .await;
    server
        .get("/v1/turns/1")
        .send()
        .await
        .error(413, "TooLarge");
    let path = format!("/v1/contexts/{context}/turns");
    // What does not fit behind newer turns is left for the next page.
    let newest = server.read(&path).await;
    assert_eq!(newest["turns"].as_array().unwrap().len(), 1);
    let next = newest["next_before_turn_id"].as_str().unwrap();
    let older = server.read(&format!("{path}?before_turn_id={next}")).await;
    assert_eq!(older["turns"][0]["error"]["status"], 413);
    assert!(older["turns"][0]["bytes_b64"].is_string());
    let raw = server.read(&format!("{path}?view=raw")).await;
    assert_eq!(raw["turns"].as_array().unwrap().len(), 2);
    server.stop().await;
}
