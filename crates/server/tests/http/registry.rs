//! The registry over HTTP: ids in paths, entity tags, statuses.

use serde_json::json;

use crate::client::{BUNDLE_PATH, MESSAGE, Server, message_bundle};

#[tokio::test]
async fn a_bundle_is_published_once_and_comes_back_byte_for_byte() {
    let server = Server::start().await;
    let text = serde_json::to_string_pretty(&message_bundle()).unwrap();
    let put = async |body: &str| server.put(BUNDLE_PATH).body(body.to_owned()).send().await;
    assert_eq!(put(&text).await.status, 201);
    let again = put(&message_bundle().to_string()).await;
    assert_eq!((again.status, again.body.len()), (204, 0));
    let reply = server.get(BUNDLE_PATH).send().await;
    assert_eq!(
        (reply.status, reply.text(), reply.header("content-type")),
        (200, text, Some("application/json"))
    );
    let tag = reply.header("etag").unwrap();
    assert_eq!(tag.len(), 66);
    assert_eq!(
        server
            .get(BUNDLE_PATH)
            .header("if-none-match", tag)
            .send()
            .await
            .status,
        304
    );
    server.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_bundle_is_said() {
    let server = Server::with_messages().await;
    let mut other = message_bundle();
    other["enums"]["com.example.Role"]["4"] = json!("tool");
    server
        .put(BUNDLE_PATH)
        .json(&other)
        .send()
        .await
        .error(409, "Conflict");
    server
        .put("/v1/registry/bundles/other")
        .json(&message_bundle())
        .send()
        .await
        .error(422, "Unprocessable");
    server
        .put("/v1/registry/bundles/other")
        .body("{")
        .send()
        .await
        .error(422, "Unprocessable");
    let mut changed = message_bundle();
    changed["bundle_id"] = json!("changed");
    changed["types"][MESSAGE]["versions"]["2"] = changed["types"][MESSAGE]["versions"]["1"].clone();
    changed["types"][MESSAGE]["versions"]["2"]["fields"]["1"]["type"] = json!("string");
    server
        .put("/v1/registry/bundles/changed")
        .json(&changed)
        .send()
        .await
        .error(409, "Conflict");
    server
        .get("/v1/registry/bundles/changed")
        .send()
        .await
        .error(404, "NotFound");
    server
        .get("/v1/registry/bundles/%ff")
        .send()
        .await
        .error(400, "BadRequest");
    server.stop().await;
}

#[tokio::test]
async fn a_bundle_that_nests_too_deep_is_over_a_limit() {
    let server = Server::start().await;
    for depth in [129, 5000] {
        let deep = format!(
            "{{\"x\":{}{}}}",
            "[".repeat(depth - 1),
            "]".repeat(depth - 1)
        );
        let details = server
            .put("/v1/registry/bundles/b")
            .body(deep)
            .send()
            .await
            .error(413, "TooLarge");
        assert_eq!(details, json!({"limit": 128, "actual": depth}));
    }
    server.stop().await;
}

#[tokio::test]
async fn what_has_no_parts_is_sent_whole() {
    let server = Server::with_messages().await;
    for path in [
        BUNDLE_PATH,
        "/v1/registry/types",
        "/v1/registry/types/com.example.Message/versions/1",
    ] {
        let reply = server.get(path).header("range", "bytes=0-3").send().await;
        assert_eq!(
            (reply.status, reply.header("accept-ranges")),
            (200, None),
            "{path}"
        );
        assert_eq!(reply.body, server.get(path).send().await.body);
    }
    server.stop().await;
}

#[tokio::test]
async fn all_bundles_together_have_a_limit() {
    let bundle = message_bundle();
    let bytes = bundle.to_string().len();
    let server = Server::start_with(|config| config.limits.registry_bytes_max = bytes + 10).await;
    let first = server.put(BUNDLE_PATH).json(&bundle);
    assert_eq!(first.send().await.status, 201);
    let mut other = bundle.clone();
    other["bundle_id"] = "another".into();
    let another = server.put("/v1/registry/bundles/another").json(&other);
    another.send().await.error(413, "TooLarge");
    let again = server.put(BUNDLE_PATH).json(&bundle);
    assert_eq!(again.send().await.status, 204, "it is there already");
    server.stop().await;
}

#[tokio::test]
async fn an_oversized_bundle_is_refused() {
    let server = Server::start_with(|config| config.limits.bundle_bytes_max = 64).await;
    server
        .put(BUNDLE_PATH)
        .json(&message_bundle())
        .send()
        .await
        .error(413, "TooLarge");
    server.stop().await;
}

#[tokio::test]
async fn types_are_listed_and_shown_by_version() {
    let server = Server::with_messages().await;
    let types = server.read("/v1/registry/types").await;
    assert_eq!(types["types"][0]["type_id"], MESSAGE);
    assert_eq!(types["types"][0]["versions"], json!([1]));
    let path = format!("/v1/registry/types/{MESSAGE}/versions/1");
    let reply = server.get(&path).send().await;
    let shown = reply.json();
    assert_eq!(
        (&shown["type_id"], &shown["type_version"]),
        (&json!(MESSAGE), &json!(1))
    );
    assert_eq!(shown["bundle_id"], "2025-12-19T20:00:00Z#abc/123");
    assert_eq!(
        shown["fields"],
        message_bundle()["types"][MESSAGE]["versions"]["1"]["fields"]
    );
    assert_eq!(shown["enums"], message_bundle()["enums"]);
    for path in [path.as_str(), "/v1/registry/types"] {
        let tag = server
            .get(path)
            .send()
            .await
            .header("etag")
            .unwrap()
            .to_owned();
        assert_eq!(
            server
                .get(path)
                .header("if-none-match", &tag)
                .send()
                .await
                .status,
            304
        );
    }
    for (version, status, code) in [
        ("2", 404, "NotFound"),
        ("0", 404, "NotFound"),
        ("x", 400, "BadRequest"),
        ("01", 400, "BadRequest"),
    ] {
        server
            .get(&format!("/v1/registry/types/{MESSAGE}/versions/{version}"))
            .send()
            .await
            .error(status, code);
    }
    server
        .get("/v1/registry/types/none/versions/1")
        .send()
        .await
        .error(404, "NotFound");
    server.stop().await;
}
