//! Reading turns: pages by head, by turn or by depth, and their items.
//!
//! A server encodes an [`ItemRef`] from borrowed parts, and a whole page with a [`PageWriter`];
//! neither allocates per item. A client decodes an [`Item`].

use bytes::{BufMut, Bytes, BytesMut};
use turnkeep_types::{BlobHash, Compression, ContextId, Timestamp, TurnId};

use super::append::read_compression;
use super::flag;
use crate::frame::{MsgType, OpenFrame, put_bytes, wire_len};
use crate::reader::{DecodeError, Reader};
use crate::text::Text;

/// Which fields a read returns for each turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Payloads too, not only metadata.
    pub include_payload: bool,
    /// Payloads in their stored form instead of uncompressed.
    pub stored_form: bool,
    /// The creation time and the filesystem root too.
    pub extended: bool,
}

impl ReadOptions {
    pub(crate) const FLAGS: u16 = flag::STORED_FORM | flag::EXTENDED;

    pub(crate) fn header_flags(self) -> u16 {
        flag::bit_if(self.stored_form, flag::STORED_FORM)
            | flag::bit_if(self.extended, flag::EXTENDED)
    }

    pub(crate) fn read_from(flags: u16, reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            include_payload: reader.read_bool_u32("include_payload")?,
            stored_form: flags & flag::STORED_FORM != 0,
            extended: flags & flag::EXTENDED != 0,
        })
    }

    pub(crate) fn write_to(self, out: &mut BytesMut) {
        out.put_u32_le(self.include_payload.into());
    }

    /// The form of the items that these options select.
    pub fn item_form(self) -> ItemForm {
        if self.extended {
            ItemForm::Extended
        } else {
            ItemForm::Plain
        }
    }
}

/// Reads the turns nearest to the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetLast {
    /// The context.
    pub context: ContextId,
    /// The most turns to return.
    pub limit: u32,
    /// Which fields of each turn.
    pub options: ReadOptions,
}

impl GetLast {
    pub(crate) fn read_from(flags: u16, reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            context: reader.read_context_id("context_id")?,
            limit: reader.read_u32("limit")?,
            options: ReadOptions::read_from(flags, reader)?,
        })
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        out.put_u64_le(self.context.get());
        out.put_u32_le(self.limit);
        self.options.write_to(out);
    }
}

/// Reads the nearest ancestors of a turn, that turn excluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetBefore {
    /// The context, which gives the start if `before` is `None`.
    pub context: ContextId,
    /// The turn; `None` reads like [`GetLast`].
    pub before: Option<TurnId>,
    /// The most turns to return.
    pub limit: u32,
    /// Which fields of each turn.
    pub options: ReadOptions,
}

impl GetBefore {
    pub(crate) fn read_from(flags: u16, reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            context: reader.read_context_id("context_id")?,
            before: reader.read_optional_turn_id("before_turn_id")?,
            limit: reader.read_u32("limit")?,
            options: ReadOptions::read_from(flags, reader)?,
        })
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        out.put_u64_le(self.context.get());
        out.put_u64_le(TurnId::to_wire(self.before));
        out.put_u32_le(self.limit);
        self.options.write_to(out);
    }
}

/// Reads turns of the head's path by their depth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetRange {
    /// The context.
    pub context: ContextId,
    /// The first depth.
    pub start_depth: u32,
    /// The most turns to return.
    pub limit: u32,
    /// Which fields of each turn.
    pub options: ReadOptions,
}

impl GetRange {
    pub(crate) fn read_from(flags: u16, reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            context: reader.read_context_id("context_id")?,
            start_depth: reader.read_u32("start_depth")?,
            limit: reader.read_u32("limit")?,
            options: ReadOptions::read_from(flags, reader)?,
        })
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        out.put_u64_le(self.context.get());
        out.put_u32_le(self.start_depth);
        out.put_u32_le(self.limit);
        self.options.write_to(out);
    }
}

/// Which fields the items of a response have; the request decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ItemForm {
    /// The basic fields.
    #[default]
    Plain,
    /// With [`ItemExtra`] at the end.
    Extended,
}

/// The additional fields of extended items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemExtra {
    /// The turn's creation time.
    pub created_at: Timestamp,
    /// The turn's filesystem root.
    pub fs_root: Option<BlobHash>,
}

/// A turn in a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub turn: TurnId,
    /// Its parent.
    pub parent: Option<TurnId>,
    /// Its depth.
    pub depth: u32,
    /// The declared type's id.
    pub type_id: Text,
    /// The declared type's version.
    pub type_version: u32,
    /// The payload's encoding.
    pub encoding: u32,
    /// The form of `payload`.
    pub compression: Compression,
    /// The payload's uncompressed length.
    pub raw_len: u32,
    /// The payload's hash.
    pub hash: BlobHash,
    /// The payload; empty if the request does not include payloads.
    pub payload: Bytes,
    /// Present exactly in extended items.
    pub extra: Option<ItemExtra>,
}

impl Item {
    /// The length of a plain item with an empty type id and no payload, field by field.
    const BYTES_MIN: usize = 8 + 8 + 4 + 4 + 4 + 4 + 4 + 4 + 32 + 4;

