//! Token, cookie, Host and Origin over real sockets. The whole table is tested where it is decided.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use turnkeep_server::{Auth, Token};

use crate::client::Server;

async fn locked() -> Server {
    Server::start_with(|config| {
        config.auth = Auth::Token(Token::new("s3cret"));
        config.allow_origins = vec!["https://app.example".into()];
    })
    .await
}

#[tokio::test]
async fn everything_but_health_needs_the_token() {
    let server = locked().await;
    assert_eq!(server.get("/healthz").send().await.status, 200);
    for path in [
        "/v1/contexts",
        "/v1/settings",
        "/v1/stats",
        "/metrics",
        "/openapi.json",
        "/v1/export",
        "/v1/events",
        "/ws?session=any",
        "/nowhere",
    ] {
        let reply = server.get(path).send().await;
        reply.error(401, "Unauthorized");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        server
            .get(path)
            .header("authorization", "Bearer wrong")
            .send()
            .await
            .error(401, "Unauthorized");
        for other in ["Basic s3cret", "Bearers3cret", "s3cret", "Bearer"] {
            server
                .get(path)
                .header("authorization", other)
                .send()
                .await
                .error(401, "Unauthorized");
        }
    }
    server
        .post("/v1/contexts", &serde_json::json!({}))
        .send()
        .await
        .error(401, "Unauthorized");
    let reply = server
        .get("/v1/contexts")
        .header("authorization", "Bearer s3cret")
        .send()
        .await;
    assert_eq!(reply.status, 200);
    for scheme in ["bearer", "BEARER", "Bearer "] {
        let value = format!("{scheme} s3cret");
        let reply = server
            .get("/v1/contexts")
            .header("authorization", &value)
            .send()
            .await;
        assert_eq!(reply.status, 200, "{value}");
    }
    // Without a broker in this server there is no terminal to show, not even to the owner.
    let reply = server
        .get("/ws?session=any")
        .header("authorization", "Bearer s3cret")
        .send()
        .await;
    reply.error(404, "NotFound");
    assert_eq!(server.store.stats().contexts, 0);
    server.stop().await;
}

#[tokio::test]
async fn the_link_buys_a_cookie_for_the_browser() {
    let server = locked().await;
    let link = server.link();
    let path = link
        .strip_prefix(&format!("http://{}", server.http_addr()))
        .unwrap()
        .to_owned();
    assert_eq!(path, "/?token=s3cret");
    let reply = server.get(&path).send().await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("/")));
    let cookie = reply.header("set-cookie").unwrap().to_owned();
    assert!(
        cookie.contains("HttpOnly")
            && cookie.contains("SameSite=Strict")
            && !cookie.contains("s3cret")
    );
    let cookie = cookie.split(';').next().unwrap();
    let page = server
        .get("/")
        .header("cookie", &format!("other=1; {cookie}"))
        .send()
        .await;
    assert_eq!(page.status, 200);
    assert_eq!(
        server
            .get("/v1/contexts")
            .header("cookie", cookie)
            .send()
            .await
            .status,
        200
    );
    let post = |origin: &str| {
        let call = server.call("POST", "/v1/contexts").header("cookie", cookie);
        if origin.is_empty() {
            call
        } else {
            call.header("origin", origin)
        }
    };
    post("").send().await.error(403, "Forbidden");
    post("https://evil.example")
        .send()
        .await
        .error(403, "Forbidden");
    assert_eq!(
        post(&format!("http://{}", server.http_addr()))
            .send()
            .await
            .status,
        201
    );
    let upgrade = server
        .get("/v1/contexts")
        .header("cookie", cookie)
        .header("upgrade", "websocket");
    upgrade
        .header("connection", "upgrade")
        .send()
        .await
        .error(403, "Forbidden");
    server.stop().await;
}

#[tokio::test]
async fn the_link_opens_whatever_the_token_is() {
    let server =
        Server::start_with(|config| config.auth = Auth::Token(Token::new("a b&c=%+é"))).await;
    let path = server
        .link()
        .replace(&format!("http://{}", server.http_addr()), "");
    assert_eq!(server.get(&path).send().await.status, 303);
    server.stop().await;
}

