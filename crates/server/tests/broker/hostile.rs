//! Peers that are wrong, slow or hostile: each gets an error and is disconnected, and other peers go
//! on.

use std::time::Duration;

use turnkeep_server::broker::Outlets;
use turnkeep_types::broker::{Hello, ListSessions, Reason, Reply, Request, Role, ServerMessage};
use turnkeep_wire::broker::encode_request;

use crate::stopped_time::StoppedTime;
use crate::support::{Harness, within};

const STEP: Duration = Duration::from_secs(1);

#[tokio::test]
async fn anything_before_hello_is_refused() {
    let harness = Harness::start();
    let mut peer = harness.dial().await;
    peer.send(5, &Request::ListSessions(ListSessions::default()))
        .await;
    peer.is_closed_with(Reason::HelloRequired).await;
}

#[tokio::test]
async fn another_version_is_refused_in_the_answer_to_hello() {
    let harness = Harness::start();
    for version in [0, 2, u64::MAX] {
        let mut peer = harness.dial().await;
        peer.send(
            0,
            &Request::Hello(Hello {
                version,
                role: Role::Client,
            }),
        )
        .await;
        let answer = peer.receive().await;
        let refused = matches!(&answer, Some(ServerMessage::HelloAck(Err(refusal))) if refusal.reason == Reason::VersionMismatch);
        assert!(refused, "{answer:?}");
        assert_eq!(peer.receive().await, None);
    }
}

#[tokio::test]
async fn a_message_over_16_mib_is_refused_by_its_length_alone() {
    let harness = Harness::start();
    let mut peer = harness.client().await;
    peer.send_bytes(&[0x01, 0x00, 0x00, 0x01]).await;
    peer.is_closed_with(Reason::PayloadTooLarge).await;
    let mut peer = harness.dial().await;
    peer.send_bytes(&[0xff; 4]).await;
    peer.is_closed_with(Reason::PayloadTooLarge).await;
}

#[tokio::test]
async fn a_hello_or_a_message_that_is_never_whole_is_given_up() {
    let time = StoppedTime::begin();
    let harness = Harness::start();
    let mut silent = harness.dial().await;
    time.advance_until(STEP, silent.is_closed_with(Reason::Malformed))
        .await;
    let mut half = harness.client().await;
    let frame = encode_request(1, &Request::ListSessions(ListSessions::default())).unwrap();
    half.send_bytes(&frame[..frame.len() - 1]).await;
    time.advance_until(STEP, half.is_closed_with(Reason::Malformed))
        .await;
}

#[tokio::test]
async fn a_message_may_come_byte_by_byte_and_a_quiet_client_stays() {
    let harness = Harness::start();
    let mut peer = harness.client().await;
    for byte in encode_request(3, &Request::ListSessions(ListSessions::default())).unwrap() {
        peer.send_bytes(&[byte]).await;
        tokio::task::yield_now().await;
    }
    let expect = ServerMessage::Response {
        id: 3,
        outcome: Ok(Reply::Sessions(Vec::new())),
    };
    assert_eq!(peer.receive().await, Some(expect));
}

#[tokio::test]
async fn another_users_process_is_not_heard() {
    let stranger = Harness::with_other_peer_uid();
    let mut peer = stranger.dial().await;
    peer.is_closed_with(Reason::NotPermitted).await;
}

#[tokio::test]
async fn one_connection_too_many_hears_that_and_the_others_go_on() {
    let harness = Harness::with(Outlets::default(), |config| config.connections_max = 2);
    let mut first = harness.client().await;
    let second = harness.client().await;
    harness.dial().await.is_closed_with(Reason::Busy).await;
    drop(second);
    assert_eq!(
        first
            .ask(Request::ListSessions(ListSessions::default()))
            .await,
        Ok(Reply::Sessions(Vec::new()))
    );
    // The place is free again when the broker has noticed.
    within(async {
        loop {
            let mut third = harness.dial().await;
            third
                .send(
                    0,
                    &Request::Hello(Hello {
                        version: 1,
                        role: Role::Client,
                    }),
                )
                .await;
            if third.receive().await == Some(ServerMessage::HelloAck(Ok(()))) {
                break;
            }
        }
    })
    .await;
}