    pub(crate) fn read_from(form: ItemForm, reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            turn: reader.read_turn_id("turn_id")?,
            parent: reader.read_optional_turn_id("parent_turn_id")?,
            depth: reader.read_u32("depth")?,
            type_id: reader.read_text("declared_type_id")?,
            type_version: reader.read_u32("declared_type_version")?,
            encoding: reader.read_u32("encoding")?,
            compression: read_compression(reader)?,
            raw_len: reader.read_u32("uncompressed_len")?,
            hash: reader.read_hash("content_hash")?,
            payload: reader.read_bytes("payload_bytes")?,
            extra: ItemExtra::read_from(form, reader)?,
        })
    }

    /// Decodes a page's items.
    pub(crate) fn read_page(form: ItemForm, reader: &mut Reader) -> Result<Vec<Self>, DecodeError> {
        // The client's own request set the limit of turns. The frame's length bounds what a server
        // can send beyond it.
        let count = reader.read_count("count", Self::BYTES_MIN, usize::MAX)?;
        (0..count).map(|_| Self::read_from(form, reader)).collect()
    }

    /// The item by reference, to encode it.
    pub fn as_item_ref(&self) -> ItemRef<'_> {
        ItemRef {
            turn: self.turn,
            parent: self.parent,
            depth: self.depth,
            type_id: &self.type_id,
            type_version: self.type_version,
            encoding: self.encoding,
            compression: self.compression,
            raw_len: self.raw_len,
            hash: self.hash,
            payload: &self.payload,
            extra: self.extra,
        }
    }
}

impl ItemExtra {
    fn read_from(form: ItemForm, reader: &mut Reader) -> Result<Option<Self>, DecodeError> {
        match form {
            ItemForm::Plain => Ok(None),
            ItemForm::Extended => {
                let created_at = Timestamp(reader.read_u64("created_at")?);
                let root = reader.read_hash("fs_root_hash")?;
                // No blob has the all-zero hash, so zeros can stand for "none".
                let fs_root = (root.0 != [0; 32]).then_some(root);
                Ok(Some(Self {
                    created_at,
                    fs_root,
                }))
            }
        }
    }
}

/// An item to encode, with borrowed parts. Fields as in [`Item`].
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the same fields as `Item`")]
pub struct ItemRef<'a> {
    pub turn: TurnId,
    pub parent: Option<TurnId>,
    pub depth: u32,
    pub type_id: &'a str,
    pub type_version: u32,
    pub encoding: u32,
    pub compression: Compression,
    pub raw_len: u32,
    pub hash: BlobHash,
    pub payload: &'a [u8],
    pub extra: Option<ItemExtra>,
}

impl ItemRef<'_> {
    /// The most bytes of an item without its type id and payload.
    pub const OVERHEAD_BYTES_MAX: usize = Item::BYTES_MIN + 8 + 32;

    fn write_to(&self, out: &mut BytesMut) {
        self.encode_before_payload(self.payload.len(), out);
        out.put_slice(self.payload);
        self.encode_after_payload(out);
    }

    /// Appends the part of the item before its payload. The caller sends the `payload_bytes` of the
    /// payload itself.
    pub fn encode_before_payload(&self, payload_bytes: usize, out: &mut BytesMut) {
        out.put_u64_le(self.turn.get());
        out.put_u64_le(TurnId::to_wire(self.parent));
        out.put_u32_le(self.depth);
        put_bytes(out, self.type_id.as_bytes());
        out.put_u32_le(self.type_version);
        out.put_u32_le(self.encoding);
        out.put_u32_le(self.compression.to_wire());
        out.put_u32_le(self.raw_len);
        out.put_slice(self.hash.as_bytes());
        out.put_u32_le(wire_len(payload_bytes));
    }

    /// Appends the part of the item after its payload.
    pub fn encode_after_payload(&self, out: &mut BytesMut) {
        if let Some(extra) = self.extra {
            out.put_u64_le(extra.created_at.0);
            out.put_slice(&BlobHash::to_wire(extra.fs_root));
        }
    }
}

/// Writes a page as a whole frame to the end of a buffer.
#[derive(Debug)]
pub struct PageWriter<'a> {
    out: &'a mut BytesMut,
    start: usize,
    count: usize,
}

impl<'a> PageWriter<'a> {
    /// Begins the response to a read of this type.
    pub fn begin(out: &'a mut BytesMut, msg_type: MsgType, req_id: u64) -> Self {
        let start = out.len();
        OpenFrame::begin(out, msg_type, 0, req_id);
        // A placeholder: how many items fit is known only after the last one.
        out.put_u32_le(0);
        Self {
            out,
            start,
            count: 0,
        }
    }

    /// Adds an item.
    pub fn push(&mut self, item: &ItemRef<'_>) {
        item.write_to(self.out);
        self.count += 1;
    }

    /// Fills in the length and the number of items.
    pub fn finish(self) {
        let count_at = self.start + crate::HEADER_BYTES;
        self.out[count_at..count_at + 4].copy_from_slice(&wire_len(self.count).to_le_bytes());
        OpenFrame::at(self.start).finish(self.out);
    }
}

pub(crate) fn write_items(items: &[Item], out: &mut BytesMut) {
    out.put_u32_le(wire_len(items.len()));
    for item in items {
        item.as_item_ref().write_to(out);
    }
}

/// A delivery of a subscription to encode, with a borrowed item.
#[derive(Debug, Clone, Copy)]
pub struct EventRef<'a> {
    /// Its position in the feed.
    pub position: u64,
    /// The context that the turn was appended to.
    pub context: ContextId,
    /// The turn.
    pub item: ItemRef<'a>,
    /// Whether the subscription has reached the end of the log.
    pub caught_up: bool,
}

/// Appends one delivery of a subscription as a whole frame.
pub fn encode_event(out: &mut BytesMut, req_id: u64, event: &EventRef<'_>) {
    let flags = flag::bit_if(event.caught_up, flag::CAUGHT_UP);
    let frame = OpenFrame::begin(out, MsgType::Subscribe, flags, req_id);
    out.put_u64_le(event.position);
    out.put_u64_le(event.context.get());
    event.item.write_to(out);
    frame.finish(out);
}
