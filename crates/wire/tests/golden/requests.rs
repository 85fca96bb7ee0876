//! Every request, in every variant, in the order of the message types.

use bytes::Bytes;
use turnkeep_types::BlobHash;
use turnkeep_wire::message::{
    AppendBatch, AppendTurn, AttachFs, CreateContext, GetBefore, GetLast, GetRange, Hello, PutBlob,
    PutBundle, ReadOptions, Subscribe,
};
use turnkeep_wire::{Request, Text};

use crate::sample::{self, PAYLOAD, context, root, turn};

const METADATA: ReadOptions = ReadOptions {
    include_payload: false,
    stored_form: false,
    extended: false,
};
const PAYLOADS: ReadOptions = ReadOptions {
    include_payload: true,
    ..METADATA
};
const STORED: ReadOptions = ReadOptions {
    stored_form: true,
    ..PAYLOADS
};
const EXTENDED: ReadOptions = ReadOptions {
    extended: true,
    ..METADATA
};
const EVERYTHING: ReadOptions = ReadOptions {
    extended: true,
    ..STORED
};

pub(crate) fn all() -> Vec<(&'static str, Request)> {
    [
        sessions(),
        contexts(),
        appends(),
        reads(),
        blobs(),
        batches(),
        subscriptions(),
    ]
    .concat()
}

