//! Builds requests from a type, payload bytes and a context.

use bytes::Bytes;
use turnkeep_types::{BlobHash, Compression, ContextId, TypeRef};
use turnkeep_wire::Text;
use turnkeep_wire::message::{AppendTurn, SentTurn};

use crate::error::Error;

/// The encoding number of msgpack, which typed payloads use.
pub const MSGPACK: u32 = 1;
/// Fast, and good enough for text.
const ZSTD_LEVEL: i32 = 1;

/// Builds a turn with this type and payload. Hashes the payload and compresses it if `form` says
/// so.
pub fn turn(declared: &TypeRef, payload: Bytes, form: Compression) -> Result<SentTurn, Error> {
    let hash = BlobHash::of(&payload);
    let raw_len = u32::try_from(payload.len()).map_err(|_| Error::TooLarge {
        bytes: payload.len(),
        max: u32::MAX as usize,
    })?;
    let payload = match form {
        Compression::None => payload,
        Compression::Zstd => zstd::bulk::compress(&payload, ZSTD_LEVEL)
            .map_err(|error| Error::BadPayload {
                hash,
                what: error.to_string(),
            })?
            .into(),
    };
    Ok(SentTurn {
        type_id: Text::from(&*declared.id),
        type_version: declared.version,
        encoding: MSGPACK,
        compression: form,
        raw_len,
        hash,
        payload,
    })
}

/// Builds an append of one turn to the context's head, without key and expected head.
pub fn append(context: ContextId, turn: SentTurn) -> AppendTurn {
    AppendTurn {
        context,
        parent: None,
        turn,
        key: Bytes::new(),
        fs_root: None,
        expected_head: None,
    }
}
