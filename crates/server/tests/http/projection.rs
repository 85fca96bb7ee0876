//! The options of typed views, and what becomes of turns that cannot be shown.

use serde_json::{Value, json};

use crate::client::{MESSAGE, Server};

/// A message with all fields, one unknown tag, a u64 beyond 2^53, bytes and a time.
fn rich() -> Value {
    // {1: 3, 2: "hi", 3: 2^63, 4: bin 0x00ff, 5: 1766174400123, 9: 42}
    let bytes = hex::decode("86010302a2686903cf800000000000000004c40200ff05cf0000019b38329e7b092a")
        .unwrap();
    let payload = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    json!({"type_id": MESSAGE, "type_version": 1, "payload_b64": payload})
}

#[tokio::test]
async fn every_option_has_its_effect() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    server.append(&context, rich()).await;
    let check = async |query: &str, field: &str, expect: Value| {
        let turn = server.read(&format!("/v1/turns/1?{query}")).await;
        assert_eq!(turn["data"][field], expect, "{query}: {turn}");
    };
    check("", "role", json!("assistant")).await;
    check("enum_render=number", "role", json!(3)).await;
    check(
        "enum_render=both",
        "role",
        json!({"label": "assistant", "value": 3}),
    )
    .await;
    check("", "call", json!("9223372036854775808")).await;
    check(
        "u64_format=number",
        "call",
        json!(9_223_372_036_854_775_808_u64),
    )
    .await;
    check("", "image", json!("AP8=")).await;
    check("bytes_render=hex", "image", json!("00ff")).await;
    check("bytes_render=len_only", "image", json!(2)).await;
    check("", "at", json!("2025-12-19T20:00:00.123Z")).await;
    check("time_render=unix_ms", "at", json!(1_766_174_400_123_u64)).await;
    assert!(server.read("/v1/turns/1").await.get("unknown").is_none());
    assert_eq!(
        server.read("/v1/turns/1?include_unknown=1").await["unknown"],
        json!({"9": 42})
    );
    server.stop().await;
}

#[tokio::test]
async fn type_hints_choose_the_descriptor() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    server.append(&context, rich()).await;
    let mut second = crate::client::message_bundle();
    second["bundle_id"] = json!("second");
    let fields = second["types"][MESSAGE]["versions"]["1"]["fields"].clone();
    second["types"][MESSAGE]["versions"] = json!({"2": {"fields": fields}});
    second["types"][MESSAGE]["versions"]["2"]["fields"]["2"]["name"] = json!("body");
    let put = server
        .put("/v1/registry/bundles/second")
        .json(&second)
        .send()
        .await;
    assert_eq!(put.status, 201, "{}", put.text());
    let check = async |query: &str, version: u32, field: &str| {
        let turn = server.read(&format!("/v1/turns/1?{query}")).await;
        assert_eq!(turn["decoded_as"]["type_version"], version, "{query}");
        assert_eq!(turn["data"][field], "hi", "{query}");
    };
    check("", 1, "text").await;
    check("type_hint_mode=inherit", 1, "text").await;
    check("type_hint_mode=latest", 2, "body").await;
    check(
        &format!("type_hint_mode=explicit&as_type_id={MESSAGE}&as_type_version=2"),
        2,
        "body",
    )
    .await;
    let page = server
        .read("/v1/contexts/1/turns?type_hint_mode=latest")
        .await;
    assert_eq!(page["meta"]["registry_bundle_id"], "second");
    server.stop().await;
}

