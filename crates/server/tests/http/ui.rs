//! The web UI's files and screens, and signing in to them.

use std::path::Path;

use serde_json::json;
use turnkeep_server::{Auth, Token, UiFiles};

use crate::client::{Call, Reply, Server};

/// What a browser sends when a person opens an address.
const PAGE: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// The files of a small build.
const BUILD: UiFiles = UiFiles::Embedded(&[
    ("index.html", b"<!doctype html>the page"),
    ("icon.svg", b"<svg/>"),
    ("assets/app-1a2b.js", b"script"),
    ("assets/app-1a2b.js.br", b"br of the script"),
    ("assets/app-1a2b.js.gz", b"gzip of the script"),
    ("assets/app-3c4d.css", b"style"),
    ("assets/app-3c4d.css.gz", b"gzip of the style"),
]);

async fn open_server() -> Server {
    Server::start_with(|config| config.ui = BUILD).await
}

async fn locked_server() -> Server {
    Server::start_with(|config| {
        config.ui = BUILD;
        config.auth = Auth::Token(Token::new("s3cret"));
        config.allow_origins = vec!["https://app.example".into()];
    })
    .await
}

fn open_page(server: &Server, path: &str) -> Call {
    server.get(path).header("accept", PAGE)
}

fn form(server: &Server, body: &str) -> Call {
    let call = server.call("POST", "/signin").body(body.to_owned());
    call.header("content-type", "application/x-www-form-urlencoded")
}

fn own_origin(server: &Server) -> String {
    format!("http://{}", server.http_addr())
}

#[track_caller]
fn is_sign_in_page(reply: &Reply, next: &str) {
    assert_eq!((reply.status, reply.header("set-cookie")), (401, None));
    assert_eq!(
        reply.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let text = reply.text();
    let field = format!("<input type=hidden name=next value=\"{next}\">");
    assert!(text.contains(&field), "{field} in {text}");
    assert!(!text.contains("s3cret") && !text.contains("<script"));
    let policy = reply.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    // Under `no-referrer` a browser would send the form with `Origin: null`.
    assert_eq!(reply.header("referrer-policy"), Some("same-origin"));
}

#[tokio::test]
async fn every_screen_is_the_same_page() {
    let server = open_server().await;
    let paths = [
        "/",
        "/?kind=approval&run=1",
        "/runs/1/agents/2/log?tab=a",
        "/go/turn:1",
    ];
    for path in paths {
        let reply = open_page(&server, path).send().await;
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (200, "<!doctype html>the page")
        );
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "private, no-cache"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("vary", "Accept-Encoding"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{path}");
        }
        let policy = reply.header("content-security-policy").unwrap();
        for rule in [
            "default-src 'self'",
            "script-src 'self';",
            "connect-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(rule), "{policy}");
        }
    }
    let reply = server.get("/").send().await;
    assert_eq!(reply.status, 200, "the first page is one for every client");
    server.stop().await;
}

#[tokio::test]
async fn what_is_no_screen_is_an_error_in_the_one_form() {
    let server = open_server().await;
    for path in [
        "/v1/nowhere",
        "/api/nowhere",
        "/assets/nowhere.js",
        "/mcp/x",
    ] {
        let reply = open_page(&server, path).send().await;
        reply.error(404, "NotFound");
    }
    let scripted = server.get("/runs").header("accept", "application/json");
    scripted.send().await.error(404, "NotFound");
    server.get("/runs").send().await.error(404, "NotFound");
    let post = server.post("/runs", &json!({})).header("accept", PAGE);
    post.send().await.error(404, "NotFound");
    server.stop().await;
}

