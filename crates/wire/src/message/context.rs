//! Creating and forking contexts, and reading their heads.

use bytes::{BufMut, Bytes, BytesMut};
use turnkeep_types::{ContextId, TurnId};

use super::flag;
use crate::frame::put_bytes;
use crate::reader::{DecodeError, Reader};

/// Creates a context, or forks one: the same operation under two names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CreateContext {
    /// The turn that becomes the new context's head.
    pub base: Option<TurnId>,
    /// The idempotency key. An empty key counts as none.
    pub key: Option<Bytes>,
}

impl CreateContext {
    pub(crate) fn header_flags(&self) -> u16 {
        flag::bit_if(self.key.is_some(), flag::KEY)
    }

    pub(crate) fn read_from(flags: u16, reader: &mut Reader) -> Result<Self, DecodeError> {
        let base = reader.read_optional_turn_id("base_turn_id")?;
        let key = if flags & flag::KEY == 0 {
            None
        } else {
            Some(reader.read_bytes("key")?)
        };
        Ok(Self { base, key })
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        out.put_u64_le(TurnId::to_wire(self.base));
        if let Some(key) = &self.key {
            put_bytes(out, key);
        }
    }
}

/// A context's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextHead {
    /// The context.
    pub context: ContextId,
    /// Its head.
    pub head: Option<TurnId>,
    /// The head's depth, 0 for an empty context.
    pub depth: u32,
}

impl ContextHead {
    pub(crate) fn read_from(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            context: reader.read_context_id("context_id")?,
            head: reader.read_optional_turn_id("head_turn_id")?,
            depth: reader.read_u32("head_depth")?,
        })
    }

    pub(crate) fn write_to(self, out: &mut BytesMut) {
        out.put_u64_le(self.context.get());
        out.put_u64_le(TurnId::to_wire(self.head));
        out.put_u32_le(self.depth);
    }
}
