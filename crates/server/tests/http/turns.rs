//! Turns: appending, paging, raw views, one turn.

use serde_json::{Value, json};
use turnkeep_types::BlobHash;

use crate::client::{MESSAGE, NOW, Server};

/// The msgpack of `{1: 2, 2: "hi"}` in base64.
const HI: &[u8] = &[0x82, 0x01, 0x02, 0x02, 0xa2, b'h', b'i'];
const HI_B64: &str = "ggECAqJoaQ==";

fn ids(page: &Value) -> Vec<&str> {
    page["turns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| turn["turn_id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn data_needs_a_type_and_its_version() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    let path = format!("/v1/contexts/{context}/turns");
    for body in [
        json!({"data": {"role": "user"}}),
        json!({"data": {"role": "user"}, "type_id": MESSAGE}),
        json!({"data": {"role": "user"}, "type_version": 1}),
    ] {
        server
            .post(&path, &body)
            .send()
            .await
            .error(422, "MissingTypeHint");
    }
    server
        .append(&context, json!({"payload_b64": "gA==", "type_id": MESSAGE}))
        .await;
    server.stop().await;
}

#[tokio::test]
async fn an_append_is_acked_with_all_that_was_decided() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    let body = json!({"type_id": MESSAGE, "type_version": 1, "payload_b64": HI_B64});
    let expect = json!({
        "context_id": "1", "turn_id": "1", "parent_turn_id": "0", "depth": 0,
        "content_hash_b3": BlobHash::of(HI).to_string(), "created_at": NOW,
    });
    assert_eq!(server.append(&context, body).await, expect);
    // The same payload by field names has the same bytes, through the alias, unpadded or not.
    let data =
        json!({"type_id": MESSAGE, "type_version": 1, "data": {"text": "hi", "role": "user"}});
    let reply = server.post("/v1/contexts/1/append", &data).send().await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.json()["content_hash_b3"], expect["content_hash_b3"]);
    let bare = json!({"payload_b64": HI_B64.trim_end_matches('=')});
    assert_eq!(
        server.append(&context, bare).await["content_hash_b3"],
        expect["content_hash_b3"]
    );
    assert_eq!(server.store.stats().blobs, 1);
    server.stop().await;
}

#[tokio::test]
async fn a_replayed_key_gives_the_same_ack_and_says_so() {
    let server = Server::start().await;
    let context = server.context().await;
    let path = format!("/v1/contexts/{context}/turns");
    let body =
        json!({"payload_b64": HI_B64, "idempotency_key": "once", "expected_head_turn_id": "0"});
    let first = server.post(&path, &body).send().await;
    server
        .append(&context, json!({"payload_b64": HI_B64}))
        .await;
    let again = server.post(&path, &body).send().await;
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.body, again.body);
    assert_eq!(
        (
            first.header("idempotency-replayed"),
            again.header("idempotency-replayed")
        ),
        (None, Some("true"))
    );
    let other = json!({"payload_b64": "gA==", "idempotency_key": "once"});
    server
        .post(&path, &other)
        .send()
        .await
        .error(409, "Conflict");
    server.stop().await;
}

