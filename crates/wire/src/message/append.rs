//! Appends of one turn or several, and their responses.

use bytes::{BufMut, Bytes, BytesMut};
use turnkeep_types::{BlobHash, Compression, ContextId, Limits, TurnId};

use super::flag;
use crate::frame::{put_bytes, wire_len};
use crate::reader::{DecodeError, Reader};
use crate::text::Text;

/// A turn as a client sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentTurn {
    /// The declared type's id; empty if none is declared.
    pub type_id: Text,
    /// The declared type's version.
    pub type_version: u32,
    /// The payload's encoding; 1 is msgpack.
    pub encoding: u32,
    /// The form of `payload`.
    pub compression: Compression,
    /// The payload's uncompressed length.
    pub raw_len: u32,
    /// The BLAKE3 of the uncompressed payload.
    pub hash: BlobHash,
    /// The payload as sent.
    pub payload: Bytes,
}

impl SentTurn {
    /// The least length of an encoded turn.
    const BYTES_MIN: usize = 4 + 4 + 4 + 4 + 4 + 32 + 4;

    fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            type_id: reader.text("declared_type_id")?,
            type_version: reader.u32("declared_type_version")?,
            encoding: reader.u32("encoding")?,
            compression: decode_compression(reader)?,
            raw_len: reader.u32("uncompressed_len")?,
            hash: reader.hash("content_hash_b3_256")?,
            payload: reader.bytes("payload_bytes")?,
        })
    }

    fn encode(&self, out: &mut BytesMut) {
        put_bytes(out, self.type_id.as_bytes());
        out.put_u32_le(self.type_version);
        out.put_u32_le(self.encoding);
        out.put_u32_le(self.compression.to_wire());
        out.put_u32_le(self.raw_len);
        out.put_slice(self.hash.as_bytes());
        put_bytes(out, &self.payload);
    }
}

pub(super) fn decode_compression(reader: &mut Reader) -> Result<Compression, DecodeError> {
    let number = reader.u32("compression")?;
    Compression::from_wire(number).ok_or(DecodeError::BadValue {
        field: "compression",
        value: number.into(),
    })
}

#[expect(
    clippy::option_option,
    reason = "three cases: nothing expected, an empty context, a head"
)]
fn decode_expected_head(
    flags: u16,
    reader: &mut Reader,
) -> Result<Option<Option<TurnId>>, DecodeError> {
    if flags & flag::EXPECTED_HEAD == 0 {
        return Ok(None);
    }
    reader.turn_or_none("expected_head_turn_id").map(Some)
}

/// Appends one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendTurn {
    /// The context.
    pub context: ContextId,
    /// The parent; `None` means the context's current head.
    pub parent: Option<TurnId>,
    /// The turn.
    pub turn: SentTurn,
    /// The idempotency key; empty means none.
    pub key: Bytes,
    /// A filesystem root.
    pub fs_root: Option<BlobHash>,
    /// The head that the context must have; `Some(None)`: it must be empty.
    pub expected_head: Option<Option<TurnId>>,
}

impl AppendTurn {
    pub(crate) fn flags(&self) -> u16 {
        let fs_root = if self.fs_root.is_some() {
            flag::FS_ROOT
        } else {
            0
        };
        let expected_head = if self.expected_head.is_some() {
            flag::EXPECTED_HEAD
        } else {
            0
        };
        fs_root | expected_head
    }