#[tokio::test]
async fn someone_without_the_token_sees_where_to_get_it() {
    let server = locked().await;
    for path in ["/", "/?token=wrong"] {
        let reply = server.get(path).send().await;
        assert_eq!((reply.status, reply.header("set-cookie")), (401, None));
        assert!(
            reply
                .header("content-type")
                .unwrap()
                .starts_with("text/html")
        );
        assert!(reply.text().contains("turnkeep up"));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_foreign_host_or_origin_gets_nothing() {
    let server = locked().await;
    let get = |path: &str| server.get(path).header("authorization", "Bearer s3cret");
    for path in ["/healthz", "/v1/contexts", "/?token=s3cret"] {
        get(path)
            .header("host", "evil.example")
            .send()
            .await
            .error(403, "Forbidden");
        get(path)
            .header("origin", "https://evil.example")
            .send()
            .await
            .error(403, "Forbidden");
        get(path)
            .header("origin", "null")
            .send()
            .await
            .error(403, "Forbidden");
    }
    assert_eq!(
        get("/v1/contexts")
            .header("host", "localhost")
            .send()
            .await
            .status,
        200
    );
    let reply = get("/v1/contexts")
        .header("host", "a")
        .header("host", "b")
        .send()
        .await;
    reply.error(400, "BadRequest");
    server.stop().await;
}

#[tokio::test]
async fn a_listed_origin_is_answered_and_told_what_it_may_send() {
    let server = locked().await;
    let origin = "https://app.example";
    let preflight = server
        .call("OPTIONS", "/v1/contexts")
        .header("origin", origin);
    let preflight = preflight
        .header("access-control-request-method", "POST")
        .send()
        .await;
    assert_eq!(
        (
            preflight.status,
            preflight.header("access-control-allow-origin")
        ),
        (204, Some(origin))
    );
    assert!(
        preflight
            .header("access-control-allow-headers")
            .unwrap()
            .contains("authorization")
    );
    let evil = server
        .call("OPTIONS", "/v1/contexts")
        .header("origin", "https://evil.example");
    let evil = evil
        .header("access-control-request-method", "POST")
        .send()
        .await;
    evil.error(403, "Forbidden");
    assert_eq!(evil.header("access-control-allow-origin"), None);
    let reply = server
        .get("/v1/contexts")
        .header("origin", origin)
        .header("authorization", "Bearer s3cret")
        .send()
        .await;
    assert_eq!(
        (reply.status, reply.header("access-control-allow-origin")),
        (200, Some(origin))
    );
    for token in ["Bearer wrong", ""] {
        let call = server
            .get("/v1/contexts")
            .header("origin", origin)
            .header("authorization", token);
        let reply = call.send().await;
        reply.error(401, "Unauthorized");
        assert_eq!(
            reply.header("access-control-allow-origin"),
            Some(origin),
            "a page may read why"
        );
    }
    assert_eq!(reply.header("vary"), Some("Origin"));
    server.stop().await;
}

#[tokio::test]
async fn without_auth_other_sites_are_still_refused() {
    let server = Server::start().await;
    assert_eq!(server.get("/v1/contexts").send().await.status, 200);
    server
        .get("/v1/contexts")
        .header("sec-fetch-site", "cross-site")
        .send()
        .await
        .error(403, "Forbidden");
    assert_eq!(
        server
            .get("/v1/contexts")
            .header("sec-fetch-site", "same-origin")
            .send()
            .await
            .status,
        200
    );
    assert_eq!(server.get("/?token=any").send().await.status, 303);
    server.stop().await;
}

/// Sends a request with the token on a connection that stays open, and reads until its answer has
/// begun.
async fn ask_on(stream: &mut tokio::net::TcpStream, token: &str) -> String {
    let ask = format!(
        "GET /v1/contexts HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[tokio::test]
async fn a_flood_of_silent_connections_keeps_nobody_out() {
    let server = Server::start_with(|config| {
        config.auth = Auth::Token(Token::new("secret"));
        config.unauthenticated_max = 2;
    })
    .await;
    let connect = || tokio::net::TcpStream::connect(server.http_addr());
    let mut known = connect().await.unwrap();
    assert!(
        ask_on(&mut known, "secret")
            .await
            .starts_with("HTTP/1.1 200")
    );
    let mut refused = connect().await.unwrap();
    assert!(
        ask_on(&mut refused, "wrong")
            .await
            .starts_with("HTTP/1.1 401")
    );
    let (mut first, mut second) = (connect().await.unwrap(), connect().await.unwrap());
    let mut rest = Vec::new();
    drop(refused.read_to_end(&mut rest).await);
    assert!(
        ask_on(&mut second, "secret")
            .await
            .starts_with("HTTP/1.1 200")
    );
    assert!(
        ask_on(&mut first, "secret")
            .await
            .starts_with("HTTP/1.1 200"),
        "there is place for two"
    );
    assert!(
        ask_on(&mut known, "secret")
            .await
            .starts_with("HTTP/1.1 200")
    );
    drop((known, first, second));
    server.stop().await;
}

/// Sends a health check on a connection that stays open.
async fn check_health_on(stream: &mut tokio::net::TcpStream) -> String {
    let ask = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[tokio::test]
async fn a_connection_that_asks_outlives_a_silent_one_that_came_later() {
    let server = Server::start_with(|config| {
        config.auth = Auth::Token(Token::new("secret"));
        config.unauthenticated_max = 3;
    })
    .await;
    let connect = || tokio::net::TcpStream::connect(server.http_addr());
    let mut checker = connect().await.unwrap();
    let mut silent = connect().await.unwrap();
    let mut other = connect().await.unwrap();
    // Connections are accepted in order, so an answer on the last says that all are known.
    for stream in [&mut other, &mut checker] {
        let answer = check_health_on(stream).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let mut newcomer = connect().await.unwrap();
    check_health_on(&mut newcomer).await;
    let mut rest = Vec::new();
    drop(crate::client::within(silent.read_to_end(&mut rest)).await);
    for stream in [&mut checker, &mut other, &mut newcomer] {
        let answer = check_health_on(stream).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    drop((checker, other, newcomer));
    server.stop().await;
}
