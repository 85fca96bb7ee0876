//! Peers that keep the server waiting are given up on; subscribers may be silent.

use std::time::Duration;

use turnkeep_wire::message::{ReadOptions, Request, Response, Subscribe};

use crate::support::{Server, append, context};

const SHORT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_connection_without_a_first_frame_is_ended() {
    let server = Server::start_with(|config| config.timeouts.first_frame = SHORT).await;
    let mut silent = server.connect().await;
    assert_eq!(silent.frame().await, None);
    let mut slow = server.connect().await;
    slow.send_bytes(&[8, 0, 0, 0, 4]).await;
    assert_eq!(slow.frame().await, None, "half a frame is no frame");
    server.stop().await;
}

#[tokio::test]
async fn a_frame_that_does_not_end_is_given_up_on() {
    let server = Server::start_with(|config| config.timeouts.frame = SHORT).await;
    let mut peer = server.connect().await;
    assert_eq!(peer.ask_in_vain(&Request::GetHead(context(1))).await, 404);
    peer.send_bytes(&[8, 0, 0, 0, 4, 0, 0, 0, 1]).await;
    assert_eq!(peer.frame().await, None);
    server.stop().await;
}

#[tokio::test]
async fn an_idle_connection_is_ended_and_a_subscriber_is_not() {
    let server = Server::start_with(|config| config.timeouts.idle = SHORT).await;
    let mut subscriber = server.connect().await;
    let ask = Subscribe { context: None, after: Some(0), options: ReadOptions::default() };
    let accepted = subscriber.ask(&Request::Subscribe(ask)).await;
    assert_eq!(accepted, Response::Subscribed { caught_up: true });
    for _ in 0..3 {
        let mut idle = server.connect().await;
        assert_eq!(idle.ask_in_vain(&Request::GetHead(context(1))).await, 404);
        assert_eq!(idle.frame().await, None);
    }
    let mut writer = server.connect().await;
    let home = writer.new_context().await;
    writer.append(append(home, "still there?")).await;
    assert!(matches!(subscriber.receive().await.1, Response::Delivered { .. }));
    server.stop().await;
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_given_up_on() {
    let server = Server::start_with(|config| {
        config.timeouts.write_stall = SHORT;
        config.connections_max = Some(1);
    })
    .await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let ack = peer.append(append(home, vec![7; 1 << 20])).await;
    for _ in 0..60 {
        peer.send(&Request::GetBlob(ack.hash)).await;
    }
    // There is one place, so whoever gets it next shows that the first peer has lost it.
    loop {
        let mut next = server.connect().await;
        if next.try_head(home).await.is_some_and(|response| matches!(response, Response::Head(_))) {
            break;
        }
    }
    server.stop().await;
}