#[tokio::test]
async fn an_explicit_parent_branches_in_place_and_an_expected_head_guards() {
    let server = Server::start().await;
    let context = server.context().await;
    let path = format!("/v1/contexts/{context}/turns");
    for _ in 0..2 {
        server
            .append(&context, json!({"payload_b64": "gA=="}))
            .await;
    }
    let branched = server
        .append(
            &context,
            json!({"payload_b64": "gA==", "parent_turn_id": 1}),
        )
        .await;
    assert_eq!(
        (&branched["parent_turn_id"], &branched["depth"]),
        (&json!("1"), &json!(1))
    );
    assert_eq!(ids(&server.read(&path).await), ["1", "3"]);
    for expected in ["0", "2"] {
        let body = json!({"payload_b64": "gA==", "expected_head_turn_id": expected});
        let details = server
            .post(&path, &body)
            .send()
            .await
            .error(409, "Conflict");
        assert_eq!(details["actual_head_turn_id"], "3");
    }
    server
        .append(
            &context,
            json!({"payload_b64": "gA==", "expected_head_turn_id": "3"}),
        )
        .await;
    server.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_an_append_is_said() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    let path = format!("/v1/contexts/{context}/turns");
    let hash = BlobHash::of(b"nothing").to_string();
    let cases = [
        (json!({}), 400, "BadRequest"),
        (json!({"data": {}, "payload_b64": ""}), 400, "BadRequest"),
        (json!({"payload_b64": "*"}), 400, "BadRequest"),
        (
            json!({"payload_b64": "gA==", "colour": 1}),
            400,
            "BadRequest",
        ),
        (
            json!({"payload_b64": "gA==", "type_version": -1}),
            400,
            "BadRequest",
        ),
        (
            json!({"payload_b64": "gA==", "parent_turn_id": "x"}),
            400,
            "BadRequest",
        ),
        (
            json!({"payload_b64": "gA==", "fs_root_hash": "xyz"}),
            400,
            "BadRequest",
        ),
        (
            json!({"payload_b64": "gA==", "fs_root_hash": hash}),
            404,
            "NotFound",
        ),
        (
            json!({"payload_b64": "gA==", "parent_turn_id": "99"}),
            404,
            "NotFound",
        ),
        (
            json!({"payload_b64": "gA==", "type_id": "x".repeat(513)}),
            413,
            "TooLarge",
        ),
        (
            json!({"payload_b64": "gA==", "idempotency_key": "x".repeat(1025)}),
            413,
            "TooLarge",
        ),
        (json!({"data": {}}), 422, "MissingTypeHint"),
        (
            json!({"data": {"colour": 1}, "type_id": MESSAGE, "type_version": 1}),
            422,
            "Unprocessable",
        ),
        (
            json!({"data": {"role": []}, "type_id": MESSAGE, "type_version": 1}),
            422,
            "Unprocessable",
        ),
        (
            json!({"data": {}, "type_id": MESSAGE, "type_version": 2}),
            424,
            "FailedDependency",
        ),
        (
            json!({"data": {}, "type_id": "com.example.None", "type_version": 1}),
            424,
            "FailedDependency",
        ),
    ];
    for (body, status, code) in cases {
        server.post(&path, &body).send().await.error(status, code);
    }
    server
        .post("/v1/contexts/9/turns", &json!({"payload_b64": ""}))
        .send()
        .await
        .error(404, "NotFound");
    assert_eq!(server.store.stats().turns, 0);
    server.stop().await;
}

