//! Turns requests into commands, and checks them against the limits.
//!
//! Both ports use these functions, so no limit or rule differs between them. An append over HTTP
//! arrives as JSON; `http::append` builds its command with the checks of this module. Verifying a
//! payload hashes it, so the caller chooses the thread.

use bytes::Bytes;
use turnkeep_store::blob::SentBlob;
use turnkeep_store::{Append, AppendPart, Command, CreateContext, Key, Labels, NewBlob, NewTurn};
use turnkeep_types::{BlobHash, Compression, Limits, TypeRef};
use turnkeep_wire::{ErrorCode, message as wire};

use crate::error::ApiError;
use crate::nesting::{NESTING_MAX, nesting};

/// The rules for requests.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// The limits.
    pub limits: Limits,
    /// Whether the store rejects turns whose type the registry does not know.
    pub strict_types: bool,
}

/// `CTX_CREATE` and `CTX_FORK`.
pub fn create_context(policy: &Policy, create: wire::CreateContext) -> Result<Command, ApiError> {
    let key = key(policy, create.key.unwrap_or_default())?;
    Ok(Command::CreateContext(CreateContext {
        base: create.base,
        labels: Labels::new(),
        key,
    }))
}

/// `APPEND_TURN`.
pub fn append_turn(policy: &Policy, append: wire::AppendTurn) -> Result<Command, ApiError> {
    let key = key(policy, append.key)?;
    let turn = new_turn(policy, append.turn, append.fs_root)?;
    let part = AppendPart {
        context: append.context,
        parent: append.parent,
        expected_head: append.expected_head,
        turns: vec![turn],
    };
    Ok(append_part(policy, part, key))
}

/// A command that appends to one context.
pub(crate) fn append_part(policy: &Policy, part: AppendPart, key: Option<Key>) -> Command {
    Command::Append(Append {
        parts: vec![part],
        key,
        strict: policy.strict_types,
    })
}

/// `APPEND_BATCH`.
pub fn append_batch(policy: &Policy, batch: wire::AppendBatch) -> Result<Command, ApiError> {
    check_batch(&policy.limits, &batch.turns)?;
    let key = key(policy, batch.key)?;
    let turns: Result<_, _> = batch
        .turns
        .into_iter()
        .map(|turn| new_turn(policy, turn, None))
        .collect();
    let part = AppendPart {
        context: batch.context,
        parent: batch.parent,
        expected_head: batch.expected_head,
        turns: turns?,
    };
    Ok(append_part(policy, part, key))
}

fn check_batch(limits: &Limits, turns: &[wire::SentTurn]) -> Result<(), ApiError> {
    if turns.is_empty() {
        return Err(ApiError::bad_request("a batch has at least one turn"));
    }
    // The declared lengths are checked before anything is unpacked. Unpacking stops at them, so a lie
    // takes no more memory.
    let sent = turns.iter().map(|turn| turn.payload.len() as u64).sum();
    let raw = turns.iter().map(|turn| u64::from(turn.raw_len)).sum();
    within(
        "turns of the batch",
        limits.batch_turns_max,
        turns.len() as u64,
    )?;
    within(
        "payload bytes of the batch as sent",
        limits.batch_bytes_max,
        sent,
    )?;
    within(
        "payload bytes of the batch, uncompressed",
        limits.batch_raw_bytes_max,
        raw,
    )
}

fn new_turn(
    policy: &Policy,
    turn: wire::SentTurn,
    fs_root: Option<BlobHash>,
) -> Result<NewTurn, ApiError> {
    let declared = declared_type(policy, &turn.type_id, turn.type_version)?;
    let sent = SentBlob {
        hash: turn.hash,
        raw_len: turn.raw_len,
        compression: turn.compression,
        bytes: turn.payload,
    };
    let payload = NewBlob::verify(sent, policy.limits.blob_bytes_max)?;
    Ok(NewTurn {
        declared,
        encoding: turn.encoding,
        payload,
        fs_root,
    })
}

/// `ATTACH_FS`.
pub fn attach_fs(attach: wire::AttachFs) -> Command {
    Command::AttachFs {
        turn: attach.turn,
        root: attach.root,
    }
}

/// `PUT_BLOB`.
pub fn put_blob(policy: &Policy, put: wire::PutBlob) -> Result<Command, ApiError> {
    let max = policy.limits.blob_bytes_max;
    within("blob bytes", max, put.bytes.len() as u64)?;
    let raw_len = u32::try_from(put.bytes.len()).map_err(ApiError::internal)?;
    let sent = SentBlob {
        hash: put.hash,
        raw_len,
        compression: Compression::None,
        bytes: put.bytes,
    };
    Ok(Command::PutBlob(NewBlob::verify(sent, max)?))
}

/// `REGISTRY_PUT_BUNDLE`.
pub fn put_bundle(policy: &Policy, id: String, json: Bytes) -> Result<Command, ApiError> {
    within(
        "bundle bytes",
        policy.limits.bundle_bytes_max,
        json.len() as u64,
    )?;
    within(
        "nesting of the bundle",
        policy.limits.nesting_max.min(NESTING_MAX),
        nesting(&json),
    )?;
    Ok(Command::PutBundle { id, json })
}

/// Checks an idempotency key. No bytes mean no key.
pub fn key(policy: &Policy, bytes: Bytes) -> Result<Option<Key>, ApiError> {
    within(
        "idempotency key bytes",
        policy.limits.key_bytes_max,
        bytes.len() as u64,
    )?;
    if bytes.starts_with(RESERVED.as_bytes()) {
        return Err(reserved("idempotency keys"));
    }
    Ok(Key::new(bytes))
}

/// Checks a declared type. An empty id declares none.
pub fn declared_type(policy: &Policy, id: &str, version: u32) -> Result<TypeRef, ApiError> {
    within(
        "type id bytes",
        policy.limits.type_id_bytes_max,
        id.len() as u64,
    )?;
    Ok(TypeRef::new(id, version))
}

/// The prefix of the keys and labels of the ledger's own contexts. A caller who could use it could
/// make a context that passes for a world's.
const RESERVED: &str = "turnkeep.ledger";

fn reserved(what: &str) -> ApiError {
    let message = format!("{what} that begin with {RESERVED} are the server's own");
    ApiError::new(ErrorCode::Forbidden, message)
}

/// Checks labels.
pub fn labels(policy: &Policy, labels: Labels) -> Result<Labels, ApiError> {
    within("labels", policy.limits.labels_max, labels.len() as u64)?;
    if labels.keys().any(|key| key.starts_with(RESERVED)) {
        return Err(reserved("labels"));
    }
    let longest = labels
        .iter()
        .map(|(key, value)| key.len().max(value.len()))
        .max()
        .unwrap_or(0);
    within("label bytes", policy.limits.label_bytes_max, longest as u64)?;
    Ok(labels)
}

/// Rejects a value over a limit.
pub fn within(what: &str, limit: usize, actual: u64) -> Result<(), ApiError> {
    let limit = limit as u64;
    if actual <= limit {
        Ok(())
    } else {
        Err(ApiError::too_large(what, limit, actual))
    }
}
