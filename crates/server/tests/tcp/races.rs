//! Many connections at once: one turn per key, one winner per step.

use bytes::Bytes;
use tokio::task::JoinSet;
use turnkeep_types::ContextId;
use turnkeep_wire::message::{AppendTurn, Request, Response};

use crate::support::{Peer, Server, append, status};

const CONNECTIONS: usize = 64;
const KEYS: u64 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_keys_on_64_connections_make_one_turn_each() {
    let server = Server::start().await;
    let mut first = server.connect().await;
    let home = first.new_context().await;
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        tasks.spawn(append_keys(server.connect().await, home));
    }
    let acks = tasks.join_all().await;
    for other in &acks {
        assert_eq!(other, &acks[0], "every connection gets the same acks");
    }
    let head = first.head(home).await;
    assert_eq!(u64::from(head.depth) + 1, KEYS);
    server.stop().await;
}

async fn append_keys(mut peer: Peer, home: ContextId) -> Vec<(u64, u32)> {
    let mut acks = Vec::new();
    for n in 0..KEYS {
        let key = Bytes::from(format!("key {n}"));
        peer.send(&Request::AppendTurn(AppendTurn {
            key,
            ..append(home, format!("turn {n}"))
        }))
        .await;
    }
    for _ in 0..KEYS {
        let (req_id, response) = peer.receive().await;
        let Response::TurnAppended(ack) = response else {
            panic!("{response:?}")
        };
        assert_eq!(req_id, acks.len() as u64 + 1);
        acks.push((ack.turn.get(), ack.depth));
    }
    acks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expected_heads_let_one_writer_win_each_step() {
    let server = Server::start().await;
    let mut first = server.connect().await;
    let home = first.new_context().await;
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        tasks.spawn(win_steps(server.connect().await, home, 10));
    }
    let wins: u32 = tasks.join_all().await.into_iter().sum();
    assert_eq!(wins, 160);
    assert_eq!(first.head(home).await.depth, 159, "one turn per win");
    server.stop().await;
}

/// Appends onto the head that it saw until it has won `wins` times; a conflict tells it the head.
async fn win_steps(mut peer: Peer, home: ContextId, wins: u32) -> u32 {
    let mut head = None;
    let mut won = 0;
    while won < wins {
        let attempt = AppendTurn {
            expected_head: Some(head),
            ..append(home, format!("{won}"))
        };
        match peer.ask(&Request::AppendTurn(attempt)).await {
            Response::TurnAppended(ack) => {
                head = Some(ack.turn);
                won += 1;
            }
            Response::Error(failure) => {
                assert_eq!(failure.status, 409);
                let actual = failure.body().details["actual_head_turn_id"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                head = actual.parse().ok();
            }
            other => panic!("{other:?}"),
        }
    }
    won
}

#[tokio::test]
async fn a_key_that_comes_back_with_something_else_is_a_conflict() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let key = Bytes::from_static(b"k");
    let ack = peer
        .append(AppendTurn {
            key: key.clone(),
            ..append(home, "a")
        })
        .await;
    assert_eq!(
        peer.append(AppendTurn {
            key: key.clone(),
            ..append(home, "a")
        })
        .await,
        ack
    );
    let other = Request::AppendTurn(AppendTurn {
        key,
        ..append(home, "b")
    });
    assert_eq!(status(&peer.ask(&other).await), 409);
    server.stop().await;
}
