//! Notices for the owner on the feed of all events.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Server, Stream};
use crate::runs::start;
use crate::stopped_time::StoppedTime;

/// The next notice: its kind and its data.
async fn next(feed: &mut Stream) -> (String, Value) {
    loop {
        let event = feed.event().await.unwrap();
        let (kind, data) = event.split_once("\ndata: ").unwrap();
        // What has an id is an event of the store.
        if let Some(kind) = kind.strip_prefix("event: ") {
            return (kind.to_owned(), serde_json::from_str(data).unwrap());
        }
    }
}

async fn follow(server: &Server) -> Stream {
    let mut feed = server.get("/v1/events").stream().await;
    assert!(feed.chunk().await.unwrap().starts_with(": open"));
    feed
}

#[track_caller]
fn is_change(notice: &(String, Value), kind: &str, of: &str) {
    assert_eq!((notice.0.as_str(), &notice.1), (kind, &json!({"ref": of})));
}

#[tokio::test]
async fn the_feed_says_which_run_changed_and_what_waits() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let mut feed = follow(&server).await;
    let run = server.paused_run().await;
    let name = format!("run:{run}");
    is_change(&next(&mut feed).await, "run.changed", &name);
    let path = format!("/api/runs/{run}");
    server.patch(&path, &json!({"status": "completed"})).await;
    loop {
        let notice = next(&mut feed).await;
        if notice.0 == "attention.changed" {
            assert_eq!(notice.1, json!({"count": 1}), "it is finished");
            break;
        }
        is_change(&notice, "run.changed", &name);
    }
    // A feed that begins now knows what waits already.
    let mut later = follow(&server).await;
    server.delete(&path).await;
    for feed in [&mut feed, &mut later] {
        is_change(&next(feed).await, "run.changed", &name);
        let gone = ("attention.changed".to_owned(), json!({"count": 0}));
        assert_eq!(next(feed).await, gone);
    }
    server.stop().await;
}

#[tokio::test]
async fn many_changes_of_one_object_are_one_notice_each_quarter_of_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let time = StoppedTime::begin();
    let mut feed = follow(&server).await;
    let run = server.paused_run().await;
    let name = format!("run:{run}");
    is_change(&next(&mut feed).await, "run.changed", &name);
    let path = format!("/api/runs/{run}");
    for number in 0..20 {
        let goal = json!({"goal": format!("goal {number}")});
        assert_eq!(server.patch(&path, &goal).await.status, 200);
    }
    // The marker is a change of the store. It comes before the notices that wait for the clock.
    let marker = server.context().await;
    let event = loop {
        let event = feed.event().await.unwrap();
        if event.contains("context.created") && event.contains(&format!("\"{marker}\"")) {
            break event;
        }
        assert!(event.starts_with("id: "), "too early: {event}");
    };
    assert!(event.starts_with("id: "));
    time.advance(Duration::from_millis(251)).await;
    is_change(&next(&mut feed).await, "run.changed", &name);
    let marker = server.context().await;
    let ended = async {
        loop {
            let event = feed.event().await.unwrap();
            if event.contains("context.created") && event.contains(&format!("\"{marker}\"")) {
                break;
            }
            assert!(event.starts_with("id: "), "a second notice: {event}");
        }
    };
    ended.await;
    tokio::time::resume();
    server.stop().await;
}
