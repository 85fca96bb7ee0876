//! The memory budget for large payloads is shared: a request that gets no permit is refused, and an
//! idle peer holds none.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use turnkeep_server::Timeouts;
use turnkeep_types::{BlobHash, Compression};
use turnkeep_wire::message::{AppendBatch, PutBlob, ReadOptions, Request, Response, Subscribe};

use crate::stopped_time::StoppedTime;
use crate::support::{Peer, Server, append, context, noise, sent, status};

/// Added to a time-out: tokio's timers count whole milliseconds.
const STEP: Duration = Duration::from_secs(1);
/// Shorter than the time-outs that end a hoarder.
const MEMORY_WAIT: Duration = Duration::from_secs(1);
const MIB: usize = 1 << 20;
/// Requests on one connection at once.
const REQUESTS: usize = 40;
/// What a frame that puts a blob has besides the blob.
const PUT_BYTES: usize = 16 + 32 + 4;

async fn small_server() -> Server {
    Server::start_with(|config| {
        config.memory_budget_bytes = 4 * MIB;
        config.timeouts.memory = MEMORY_WAIT;
    })
    .await
}

/// Moves the clock past the time that a request waits for memory, when one waits for it.
async fn past_memory_wait(server: &Server, time: &StoppedTime) {
    server.until_one_waits().await;
    time.advance(MEMORY_WAIT + STEP).await;
}

fn put(bytes: impl Into<Bytes>) -> Request {
    let bytes = bytes.into();
    Request::PutBlob(PutBlob {
        hash: BlobHash::of(&bytes),
        bytes,
    })
}

/// A peer that has sent all of a large frame but its last bytes, and those bytes.
async fn hoarder(server: &Server) -> (Peer, Vec<u8>) {
    let mut peer = server.connect().await;
    let mut frame = BytesMut::new();
    put(noise(MIB - PUT_BYTES)).encode(1, &mut frame);
    let last = frame.split_off(frame.len() - 100);
    peer.send_bytes(&frame).await;
    (peer, last.to_vec())
}

/// As many of them as there is room for. Only a stopped clock keeps the server from ending them.
async fn hoarders(server: &Server, _time: &StoppedTime) -> Vec<(Peer, Vec<u8>)> {
    // The server gives memory of an earlier write back a moment after it has answered.
    server.until_held(0).await;
    let mut hoarders = Vec::new();
    for _ in 0..4 {
        hoarders.push(hoarder(server).await);
    }
    server.until_held(4 * MIB).await;
    hoarders
}

#[tokio::test]
async fn who_finds_no_room_is_told_to_come_back_and_small_requests_go_on() {
    let time = StoppedTime::begin();
    let server = small_server().await;
    let mut hoarders = hoarders(&server, &time).await;
    let (mut peer, large) = (server.connect().await, put(noise(MIB / 2)));
    let (status, ()) = tokio::join!(peer.ask_in_vain(&large), past_memory_wait(&server, &time));
    assert_eq!(status, 429);
    let home = peer.new_context().await;
    peer.append(append(home, "small")).await;
    let (mut first, last) = hoarders.remove(0);
    first.send_bytes(&last).await;
    // The frame is whole, and waits for the room that it unpacks into.
    server.until_one_waits().await;
    drop(hoarders);
    let (_, done) = first.receive().await;
    assert!(matches!(done, Response::BlobPut { .. }), "{done:?}");
    let done = peer.ask(&large).await;
    assert!(matches!(done, Response::BlobPut { .. }), "{done:?}");
    drop(time);
    server.stop().await;
}

#[tokio::test]
async fn an_idle_server_holds_no_memory_of_its_last_write() {
    let server = small_server().await;
    let mut peer = server.connect().await;
    assert!(matches!(
        peer.ask(&put(noise(MIB))).await,
        Response::BlobPut { .. }
    ));
    server.until_held(0).await;
    server.stop().await;
}

