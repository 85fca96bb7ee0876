//! Stopping, and being full.

use turnkeep_wire::message::{ReadOptions, Request, Response, Subscribe};

use crate::support::{Server, append, status};

#[tokio::test]
async fn what_was_taken_is_answered_before_the_server_stops() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let mut follower = server.connect().await;
    let ask = Subscribe {
        context: None,
        after: None,
        options: ReadOptions::default(),
    };
    follower.ask(&Request::Subscribe(ask)).await;
    for n in 0..100 {
        peer.send(&Request::AppendTurn(append(home, format!("{n}"))))
            .await;
    }
    assert!(matches!(peer.receive().await.1, Response::TurnAppended(_)));
    server.stop().await;
    let mut last = 1;
    while let Some(frame) = peer.frame().await {
        assert_eq!(
            frame.header.req_id,
            last + 2,
            "answers stay in order and none is left out"
        );
        last += 1;
    }
    let ended = loop {
        match follower.receive().await.1 {
            Response::Delivered { .. } => {}
            other => break other,
        }
    };
    assert_eq!(status(&ended), 503);
    assert_eq!(follower.frame().await, None);
}

#[tokio::test]
async fn a_full_server_says_so() {
    let server = Server::start_with(|config| config.connections_max = Some(1)).await;
    let mut first = server.connect().await;
    first.new_context().await;
    let mut second = server.connect().await;
    let (req_id, response) = second.receive().await;
    assert_eq!((req_id, status(&response)), (0, 503));
    assert_eq!(second.frame().await, None);
    first.new_context().await;
    server.stop().await;
}
