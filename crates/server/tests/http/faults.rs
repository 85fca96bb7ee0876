//! A disk that fails: writers get an error that says so, and readers go on.

use serde_json::json;
use turnkeep_journal::FaultyStorage;
use turnkeep_journal::storage::Fault;

use crate::client::{Reply, Server};

/// An operation that comes after everything that opening does.
const LATER: u64 = 60;
/// More appends than reach that operation.
const APPENDS_MAX: usize = 200;

/// Appends until the disk fails; gives the answer of the append that met the fault.
async fn append_until_refused(server: &Server, context: &str) -> Reply {
    let path = format!("/v1/contexts/{context}/turns");
    for n in 0..APPENDS_MAX {
        let body = json!({"payload_b64": "gA==", "idempotency_key": n.to_string()});
        let reply = server.post(&path, &body).send().await;
        if reply.status != 201 {
            return reply;
        }
    }
    panic!("the disk never failed");
}

#[tokio::test]
async fn a_full_disk_is_507_and_writing_goes_on_when_there_is_room() {
    let disk = FaultyStorage::new(Some((LATER, Fault::NoSpace)));
    let server = Server::start_on(disk, |_| {}).await;
    let context = server.context().await;
    let refused = append_until_refused(&server, &context).await;
    refused.error(507, "InsufficientStorage");
    assert_eq!(refused.header("retry-after"), Some("1"));
    let before = server.store.stats().turns;
    server
        .append(&context, json!({"payload_b64": "gA=="}))
        .await;
    assert_eq!(server.store.stats().turns, before + 1);
    assert_eq!(server.read("/healthz").await["status"], "ok");
    server.stop().await;
}

#[tokio::test]
async fn a_failed_sync_is_503_until_a_restart_and_readers_go_on() {
    let disk = FaultyStorage::new(Some((LATER, Fault::FailedSync)));
    let server = Server::start_on(disk, |_| {}).await;
    let context = server.context().await;
    append_until_refused(&server, &context)
        .await
        .error(503, "Unavailable");
    server
        .post("/v1/contexts", &json!({}))
        .send()
        .await
        .error(503, "Unavailable");
    let health = server.get("/healthz").send().await;
    assert_eq!(
        (health.status, &health.json()["status"]),
        (503, &json!("read_only"))
    );
    let page = server
        .read(&format!("/v1/contexts/{context}/turns?view=raw"))
        .await;
    let turns = page["turns"].as_array().map(Vec::as_slice);
    assert!(
        turns.is_some_and(|turns| turns.iter().all(|turn| turn.get("error").is_none())),
        "{page}"
    );
    assert_eq!(server.read("/v1/stats").await["poisoned"], true);
    server.stop().await;
}
