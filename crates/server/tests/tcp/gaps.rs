//! A repaired store over the binary port: a read that would cross a gap fails and names it.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use turnkeep_journal::{MemoryStorage, Storage};
use turnkeep_store::salvage;
use turnkeep_types::BlobHash;
use turnkeep_wire::message::{
    GetBefore, GetLast, GetRange, ReadOptions, Request, Response, Subscribe,
};

use crate::support::{Peer, Server, append, context, turn};

/// Context 1 with four turns, of which the second and third were lost; context 2, whose creation
/// was.
async fn damaged_store() -> MemoryStorage {
    let disk = MemoryStorage::new();
    let server = Server::start_on(disk.clone(), |_| {}).await;
    let mut writer = server.connect().await;
    let one = writer.new_context().await;
    writer.append(append(one, "first")).await;
    writer.append(append(one, "lost needle")).await;
    writer.append(append(one, "lost as well")).await;
    writer.new_context().await;
    writer.append(append(one, "fourth")).await;
    server.stop().await;
    let mut files = disk.files();
    let log = files.get_mut("log/0000000001.seg").unwrap();
    let frames: Vec<usize> = (64..log.len())
        .step_by(8)
        .filter(|&at| log[at..].starts_with(b"TKF1"))
        .collect();
    assert_eq!(frames.len(), 6);
    for frame in [2, 3, 4] {
        log[frames[frame] + 40] ^= 1;
    }
    let from: Arc<dyn Storage> = Arc::new(MemoryStorage::with_files(files));
    let repaired = MemoryStorage::new();
    let to: Arc<dyn Storage> = Arc::new(repaired.clone());
    salvage::repair(&from, &to, 1 << 20, |_, _| ()).unwrap();
    repaired
}

async fn fail(peer: &mut Peer, request: Request) -> Map<String, Value> {
    match peer.ask(&request).await {
        Response::Error(failure) if failure.status == 500 => failure.body().details,
        other => panic!("{request:?} got {other:?}"),
    }
}

fn range(of: u64, start_depth: u32, limit: u32) -> Request {
    Request::GetRange(GetRange {
        context: context(of),
        start_depth,
        limit,
        options: ReadOptions::default(),
    })
}

fn before(of: u64, turn_id: u64) -> Request {
    let options = ReadOptions::default();
    Request::GetBefore(GetBefore {
        context: context(of),
        before: Some(turn(turn_id)),
        limit: 9,
        options,
    })
}

#[tokio::test]
async fn a_read_across_a_gap_fails_and_says_where_to_go_on() {
    let server = Server::start_on(damaged_store().await, |_| {}).await;
    let mut peer = server.connect().await;
    let gap = json!({"turn_id": "3", "earlier_turn_id": "1", "next_depth": 3});
    for (start, limit) in [(0, 1), (0, 9), (1, 1), (2, 1), (2, 9)] {
        assert_eq!(
            Value::Object(fail(&mut peer, range(1, start, limit)).await),
            gap,
            "{start} {limit}"
        );
    }
    assert_eq!(Value::Object(fail(&mut peer, before(1, 4)).await), gap);
    assert_eq!(fail(&mut peer, before(1, 3)).await["turn_id"], "3");
    assert_eq!(fail(&mut peer, before(1, 2)).await["turn_id"], "2");
    let Response::Range(page) = peer.ask(&range(1, 3, 9)).await else {
        panic!("a page")
    };
    assert_eq!(
        page.iter().map(|item| item.turn.get()).collect::<Vec<_>>(),
        [4]
    );
    // Nothing tells the head of the context whose creation is lost.
    let last = GetLast {
        context: context(2),
        limit: 9,
        options: ReadOptions::default(),
    };
    for request in [
        Request::GetHead(context(2)),
        Request::GetLast(last),
        range(2, 0, 9),
    ] {
        assert_eq!(fail(&mut peer, request).await["context_id"], "2");
    }
    server.stop().await;
}

/// A repaired store whose only turn is there, but not the bytes of its payload.
async fn store_without_a_payload() -> MemoryStorage {
    let disk = MemoryStorage::new();
    let server = Server::start_on(disk.clone(), |_| {}).await;
    let mut writer = server.connect().await;
    let one = writer.new_context().await;
    writer.append(append(one, "lost needle")).await;
    server.stop().await;
    let mut files = disk.files();
    let log = files.get_mut("log/0000000001.seg").unwrap();
    let payload = b"lost needle";
    let at = log
        .windows(payload.len())
        .position(|window| window == payload)
        .unwrap();
    log[at] ^= 1;
    let from: Arc<dyn Storage> = Arc::new(MemoryStorage::with_files(files));
    let repaired = MemoryStorage::new();
    let to: Arc<dyn Storage> = Arc::new(repaired.clone());
    salvage::repair(&from, &to, 1 << 20, |_, _| ()).unwrap();
    repaired
}

#[tokio::test]
async fn bytes_that_were_lost_are_not_reported_as_unknown() {
    let server = Server::start_on(store_without_a_payload().await, |_| {}).await;
    let mut peer = server.connect().await;
    let hash = BlobHash::of(b"lost needle");
    let lost = fail(&mut peer, Request::GetBlob(hash)).await;
    assert_eq!(lost["hash"], hash.to_string());
    // Its turn is still there.
    let Response::Range(page) = peer.ask(&range(1, 0, 9)).await else {
        panic!("a page")
    };
    assert_eq!(page.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_subscription_ends_at_a_loss_and_goes_on_behind_it() {
    let server = Server::start_on(damaged_store().await, |_| {}).await;
    for of in [None, Some(context(1)), Some(context(2))] {
        let mut peer = server.connect().await;
        let subscribe = |after| {
            Request::Subscribe(Subscribe {
                context: of,
                after: Some(after),
                options: ReadOptions::default(),
            })
        };
        peer.ask(&subscribe(0)).await;
        let mut delivered = Vec::new();
        let failure = loop {
            match peer.receive().await.1 {
                Response::Delivered { delivery, .. } => delivered.push(delivery.item.turn.get()),
                Response::Error(failure) => break failure,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(failure.status, 500);
        let details = failure.body().details;
        assert_eq!(details["turn_id"], "2");
        let resume_after = details["resume_after"].as_str().unwrap().parse().unwrap();
        let is_second = of == Some(context(2));
        assert_eq!(delivered, if is_second { vec![] } else { vec![1] });
        let Response::Subscribed { caught_up } = peer.ask(&subscribe(resume_after)).await else {
            panic!("a subscription")
        };
        assert_eq!(caught_up, is_second, "nothing but the loss was to be told");
        if !is_second {
            let Response::Delivered { delivery, .. } = peer.receive().await.1 else {
                panic!("turn 4")
            };
            assert_eq!(delivery.item.turn.get(), 4);
        }
    }
    server.stop().await;
}
