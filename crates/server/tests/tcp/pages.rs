//! Reads: what pages hold, where they are cut, and the forms of their items.

use bytes::Bytes;
use turnkeep_types::{BlobHash, Compression, ContextId};
use turnkeep_wire::message::{
    AppendTurn, AttachFs, CreateContext, GetBefore, GetLast, GetRange, Item, ItemForm, PutBlob,
    ReadOptions, Request, Response, SentTurn,
};

use crate::support::{NOW_MS, Peer, Server, append, context, noise, sent, turn};

const METADATA: ReadOptions = ReadOptions {
    include_payload: false,
    stored_form: false,
    extended: false,
};
const PAYLOADS: ReadOptions = ReadOptions {
    include_payload: true,
    ..METADATA
};

fn last(context: ContextId, limit: u32, options: ReadOptions) -> Request {
    Request::GetLast(GetLast {
        context,
        limit,
        options,
    })
}

fn before(context: ContextId, before: Option<u64>, limit: u32) -> Request {
    Request::GetBefore(GetBefore {
        context,
        before: before.map(turn),
        limit,
        options: METADATA,
    })
}

fn range(context: ContextId, start_depth: u32, limit: u32) -> Request {
    Request::GetRange(GetRange {
        context,
        start_depth,
        limit,
        options: METADATA,
    })
}

async fn items(peer: &mut Peer, request: &Request) -> Vec<Item> {
    match peer.ask(request).await {
        Response::Last(items) | Response::Before(items) | Response::Range(items) => items,
        other => panic!("{other:?}"),
    }
}

async fn depths(peer: &mut Peer, request: &Request) -> Vec<u32> {
    items(peer, request)
        .await
        .iter()
        .map(|item| item.depth)
        .collect()
}

async fn context_of(peer: &mut Peer, turns: u32) -> ContextId {
    let home = peer.new_context().await;
    for n in 0..turns {
        peer.append(append(home, format!("turn {n}"))).await;
    }
    home
}

#[tokio::test]
async fn pages_are_oldest_first_and_nearest_to_where_they_start() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = context_of(&mut peer, 10).await;
    assert_eq!(depths(&mut peer, &last(home, 3, METADATA)).await, [7, 8, 9]);
    assert_eq!(
        depths(&mut peer, &last(home, 0, METADATA)).await,
        [0_u32; 0]
    );
    assert_eq!(
        depths(&mut peer, &last(home, u32::MAX, METADATA))
            .await
            .len(),
        10
    );
    assert_eq!(depths(&mut peer, &before(home, Some(4), 2)).await, [1, 2]);
    assert_eq!(
        depths(&mut peer, &before(home, Some(1), 2)).await,
        [0_u32; 0]
    );
    assert_eq!(depths(&mut peer, &before(home, None, 2)).await, [8, 9]);
    assert_eq!(depths(&mut peer, &range(home, 4, 3)).await, [4, 5, 6]);
    assert_eq!(depths(&mut peer, &range(home, 9, 3)).await, [9]);
    assert_eq!(depths(&mut peer, &range(home, 10, 3)).await, [0_u32; 0]);
    for missing in [
        last(context(99), 1, METADATA),
        before(home, Some(99), 1),
        range(context(99), 0, 1),
        before(context(99), None, 1),
    ] {
        assert_eq!(peer.ask_in_vain(&missing).await, 404, "{missing:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_page_over_the_byte_limit_keeps_the_end_it_starts_from() {
    let server = Server::start_with(|config| config.limits.page_bytes_max = 2500).await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    for n in 0..5_u8 {
        peer.append(append(home, vec![n; 1000])).await;
    }
    assert_eq!(depths(&mut peer, &last(home, 5, PAYLOADS)).await, [3, 4]);
    let range = Request::GetRange(GetRange {
        context: home,
        start_depth: 1,
        limit: 5,
        options: PAYLOADS,
    });
    assert_eq!(depths(&mut peer, &range).await, [1, 2]);
    assert_eq!(depths(&mut peer, &last(home, 5, METADATA)).await.len(), 5);
    peer.append(append(home, vec![9; 5000])).await;
    assert_eq!(
        depths(&mut peer, &last(home, 5, PAYLOADS)).await,
        [5],
        "at least one turn"
    );
    server.stop().await;
}

#[tokio::test]
async fn payloads_come_back_as_they_went_in_and_in_the_stored_form_on_request() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let compressible = Bytes::from(vec![b'a'; 10_000]);
    peer.append(append(home, compressible.clone())).await;
    peer.append(append(home, "small")).await;
    peer.append(append(home, "")).await;
    let raw = items(&mut peer, &last(home, 3, PAYLOADS)).await;
    assert_eq!(
        raw.iter()
            .map(|item| item.payload.clone())
            .collect::<Vec<_>>(),
        [
            compressible.clone(),
            Bytes::from_static(b"small"),
            Bytes::new()
        ]
    );
    assert!(raw.iter().all(|item| item.compression == Compression::None));
    let options = ReadOptions {
        stored_form: true,
        ..PAYLOADS
    };
    let stored = items(&mut peer, &last(home, 3, options)).await;
    assert_eq!(stored[0].compression, Compression::Zstd);
    assert_eq!(
        zstd::decode_all(&stored[0].payload[..]).unwrap(),
        compressible
    );
    assert_eq!(stored[1].payload, raw[1].payload);
    server.stop().await;
}

