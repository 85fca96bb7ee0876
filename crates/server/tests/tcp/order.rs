//! Pipelining: answers come in the order of the requests, errors included.

use bytes::{Bytes, BytesMut};
use turnkeep_types::{BlobHash, Compression};
use turnkeep_wire::message::{AppendBatch, AppendTurn, Request, Response, SentTurn};

use crate::support::{Server, append, context, noise, sent, status};

#[tokio::test]
async fn answers_come_in_request_order_with_errors_in_between() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let mut out = BytesMut::new();
    for n in 0..600_u64 {
        let request = match n % 5 {
            0 | 1 => Request::AppendTurn(append(home, format!("turn {n}"))),
            2 => Request::AppendTurn(append(context(999), "nowhere")),
            3 => Request::GetHead(home),
            _ => Request::Cancel(n),
        };
        request.encode(1000 + n, &mut out);
    }
    peer.send_bytes(&out).await;
    let mut depth = 0;
    for n in 0..600_u64 {
        let (req_id, response) = peer.receive().await;
        assert_eq!(req_id, 1000 + n);
        match n % 5 {
            0 | 1 => {
                let Response::TurnAppended(ack) = response else {
                    panic!("{response:?}")
                };
                assert_eq!(ack.depth, depth);
                depth += 1;
            }
            3 => assert!(matches!(response, Response::Head(_)), "{response:?}"),
            _ => assert_eq!(status(&response), 404),
        }
    }
    assert_eq!(peer.head(home).await.depth, 239);
    server.stop().await;
}

#[tokio::test]
async fn a_large_append_keeps_its_place_among_small_ones() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    for round in 0..3_u8 {
        let mut out = BytesMut::new();
        let mut large = noise(600 << 10);
        large[0] = round;
        Request::AppendTurn(append(home, "before")).encode(1, &mut out);
        Request::AppendTurn(append(home, large)).encode(2, &mut out);
        Request::AppendTurn(append(home, "after")).encode(3, &mut out);
        peer.send_bytes(&out).await;
        for n in 0..3_u32 {
            let (req_id, response) = peer.receive().await;
            let Response::TurnAppended(ack) = response else {
                panic!("{response:?}")
            };
            assert_eq!(
                (req_id, ack.depth),
                (u64::from(n) + 1, u32::from(round) * 3 + n)
            );
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_peer_that_stops_sending_still_gets_its_answers() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    for n in 0..50 {
        peer.send(&Request::AppendTurn(append(home, format!("{n}"))))
            .await;
    }
    peer.finish_sending().await;
    for _ in 0..50 {
        assert!(matches!(peer.receive().await.1, Response::TurnAppended(_)));
    }
    assert_eq!(peer.frame().await, None);
    server.stop().await;
}

#[tokio::test]
async fn what_is_sent_is_held_against_its_own_words() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let mut check = async |turn: SentTurn, expect| {
        let request = Request::AppendTurn(AppendTurn {
            turn,
            ..append(home, "")
        });
        assert_eq!(peer.ask_in_vain(&request).await, expect, "{request:?}");
    };
    check(
        SentTurn {
            hash: BlobHash::of(b"other"),
            ..sent("x")
        },
        409,
    )
    .await;
    check(
        SentTurn {
            raw_len: 2,
            ..sent("x")
        },
        409,
    )
    .await;
    check(
        SentTurn {
            compression: Compression::Zstd,
            ..sent("no zstd")
        },
        422,
    )
    .await;
    check(
        SentTurn {
            type_id: "t".repeat(513).into(),
            ..sent("x")
        },
        413,
    )
    .await;
    check(
        SentTurn {
            raw_len: u32::MAX,
            compression: Compression::Zstd,
            ..sent("x")
        },
        413,
    )
    .await;
    let long_key = AppendTurn {
        key: vec![7; 1025].into(),
        ..append(home, "x")
    };
    assert_eq!(peer.ask_in_vain(&Request::AppendTurn(long_key)).await, 413);
    assert_eq!(peer.head(home).await.head, None, "nothing was appended");
    server.stop().await;
}

#[tokio::test]
async fn a_batch_is_all_or_none() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let batch = |turns| {
        let key = Bytes::new();
        Request::AppendBatch(AppendBatch {
            context: home,
            parent: None,
            turns,
            key,
            expected_head: None,
        })
    };
    let bad = SentTurn {
        hash: BlobHash::of(b"other"),
        ..sent("b")
    };
    assert_eq!(peer.ask_in_vain(&batch(vec![sent("a"), bad])).await, 409);
    assert_eq!(peer.ask_in_vain(&batch(vec![])).await, 400);
    assert_eq!(peer.head(home).await.head, None);
    let response = peer
        .ask(&batch(vec![sent("a"), sent("b"), sent("a")]))
        .await;
    let Response::BatchAppended(ack) = response else {
        panic!("{response:?}")
    };
    assert_eq!(
        ack.turns.iter().map(|row| row.depth).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!(ack.turns[0].hash, ack.turns[2].hash);
    assert_eq!(peer.head(home).await.head, Some(ack.turns[2].turn));
    server.stop().await;
}
