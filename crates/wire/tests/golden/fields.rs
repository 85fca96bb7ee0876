//! Messages as readable fields, by the names that the protocol gives them.
//!
//! `u64` and ids are decimal strings (JSON numbers lose bits), smaller numbers are numbers, hashes,
//! payloads and keys are hex, texts are texts. A field that a flag leaves out is absent.

use serde_json::{Value, json};
use turnkeep_types::{BlobHash, ContextId, TurnId};
use turnkeep_wire::message::{
    AppendBatch, AppendTurn, AttachFs, BatchAck, ContextHead, CreateContext, Delivery, Item,
    ReadOptions, SentTurn, Subscribe,
};
use turnkeep_wire::{Request, Response};

pub(crate) fn of_request(request: &Request) -> Value {
    match request {
        Request::Hello(None) => json!({}),
        Request::Hello(Some(hello)) => json!({
            "version": hello.version,
            "tag": hello.tag.as_str(),
            "meta_json": std::str::from_utf8(&hello.meta).unwrap(),
        }),
        Request::CreateContext(create) | Request::ForkContext(create) => create_context(create),
        Request::GetHead(context) => json!({"context_id": context.to_string()}),
        Request::AppendTurn(append) => append_turn(append),
        Request::GetLast(get) => read(
            json!({"context_id": get.context.to_string(), "limit": get.limit}),
            get.options,
        ),
        Request::GetBefore(get) => read(
            json!({
                "context_id": get.context.to_string(),
                "before_turn_id": turn(get.before),
                "limit": get.limit,
            }),
            get.options,
        ),
        Request::GetRange(get) => read(
            json!({
                "context_id": get.context.to_string(),
                "start_depth": get.start_depth,
                "limit": get.limit,
            }),
            get.options,
        ),
        Request::GetBlob(hash) => json!({"hash": hash.to_string()}),
        Request::AttachFs(attach) => attach_fs(attach),
        Request::PutBlob(put) => json!({
            "hash": put.hash.to_string(),
            "raw_len": put.bytes.len(),
            "bytes": hex::encode(&put.bytes),
        }),
        Request::PutBundle(put) => json!({
            "bundle_id": put.id.as_str(),
            "bundle_json": std::str::from_utf8(&put.json).unwrap(),
        }),
        Request::AppendBatch(batch) => append_batch(batch),
        Request::Subscribe(subscribe) => subscription(subscribe),
        Request::Cancel(req_id) => json!({"req_id": req_id.to_string()}),
        Request::HasBlobs(hashes) => json!({"count": hashes.len(), "hashes": texts(hashes)}),
    }
}

pub(crate) fn of_response(response: &Response) -> Value {
    match response {
        Response::Hello(welcome) => {
            json!({"session_id": welcome.session_id.to_string(), "version": welcome.version})
        }
        Response::ContextCreated(h) | Response::ContextForked(h) | Response::Head(h) => head(h),
        Response::TurnAppended(ack) => json!({
            "context_id": ack.context.to_string(),
            "new_turn_id": ack.turn.to_string(),
            "new_depth": ack.depth,
            "content_hash_b3_256": ack.hash.to_string(),
        }),
        Response::Last(items) | Response::Before(items) | Response::Range(items) => {
            json!({"count": items.len(), "items": items.iter().map(item).collect::<Vec<_>>()})
        }
        Response::Blob(bytes) => json!({"raw_len": bytes.len(), "bytes": hex::encode(bytes)}),
        Response::FsAttached(attached) => attach_fs(attached),
        Response::BlobPut { hash, was_new } => {
            json!({"hash": hash.to_string(), "was_new": u8::from(*was_new)})
        }
        Response::BundlePut { status } => json!({"status": status}),
        Response::BatchAppended(ack) => batch_ack(ack),
        Response::Subscribed { .. } | Response::Cancelled => json!({}),
        Response::Delivered { delivery, .. } => delivered(delivery),
        Response::HasBlobs(present) => {
            let present: Vec<_> = present.iter().map(|present| u8::from(*present)).collect();
            json!({"count": present.len(), "present": present})
        }
        Response::Error(failure) => {
            json!({"code": failure.status, "detail": failure.detail.as_str()})
        }
    }
}