#[tokio::test]
async fn a_payload_sent_compressed_is_kept_as_sent() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let raw = vec![b'z'; 3000];
    let compressed = zstd::encode_all(&raw[..], 3).unwrap();
    let turn = SentTurn {
        compression: Compression::Zstd,
        payload: compressed.clone().into(),
        ..sent(raw.clone())
    };
    peer.append(AppendTurn {
        turn,
        ..append(home, "")
    })
    .await;
    let options = ReadOptions {
        stored_form: true,
        ..PAYLOADS
    };
    let stored = items(&mut peer, &last(home, 1, options)).await;
    assert_eq!(
        (stored[0].compression, &stored[0].payload[..]),
        (Compression::Zstd, &compressed[..])
    );
    assert_eq!(
        items(&mut peer, &last(home, 1, PAYLOADS)).await[0].payload,
        raw
    );
    server.stop().await;
}

#[tokio::test]
async fn extended_items_carry_stamp_and_root() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let tree = Bytes::from_static(&[0x90]);
    let root = BlobHash::of(&tree);
    let ack = peer.append(append(home, "x")).await;
    let attach = Request::AttachFs(AttachFs {
        turn: ack.turn,
        root,
    });
    assert_eq!(
        peer.ask_in_vain(&attach).await,
        404,
        "the root is not there yet"
    );
    let put = Request::PutBlob(PutBlob {
        hash: root,
        bytes: tree,
    });
    assert_eq!(
        peer.ask(&put).await,
        Response::BlobPut {
            hash: root,
            was_new: true
        }
    );
    assert_eq!(
        peer.ask(&put).await,
        Response::BlobPut {
            hash: root,
            was_new: false
        }
    );
    let attached = Response::FsAttached(AttachFs {
        turn: ack.turn,
        root,
    });
    assert_eq!(peer.ask(&attach).await, attached);
    assert_eq!(peer.ask(&attach).await, attached, "the same root again");
    let other = Request::AttachFs(AttachFs {
        turn: ack.turn,
        root: ack.hash,
    });
    assert_eq!(peer.ask_in_vain(&other).await, 409);
    let request = last(
        home,
        1,
        ReadOptions {
            extended: true,
            ..METADATA
        },
    );
    assert_eq!(request.item_form(), ItemForm::Extended);
    let extra = items(&mut peer, &request).await[0].extra.unwrap();
    assert_eq!((extra.created_at.0, extra.fs_root), (NOW_MS, Some(root)));
    server.stop().await;
}

#[tokio::test]
async fn large_pages_and_blobs_come_whole_and_in_order() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = peer.new_context().await;
    let large = Bytes::from(noise(3 << 20));
    let ack = peer.append(append(home, large.clone())).await;
    for _ in 0..4 {
        peer.send(&last(home, 1, PAYLOADS)).await;
        peer.send(&Request::GetBlob(ack.hash)).await;
        peer.send(&Request::GetHead(home)).await;
    }
    for _ in 0..4 {
        let Response::Last(items) = peer.receive().await.1 else {
            panic!("a page was asked for")
        };
        assert_eq!(items[0].payload, large);
        assert_eq!(peer.receive().await.1, Response::Blob(large.clone()));
        assert!(matches!(peer.receive().await.1, Response::Head(_)));
    }
    server.stop().await;
}

#[tokio::test]
async fn presence_and_forks() {
    let server = Server::start().await;
    let mut peer = server.connect().await;
    let home = context_of(&mut peer, 3).await;
    let here = BlobHash::of(b"turn 1");
    let absent = BlobHash::of(b"absent");
    assert_eq!(
        peer.ask(&Request::HasBlobs(vec![here, absent, here])).await,
        Response::HasBlobs(vec![true, false, true])
    );
    assert_eq!(peer.ask_in_vain(&Request::GetBlob(absent)).await, 404);
    let key = Some(Bytes::from_static(b"fork"));
    let fork = Request::ForkContext(CreateContext {
        base: Some(turn(2)),
        key,
    });
    let forked = peer.ask(&fork).await;
    let Response::ContextForked(head) = forked else {
        panic!("{forked:?}")
    };
    assert_eq!((head.head, head.depth), (Some(turn(2)), 1));
    assert_eq!(
        peer.ask(&fork).await,
        Response::ContextForked(head),
        "the same key, the same context"
    );
    peer.append(append(head.context, "on the fork")).await;
    assert_eq!(
        depths(&mut peer, &last(head.context, 9, METADATA)).await,
        [0, 1, 2]
    );
    assert_eq!(peer.head(home).await.depth, 2);
    server.stop().await;
}
