//! Contexts: create, fork, show, label, list.

use serde_json::{Value, json};

use crate::client::{NOW, Server};

#[tokio::test]
async fn a_new_context_is_empty_and_can_be_shown() {
    let server = Server::start().await;
    let reply = server
        .post("/v1/contexts", &json!({"labels": {"team": "red"}}))
        .send()
        .await;
    let expect = json!({
        "context_id": "1", "head_turn_id": "0", "head_depth": 0, "created_at": NOW, "labels": {"team": "red"},
    });
    assert_eq!((reply.status, reply.json()), (201, expect.clone()));
    assert_eq!(reply.header("idempotency-replayed"), None);
    assert_eq!(server.read("/v1/contexts/1").await, expect);
    server.stop().await;
}

#[tokio::test]
async fn no_body_and_the_alias_create_as_well() {
    let server = Server::start().await;
    assert_eq!(
        server.call("POST", "/v1/contexts").send().await.json()["context_id"],
        "1"
    );
    assert_eq!(
        server
            .post("/v1/contexts/create", &json!({}))
            .send()
            .await
            .json()["context_id"],
        "2"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_fork_starts_at_its_base_turn_and_ids_may_be_integers() {
    let server = Server::start().await;
    let context = server.context().await;
    for _ in 0..3 {
        server
            .append(&context, json!({"payload_b64": "gA=="}))
            .await;
    }
    for (path, base) in [
        ("/v1/contexts/fork", json!("2")),
        ("/v1/contexts/fork", json!(2)),
        ("/v1/contexts", json!(2)),
    ] {
        let reply = server
            .post(path, &json!({"base_turn_id": base}))
            .send()
            .await;
        assert_eq!(reply.status, 201);
        let fork = reply.json();
        assert_eq!(
            (&fork["head_turn_id"], &fork["head_depth"]),
            (&json!("2"), &json!(1))
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_creation_with_a_key_happens_once() {
    let server = Server::start().await;
    let body = json!({"idempotency_key": "k", "labels": {"a": "b"}});
    let first = server.post("/v1/contexts", &body).send().await;
    let again = server.post("/v1/contexts", &body).send().await;
    assert_eq!((again.status, again.json()), (201, first.json()));
    assert_eq!(
        (
            first.header("idempotency-replayed"),
            again.header("idempotency-replayed")
        ),
        (None, Some("true"))
    );
    assert_eq!(server.store.stats().contexts, 1);
    server.stop().await;
}

#[tokio::test]
async fn patch_replaces_the_labels() {
    let server = Server::start().await;
    let context = server.context().await;
    let path = format!("/v1/contexts/{context}");
    for labels in [json!({"a": "1", "b": "2"}), json!({"c": ""}), json!({})] {
        let reply = server
            .call("PATCH", &path)
            .json(&json!({"labels": labels}))
            .send()
            .await;
        assert_eq!((reply.status, &reply.json()["labels"]), (200, &labels));
        assert_eq!(server.read(&path).await["labels"], labels);
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said() {
    let server = Server::start().await;
    let many: serde_json::Map<String, Value> =
        (0..65).map(|n| (n.to_string(), json!(""))).collect();
    let long = "x".repeat(1025);
    let cases = [
        ("POST", "/v1/contexts", "{", 400, "BadRequest"),
        ("POST", "/v1/contexts", "[]", 400, "BadRequest"),
        ("POST", "/v1/contexts", "{\"colour\":1}", 400, "BadRequest"),
        (
            "POST",
            "/v1/contexts",
            "{\"base_turn_id\":-1}",
            400,
            "BadRequest",
        ),
        (
            "POST",
            "/v1/contexts",
            "{\"base_turn_id\":9007199254740992}",
            400,
            "BadRequest",
        ),
        (
            "POST",
            "/v1/contexts",
            "{\"base_turn_id\":\"7\"}",
            404,
            "NotFound",
        ),
        ("POST", "/v1/contexts?x=1", "{}", 400, "BadRequest"),
        (
            "POST",
            "/v1/contexts",
            &json!({"labels": many}).to_string(),
            413,
            "TooLarge",
        ),
        (
            "POST",
            "/v1/contexts",
            &json!({"labels": {"a": long}}).to_string(),
            413,
            "TooLarge",
        ),
        (
            "POST",
            "/v1/contexts",
            &json!({"idempotency_key": long}).to_string(),
            413,
            "TooLarge",
        ),
        ("POST", "/v1/contexts/fork", "{}", 400, "BadRequest"),
        (
            "POST",
            "/v1/contexts/fork",
            "{\"base_turn_id\":\"7\"}",
            404,
            "NotFound",
        ),
        ("PATCH", "/v1/contexts/1", "{}", 400, "BadRequest"),
        (
            "PATCH",
            "/v1/contexts/1",
            "{\"labels\":{}}",
            404,
            "NotFound",
        ),
        ("GET", "/v1/contexts/1", "", 404, "NotFound"),
        ("GET", "/v1/contexts/0", "", 404, "NotFound"),
        ("GET", "/v1/contexts/x", "", 400, "BadRequest"),
        ("GET", "/v1/contexts/01", "", 400, "BadRequest"),
        (
            "GET",
            "/v1/contexts/18446744073709551616",
            "",
            400,
            "BadRequest",
        ),
        ("GET", "/v1/contexts/%ff", "", 400, "BadRequest"),
        ("GET", "/v1/contexts?limit=x", "", 400, "BadRequest"),
    ];
    for (method, path, body, status, code) in cases {
        server
            .call(method, path)
            .body(body.to_owned())
            .send()
            .await
            .error(status, code);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_key_that_was_used_for_something_else_is_a_conflict() {
    let server = Server::start().await;
    let context = server.context().await;
    server
        .append(&context, json!({"payload_b64": "gA=="}))
        .await;
    server
        .post("/v1/contexts", &json!({"idempotency_key": "k"}))
        .send()
        .await;
    let other = json!({"idempotency_key": "k", "base_turn_id": "1"});
    server
        .post("/v1/contexts", &other)
        .send()
        .await
        .error(409, "Conflict");
    server.stop().await;
}

#[tokio::test]
async fn contexts_are_listed_newest_first_by_pages_and_labels() {
    let server = Server::start().await;
    for n in 1..=7 {
        let labels = if n % 2 == 0 {
            json!({"kind": "even", "n": n.to_string()})
        } else {
            json!({"kind": "odd"})
        };
        server
            .post("/v1/contexts", &json!({"labels": labels}))
            .send()
            .await;
    }
    let check = async |query: &str, expect: &[&str], next: Value| {
        let page = server.read(&format!("/v1/contexts{query}")).await;
        let ids: Vec<_> = page["contexts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["context_id"].as_str().unwrap())
            .collect();
        assert_eq!(
            (ids.as_slice(), &page["next_cursor"]),
            (expect, &next),
            "{query}"
        );
    };
    check("", &["7", "6", "5", "4", "3", "2", "1"], Value::Null).await;
    check("?limit=3", &["7", "6", "5"], json!("5")).await;
    check("?limit=3&cursor=5", &["4", "3", "2"], json!("2")).await;
    check("?limit=3&cursor=2", &["1"], Value::Null).await;
    check(
        "?limit=7",
        &["7", "6", "5", "4", "3", "2", "1"],
        Value::Null,
    )
    .await;
    check("?label=n", &["6", "4", "2"], Value::Null).await;
    check("?label=kind%3Deven&limit=2", &["6", "4"], json!("4")).await;
    check("?label=kind%3Deven&limit=2&cursor=4", &["2"], Value::Null).await;
    check("?label=kind=even&label=n=4", &["4"], Value::Null).await;
    check("?label=kind=none", &[], Value::Null).await;
    check(
        "?limit=999999999999999999999",
        &["7", "6", "5", "4", "3", "2", "1"],
        Value::Null,
    )
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_page_of_large_labels_is_cut_and_goes_on() {
    let server = Server::start().await;
    let labels: serde_json::Map<_, _> = (0..64)
        .map(|n| (format!("label {n}"), json!("x".repeat(1024))))
        .collect();
    for _ in 0..12 {
        assert_eq!(
            server
                .post("/v1/contexts", &json!({"labels": labels}))
                .send()
                .await
                .status,
            201
        );
    }
    let ids = |page: &serde_json::Value| -> Vec<u64> {
        let contexts = page["contexts"].as_array().unwrap().iter();
        contexts
            .map(|context| context["context_id"].as_str().unwrap().parse().unwrap())
            .collect()
    };
    let first = server.read("/v1/contexts?limit=1000").await;
    assert_eq!(ids(&first), [12, 11, 10, 9, 8, 7, 6, 5]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = server
        .read(&format!("/v1/contexts?limit=1000&cursor={cursor}"))
        .await;
    assert_eq!(
        (ids(&rest), rest["next_cursor"].is_null()),
        (vec![4, 3, 2, 1], true)
    );
    server.stop().await;
}