#[tokio::test]
async fn a_file_is_sent_in_the_smallest_form_that_the_browser_accepts() {
    let server = open_server().await;
    let check = async |path: &str, accept: &str, body: &str, coding: Option<&str>| {
        let reply = server
            .get(path)
            .header("accept-encoding", accept)
            .send()
            .await;
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (200, body),
            "{path} {accept}"
        );
        assert_eq!(reply.header("content-encoding"), coding, "{path} {accept}");
        assert_eq!(reply.header("vary"), Some("Accept-Encoding"));
        assert_eq!(
            reply.header("cache-control"),
            Some("private, max-age=31536000, immutable")
        );
        reply
    };
    let (script, style) = ("/assets/app-1a2b.js", "/assets/app-3c4d.css");
    let all = "gzip, deflate, br, zstd";
    let br = check(script, all, "br of the script", Some("br")).await;
    assert_eq!(
        br.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    check(script, "gzip, br;q=0", "gzip of the script", Some("gzip")).await;
    let plain = check(script, "identity", "script", None).await;
    let reply = check(style, all, "gzip of the style", Some("gzip")).await;
    assert_eq!(
        reply.header("content-type"),
        Some("text/css; charset=utf-8")
    );
    check(style, "br", "style", None).await;
    // Each form has its own tag, so that a cache never mixes them.
    assert_ne!(br.header("etag"), plain.header("etag"));
    let again = server.get(script).header("accept-encoding", all);
    let again = again.header("if-none-match", br.header("etag").unwrap());
    let again = again.send().await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(again.header("content-encoding"), None);
    assert_eq!(again.header("vary"), Some("Accept-Encoding"));
    let icon = server.get("/icon.svg").send().await;
    assert_eq!(
        (icon.header("content-type"), icon.header("cache-control")),
        (Some("image/svg+xml"), Some("private, no-cache")),
        "a name without a hash may get other content"
    );
    server.stop().await;
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let server = open_server().await;
    for path in ["/", "/runs", "/assets/app-1a2b.js"] {
        let get = open_page(&server, path).send().await;
        let head = server
            .call("HEAD", path)
            .header("accept", PAGE)
            .send()
            .await;
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        for name in ["content-type", "etag", "cache-control", "content-length"] {
            assert_eq!(head.header(name), get.header(name), "{path} {name}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn without_a_built_ui_a_page_says_how_to_build_it() {
    let server = Server::start().await;
    for path in ["/", "/runs/1"] {
        let reply = open_page(&server, path).send().await;
        assert_eq!(reply.status, 200);
        for text in ["./x up", "href=\"/healthz\"", "href=\"/openapi.json\""] {
            assert!(reply.text().contains(text), "{}", reply.text());
        }
    }
    server
        .get("/assets/app.js")
        .send()
        .await
        .error(404, "NotFound");
    server.stop().await;
}

#[tokio::test]
async fn a_build_in_a_directory_is_served_as_it_is_now() {
    let dist = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path: &Path = &dist.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let server = Server::start_with(|config| {
        config.ui = UiFiles::Directory(dist.path().to_owned());
    })
    .await;
    assert!(server.get("/").send().await.text().contains("./x up"));
    for text in ["first", "second"] {
        write("index.html", text);
        assert_eq!(server.get("/").send().await.text(), text);
    }
    write("assets/a.js", "script");
    assert_eq!(server.get("/assets/a.js").send().await.text(), "script");
    server
        .get("/assets/../index.html")
        .send()
        .await
        .error(404, "NotFound");
    server.stop().await;
}

#[tokio::test]
async fn without_the_cookie_a_page_is_the_sign_in_page_and_all_else_an_error() {
    let server = locked_server().await;
    for (path, next) in [
        ("/", "/"),
        ("/runs/1?tab=log&x='%22", "/runs/1?tab=log&amp;x=&#39;%22"),
        ("/signin?next=%2Fruns%2F1", "/runs/1"),
        ("/signin?next=https://evil.example", "/"),
        ("/?token=wrong&next=/runs", "/runs"),
    ] {
        is_sign_in_page(&open_page(&server, path).send().await, next);
    }
    let stale = open_page(&server, "/runs").header("cookie", "turnkeep-1=old");
    is_sign_in_page(&stale.send().await, "/runs");
    for path in [
        "/assets/app-1a2b.js",
        "/v1/contexts",
        "/api/runs",
        "/icon.svg",
    ] {
        let reply = server.get(path).send().await;
        reply.error(401, "Unauthorized");
    }
    open_page(&server, "/assets/app-1a2b.js")
        .send()
        .await
        .error(401, "Unauthorized");
    let head = server
        .call("HEAD", "/runs")
        .header("accept", PAGE)
        .send()
        .await;
    assert_eq!((head.status, head.body.len()), (401, 0));
    server.stop().await;
}

#[tokio::test]
async fn the_form_signs_in_and_leads_to_the_page_that_was_wanted() {
    let server = locked_server().await;
    let origin = own_origin(&server);
    let submit = async |body: &str| form(&server, body).header("origin", &origin).send().await;
    for (next, location) in [
        ("%2Fruns%2F1%3Ftab%3Dlog", "/runs/1?tab=log"),
        ("%2F%2Fevil.example", "/"),
        ("https%3A%2F%2Fevil.example%2F", "/"),
        ("%2F%5Cevil.example", "/"),
        ("%2F%09%2Fevil.example", "/"),
        ("%2F%0D%0Aset-cookie%3A%20a%3Db", "/"),
    ] {
        let reply = submit(&format!("token=+s3cret%0A&next={next}")).await;
        assert_eq!(
            (reply.status, reply.header("location")),
            (303, Some(location))
        );
        let cookie = reply
            .header("set-cookie")
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        let page = open_page(&server, "/runs").header("cookie", cookie);
        assert_eq!(page.send().await.text(), "<!doctype html>the page");
        let signed_in = open_page(&server, "/signin?next=/runs").header("cookie", cookie);
        let reply = signed_in.send().await;
        assert_eq!(
            (reply.status, reply.header("location")),
            (303, Some("/runs"))
        );
    }
    let wrong = submit("token=guess&next=%2Fruns").await;
    is_sign_in_page(&wrong, "/runs");
    assert!(wrong.text().contains("not the token"), "{}", wrong.text());
    is_sign_in_page(&submit("").await, "/");
    submit("token=s3cret&other=1")
        .await
        .error(400, "BadRequest");
    submit("token=%ff").await.error(400, "BadRequest");
    let long = format!("token={}", "a".repeat(20 << 10));
    submit(&long).await.error(413, "TooLarge");
    server.stop().await;
}

#[tokio::test]
async fn a_form_of_another_site_signs_nobody_in() {
    let server = locked_server().await;
    let body = "token=s3cret&next=%2F";
    let reply = form(&server, body).send().await;
    reply.error(403, "Forbidden");
    assert_eq!(reply.header("set-cookie"), None);
    for origin in ["https://evil.example", "null"] {
        let reply = form(&server, body).header("origin", origin).send().await;
        reply.error(403, "Forbidden");
        assert_eq!(reply.header("set-cookie"), None);
    }
    server.stop().await;
}

#[tokio::test]
async fn the_link_may_lead_to_a_page_of_this_server() {
    let server = locked_server().await;
    for (query, location) in [
        ("token=s3cret", "/"),
        ("token=s3cret&next=/runs/1", "/runs/1"),
        ("token=s3cret&next=%2Fruns%3Ftab%3Da", "/runs?tab=a"),
        ("token=s3cret&next=//evil.example", "/"),
        ("token=s3cret&next=/%5Cevil.example", "/"),
        ("token=s3cret&next=http://evil.example", "/"),
    ] {
        let reply = open_page(&server, &format!("/?{query}")).send().await;
        assert_eq!(
            (reply.status, reply.header("location")),
            (303, Some(location))
        );
        assert!(reply.header("set-cookie").is_some());
    }
    server.stop().await;
}
