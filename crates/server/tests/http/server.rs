//! The server about itself: health, stats, metrics, export.

use std::sync::Arc;

use serde_json::json;
use turnkeep_journal::{MemoryStorage, Storage};
use turnkeep_server::{Auth, Token};
use turnkeep_store::archive;
use turnkeep_types::BlobHash;

use crate::client::{Server, within};

#[tokio::test]
async fn health_says_ok_and_the_version() {
    let server = Server::start().await;
    assert_eq!(
        server.read("/healthz").await,
        json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")})
    );
    server.stop().await;
}

#[tokio::test]
async fn stats_and_metrics_count_what_happened() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    server.say(&context, "one").await;
    server.say(&context, "one").await;
    server
        .get("/v1/contexts/99")
        .send()
        .await
        .error(404, "NotFound");
    let stats = server.read("/v1/stats").await;
    for (name, expect) in [
        ("turns", 2),
        ("contexts", 1),
        ("blobs", 1),
        ("bundles", 1),
        ("types", 1),
        ("events", 4),
    ] {
        assert_eq!(stats[name], expect, "{name}");
    }
    assert_eq!(stats["tcp_addr"], server.tcp_addr().to_string());
    assert_eq!(
        (&stats["poisoned"], &stats["connections"]),
        (&json!(false), &json!(1))
    );
    let metrics = server.get("/metrics").send().await;
    assert!(
        metrics
            .header("content-type")
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    let text = metrics.text();
    for line in [
        "turnkeep_turns_total 2",
        "turnkeep_connections 1",
        "turnkeep_poisoned 0",
        "turnkeep_memory_budget_bytes 1073741824",
        "turnkeep_memory_used_bytes 0",
        "turnkeep_memory_waiting_requests 0",
        "turnkeep_http_requests_total{route=\"/v1/contexts/{context_id}/turns\",method=\"POST\",status=\"201\"} 2",
        "turnkeep_http_requests_total{route=\"/v1/contexts/{context_id}\",method=\"GET\",status=\"404\"} 1",
        "# EOF",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} in\n{text}");
    }
    server.stop().await;
}

#[tokio::test]
async fn health_and_metrics_have_a_second_address_each() {
    let server = Server::start_with(|config| config.auth = Auth::Token(Token::new("secret"))).await;
    let health = server.get("/health").send().await;
    assert_eq!(
        (health.status, health.json()),
        (200, server.read("/healthz").await),
        "open to everyone"
    );
    assert_eq!(server.get("/v1/metrics").send().await.status, 401);
    let metrics = server
        .get("/v1/metrics")
        .header("authorization", "Bearer secret")
        .send()
        .await;
    assert!(
        metrics
            .header("content-type")
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    server.stop().await;
}

#[tokio::test]
async fn an_export_imports_as_the_same_store() {
    let server = Server::with_messages().await;
    let context = server.context().await;
    for text in ["one", "two", &"three ".repeat(100_000)] {
        server.say(&context, text).await;
    }
    let page = server.read("/v1/contexts/1/turns?view=both").await;
    let export = server.get("/v1/export").send().await;
    assert_eq!(
        (export.status, export.header("content-type")),
        (200, Some("application/octet-stream"))
    );
    server.stop().await;
    let disk = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    archive::import(&storage, 64 << 20, &mut &export.body[..], |_, _| ()).unwrap();
    let copy = Server::start_on(disk, |_| {}).await;
    assert_eq!(copy.read("/v1/contexts/1/turns?view=both").await, page);
    copy.stop().await;
}

#[tokio::test]
async fn a_few_exports_at_once_and_no_more() {
    let server = Server::start().await;
    // More than the sockets between us hold, so that an export that is not read does not end.
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    let noise: Vec<u8> = (0..24 << 20).map(|_| next()).collect();
    let path = format!("/v1/blobs/{}", BlobHash::of(&noise));
    assert_eq!(server.put(&path).body(noise).send().await.status, 201);
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(server.get("/v1/export").stream().await);
        assert_eq!(held.last().unwrap().response.status(), 200);
    }
    server
        .get("/v1/export")
        .send()
        .await
        .error(429, "TooManyRequests");
    held.pop();
    within(async { while server.get("/v1/export").stream().await.response.status() != 200 {} })
        .await;
    drop(held);
    server.stop().await;
}