#[tokio::test]
async fn headers_alone_take_no_room() {
    let server = small_server().await;
    let mut frame = BytesMut::new();
    put(noise(MIB)).encode(1, &mut frame);
    let mut peers = Vec::new();
    for _ in 0..16 {
        let mut peer = server.connect().await;
        peer.send_bytes(&frame[..1000]).await;
        peers.push(peer);
    }
    let mut peer = server.connect().await;
    assert!(matches!(
        peer.ask(&put(noise(MIB))).await,
        Response::BlobPut { was_new: true, .. }
    ));
    server.stop().await;
}

#[tokio::test]
async fn what_a_payload_unpacks_to_takes_room_too() {
    let time = StoppedTime::begin();
    let server = small_server().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let packed = |raw: &[u8]| {
        let mut turn = sent(raw.to_vec());
        turn.payload = zstd::encode_all(raw, 3).unwrap().into();
        turn.compression = Compression::Zstd;
        turn
    };
    let batch = |count| {
        let turns = vec![packed(&vec![7; MIB]); count];
        Request::AppendBatch(AppendBatch {
            context: home,
            parent: None,
            turns,
            key: Bytes::new(),
            expected_head: None,
        })
    };
    assert!(
        matches!(peer.ask(&batch(8)).await, Response::BatchAppended(_)),
        "nothing is refused for its size"
    );
    let hoarders = hoarders(&server, &time).await;
    let one = batch(1);
    let (answer, ()) = tokio::join!(peer.ask(&one), past_memory_wait(&server, &time));
    assert_eq!(status(&answer), 429, "a small frame that unpacks to much");
    drop((hoarders, time));
    server.stop().await;
}

#[tokio::test]
async fn a_subscriber_that_stalls_on_large_deliveries_is_given_up_on() {
    let time = StoppedTime::begin();
    let server = Server::start_with(|config| config.connections_max = Some(1)).await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let payload = Bytes::from(noise(MIB));
    for _ in 0..40 {
        peer.append(append(home, payload.clone())).await;
    }
    let options = ReadOptions {
        include_payload: true,
        ..ReadOptions::default()
    };
    for _ in 0..3 {
        peer.send(&Request::Subscribe(Subscribe {
            context: None,
            after: Some(0),
            options,
        }))
        .await;
    }
    // There is one place, so whoever gets it next shows that the subscriber has lost it.
    while !server.serves_another(home).await {
        time.advance(Timeouts::default().write_stall + STEP).await;
    }
    drop(time);
    server.stop().await;
}

#[tokio::test]
async fn a_subscriber_without_room_is_told_where_to_resume() {
    let time = StoppedTime::begin();
    let server = small_server().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    peer.append(append(home, noise(MIB))).await;
    let hoarders = hoarders(&server, &time).await;
    let options = ReadOptions {
        include_payload: true,
        ..ReadOptions::default()
    };
    let ask = Subscribe {
        context: Some(context(1)),
        after: Some(0),
        options,
    };
    assert_eq!(
        peer.ask(&Request::Subscribe(ask)).await,
        Response::Subscribed { caught_up: false }
    );
    let ((_, response), ()) = tokio::join!(peer.receive(), past_memory_wait(&server, &time));
    let Response::Error(failure) = response else {
        panic!("{response:?}")
    };
    assert_eq!(
        (
            failure.status,
            failure.body().details["resume_after"].as_str()
        ),
        (429, Some("1"))
    );
    drop((hoarders, time));
    server.stop().await;
}

#[tokio::test]
async fn without_memory_many_small_requests_are_slower_but_all_are_answered() {
    let time = StoppedTime::begin();
    let server = small_server().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let hoarders = hoarders(&server, &time).await;
    // More than a connection may have in flight without a permit, and all of it before an answer is
    // read. The server takes the rest when it has answered some, so the writes end.
    for _ in 0..REQUESTS {
        peer.send(&Request::AppendTurn(append(home, noise(100 << 10))))
            .await;
    }
    for _ in 0..REQUESTS {
        assert!(matches!(peer.receive().await.1, Response::TurnAppended(_)));
    }
    drop((hoarders, time));
    server.stop().await;
}