fn sessions() -> Vec<(&'static str, Request)> {
    let meta = Bytes::from_static(br#"{"token":"secret"}"#);
    vec![
        ("hello_empty", Request::Hello(None)),
        (
            "hello",
            Request::Hello(Some(Hello {
                version: 1,
                tag: Text::from("writer-é"),
                meta,
            })),
        ),
        (
            "hello_without_meta",
            Request::Hello(Some(Hello {
                version: 2,
                tag: Text::default(),
                meta: Bytes::new(),
            })),
        ),
    ]
}

fn contexts() -> Vec<(&'static str, Request)> {
    let key = Some(Bytes::from_static(b"create-1"));
    let empty = CreateContext::default();
    let based = CreateContext {
        base: Some(turn(42)),
        key: None,
    };
    vec![
        ("ctx_create_empty", Request::CreateContext(empty.clone())),
        (
            "ctx_create_from_turn",
            Request::CreateContext(based.clone()),
        ),
        (
            "ctx_create_with_key",
            Request::CreateContext(CreateContext {
                key: key.clone(),
                ..empty
            }),
        ),
        ("ctx_fork", Request::ForkContext(based.clone())),
        (
            "ctx_fork_with_key",
            Request::ForkContext(CreateContext { key, ..based }),
        ),
        ("get_head", Request::GetHead(context())),
    ]
}

fn appends() -> Vec<(&'static str, Request)> {
    let plain = AppendTurn {
        context: context(),
        parent: None,
        turn: sample::sent_turn(),
        key: Bytes::new(),
        fs_root: None,
        expected_head: None,
    };
    let key = Bytes::from_static(&[0x00, 0xff, b'k']);
    let onto_parent = AppendTurn {
        parent: Some(turn(41)),
        key,
        ..plain.clone()
    };
    let zstd = AppendTurn {
        turn: sample::sent_turn_zstd(),
        ..plain.clone()
    };
    let empty = AppendTurn {
        turn: sample::sent_turn_empty(),
        ..plain.clone()
    };
    let rooted = AppendTurn {
        fs_root: Some(root()),
        ..plain.clone()
    };
    let onto_empty = AppendTurn {
        expected_head: Some(None),
        ..plain.clone()
    };
    let everything = AppendTurn {
        turn: sample::sent_turn_zstd(),
        fs_root: Some(root()),
        expected_head: Some(Some(turn(41))),
        ..onto_parent.clone()
    };
    vec![
        ("append_turn", Request::AppendTurn(plain)),
        (
            "append_turn_onto_parent_with_key",
            Request::AppendTurn(onto_parent),
        ),
        ("append_turn_zstd", Request::AppendTurn(zstd)),
        (
            "append_turn_empty_payload_and_type",
            Request::AppendTurn(empty),
        ),
        ("append_turn_with_fs_root", Request::AppendTurn(rooted)),
        (
            "append_turn_expecting_an_empty_context",
            Request::AppendTurn(onto_empty),
        ),
        (
            "append_turn_with_everything",
            Request::AppendTurn(everything),
        ),
    ]
}

fn reads() -> Vec<(&'static str, Request)> {
    let last = |options| {
        Request::GetLast(GetLast {
            context: context(),
            limit: 64,
            options,
        })
    };
    let before = |before, options| {
        Request::GetBefore(GetBefore {
            context: context(),
            before,
            limit: 10,
            options,
        })
    };
    let range = |options| {
        Request::GetRange(GetRange {
            context: context(),
            start_depth: 5,
            limit: 20,
            options,
        })
    };
    vec![
        ("get_last_metadata", last(METADATA)),
        ("get_last_with_payload", last(PAYLOADS)),
        ("get_last_stored_form", last(STORED)),
        ("get_last_extended", last(EXTENDED)),
        ("get_last_with_everything", last(EVERYTHING)),
        ("get_before", before(Some(turn(42)), PAYLOADS)),
        ("get_before_the_end", before(None, METADATA)),
        (
            "get_before_with_everything",
            before(Some(turn(42)), EVERYTHING),
        ),
        ("get_range_by_depth", range(METADATA)),
        ("get_range_by_depth_with_everything", range(EVERYTHING)),
    ]
}

fn blobs() -> Vec<(&'static str, Request)> {
    let put = |bytes: &'static [u8]| {
        Request::PutBlob(PutBlob {
            hash: BlobHash::of(bytes),
            bytes: Bytes::from_static(bytes),
        })
    };
    let json =
        Bytes::from_static(br#"{"registry_version":1,"bundle_id":"2025-12-19#a","types":{}}"#);
    vec![
        ("get_blob", Request::GetBlob(BlobHash::of(PAYLOAD))),
        (
            "attach_fs",
            Request::AttachFs(AttachFs {
                turn: turn(42),
                root: root(),
            }),
        ),
        ("put_blob", put(b"some bytes")),
        ("put_blob_empty", put(b"")),
        (
            "registry_put_bundle",
            Request::PutBundle(PutBundle {
                id: Text::from("2025-12-19#a"),
                json,
            }),
        ),
    ]
}

fn batches() -> Vec<(&'static str, Request)> {
    let one = AppendBatch {
        context: context(),
        parent: None,
        turns: vec![sample::sent_turn()],
        key: Bytes::new(),
        expected_head: None,
    };
    let everything = AppendBatch {
        context: context(),
        parent: Some(turn(41)),
        turns: vec![
            sample::sent_turn(),
            sample::sent_turn_zstd(),
            sample::sent_turn_empty(),
        ],
        key: Bytes::from_static(b"batch-1"),
        expected_head: Some(Some(turn(41))),
    };
    vec![
        ("append_batch_of_one", Request::AppendBatch(one)),
        (
            "append_batch_with_everything",
            Request::AppendBatch(everything),
        ),
    ]
}

fn subscriptions() -> Vec<(&'static str, Request)> {
    let all = Subscribe {
        context: None,
        after: None,
        options: METADATA,
    };
    let one = Subscribe {
        context: Some(context()),
        after: Some(17),
        options: PAYLOADS,
    };
    let everything = Subscribe {
        after: Some(0),
        options: EVERYTHING,
        ..one.clone()
    };
    vec![
        ("subscribe_to_all_from_now", Request::Subscribe(all)),
        (
            "subscribe_to_one_context_after_a_position",
            Request::Subscribe(one),
        ),
        ("subscribe_with_everything", Request::Subscribe(everything)),
        ("cancel", Request::Cancel(0x8000_0000_0000_0001)),
        (
            "has_blobs",
            Request::HasBlobs(vec![BlobHash::of(PAYLOAD), root()]),
        ),
        ("has_blobs_none", Request::HasBlobs(vec![])),
    ]
}
