//! How a person hears elsewhere that something waits.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use turnkeep_journal::MemoryStorage;
use turnkeep_server::WebhookTarget;

use super::start_on;
use crate::client::within;
use crate::stopped_time::StoppedTime;

/// Moves the clock until a request comes, answers it with this status and returns its body. The clock
/// rests meanwhile: the request must not time out.
async fn take_request(time: &StoppedTime, listener: &TcpListener, status: &str) -> Value {
    let came = time.advance_until(Duration::from_millis(50), listener.accept());
    let (mut stream, _) = came.await.unwrap();
    let mut text = String::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.unwrap();
        assert_ne!(count, 0, "the request is cut: {text}");
        text.push_str(std::str::from_utf8(&part[..count]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        assert!(head.starts_with("POST /hook?key=1 HTTP/1.1\r\n"), "{head}");
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.parse::<usize>().unwrap())
        });
        if body.len() == length.unwrap() {
            let body = serde_json::from_str(body).unwrap();
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
            // Until the client has read the answer and is gone.
            assert_eq!(stream.read(&mut part).await.unwrap_or(0), 0);
            return body;
        }
    }
}

#[tokio::test]
async fn a_webhook_hears_of_a_new_item_once_and_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/hook?key=1", listener.local_addr().unwrap());
    let server = start_on(MemoryStorage::new(), dir.path(), |config| {
        config.runs.notify.webhook = Some(WebhookTarget::parse(&address, None).unwrap());
    })
    .await;
    let time = StoppedTime::begin();
    let run = server.paused_run().await;
    let completed = json!({"status": "completed"});
    server.patch(&format!("/api/runs/{run}"), &completed).await;
    let first = take_request(&time, &listener, "503 Busy").await;
    let second = take_request(&time, &listener, "204 Fine").await;
    assert_eq!(first, second, "the same items are sent again");
    let items = first["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{first}");
    assert_eq!(
        (&items[0]["kind"], &items[0]["runId"]),
        (&json!("finished"), &json!(run))
    );
    // A later item comes alone: the first is known.
    let other = server.paused_run().await;
    server
        .patch(&format!("/api/runs/{other}"), &completed)
        .await;
    let third = take_request(&time, &listener, "204 Fine").await;
    assert_eq!(third["items"].as_array().unwrap().len(), 1);
    assert_eq!(third["items"][0]["runId"], json!(other));
    drop(time);
    server.stop().await;
}

#[tokio::test]
async fn the_desktop_shows_a_title_and_a_text() {
    let dir = tempfile::tempdir().unwrap();
    let (program, shown) = (dir.path().join("show"), dir.path().join("shown"));
    let script = format!(
        "#!/bin/sh\nprintf '%s|%s\\n' \"$1\" \"$2\" > {0}.part\nmv {0}.part {0}\n",
        shown.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let server = start_on(MemoryStorage::new(), dir.path(), |config| {
        config.runs.notify.desktop = Some(program.display().to_string());
    })
    .await;
    let run = server.paused_run().await;
    let completed = json!({"status": "completed"});
    server.patch(&format!("/api/runs/{run}"), &completed).await;
    let appears = async {
        while !shown.exists() {
            tokio::task::yield_now().await;
        }
    };
    within(appears).await;
    let text = fs::read_to_string(&shown).unwrap();
    assert_eq!(text, "Turnkeep: finished|the run is completed\n");
    server.stop().await;
}

#[tokio::test]
async fn a_webhook_that_always_fails_is_given_up_and_the_next_item_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/hook?key=1", listener.local_addr().unwrap());
    let server = start_on(MemoryStorage::new(), dir.path(), |config| {
        config.runs.notify.webhook = Some(WebhookTarget::parse(&address, None).unwrap());
    })
    .await;
    let time = StoppedTime::begin();
    let run = server.paused_run().await;
    let completed = json!({"status": "completed"});
    server.patch(&format!("/api/runs/{run}"), &completed).await;
    for _ in 0..3 {
        take_request(&time, &listener, "503 Busy").await;
    }
    // Runs go on meanwhile.
    let other = server.paused_run().await;
    let path = format!("/api/runs/{other}");
    assert_eq!(server.patch(&path, &completed).await.status, 200);
    let last = take_request(&time, &listener, "503 Busy").await;
    assert_eq!(last["items"][0]["runId"], json!(run));
    let next = take_request(&time, &listener, "204 Fine").await;
    let of_runs: Vec<&Value> = next["items"].as_array().unwrap().iter().collect();
    assert_eq!(of_runs.len(), 1, "{next}");
    assert_eq!(of_runs[0]["runId"], json!(other));
    drop(time);
    server.stop().await;
}