fn turn(id: Option<TurnId>) -> String {
    TurnId::to_wire(id).to_string()
}

fn texts(hashes: &[BlobHash]) -> Vec<String> {
    hashes.iter().map(ToString::to_string).collect()
}

fn create_context(create: &CreateContext) -> Value {
    let mut fields = json!({"base_turn_id": turn(create.base)});
    if let Some(key) = &create.key {
        fields["key"] = hex::encode(key).into();
    }
    fields
}

fn sent_turn(turn: &SentTurn) -> Value {
    json!({
        "declared_type_id": turn.type_id.as_str(),
        "declared_type_version": turn.type_version,
        "encoding": turn.encoding,
        "compression": turn.compression.to_wire(),
        "uncompressed_len": turn.raw_len,
        "content_hash_b3_256": turn.hash.to_string(),
        "payload_bytes": hex::encode(&turn.payload),
    })
}

fn append_turn(append: &AppendTurn) -> Value {
    let mut fields =
        json!({"context_id": append.context.to_string(), "parent_turn_id": turn(append.parent)});
    for (key, value) in sent_turn(&append.turn).as_object().unwrap() {
        fields[key] = value.clone();
    }
    fields["idempotency_key"] = hex::encode(&append.key).into();
    if let Some(root) = append.fs_root {
        fields["fs_root_hash"] = root.to_string().into();
    }
    if let Some(head) = append.expected_head {
        fields["expected_head_turn_id"] = turn(head).into();
    }
    fields
}

fn append_batch(batch: &AppendBatch) -> Value {
    let mut fields = json!({
        "context_id": batch.context.to_string(),
        "parent_turn_id": turn(batch.parent),
        "count": batch.turns.len(),
        "turns": batch.turns.iter().map(sent_turn).collect::<Vec<_>>(),
        "key": hex::encode(&batch.key),
    });
    if let Some(head) = batch.expected_head {
        fields["expected_head_turn_id"] = turn(head).into();
    }
    fields
}

fn batch_ack(ack: &BatchAck) -> Value {
    let rows = ack.turns.iter().map(
        |row| json!({"turn_id": row.turn.to_string(), "depth": row.depth, "hash": row.hash.to_string()}),
    );
    json!({
        "context_id": ack.context.to_string(),
        "count": ack.turns.len(),
        "turns": rows.collect::<Vec<_>>(),
    })
}

fn read(mut fields: Value, options: ReadOptions) -> Value {
    fields["include_payload"] = u32::from(options.include_payload).into();
    fields
}

fn subscription(subscribe: &Subscribe) -> Value {
    let fields = json!({
        "context_id": ContextId::to_wire(subscribe.context).to_string(),
        "after_position": subscribe.after.unwrap_or(u64::MAX).to_string(),
    });
    read(fields, subscribe.options)
}

fn attach_fs(attach: &AttachFs) -> Value {
    json!({"turn_id": attach.turn.to_string(), "fs_root_hash": attach.root.to_string()})
}

fn head(head: &ContextHead) -> Value {
    json!({
        "context_id": head.context.to_string(),
        "head_turn_id": turn(head.head),
        "head_depth": head.depth,
    })
}

fn item(item: &Item) -> Value {
    let mut fields = json!({
        "turn_id": item.turn.to_string(),
        "parent_turn_id": turn(item.parent),
        "depth": item.depth,
        "declared_type_id": item.type_id.as_str(),
        "declared_type_version": item.type_version,
        "encoding": item.encoding,
        "compression": item.compression.to_wire(),
        "uncompressed_len": item.raw_len,
        "content_hash": item.hash.to_string(),
        "payload_bytes": hex::encode(&item.payload),
    });
    if let Some(extra) = item.extra {
        fields["created_at"] = extra.created_at.0.to_string().into();
        fields["fs_root_hash"] = hex::encode(BlobHash::to_wire(extra.fs_root)).into();
    }
    fields
}

fn delivered(delivery: &Delivery) -> Value {
    json!({
        "position": delivery.position.to_string(),
        "context_id": delivery.context.to_string(),
        "item": item(&delivery.item),
    })
}