    pub(crate) fn decode(flags: u16, reader: &mut Reader) -> Result<Self, DecodeError> {
        let context = reader.context("context_id")?;
        let parent = reader.turn_or_none("parent_turn_id")?;
        let turn = SentTurn::decode(reader)?;
        let key = reader.bytes("idempotency_key")?;
        let fs_root = if flags & flag::FS_ROOT == 0 {
            None
        } else {
            Some(reader.hash("fs_root_hash")?)
        };
        let expected_head = decode_expected_head(flags, reader)?;
        Ok(Self {
            context,
            parent,
            turn,
            key,
            fs_root,
            expected_head,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        out.put_u64_le(self.context.get());
        out.put_u64_le(TurnId::to_wire(self.parent));
        self.turn.encode(out);
        put_bytes(out, &self.key);
        if let Some(root) = self.fs_root {
            out.put_slice(root.as_bytes());
        }
        if let Some(head) = self.expected_head {
            out.put_u64_le(TurnId::to_wire(head));
        }
    }
}

/// The response to an append of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnAck {
    /// The context.
    pub context: ContextId,
    /// The new turn.
    pub turn: TurnId,
    /// Its depth.
    pub depth: u32,
    /// Its payload's hash.
    pub hash: BlobHash,
}

impl TurnAck {
    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            context: reader.context("context_id")?,
            turn: reader.turn("new_turn_id")?,
            depth: reader.u32("new_depth")?,
            hash: reader.hash("content_hash_b3_256")?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        out.put_u64_le(self.context.get());
        out.put_u64_le(self.turn.get());
        out.put_u32_le(self.depth);
        out.put_slice(self.hash.as_bytes());
    }
}

/// Appends turns, each the child of the one before, all or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendBatch {
    /// The context.
    pub context: ContextId,
    /// The first turn's parent; `None` means the context's current head.
    pub parent: Option<TurnId>,
    /// The turns.
    pub turns: Vec<SentTurn>,
    /// The idempotency key of the batch; empty means none.
    pub key: Bytes,
    /// The head that the context must have; `Some(None)`: it must be empty.
    pub expected_head: Option<Option<TurnId>>,
}

impl AppendBatch {
    pub(crate) fn flags(&self) -> u16 {
        if self.expected_head.is_some() {
            flag::EXPECTED_HEAD
        } else {
            0
        }
    }

    pub(crate) fn decode(
        flags: u16,
        reader: &mut Reader,
        limits: &Limits,
    ) -> Result<Self, DecodeError> {
        let context = reader.context("context_id")?;
        let parent = reader.turn_or_none("parent_turn_id")?;
        let count = reader.count("count", SentTurn::BYTES_MIN, limits.batch_turns_max)?;
        let turns = (0..count)
            .map(|_| SentTurn::decode(reader))
            .collect::<Result<_, _>>()?;
        let key = reader.bytes("idempotency_key")?;
        let expected_head = decode_expected_head(flags, reader)?;
        Ok(Self {
            context,
            parent,
            turns,
            key,
            expected_head,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        out.put_u64_le(self.context.get());
        out.put_u64_le(TurnId::to_wire(self.parent));
        out.put_u32_le(wire_len(self.turns.len()));
        for turn in &self.turns {
            turn.encode(out);
        }
        put_bytes(out, &self.key);
        if let Some(head) = self.expected_head {
            out.put_u64_le(TurnId::to_wire(head));
        }
    }
}

/// The response to an append of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchAck {
    /// The context.
    pub context: ContextId,
    /// One row per turn, in the order of the request.
    pub turns: Vec<BatchAckTurn>,
}

/// One turn of a [`BatchAck`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchAckTurn {
    /// The new turn.
    pub turn: TurnId,
    /// Its depth.
    pub depth: u32,
    /// Its payload's hash.
    pub hash: BlobHash,
}

impl BatchAck {
    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        let context = reader.context("context_id")?;
        let count = reader.count("count", 8 + 4 + 32, usize::MAX)?;
        let turns = (0..count)
            .map(|_| BatchAckTurn::decode(reader))
            .collect::<Result<_, _>>()?;
        Ok(Self { context, turns })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        out.put_u64_le(self.context.get());
        out.put_u32_le(wire_len(self.turns.len()));
        for row in &self.turns {
            out.put_u64_le(row.turn.get());
            out.put_u32_le(row.depth);
            out.put_slice(row.hash.as_bytes());
        }
    }
}

impl BatchAckTurn {
    fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            turn: reader.turn("turn_id")?,
            depth: reader.u32("depth")?,
            hash: reader.hash("hash")?,
        })
    }
}
