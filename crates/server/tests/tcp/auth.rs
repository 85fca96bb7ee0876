//! Tokens: nothing is served before the right one was shown.

use bytes::Bytes;
use turnkeep_server::{Auth, Token};
use turnkeep_wire::message::{CreateContext, Hello, Request, Response, Welcome};
use turnkeep_wire::{Header, Text};

use crate::support::{Server, status};

fn hello(meta: &'static str) -> Request {
    Request::Hello(Some(Hello {
        version: 1,
        tag: Text::from("test"),
        meta: Bytes::from_static(meta.as_bytes()),
    }))
}

async fn guarded() -> Server {
    Server::start_with(|config| config.auth = Auth::Token(Token::new("secret"))).await
}

#[tokio::test]
async fn the_right_token_opens_the_connection() {
    let server = guarded().await;
    let mut peer = server.connect().await;
    let Response::Hello(Welcome {
        session_id,
        version,
    }) = peer.ask(&hello(r#"{"token":"secret"}"#)).await
    else {
        panic!("the token is right")
    };
    assert!(session_id != 0 && version == 1);
    peer.new_context().await;
    let mut other = server.connect().await;
    let Response::Hello(welcome) = other.ask(&hello(r#"{"token":"secret"}"#)).await else {
        panic!()
    };
    assert_ne!(welcome.session_id, session_id);
    server.stop().await;
}

#[tokio::test]
async fn anything_else_is_unauthorized_and_ends_the_connection() {
    let server = guarded().await;
    let too_early = Request::CreateContext(CreateContext::default());
    for request in [
        hello(r#"{"token":"wrong"}"#),
        hello("{}"),
        hello(""),
        Request::Hello(None),
        too_early,
    ] {
        let mut peer = server.connect().await;
        assert_eq!(peer.ask_in_vain(&request).await, 401, "{request:?}");
        assert_eq!(peer.frame().await, None, "{request:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_wrong_token_ends_the_connection_also_after_a_right_one() {
    let server = guarded().await;
    for second in [
        hello(r#"{"token":"wrong"}"#),
        hello("{"),
        Request::Hello(None),
    ] {
        let mut peer = server.connect().await;
        peer.ask(&hello(r#"{"token":"secret"}"#)).await;
        let again = peer.ask(&hello(r#"{"token":"secret"}"#)).await;
        assert!(matches!(again, Response::Hello(_)), "{again:?}");
        assert_eq!(peer.ask_in_vain(&second).await, 401, "{second:?}");
        assert_eq!(peer.frame().await, None, "{second:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn without_auth_a_malformed_meta_is_a_bad_request_and_the_connection_goes_on() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    assert_eq!(peer.ask_in_vain(&hello("{")).await, 400);
    assert_eq!(peer.ask_in_vain(&hello("[]")).await, 400);
    peer.new_context().await;
    server.stop().await;
}

#[tokio::test]
async fn a_stranger_may_not_send_a_large_frame() {
    let server = guarded().await;
    let mut peer = server.connect().await;
    let mut out = bytes::BytesMut::new();
    Header {
        len: 1 << 20,
        msg_type: 1,
        flags: 0,
        req_id: 5,
    }
    .encode(&mut out);
    peer.send_bytes(&out).await;
    let (req_id, response) = peer.receive().await;
    assert_eq!((req_id, status(&response)), (5, 401));
    assert_eq!(peer.frame().await, None);
    server.stop().await;
}

#[tokio::test]
async fn pipelined_requests_behind_a_wrong_token_are_never_served() {
    let server = guarded().await;
    let mut peer = server.connect().await;
    peer.send(&hello(r#"{"token":"wrong"}"#)).await;
    peer.send(&Request::CreateContext(CreateContext::default()))
        .await;
    assert_eq!(status(&peer.receive().await.1), 401);
    assert_eq!(peer.frame().await, None);
    let mut friend = server.connect().await;
    friend.ask(&hello(r#"{"token":"secret"}"#)).await;
    assert_eq!(
        friend.new_context().await.get(),
        1,
        "the stranger created nothing"
    );
    server.stop().await;
}

#[tokio::test]
async fn without_auth_a_hello_is_optional_and_may_be_empty() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    peer.new_context().await;
    assert!(matches!(
        peer.ask(&Request::Hello(None)).await,
        Response::Hello(Welcome { version: 1, .. })
    ));
    server.stop().await;
}

#[tokio::test]
async fn a_flood_of_silent_connections_keeps_nobody_out() {
    let server = Server::start_with(|config| {
        config.auth = Auth::Token(Token::new("secret"));
        config.unauthenticated_max = 2;
    })
    .await;
    let mut known = server.connect().await;
    known.ask(&hello(r#"{"token":"secret"}"#)).await;
    let mut silent = Vec::new();
    for _ in 0..5 {
        silent.push(server.connect().await);
    }
    for oldest in &mut silent[..3] {
        assert!(
            oldest.no_frame().await,
            "the oldest connections without a token are closed"
        );
    }
    for youngest in &mut silent[3..] {
        assert!(matches!(
            youngest.ask(&hello(r#"{"token":"secret"}"#)).await,
            Response::Hello(_)
        ));
    }
    known.new_context().await;
    server.stop().await;
}
