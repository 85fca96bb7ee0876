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
    /// The length of a turn with an empty type id and an empty payload, field by field.
    const BYTES_MIN: usize = 4 + 4 + 4 + 4 + 4 + 32 + 4;

    fn read_from(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            type_id: reader.read_text("declared_type_id")?,
            type_version: reader.read_u32("declared_type_version")?,
            encoding: reader.read_u32("encoding")?,
            compression: read_compression(reader)?,
            raw_len: reader.read_u32("uncompressed_len")?,
            hash: reader.read_hash("content_hash_b3_256")?,
            payload: reader.read_bytes("payload_bytes")?,
        })
    }

    fn write_to(&self, out: &mut BytesMut) {
        put_bytes(out, self.type_id.as_bytes());
        out.put_u32_le(self.type_version);
        out.put_u32_le(self.encoding);
        out.put_u32_le(self.compression.to_wire());
        out.put_u32_le(self.raw_len);
        out.put_slice(self.hash.as_bytes());
        put_bytes(out, &self.payload);
    }
}

pub(super) fn read_compression(reader: &mut Reader) -> Result<Compression, DecodeError> {
    let number = reader.read_u32("compression")?;
    Compression::from_wire(number).ok_or(DecodeError::BadValue {
        field: "compression",
        value: number.into(),
    })
}

/// Reads the expected head, the last field of an append, if its flag is set.
#[expect(
    clippy::option_option,
    reason = "three cases: nothing expected, an empty context, a head"
)]
fn read_expected_head(
    flags: u16,
    reader: &mut Reader,
) -> Result<Option<Option<TurnId>>, DecodeError> {
    if flags & flag::EXPECTED_HEAD == 0 {
        return Ok(None);
    }
    reader
        .read_optional_turn_id("expected_head_turn_id")
        .map(Some)
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
    pub(crate) fn header_flags(&self) -> u16 {
        flag::bit_if(self.fs_root.is_some(), flag::FS_ROOT)
            | flag::bit_if(self.expected_head.is_some(), flag::EXPECTED_HEAD)
    }

    pub(crate) fn read_from(flags: u16, reader: &mut Reader) -> Result<Self, DecodeError> {
        let context = reader.read_context_id("context_id")?;
        let parent = reader.read_optional_turn_id("parent_turn_id")?;
        let turn = SentTurn::read_from(reader)?;
        let key = reader.read_bytes("idempotency_key")?;
        // The optional fields have no lengths of their own: the flags say which ones follow, always
        // in this order.
        let fs_root = if flags & flag::FS_ROOT == 0 {
            None
        } else {
            Some(reader.read_hash("fs_root_hash")?)
        };
        let expected_head = read_expected_head(flags, reader)?;
        Ok(Self {
            context,
            parent,
            turn,
            key,
            fs_root,
            expected_head,
        })
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        out.put_u64_le(self.context.get());
        out.put_u64_le(TurnId::to_wire(self.parent));
        self.turn.write_to(out);
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
    pub(crate) fn read_from(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            context: reader.read_context_id("context_id")?,
            turn: reader.read_turn_id("new_turn_id")?,
            depth: reader.read_u32("new_depth")?,
            hash: reader.read_hash("content_hash_b3_256")?,
        })
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
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
    pub(crate) fn header_flags(&self) -> u16 {
        flag::bit_if(self.expected_head.is_some(), flag::EXPECTED_HEAD)
    }

    pub(crate) fn read_from(
        flags: u16,
        reader: &mut Reader,
        limits: &Limits,
    ) -> Result<Self, DecodeError> {
        let context = reader.read_context_id("context_id")?;
        let parent = reader.read_optional_turn_id("parent_turn_id")?;
        // The store admits and logs a batch as one command, so its turns are limited and not only
        // its bytes: a frame could hold over a million empty turns.
        let count = reader.read_count("count", SentTurn::BYTES_MIN, limits.batch_turns_max)?;
        let turns = (0..count)
            .map(|_| SentTurn::read_from(reader))
            .collect::<Result<_, _>>()?;
        let key = reader.read_bytes("idempotency_key")?;
        let expected_head = read_expected_head(flags, reader)?;
        Ok(Self {
            context,
            parent,
            turns,
            key,
            expected_head,
        })
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        out.put_u64_le(self.context.get());
        out.put_u64_le(TurnId::to_wire(self.parent));
        out.put_u32_le(wire_len(self.turns.len()));
        for turn in &self.turns {
            turn.write_to(out);
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
    pub(crate) fn read_from(reader: &mut Reader) -> Result<Self, DecodeError> {
        let context = reader.read_context_id("context_id")?;
        // The client's own request decided the number of turns, so the limit is the frame's length.
        let count = reader.read_count("count", BatchAckTurn::BYTES, usize::MAX)?;
        let turns = (0..count)
            .map(|_| BatchAckTurn::read_from(reader))
            .collect::<Result<_, _>>()?;
        Ok(Self { context, turns })
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        out.put_u64_le(self.context.get());
        out.put_u32_le(wire_len(self.turns.len()));
        for turn in &self.turns {
            turn.write_to(out);
        }
    }
}

impl BatchAckTurn {
    const BYTES: usize = 8 + 4 + 32;

    fn read_from(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            turn: reader.read_turn_id("turn_id")?,
            depth: reader.read_u32("depth")?,
            hash: reader.read_hash("hash")?,
        })
    }

    fn write_to(&self, out: &mut BytesMut) {
        out.put_u64_le(self.turn.get());
        out.put_u32_le(self.depth);
        out.put_slice(self.hash.as_bytes());
    }
}
