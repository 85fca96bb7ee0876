//! Bytes that the disk did not keep: named, never served.

use std::sync::Arc;

use serde_json::{Value, json};
use turnkeep_journal::{MemoryStorage, Storage};
use turnkeep_store::salvage;
use turnkeep_types::BlobHash;

use crate::client::Server;

/// Changes one byte of the only place where `needle` is.
fn damage(disk: &MemoryStorage, needle: &[u8]) -> MemoryStorage {
    let mut files = disk.files();
    let mut changed = 0;
    for bytes in files.values_mut() {
        if let Some(place) = bytes
            .windows(needle.len())
            .position(|window| window == needle)
        {
            bytes[place] ^= 1;
            changed += 1;
        }
    }
    assert_eq!(changed, 1, "the payload is in one file");
    MemoryStorage::with_files(files)
}

#[tokio::test]
async fn a_damaged_payload_is_named_and_hides_nothing_else() {
    let disk = MemoryStorage::new();
    let server = Server::start_on(disk.clone(), |_| {}).await;
    let context = server.context().await;
    for text in ["first", "needle", "last"] {
        let payload = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
        server
            .append(&context, json!({"payload_b64": payload}))
            .await;
    }
    let hash = server.read("/v1/turns/2?view=raw").await["content_hash_b3"]
        .as_str()
        .unwrap()
        .to_owned();
    server.stop().await;
    let server = Server::start_on(damage(&disk, b"needle"), |_| {}).await;
    let page = server.read("/v1/contexts/1/turns?view=raw").await;
    let turns = page["turns"].as_array().unwrap();
    assert_eq!(
        (&turns[0]["bytes_b64"], &turns[2]["bytes_b64"]),
        (&json!("Zmlyc3Q="), &json!("bGFzdA=="))
    );
    assert_eq!(
        (&turns[1]["error"]["code"], &turns[1]["error"]["status"]),
        (&json!("DecodeError"), &json!(500))
    );
    assert!(turns[1].get("bytes_b64").is_none() && turns[1]["content_hash_b3"] == hash);
    let details = server
        .get("/v1/turns/2?view=raw")
        .send()
        .await
        .error(500, "DecodeError");
    assert_eq!(details["hash"], hash);
    server
        .get(&format!("/v1/blobs/{hash}"))
        .send()
        .await
        .error(500, "DecodeError");
    server.stop().await;
}

/// The store without the frames that hold the needles, repaired.
fn repaired_without(disk: &MemoryStorage, needles: &[&str]) -> MemoryStorage {
    let mut files = disk.files();
    let log = files.get_mut("log/0000000001.seg").unwrap();
    for needle in needles {
        let needle_at = log
            .windows(needle.len())
            .position(|window| window == needle.as_bytes())
            .unwrap();
        let frame_at = log[..needle_at]
            .windows(4)
            .rposition(|window| window == b"TKF1")
            .unwrap();
        log[frame_at + 40] ^= 1;
    }
    let from: Arc<dyn Storage> = Arc::new(MemoryStorage::with_files(files));
    let repaired = MemoryStorage::new();
    let to: Arc<dyn Storage> = Arc::new(repaired.clone());
    salvage::repair(&from, &to, 1 << 20, |_, _| ()).unwrap();
    repaired
}

async fn append_text(server: &Server, context: &str, text: &str) {
    let payload = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    server
        .append(context, json!({"payload_b64": payload}))
        .await;
}

#[tokio::test]
async fn after_a_repair_every_gap_is_an_error_or_is_marked() {
    let disk = MemoryStorage::new();
    let server = Server::start_on(disk.clone(), |_| {}).await;
    let context = server.context().await;
    for text in ["first", "needle", "third"] {
        append_text(&server, &context, text).await;
    }
    server
        .post("/v1/contexts", &json!({"labels": {"name": "straw"}}))
        .send()
        .await;
    append_text(&server, &context, "needle").await;
    server.stop().await;

    let server = Server::start_on(repaired_without(&disk, &["needle", "straw"]), |_| {}).await;
    let gap = json!({"turn_id": "2", "earlier_turn_id": "1", "next_depth": 2});
    let page = server.read("/v1/contexts/1/turns").await;
    assert_eq!(
        (&page["turns"][0]["turn_id"], &page["next_before_turn_id"]),
        (&json!("3"), &json!("3"))
    );
    assert_eq!(
        page["turns"][1]["error"]["code"], "DecodeError",
        "its payload was in the lost frame"
    );
    let failed = server
        .get("/v1/contexts/1/turns?before_turn_id=3")
        .send()
        .await
        .error(500, "DecodeError");
    assert_eq!(failed, gap);
    for path in [
        "/v1/contexts/1/turns?before_turn_id=2",
        "/v1/turns/2",
        "/v1/turns/2/fs",
    ] {
        let failed = server.get(path).send().await.error(500, "DecodeError");
        assert_eq!(failed["turn_id"], "2", "{path}");
    }
    let blob = format!("/v1/blobs/{}", BlobHash::of(b"needle"));
    server.get(&blob).send().await.error(500, "DecodeError");

    let lost = server.read("/v1/contexts/2").await;
    assert_eq!(
        (&lost["creation_lost"], &lost["labels"]),
        (&json!(true), &json!({}))
    );
    let failed = server
        .get("/v1/contexts/2/turns")
        .send()
        .await
        .error(500, "DecodeError");
    assert_eq!(failed["context_id"], "2");
    let sound = server.read("/v1/contexts/1").await;
    assert_eq!(
        (sound.get("creation_lost"), sound.get("head_lost")),
        (None, None)
    );

    let mut stream = server.get("/v1/events?after=0").stream().await;
    let mut kinds = Vec::new();
    for _ in 0..6 {
        let event = stream.event().await.unwrap();
        kinds.push(
            event
                .lines()
                .find_map(|line| line.strip_prefix("event: "))
                .unwrap()
                .to_owned(),
        );
        if event.contains("turn.lost") {
            assert!(event.contains(r#"{"turn_id":"2"}"#), "{event}");
        }
    }
    let expected = [
        "context.created",
        "turn.appended",
        "turn.lost",
        "turn.appended",
        "context.lost",
        "turn.appended",
    ];
    assert_eq!(kinds, expected);
    let stats: Value = server.read("/v1/stats").await;
    assert_eq!(
        (&stats["lost_turns"], &stats["lost_contexts"]),
        (&json!(1), &json!(1))
    );
    server.stop().await;
}