#[tokio::test]
async fn strict_mode_refuses_unknown_types() {
    let server = Server::start_with(|config| config.strict_types = true).await;
    let context = server.context().await;
    let path = format!("/v1/contexts/{context}/turns");
    for body in [
        json!({"payload_b64": ""}),
        json!({"payload_b64": "", "type_id": "a", "type_version": 1}),
    ] {
        server
            .post(&path, &body)
            .send()
            .await
            .error(412, "PreconditionFailed");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_page_is_the_contract_s() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    server.say(&context, "hello").await;
    let expect = json!({
        "meta": {
            "context_id": "1", "head_turn_id": "1", "head_depth": 0,
            "registry_bundle_id": "2025-12-19T20:00:00Z#abc/123",
        },
        "turns": [{
            "turn_id": "1", "parent_turn_id": "0", "depth": 0, "context_id": "1", "created_at": NOW,
            "declared_type": {"type_id": MESSAGE, "type_version": 1},
            "decoded_as": {"type_id": MESSAGE, "type_version": 1},
            "data": {"role": "user", "text": "hello"},
        }],
        "next_before_turn_id": null,
    });
    assert_eq!(server.read("/v1/contexts/1/turns").await, expect);
    assert_eq!(server.read("/v1/turns/1").await, expect["turns"][0]);
    server.stop().await;
}

#[tokio::test]
async fn pages_go_back_to_the_first_turn_and_stay_stable_when_the_head_moves() {
    let server = Server::start().await;
    let context = server.context().await;
    for _ in 0..10 {
        server
            .append(&context, json!({"payload_b64": HI_B64}))
            .await;
    }
    let path = format!("/v1/contexts/{context}/turns?view=raw");
    let newest = server.read(&format!("{path}&limit=4")).await;
    assert_eq!(
        (ids(&newest), &newest["next_before_turn_id"]),
        (vec!["7", "8", "9", "10"], &json!("7"))
    );
    server
        .append(
            &context,
            json!({"payload_b64": HI_B64, "parent_turn_id": "2"}),
        )
        .await;
    let older = server
        .read(&format!("{path}&limit=4&before_turn_id=7"))
        .await;
    assert_eq!(
        (ids(&older), &older["next_before_turn_id"]),
        (vec!["3", "4", "5", "6"], &json!("3"))
    );
    let oldest = server
        .read(&format!("{path}&limit=4&before_turn_id=3"))
        .await;
    assert_eq!(
        (ids(&oldest), &oldest["next_before_turn_id"]),
        (vec!["1", "2"], &Value::Null)
    );
    assert_eq!(
        ids(&server.read(&format!("{path}&before_turn_id=1")).await),
        Vec::<&str>::new()
    );
    assert_eq!(
        ids(&server
            .read(&format!("{path}&before_turn_id=0&limit=2"))
            .await),
        ["2", "11"]
    );
    assert_eq!(
        ids(&server.read(&format!("{path}&limit=0")).await),
        Vec::<&str>::new()
    );
    assert_eq!(
        ids(&server.read(&format!("{path}&limit=99999999")).await),
        ["1", "2", "11"]
    );
    server
        .get(&format!("{path}&before_turn_id=99"))
        .send()
        .await
        .error(404, "NotFound");
    server.stop().await;
}

#[tokio::test]
async fn an_empty_context_has_an_empty_page() {
    let server = Server::start().await;
    let context = server.context().await;
    let page = server.read(&format!("/v1/contexts/{context}/turns")).await;
    assert_eq!(
        (&page["turns"], &page["next_before_turn_id"]),
        (&json!([]), &Value::Null)
    );
    assert_eq!(page["meta"]["registry_bundle_id"], Value::Null);
    server
        .get("/v1/contexts/9/turns")
        .send()
        .await
        .error(404, "NotFound");
    server
        .get("/v1/turns/9")
        .send()
        .await
        .error(404, "NotFound");
    server.stop().await;
}

#[tokio::test]
async fn raw_views_hold_the_uncompressed_bytes() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    let body = json!({"type_id": MESSAGE, "type_version": 1, "payload_b64": HI_B64});
    server.append(&context, body).await;
    let turn = async |query: &str| server.read(&format!("/v1/turns/1?{query}")).await;
    let raw = turn("view=raw").await;
    assert_eq!(raw["bytes_b64"], HI_B64);
    assert_eq!(raw["content_hash_b3"], BlobHash::of(HI).to_string());
    assert_eq!(
        (
            &raw["encoding"],
            &raw["compression"],
            &raw["uncompressed_len"]
        ),
        (&json!(1), &json!(0), &json!(7))
    );
    assert!(
        raw.get("data").is_none()
            && raw.get("decoded_as").is_none()
            && raw.get("bytes_hex").is_none()
    );
    let hex = turn("view=raw&bytes_render=hex").await;
    assert_eq!(hex["bytes_hex"], hex::encode(HI));
    assert!(hex.get("bytes_b64").is_none());
    let len_only = turn("view=raw&bytes_format=len_only").await;
    assert!(len_only.get("bytes_b64").is_none() && len_only.get("bytes_hex").is_none());
    assert_eq!(
        (&len_only["uncompressed_len"], &len_only["bytes_len"]),
        (&json!(7), &json!(7))
    );
    let both = turn("view=both").await;
    assert_eq!(
        (&both["bytes_b64"], &both["data"]["text"]),
        (&json!(HI_B64), &json!("hi"))
    );
    server.stop().await;
}

#[tokio::test]
async fn a_large_payload_comes_back_as_it_went_in() {
    let server = Server::start().await;
    let context = server.context().await;
    let text = "turnkeep ".repeat(100_000);
    let mut data = vec![0x81, 0x01];
    rmp::encode::write_str(&mut data, &text).unwrap();
    let payload = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &data);
    server
        .append(&context, json!({"payload_b64": payload}))
        .await;
    assert_eq!(
        server.read("/v1/turns/1?view=raw").await["bytes_b64"],
        payload
    );
    server.stop().await;
}

#[tokio::test]
async fn a_page_that_is_too_large_keeps_the_newest_turns() {
    let server = Server::start_with(|config| config.limits.page_bytes_max = 2000).await;
    let context = server.context().await;
    let payload = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, vec![0; 600]);
    for _ in 0..6 {
        server
            .append(&context, json!({"payload_b64": payload}))
            .await;
    }
    let path = format!("/v1/contexts/{context}/turns?view=raw");
    let page = server.read(&format!("{path}&bytes_render=len_only")).await;
    assert_eq!(
        (ids(&page), &page["next_before_turn_id"]),
        (vec!["4", "5", "6"], &json!("4"))
    );
    // The text counts as well: base64 makes fewer turns fit, but one always does.
    let page = server.read(&path).await;
    assert_eq!(ids(&page), ["6"]);
    let page = server.read(&format!("{path}&before_turn_id=6")).await;
    assert_eq!(
        (ids(&page), &page["next_before_turn_id"]),
        (vec!["5"], &json!("5"))
    );
    server.stop().await;
}
