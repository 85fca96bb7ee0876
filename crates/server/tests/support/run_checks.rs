//! What must hold for the runs of every server that a test stops: each event fits its schema, and the
//! events of a run make the state that the server shows.
//!
//! [`Server::stop`](super::Server::stop) calls [`check_all_runs`], so no test can forget it.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use turnkeep_wire::runs::schema_check::{check_event, check_schema};

use super::Server;
use super::folded_run::{Decisions, ServedRun, check_served_run};
use crate::stopped_time::while_time_rests;

/// How often a run and its decisions are read until no event comes between them.
const READS_MAX: usize = 30;

/// Panics with the differences between the log of a run and the state that the server shows.
pub(super) async fn check_all_runs(server: &Server) {
    let has_runs = |server: &Server| {
        let mut contexts = server.store.contexts(None);
        contexts.any(|context| context.labels.contains_key("turnkeep.run"))
    };
    // Most servers have none, and some could not answer.
    if has_runs(server) {
        while_time_rests(check_listed_runs(server)).await;
    }
}

async fn check_listed_runs(server: &Server) {
    let listed = read(server, "/api/runs?summary=1").await.unwrap();
    for run in listed["runs"].as_array().unwrap() {
        let id = run["id"].as_str().unwrap();
        if let Some(served) = read_served_run(server, id).await {
            check_schema("RunAnswer", &serde_json::json!({"run": served.run})).unwrap();
            check_served_run(&served, &read_events(server, id).await);
        }
    }
}

/// Reads a run and its decisions. They belong together if no event came between them.
/// Returns `None` for a run that is deleted.
async fn read_served_run(server: &Server, id: &str) -> Option<ServedRun> {
    let path = format!("/api/runs/{id}");
    let mut run = read(server, &path).await?["run"].take();
    for _ in 0..READS_MAX {
        let decisions = Decisions {
            approvals: read_rows(server, id, "approvals", "approval").await,
            rules: read_rows(server, id, "rules", "rule").await,
        };
        let before = run;
        run = read(server, &path).await?["run"].take();
        if before["lastSeq"] == run["lastSeq"] {
            let decisions = Some(decisions);
            return Some(ServedRun { run, decisions });
        }
    }
    let decisions = None;
    Some(ServedRun { run, decisions })
}

async fn read_rows(server: &Server, run: &str, list: &str, field: &str) -> Vec<Value> {
    let mut listed = read(server, &format!("/api/{list}")).await.unwrap();
    let rows = listed[list].as_array_mut().unwrap().iter_mut();
    let of_run = rows.filter(|row| row["runId"] == run);
    of_run.map(|row| row[field].take()).collect()
}

/// All events of a run. Each fits its schema.
async fn read_events(server: &Server, run: &str) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let path = format!("/api/runs/{run}/events?limit=2000&after={}", events.len());
        let mut page = read(server, &path).await.unwrap();
        for event in page["events"].as_array_mut().unwrap() {
            check_event(event).unwrap_or_else(|error| panic!("{error}: {event:#}"));
            events.push(event.take());
        }
        if page["page"]["hasMore"] == false {
            return events;
        }
    }
}

/// The JSON of a resource; `None` if it is not there.
async fn read(server: &Server, path: &str) -> Option<Value> {
    let address = server.http_addr();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let owner = server.owner_header();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{owner}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    match head.split(' ').nth(1).unwrap() {
        "200" => Some(serde_json::from_str(body).unwrap()),
        "404" => None,
        _ => panic!("{path}: {answer}"),
    }
}
