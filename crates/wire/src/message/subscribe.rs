//! Subscriptions, the only requests with more than one response.

use bytes::{BufMut, BytesMut};
use turnkeep_types::ContextId;

use super::read::{Item, ItemForm, ReadOptions};
use crate::reader::{DecodeError, Reader};

/// The wire's number for "only future appends". Zero is taken: it means from the first event on.
const ONLY_NEW: u64 = u64::MAX;

/// Follows appends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribe {
    /// Only appends to this context; `None` means all contexts.
    pub context: Option<ContextId>,
    /// Starts after this position; `None` means with the next append.
    pub after: Option<u64>,
    /// Which fields of each turn.
    pub options: ReadOptions,
}

impl Subscribe {
    pub(crate) fn read_from(flags: u16, reader: &mut Reader) -> Result<Self, DecodeError> {
        let context = ContextId::new(reader.read_u64("context_id")?);
        let after = reader.read_u64("after_position")?;
        let after = (after != ONLY_NEW).then_some(after);
        Ok(Self {
            context,
            after,
            options: ReadOptions::read_from(flags, reader)?,
        })
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        out.put_u64_le(ContextId::to_wire(self.context));
        out.put_u64_le(self.after.unwrap_or(ONLY_NEW));
        self.options.write_to(out);
    }
}

/// One append that a subscription delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its position in the feed, to resume after.
    pub position: u64,
    /// The context that the turn was appended to.
    pub context: ContextId,
    /// The turn.
    pub item: Item,
}

impl Delivery {
    pub(crate) fn read_from(form: ItemForm, reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            position: reader.read_u64("position")?,
            context: reader.read_context_id("context_id")?,
            item: Item::read_from(form, reader)?,
        })
    }
}
