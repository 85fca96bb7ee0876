//! The filesystem of a turn.

use rmp::encode::{write_array_len, write_bin, write_map_len, write_str, write_uint};
use serde_json::json;
use turnkeep_store::Command;
use turnkeep_types::{BlobHash, TurnId};

use crate::client::{Reply, Server};
use crate::limits::until_no_memory_is_used;

/// A tree of (name, kind, mode, bytes).
pub(crate) fn tree(entries: &[(&str, u64, u64, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    write_array_len(&mut out, u32::try_from(entries.len()).unwrap()).unwrap();
    for (name, kind, mode, bytes) in entries {
        write_map_len(&mut out, 5).unwrap();
        write_uint(&mut out, 1).unwrap();
        write_str(&mut out, name).unwrap();
        for (tag, value) in [(2, *kind), (3, *mode), (4, bytes.len() as u64)] {
            write_uint(&mut out, tag).unwrap();
            write_uint(&mut out, value).unwrap();
        }
        write_uint(&mut out, 5).unwrap();
        write_bin(&mut out, BlobHash::of(bytes).as_bytes()).unwrap();
    }
    out
}

async fn put(server: &Server, bytes: &[u8]) -> String {
    let hash = BlobHash::of(bytes).to_string();
    let reply = server
        .put(&format!("/v1/blobs/{hash}"))
        .body(bytes.to_vec())
        .send()
        .await;
    assert!(reply.status < 300, "{}", reply.text());
    hash
}

/// A server whose turn 1 has a filesystem, turn 2 none of its own and turn 3 one that is no tree.
/// Turn 4 has none, and neither has a turn before it.
async fn server() -> Server {
    let server = Server::start().await;
    let context = server.context().await;
    let inner = tree(&[
        ("a b#c.txt", 0, 0o644, b"inner"),
        ("gone", 0, 0o644, b"never put"),
    ]);
    let root = tree(&[
        ("README", 0, 0o644, b"hello world"),
        ("link", 2, 0o777, b"../x"),
        ("src", 1, 0o755, &inner),
    ]);
    for bytes in [
        b"inner".as_slice(),
        b"hello world",
        b"../x",
        &inner,
        b"no tree",
    ] {
        put(&server, bytes).await;
    }
    let hash = put(&server, &root).await;
    server
        .append(&context, json!({"payload_b64": "", "fs_root_hash": hash}))
        .await;
    server.append(&context, json!({"payload_b64": ""})).await;
    let hash = BlobHash::of(b"no tree").to_string();
    server
        .append(&context, json!({"payload_b64": "", "fs_root_hash": hash}))
        .await;
    let alone = server.context().await;
    server.append(&alone, json!({"payload_b64": ""})).await;
    server
}

#[tokio::test]
async fn a_directory_is_a_listing() {
    let server = server().await;
    for path in ["/v1/turns/1/fs", "/v1/turns/1/fs/"] {
        let root = server.read(path).await;
        assert_eq!((&root["turn_id"], &root["path"]), (&json!("1"), &json!("")));
        let expect = json!({
            "name": "README", "kind": "file", "mode": 0o644, "size": 11, "hash": BlobHash::of(b"hello world").to_string(),
        });
        assert_eq!(root["entries"][0], expect);
        let kinds: Vec<_> = root["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["file", "symlink", "directory"]);
    }
    let inner = server.read("/v1/turns/1/fs/src/").await;
    assert_eq!(
        (&inner["path"], &inner["entries"][0]["name"]),
        (&json!("src"), &json!("a b#c.txt"))
    );
    assert_eq!(
        server.read("/v1/turns/1?view=raw").await["fs_root_hash"],
        server.read("/v1/turns/1/fs").await["hash"]
    );
    server.stop().await;
}

#[tokio::test]
async fn a_file_is_its_bytes_with_ranges_and_a_link_is_shown() {
    let server = server().await;
    let file = server.get("/v1/turns/1/fs/src/a%20b%23c.txt").send().await;
    assert_eq!((file.status, file.text().as_str()), (200, "inner"));
    let tag = format!("\"{}\"", BlobHash::of(b"inner"));
    assert_eq!(file.header("etag"), Some(tag.as_str()));
    let known = server
        .get("/v1/turns/1/fs/src/a%20b%23c.txt")
        .header("if-none-match", &tag)
        .send()
        .await;
    assert_eq!(known.status, 304);
    let part = server
        .get("/v1/turns/1/fs/README")
        .header("range", "bytes=6-")
        .send()
        .await;
    assert_eq!((part.status, part.text().as_str()), (206, "world"));
    let link = server.read("/v1/turns/1/fs/link").await;
    assert_eq!(
        (&link["kind"], &link["target"]),
        (&json!("symlink"), &json!("../x"))
    );
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_not_found_and_what_is_no_tree_is_said() {
    let server = server().await;
    for path in [
        "none",
        "src/none",
        "README/x",
        "link/x",
        "..",
        "src/../README",
        "src%2Fa%20b%23c.txt",
        "src/gone",
    ] {
        server
            .get(&format!("/v1/turns/1/fs/{path}"))
            .send()
            .await
            .error(404, "NotFound");
    }
    server
        .get("/v1/turns/4/fs")
        .send()
        .await
        .error(404, "NotFound");
    server
        .get("/v1/turns/9/fs/x")
        .send()
        .await
        .error(404, "NotFound");
    server
        .get("/v1/turns/0/fs")
        .send()
        .await
        .error(404, "NotFound");
    server
        .get("/v1/turns/x/fs")
        .send()
        .await
        .error(400, "BadRequest");
    server
        .get("/v1/turns/1/fs/%zz")
        .send()
        .await
        .error(400, "BadRequest");
    server
        .get("/v1/turns/3/fs")
        .send()
        .await
        .error(500, "DecodeError");
    server
        .get("/v1/turns/3/fs/x")
        .send()
        .await
        .error(500, "DecodeError");
    let deep = format!("/v1/turns/1/fs/{}", "x/".repeat(300));
    server.get(&deep).send().await.error(413, "TooLarge");
    server.stop().await;
}

#[tokio::test]
async fn a_turn_without_a_filesystem_shows_its_nearest_ancestor_s() {
    let server = server().await;
    let own = server.read("/v1/turns/1/fs/src").await;
    let inherited = server.read("/v1/turns/2/fs/src").await;
    assert_eq!(
        (own.get("inherited_from"), &inherited["inherited_from"]),
        (None, &json!("1"))
    );
    assert_eq!(
        (&own["entries"], &own["fs_root_hash"]),
        (&inherited["entries"], &inherited["fs_root_hash"])
    );
    assert_eq!(
        server
            .read("/v1/turns/2?view=raw")
            .await
            .get("fs_root_hash"),
        None,
        "it has none of its own"
    );
    let kept = |reply: &Reply| reply.header("cache-control").unwrap().contains("immutable");
    let own = server.get("/v1/turns/1/fs/README").send().await;
    let inherited = server.get("/v1/turns/2/fs/README").send().await;
    assert_eq!(
        (
            own.header("inherited-from"),
            inherited.header("inherited-from")
        ),
        (None, Some("1"))
    );
    assert!(
        kept(&own) && !kept(&inherited),
        "another root may come between"
    );
    let tag = inherited.header("etag").unwrap();
    let known = server
        .get("/v1/turns/2/fs/README")
        .header("if-none-match", tag)
        .send()
        .await;
    assert_eq!(known.status, 304);
    assert_eq!(
        server.read("/v1/turns/2/fs/link").await["inherited_from"],
        "1"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_root_that_is_attached_later_is_inherited_from_then_on() {
    let server = server().await;
    let fork = server
        .post("/v1/contexts/fork", &json!({"base_turn_id": "2"}))
        .send()
        .await
        .json();
    let context = fork["context_id"].as_str().unwrap();
    for _ in 0..50 {
        server.append(context, json!({"payload_b64": ""})).await;
    }
    let last = server.read(&format!("/v1/contexts/{context}")).await["head_turn_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/v1/turns/{last}/fs");
    assert_eq!(server.read(&path).await["inherited_from"], "1");
    let root = BlobHash::of(&put_tree(&server).await);
    let attach = Command::AttachFs {
        turn: TurnId::new(2).unwrap(),
        root,
    };
    server.store.run(attach).unwrap();
    let listing = server.read(&path).await;
    assert_eq!(
        (&listing["inherited_from"], &listing["entries"][0]["name"]),
        (&json!("2"), &json!("only"))
    );
    server.stop().await;
}

async fn put_tree(server: &Server) -> Vec<u8> {
    let tree = tree(&[("only", 0, 0o600, b"inner")]);
    put(server, &tree).await;
    tree
}

#[tokio::test]
async fn a_large_file_does_not_wait_for_the_memory_that_it_holds_itself() {
    let server = Server::start_with(|config| config.memory_budget_bytes = 4 << 20).await;
    let content = vec![7; 3 << 20];
    let root = tree(&[("big", 0, 0o644, &content)]);
    put(&server, &content).await;
    let hash = put(&server, &root).await;
    let context = server.context().await;
    let turn = json!({"payload_b64": "", "fs_root_hash": hash});
    server.append(&context, turn).await;
    let world = json!({ "world_id": "team", "profile": "WORKSPACE" });
    let made = server.call("POST", "/v1/worlds").json(&world).send().await;
    assert_eq!(made.status, 201, "{}", made.text());
    for (path, bytes) in [("big", 3 << 20), ("big?format=json", 4 << 20)] {
        until_no_memory_is_used(&server).await;
        let reply = server.get(&format!("/v1/turns/1/fs/{path}")).send().await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert!(reply.body.len() >= bytes, "{path}");
    }
    server.stop().await;
}

/// Many names of control characters: each becomes six characters in the answer.
fn long_tree() -> Vec<u8> {
    let name = "\u{1}".repeat(100);
    let names: Vec<String> = (0..40_000).map(|n| format!("{n}{name}")).collect();
    let entries: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), 0, 0o644, &b""[..]))
        .collect();
    tree(&entries)
}

#[tokio::test]
async fn a_long_listing_counts_until_it_was_read() {
    let server = Server::start_with(|config| {
        config.memory_budget_bytes = 112 << 20;
        config.timeouts.memory = std::time::Duration::from_millis(20);
    })
    .await;
    let hash = put(&server, &long_tree()).await;
    let context = server.context().await;
    let turn = json!({"payload_b64": "", "fs_root_hash": hash});
    server.append(&context, turn).await;
    let path = "/v1/turns/1/fs";
    let (reader, status) = crate::limits::reader_that_stops(&server, path).await;
    assert_eq!(status, "HTTP/1.1 200");
    assert!(crate::limits::memory_used(&server).await > 24_000_000);
    server.get(path).send().await.error(429, "TooManyRequests");
    drop(reader);
    let unused = async { while crate::limits::memory_used(&server).await > 0 {} };
    crate::client::within(unused).await;
    let listing = server.read(path).await;
    assert_eq!(listing["entries"].as_array().unwrap().len(), 40_000);
    server.stop().await;
}
