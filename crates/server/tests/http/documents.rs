//! The OpenAPI document: checked in, served, and what the code does.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;
use turnkeep_server::http::query::{
    BlobsQuery, CapturedTurnQuery, CapturedTurnsQuery, ContextQuery, ContextsQuery, EventsQuery,
    FsPathQuery, FsRootQuery, LinesQuery, ReadingQuery, SignInQuery, StreamQuery, SubscribeQuery,
    TurnQuery, TurnsQuery, VerifyQuery, ViewsQuery,
};
use turnkeep_server::openapi_json;
use turnkeep_wire::json;

use crate::client::Server;

fn document() -> Value {
    serde_json::from_str(openapi_json()).unwrap()
}

#[test]
fn the_checked_in_document_is_the_code_s() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, openapi_json()).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == openapi_json(),
        "docs/openapi.json is out of date: run this test with UPDATE=1"
    );
}

#[tokio::test]
async fn the_document_is_served() {
    let server = Server::start().await;
    assert_eq!(
        server.get("/openapi.json").send().await.text(),
        openapi_json()
    );
    server.stop().await;
}

#[test]
fn every_operation_describes_its_errors_and_every_reference_resolves() {
    let document = document();
    let mut ids = HashSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        assert!(!path.contains('*'), "{path}");
        for (method, operation) in item.as_object().unwrap() {
            assert!(
                operation["responses"]["default"].is_object(),
                "{method} {path}"
            );
            let is_open = matches!(path.as_str(), "/healthz" | "/health");
            assert_eq!(
                operation["security"].is_array(),
                !is_open,
                "{method} {path}"
            );
            assert!(
                ids.insert(operation["operationId"].as_str().unwrap()),
                "{method} {path}"
            );
            assert!(operation["summary"].is_string(), "{method} {path}");
        }
    }
    resolve(&document, &document);
}

#[test]
fn the_document_says_what_the_derives_do_not() {
    let document = document();
    let at = |pointer: &str| {
        document
            .pointer(pointer)
            .unwrap_or_else(|| panic!("{pointer}"))
    };
    for create in [
        "/paths/~1v1~1contexts/post",
        "/paths/~1v1~1contexts~1create/post",
    ] {
        assert_eq!(
            at(&format!("{create}/requestBody/required")),
            false,
            "an empty body asks for an empty context"
        );
    }
    for create in [
        "contexts",
        "contexts~1create",
        "contexts~1fork",
        "contexts~1{context_id}~1turns",
        "contexts~1{context_id}~1append",
    ] {
        at(&format!(
            "/paths/~1v1~1{create}/post/responses/201/headers/Idempotency-Replayed"
        ));
    }
    assert_eq!(
        at("/paths/~1v1~1contexts~1fork/post/requestBody/required"),
        true
    );
    at("/paths/~1/get/responses/401/content/text~1html");
    at("/paths/~1v1~1blobs~1{hash}/head/responses/304");
    at("/components/securitySchemes/cookie");
    let version = at(
        "/paths/~1v1~1registry~1types~1{type_id}~1versions~1{type_version}/get/parameters/1/schema",
    );
    assert_eq!(
        (&version["minimum"], &version["maximum"]),
        (&0.into(), &u32::MAX.into())
    );
    let tag = at("/components/schemas/Warning/properties/tag/type");
    assert_eq!(tag, &serde_json::json!(["integer", "string", "null"]));
    let forms = at("/components/schemas/SentId/oneOf").as_array().unwrap();
    assert_eq!(
        forms[1]["type"], "integer",
        "an id in a body may be a number"
    );
}

fn resolve(document: &Value, part: &Value) {
    match part {
        Value::Object(map) => {
            if let Some(Value::String(target)) = map.get("$ref") {
                assert!(
                    document.pointer(target.trim_start_matches('#')).is_some(),
                    "{target}"
                );
            }
            map.values().for_each(|value| resolve(document, value));
        }
        Value::Array(list) => list.iter().for_each(|value| resolve(document, value)),
        _ => {}
    }
}

#[test]
fn the_query_parameters_of_the_document_are_those_of_the_parser() {
    let document = document();
    let check = |path: &str, expect: &[&str]| {
        let parameters = document["paths"][path]["get"]["parameters"]
            .as_array()
            .unwrap();
        let names = parameters
            .iter()
            .filter(|parameter| parameter["in"] == "query");
        let mut names: Vec<_> = names
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        let mut expect = expect.to_vec();
        names.sort_unstable();
        expect.sort_unstable();
        assert_eq!(names, expect, "{path}");
    };
    check("/v1/contexts/{context_id}/turns", TurnsQuery::NAMES);
    check("/v1/turns/{turn_id}", TurnQuery::NAMES);
    check("/v1/contexts", ContextsQuery::NAMES);
    check("/v1/contexts/{context_id}", ContextQuery::NAMES);
    check("/v1/turns/{turn_id}/fs", FsRootQuery::NAMES);
    check("/v1/turns/{turn_id}/fs/{path}", FsPathQuery::NAMES);
    check("/v1/blobs", BlobsQuery::NAMES);
    check("/v1/events", EventsQuery::NAMES);
    check("/v1/contexts/{context_id}/events", EventsQuery::NAMES);
    check("/", SignInQuery::NAMES);
    let turns = "/v1/sessions/{session}/turns";
    check(turns, CapturedTurnsQuery::NAMES);
    check(&format!("{turns}/{{seq}}"), CapturedTurnQuery::NAMES);
    let world = |tail: &str| format!("/v1/worlds/{{world}}{tail}");
    check(&world("/stream"), StreamQuery::NAMES);
    check(&world("/subscribe"), SubscribeQuery::NAMES);
    check(&world("/entries/{entry}"), ReadingQuery::NAMES);
    check(&world("/persons/{person}/capsule"), ReadingQuery::NAMES);
    check(&world("/views/{person}"), ViewsQuery::NAMES);
    check(&world("/audit/lines"), LinesQuery::NAMES);
    check(&world("/audit/derived"), LinesQuery::NAMES);
    check(&world("/verify"), VerifyQuery::NAMES);
}

#[tokio::test]
async fn every_documented_operation_is_served_and_every_page_reads_back_as_its_shape() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    server.say(&context, "one").await;
    server
        .append(&context, serde_json::json!({"payload_b64": "wQ=="}))
        .await;
    for query in [
        "",
        "?view=raw",
        "?view=both&include_unknown=1",
        "?view=raw&bytes_render=hex",
        "?view=raw&bytes_render=len_only",
    ] {
        let page = server
            .get(&format!("/v1/contexts/{context}/turns{query}"))
            .send()
            .await;
        let page: json::TurnPage = serde_json::from_slice(&page.body).unwrap();
        assert_eq!(page.turns.len(), 2);
    }
    for (path, item) in document()["paths"].as_object().unwrap() {
        let path = path
            .replace("{turn_id}", "1")
            .replace("{context_id}", "1")
            .replace("{path}", "x");
        let path = path
            .replace("{hash}", &"0".repeat(64))
            .replace("{bundle_id}", "b")
            .replace("{type_id}", "t");
        let path = path.replace("{type_version}", "1");
        for method in item.as_object().unwrap().keys() {
            let reply = server.call(&method.to_uppercase(), &path).stream().await;
            let status = reply.response.status().as_u16();
            assert!(status != 405, "{method} {path}: {status}");
        }
    }
    server.stop().await;
}
