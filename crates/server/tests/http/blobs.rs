//! Blobs: put, get, head, entity tags, ranges.

use serde_json::json;
use turnkeep_types::BlobHash;

use crate::client::Server;

fn path(bytes: &[u8]) -> String {
    format!("/v1/blobs/{}", BlobHash::of(bytes))
}

#[tokio::test]
async fn a_blob_is_kept_once_and_comes_back() {
    let server = Server::start().await;
    for bytes in [
        &b""[..],
        b"small",
        &vec![7; 300_000],
        &(0..=255).cycle().take(9000).collect::<Vec<u8>>(),
    ] {
        let first = server.put(&path(bytes)).body(bytes.to_vec()).send().await;
        let again = server.put(&path(bytes)).body(bytes.to_vec()).send().await;
        assert_eq!((first.status, again.status), (201, 200), "{}", first.text());
        let ack = json!({"content_hash_b3": BlobHash::of(bytes).to_string(), "uncompressed_len": bytes.len(), "was_new": true});
        assert_eq!(
            (first.json(), &again.json()["was_new"]),
            (ack, &json!(false))
        );
        let reply = server.get(&path(bytes)).send().await;
        assert_eq!((reply.status, &reply.body[..]), (200, bytes));
        assert_eq!(
            reply.header("etag"),
            Some(format!("\"{}\"", BlobHash::of(bytes)).as_str())
        );
        assert_eq!(
            reply.header("cache-control"),
            Some("private, max-age=31536000, immutable")
        );
        assert_eq!(
            reply.header("content-type"),
            Some("application/octet-stream")
        );
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        let head = server.call("HEAD", &path(bytes)).send().await;
        assert_eq!(
            (head.status, head.header("content-length")),
            (200, Some(bytes.len().to_string().as_str()))
        );
        assert_eq!(
            (head.body.len(), head.header("etag")),
            (0, reply.header("etag"))
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_blob_that_is_not_what_its_name_says_is_a_conflict() {
    let server = Server::start().await;
    let details = server
        .put(&path(b"this"))
        .body("that")
        .send()
        .await
        .error(409, "Conflict");
    assert_eq!(details["expected"], BlobHash::of(b"this").to_string());
    assert_eq!(details["actual"], BlobHash::of(b"that").to_string());
    server
        .get(&path(b"this"))
        .send()
        .await
        .error(404, "NotFound");
    server
        .get("/v1/blobs/xyz")
        .send()
        .await
        .error(400, "BadRequest");
    let upper = path(b"this")
        .to_uppercase()
        .replace("/V1/BLOBS", "/v1/blobs");
    server.get(&upper).send().await.error(400, "BadRequest");
    assert_eq!(server.call("HEAD", &path(b"this")).send().await.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn a_blob_over_the_limit_is_refused() {
    let server = Server::start_with(|config| config.limits.blob_bytes_max = 10).await;
    let details = server
        .put(&path(&[0; 11]))
        .body(vec![0; 11])
        .send()
        .await
        .error(413, "TooLarge");
    assert_eq!(
        (&details["limit"], &details["actual"]),
        (&json!(10), &json!(11))
    );
    assert_eq!(
        server
            .put(&path(&[0; 10]))
            .body(vec![0; 10])
            .send()
            .await
            .status,
        201
    );
    server.stop().await;
}

#[tokio::test]
async fn a_known_entity_tag_saves_the_bytes() {
    let server = Server::start().await;
    server
        .put(&path(b"0123456789"))
        .body("0123456789")
        .send()
        .await;
    let tag = format!("\"{}\"", BlobHash::of(b"0123456789"));
    for (method, held, status) in [
        ("GET", tag.clone(), 304),
        ("HEAD", tag.clone(), 304),
        ("GET", format!("\"other\", W/{tag}"), 304),
        ("GET", "*".into(), 304),
        ("GET", "\"other\"".into(), 200),
    ] {
        let reply = server
            .call(method, &path(b"0123456789"))
            .header("if-none-match", &held)
            .send()
            .await;
        assert_eq!(reply.status, status, "{method} {held}");
        assert_eq!(reply.header("etag"), Some(tag.as_str()));
        assert_eq!(reply.body.is_empty(), status == 304);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_range_is_a_part() {
    let server = Server::start().await;
    server
        .put(&path(b"0123456789"))
        .body("0123456789")
        .send()
        .await;
    let tag = format!("\"{}\"", BlobHash::of(b"0123456789"));
    let check = async |range: &str,
                       if_range: &str,
                       status: u16,
                       body: &str,
                       content_range: Option<&str>| {
        let call = server.get(&path(b"0123456789")).header("range", range);
        let reply = if if_range.is_empty() {
            call
        } else {
            call.header("if-range", if_range)
        }
        .send()
        .await;
        assert_eq!(
            (reply.status, reply.header("content-range")),
            (status, content_range),
            "{range}"
        );
        if status == 416 {
            reply.error(416, "RangeNotSatisfiable");
            return;
        }
        assert_eq!(
            (reply.text().as_str(), reply.header("accept-ranges")),
            (body, Some("bytes")),
            "{range}"
        );
    };
    check("bytes=2-4", "", 206, "234", Some("bytes 2-4/10")).await;
    check("bytes=-2", "", 206, "89", Some("bytes 8-9/10")).await;
    check("bytes=8-", "", 206, "89", Some("bytes 8-9/10")).await;
    check("bytes=0-99", "", 206, "0123456789", Some("bytes 0-9/10")).await;
    check("bytes=10-", "", 416, "", Some("bytes */10")).await;
    check("bytes=0-1,4-5", "", 200, "0123456789", None).await;
    check("lines=1-2", "", 200, "0123456789", None).await;
    check("bytes=2-4", &tag, 206, "234", Some("bytes 2-4/10")).await;
    check("bytes=2-4", "\"other\"", 200, "0123456789", None).await;
    server.stop().await;
}
