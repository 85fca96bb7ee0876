//! Bytes that the disk did not keep: named, never served.

use serde_json::json;
use turnkeep_journal::MemoryStorage;

use crate::client::Server;

/// Changes one byte of the only place where `needle` is.
fn damage(disk: &MemoryStorage, needle: &[u8]) -> MemoryStorage {
    let mut files = disk.files();
    let mut changed = 0;
    for bytes in files.values_mut() {
        if let Some(place) = bytes.windows(needle.len()).position(|window| window == needle) {
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
    let server = Server::on(disk.clone(), |_| {}).await;
    let context = server.context().await;
    for text in ["first", "needle", "last"] {
        let payload = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
        server.append(&context, json!({"payload_b64": payload})).await;
    }
    let hash = server.read("/v1/turns/2?view=raw").await["content_hash_b3"].as_str().unwrap().to_owned();
    server.stop().await;
    let server = Server::on(damage(&disk, b"needle"), |_| {}).await;
    let page = server.read("/v1/contexts/1/turns?view=raw").await;
    let turns = page["turns"].as_array().unwrap();
    assert_eq!((&turns[0]["bytes_b64"], &turns[2]["bytes_b64"]), (&json!("Zmlyc3Q="), &json!("bGFzdA==")));
    assert_eq!(
        (&turns[1]["error"]["code"], &turns[1]["error"]["status"]),
        (&json!("DecodeError"), &json!(500))
    );
    assert!(turns[1].get("bytes_b64").is_none() && turns[1]["content_hash_b3"] == hash);
    let details = server.get("/v1/turns/2?view=raw").send().await.error(500, "DecodeError");
    assert_eq!(details["hash"], hash);
    server.get(&format!("/v1/blobs/{hash}")).send().await.error(500, "DecodeError");
    server.stop().await;
}
