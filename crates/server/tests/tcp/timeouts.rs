//! The server ends connections whose peer keeps it waiting; subscribers may be silent.

use std::time::Duration;

use turnkeep_server::Timeouts;
use turnkeep_wire::message::{ReadOptions, Request, Response, Subscribe};

use crate::stopped_time::StoppedTime;
use crate::support::{Server, append, context};

const STEP: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_connection_without_a_first_frame_is_ended() {
    let time = StoppedTime::begin();
    let server = Server::start().await;
    let mut silent = server.connect().await;
    assert_eq!(time.advance_until(STEP, silent.frame()).await, None);
    let mut slow = server.connect().await;
    slow.send_bytes(&[8, 0, 0, 0, 4]).await;
    let frame = time.advance_until(STEP, slow.frame()).await;
    assert_eq!(frame, None, "half a frame is no frame");
    server.stop().await;
}

#[tokio::test]
async fn a_frame_that_does_not_end_is_given_up_on() {
    let time = StoppedTime::begin();
    let server = Server::start().await;
    let mut peer = server.connect().await;
    assert_eq!(peer.ask_in_vain(&Request::GetHead(context(1))).await, 404);
    peer.send_bytes(&[8, 0, 0, 0, 4, 0, 0, 0, 1]).await;
    assert_eq!(time.advance_until(STEP, peer.frame()).await, None);
    server.stop().await;
}

#[tokio::test]
async fn an_idle_connection_is_ended_and_a_subscriber_is_not() {
    let time = StoppedTime::begin();
    // Tokio's timers count whole milliseconds: at the very instant of its deadline a timer may
    // still wait.
    let past_idle = Timeouts::default().idle + STEP;
    let server = Server::start().await;
    let mut subscriber = server.connect().await;
    let ask = Subscribe {
        context: None,
        after: Some(0),
        options: ReadOptions::default(),
    };
    let accepted = subscriber.ask(&Request::Subscribe(ask)).await;
    assert_eq!(accepted, Response::Subscribed { caught_up: true });
    for _ in 0..3 {
        let mut idle = server.connect().await;
        assert_eq!(idle.ask_in_vain(&Request::GetHead(context(1))).await, 404);
        time.advance(past_idle).await;
        assert_eq!(idle.frame().await, None);
    }
    let mut writer = server.connect().await;
    let home = writer.new_context().await;
    writer.append(append(home, "still there?")).await;
    assert!(matches!(
        subscriber.receive().await.1,
        Response::Delivered { .. }
    ));
    // The server waits for open connections when it stops; with the clock released that passes at
    // once.
    drop(time);
    server.stop().await;
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_given_up_on() {
    let time = StoppedTime::begin();
    let server = Server::start_with(|config| config.connections_max = Some(1)).await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let ack = peer.append(append(home, vec![7; 1 << 20])).await;
    for _ in 0..60 {
        peer.send(&Request::GetBlob(ack.hash)).await;
    }
    // The server allows one connection, so the next one that it serves proves that it ended the
    // first.
    while !server.serves_another(home).await {
        time.advance(Timeouts::default().write_stall + STEP).await;
    }
    drop(time);
    server.stop().await;
}
