//! Runs that have ended: what waits for a person until it was seen, and what can still be verified.

use serde_json::{Value, json};

use super::start;
use crate::client::Server;

/// A run in an empty directory, with these verification commands, that a person has completed.
async fn completed_run(server: &Server, work: &std::path::Path, verify: Value) -> String {
    let body = json!({"goal": "g", "cwd": work, "verify": verify});
    let created = server.post("/api/runs", &body).send().await;
    assert_eq!(created.status, 201, "{}", created.text());
    let run = created.json()["run"]["id"].as_str().unwrap().to_owned();
    let completed = json!({"status": "completed"});
    let reply = server.patch(&format!("/api/runs/{run}"), &completed).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    run
}

/// The kinds of what waits for a person.
async fn waiting(server: &Server) -> Vec<Value> {
    let list = server.read("/api/attention").await;
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["kind"].clone()).collect()
}

#[tokio::test]
async fn the_end_of_a_run_waits_until_it_is_dismissed() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let running = server.paused_run().await;
    let dismiss = async |run: &str| {
        let path = format!("/api/runs/{run}/dismiss");
        server.post(&path, &json!({})).send().await
    };
    dismiss(&running).await.error(409, "Conflict");
    let run = completed_run(&server, dir.path(), json!([])).await;
    let list = server.read("/api/attention").await;
    let item = &list["items"][0];
    assert_eq!(
        (&item["kind"], &item["ref"]),
        (&json!("finished"), &json!(format!("run:{run}")))
    );
    let actions = item["actions"].as_array().unwrap();
    assert!(actions.contains(&json!("dismiss")), "{item}");
    for _ in 0..2 {
        let dismissed = dismiss(&run).await;
        assert_eq!(dismissed.status, 200, "{}", dismissed.text());
        assert_eq!(dismissed.json()["run"]["status"], "completed");
        assert_eq!(waiting(&server).await, [] as [Value; 0]);
    }
    server.stop().await;
}

#[tokio::test]
async fn whoever_applies_the_work_of_a_run_has_seen_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let run = completed_run(&server, dir.path(), json!([])).await;
    assert_eq!(waiting(&server).await, ["finished"]);
    let path = format!("/api/runs/{run}/apply");
    let applied = server.post(&path, &json!({})).send().await;
    assert_eq!(applied.status, 200, "{}", applied.text());
    assert_eq!(waiting(&server).await, [] as [Value; 0]);
    server.stop().await;
}

#[tokio::test]
async fn a_completed_run_is_verified_on_request_and_stays_completed() {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let server = start(dir.path()).await;
    let run = completed_run(&server, &work, json!(["test -e proof"])).await;
    for ok in [false, true] {
        if ok {
            std::fs::write(work.join("proof"), "").unwrap();
        }
        let path = format!("/api/runs/{run}/verify");
        let verified = server.post(&path, &json!({})).send().await;
        assert_eq!(verified.status, 200, "{}", verified.text());
        assert_eq!(verified.json()["ok"], ok);
        let shown = server.read(&format!("/api/runs/{run}")).await;
        let shown = &shown["run"];
        assert_eq!(
            (&shown["status"], &shown["phase"]),
            (&json!("completed"), &json!("DONE"))
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn an_unknown_ref_is_named_in_the_error() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let reference = "turn:00000000-0000-4000-8000-000000000000";
    let refused = server.get(&format!("/v1/refs/{reference}/why"));
    let details = refused.send().await.error(404, "NotFound");
    assert_eq!(details["ref"], reference);
    server.stop().await;
}