#[tokio::test]
async fn one_bad_turn_never_hides_the_others() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    server.say(&context, "good").await;
    server
        .append(&context, json!({"payload_b64": "gA=="}))
        .await;
    server
        .append(
            &context,
            json!({"payload_b64": "gA==", "type_id": "com.example.None", "type_version": 1}),
        )
        .await;
    server
        .append(
            &context,
            json!({"payload_b64": "wQ==", "type_id": MESSAGE, "type_version": 1}),
        )
        .await;
    server
        .append(
            &context,
            json!({"payload_b64": "", "type_id": MESSAGE, "type_version": 1}),
        )
        .await;
    server.say(&context, "also good").await;
    let page = server.read("/v1/contexts/1/turns").await;
    let turns = page["turns"].as_array().unwrap();
    assert_eq!(
        (&turns[0]["data"]["text"], &turns[5]["data"]["text"]),
        (&json!("good"), &json!("also good"))
    );
    let faults = [
        (1, 422, "MissingTypeHint"),
        (2, 424, "FailedDependency"),
        (3, 500, "DecodeError"),
        (4, 500, "DecodeError"),
    ];
    for (place, status, code) in faults {
        let turn = &turns[place];
        assert_eq!(
            (&turn["error"]["status"], &turn["error"]["code"]),
            (&json!(status), &json!(code)),
            "{turn}"
        );
        assert!(
            turn["bytes_b64"].is_string() && turn["content_hash_b3"].is_string(),
            "beside the raw view: {turn}"
        );
        assert!(
            turn.get("data").is_none() && turn.get("decoded_as").is_none(),
            "{turn}"
        );
        server
            .get(&format!("/v1/turns/{}", place + 1))
            .send()
            .await
            .error(status, code);
        assert_eq!(
            server
                .get(&format!("/v1/turns/{}?view=raw", place + 1))
                .send()
                .await
                .status,
            200
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn explicit_types_that_do_not_fit_are_conflicts_and_unpublished_ones_fail_the_page() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    server
        .append(
            &context,
            json!({"payload_b64": "gA==", "type_id": "com.example.Other", "type_version": 1}),
        )
        .await;
    server.say(&context, "fits").await;
    let hint = |version: u32| {
        format!("type_hint_mode=explicit&as_type_id={MESSAGE}&as_type_version={version}")
    };
    let page = server
        .read(&format!("/v1/contexts/1/turns?{}", hint(1)))
        .await;
    assert_eq!(
        (
            &page["turns"][0]["error"]["code"],
            &page["turns"][1]["data"]["text"]
        ),
        (&json!("Conflict"), &json!("fits"))
    );
    server
        .get(&format!("/v1/turns/1?{}", hint(1)))
        .send()
        .await
        .error(409, "Conflict");
    server
        .get(&format!("/v1/contexts/1/turns?{}", hint(2)))
        .send()
        .await
        .error(424, "FailedDependency");
    server
        .get("/v1/contexts/1/turns?type_hint_mode=explicit")
        .send()
        .await
        .error(422, "MissingTypeHint");
    server
        .get("/v1/contexts/1/turns?as_type_version=1")
        .send()
        .await
        .error(400, "BadRequest");
    server.stop().await;
}

#[tokio::test]
async fn unknown_query_names_and_values_are_refused_with_the_legal_ones() {
    let server = Server::start().await;
    server.context().await;
    let details = server
        .get("/v1/contexts/1/turns?view=pretty")
        .send()
        .await
        .error(400, "BadRequest");
    assert_eq!(
        details,
        json!({"parameter": "view", "value": "pretty", "legal": ["typed", "raw", "both"]})
    );
    let details = server
        .get("/v1/contexts/1/turns?sort=asc")
        .send()
        .await
        .error(400, "BadRequest");
    assert_eq!(details["parameter"], "sort");
    assert!(
        details["legal"]
            .as_array()
            .unwrap()
            .contains(&json!("before_turn_id"))
    );
    let details = server
        .get("/v1/turns/1?limit=1")
        .send()
        .await
        .error(400, "BadRequest");
    assert_eq!(details["parameter"], "limit");
    for path in [
        "/v1/contexts/1",
        "/v1/settings",
        "/v1/stats",
        "/healthz",
        "/metrics",
        "/openapi.json",
        "/v1/registry/types",
    ] {
        server
            .get(&format!("{path}?x=1"))
            .send()
            .await
            .error(400, "BadRequest");
    }
    server.stop().await;
}
