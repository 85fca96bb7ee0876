//! Every response, in every variant, in the order of the message types.

use bytes::Bytes;
use turnkeep_types::BlobHash;
use turnkeep_wire::message::{
    AttachFs, BatchAck, BatchAckTurn, ContextHead, Delivery, Failure, Item, ItemForm, TurnAck,
    Welcome,
};
use turnkeep_wire::{Response, Text};

use crate::sample::{self, PAYLOAD, context, root, turn};

type Case = (&'static str, ItemForm, Response);

pub(crate) fn all() -> Vec<Case> {
    [contexts(), reads(), blobs(), subscriptions(), failures()].concat()
}

fn plain(name: &'static str, response: Response) -> Case {
    (name, ItemForm::Plain, response)
}

fn contexts() -> Vec<Case> {
    let head = ContextHead {
        context: context(),
        head: Some(turn(42)),
        depth: 1,
    };
    let empty = ContextHead {
        context: context(),
        head: None,
        depth: 0,
    };
    let ack = TurnAck {
        context: context(),
        turn: turn(42),
        depth: 1,
        hash: BlobHash::of(PAYLOAD),
    };
    vec![
        plain(
            "hello",
            Response::Hello(Welcome {
                session_id: 9,
                version: 1,
            }),
        ),
        plain("ctx_create", Response::ContextCreated(empty)),
        plain("ctx_fork", Response::ContextForked(head)),
        plain("get_head", Response::Head(head)),
        plain("get_head_of_an_empty_context", Response::Head(empty)),
        plain("append_turn", Response::TurnAppended(ack)),
    ]
}

fn reads() -> Vec<Case> {
    let extended = |item: Item| sample::extended(item, Some(root()));
    let metadata = Item {
        turn: turn(42),
        parent: Some(turn(41)),
        depth: 1,
        ..sample::item()
    };
    vec![
        plain(
            "get_last_metadata",
            Response::Last(vec![sample::item(), metadata]),
        ),
        plain(
            "get_last_with_payload",
            Response::Last(vec![sample::item_with_payload()]),
        ),
        plain(
            "get_last_stored_form",
            Response::Last(vec![sample::item_stored()]),
        ),
        plain("get_last_none", Response::Last(vec![])),
        (
            "get_last_extended",
            ItemForm::Extended,
            Response::Last(vec![
                sample::extended(sample::item(), None),
                extended(sample::item_with_payload()),
            ]),
        ),
        plain("get_before", Response::Before(vec![sample::item()])),
        (
            "get_before_extended",
            ItemForm::Extended,
            Response::Before(vec![extended(sample::item_stored())]),
        ),
        plain(
            "get_range_by_depth",
            Response::Range(vec![sample::item_with_payload()]),
        ),
    ]
}

fn blobs() -> Vec<Case> {
    let row = |number, depth| BatchAckTurn {
        turn: turn(number),
        depth,
        hash: BlobHash::of(PAYLOAD),
    };
    let ack = BatchAck {
        context: context(),
        turns: vec![row(42, 1), row(43, 2)],
    };
    vec![
        plain("get_blob", Response::Blob(Bytes::from_static(PAYLOAD))),
        plain("get_blob_empty", Response::Blob(Bytes::new())),
        plain(
            "attach_fs",
            Response::FsAttached(AttachFs {
                turn: turn(42),
                root: root(),
            }),
        ),
        plain(
            "put_blob_new",
            Response::BlobPut {
                hash: root(),
                was_new: true,
            },
        ),
        plain(
            "put_blob_known",
            Response::BlobPut {
                hash: root(),
                was_new: false,
            },
        ),
        plain(
            "registry_put_bundle_new",
            Response::BundlePut { status: 201 },
        ),
        plain(
            "registry_put_bundle_known",
            Response::BundlePut { status: 204 },
        ),
        plain("append_batch", Response::BatchAppended(ack)),
    ]
}

fn subscriptions() -> Vec<Case> {
    let delivered = |caught_up, item| Response::Delivered {
        caught_up,
        delivery: Delivery {
            position: 18,
            context: context(),
            item,
        },
    };
    let extended = sample::extended(sample::item_stored(), Some(root()));
    vec![
        plain(
            "subscribe_accepted",
            Response::Subscribed { caught_up: false },
        ),
        plain(
            "subscribe_accepted_with_nothing_to_catch_up",
            Response::Subscribed { caught_up: true },
        ),
        plain("subscribe_delivery", delivered(false, sample::item())),
        plain(
            "subscribe_delivery_caught_up",
            delivered(true, sample::item_with_payload()),
        ),
        (
            "subscribe_delivery_extended",
            ItemForm::Extended,
            delivered(true, extended),
        ),
        plain("cancel", Response::Cancelled),
        plain("has_blobs", Response::HasBlobs(vec![true, false])),
        plain("has_blobs_none", Response::HasBlobs(vec![])),
    ]
}

fn failures() -> Vec<Case> {
    let failure = |status, detail: &str| {
        Response::Error(Failure {
            status,
            detail: Text::from(detail),
        })
    };
    vec![
        plain(
            "error_not_found",
            failure(
                404,
                r#"{"code":"NotFound","message":"context 12 does not exist","details":{"context_id":"12"}}"#,
            ),
        ),
        plain(
            "error_behind",
            failure(
                429,
                r#"{"code":"TooManyRequests","message":"the reader fell behind","details":{"resume_after":"17"}}"#,
            ),
        ),
        plain(
            "error_plain_text",
            failure(500, "plain text from another server"),
        ),
    ]
}
