//! All responses of the protocol.

use bytes::{BufMut, Bytes, BytesMut};

use super::append::{BatchAck, TurnAck};
use super::blob::{AttachFs, read_presence, write_presence};
use super::context::ContextHead;
use super::failure::Failure;
use super::hello::Welcome;
use super::read::{EventRef, Item, ItemForm, encode_event, write_items};
use super::subscribe::Delivery;
use super::{check_flags, flag};
use crate::frame::{Frame, MsgType, OpenFrame, put_bytes};
use crate::reader::{DecodeError, Reader};

/// A response of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// The session is open.
    Hello(Welcome),
    /// The context is created.
    ContextCreated(ContextHead),
    /// The context is forked.
    ContextForked(ContextHead),
    /// A context's head.
    Head(ContextHead),
    /// The turn is durable.
    TurnAppended(TurnAck),
    /// The newest turns, oldest first.
    Last(Vec<Item>),
    /// The turns before a turn, oldest first.
    Before(Vec<Item>),
    /// The turns of a range of depths, oldest first.
    Range(Vec<Item>),
    /// A blob's uncompressed bytes.
    Blob(Bytes),
    /// The root is attached.
    FsAttached(AttachFs),
    /// The blob is stored.
    BlobPut {
        /// Its name.
        hash: turnkeep_types::BlobHash,
        /// Whether the store lacked it before.
        was_new: bool,
    },
    /// The bundle is published.
    BundlePut {
        /// 201, or 204 if it was published before.
        status: u32,
    },
    /// The turns are durable.
    BatchAppended(BatchAck),
    /// The subscription is accepted.
    Subscribed {
        /// Whether the subscription starts at the end of the log.
        caught_up: bool,
    },
    /// A subscription delivers an append.
    Delivered {
        /// Whether the subscription has reached the end of the log.
        caught_up: bool,
        /// The append.
        delivery: Delivery,
    },
    /// The subscription has ended.
    Cancelled,
    /// Whether the store has each blob, in the order of the request.
    HasBlobs(Vec<bool>),
    /// The request failed.
    Error(Failure),
}

impl Response {
    /// Decodes a response. `form` is that of the request.
    pub fn decode(frame: Frame, form: ItemForm) -> Result<Self, DecodeError> {
        let Frame { header, payload } = frame;
        let msg_type =
            MsgType::from_wire(header.msg_type).ok_or(DecodeError::UnknownType(header.msg_type))?;
        let is_subscription = msg_type == MsgType::Subscribe;
        check_flags(header, flag::bit_if(is_subscription, flag::CAUGHT_UP))?;
        let mut reader = Reader::new(payload);
        let response = Self::decode_payload(msg_type, header.flags, &mut reader, form)?;
        reader.check_all_read()?;
        Ok(response)
    }

    fn decode_payload(
        msg_type: MsgType,
        flags: u16,
        r: &mut Reader,
        form: ItemForm,
    ) -> Result<Self, DecodeError> {
        match msg_type {
            MsgType::Hello => Welcome::read_from(r).map(Self::Hello),
            MsgType::CtxCreate => ContextHead::read_from(r).map(Self::ContextCreated),
            MsgType::CtxFork => ContextHead::read_from(r).map(Self::ContextForked),
            MsgType::GetHead => ContextHead::read_from(r).map(Self::Head),
            MsgType::AppendTurn => TurnAck::read_from(r).map(Self::TurnAppended),
            MsgType::GetLast => Item::read_page(form, r).map(Self::Last),
            MsgType::GetBefore => Item::read_page(form, r).map(Self::Before),
            MsgType::GetRangeByDepth => Item::read_page(form, r).map(Self::Range),
            MsgType::GetBlob => r.read_bytes("bytes").map(Self::Blob),
            MsgType::AttachFs => AttachFs::read_from(r).map(Self::FsAttached),
            MsgType::PutBlob => decode_blob_put(r),
            MsgType::RegistryPutBundle => decode_bundle_put(r),
            MsgType::AppendBatch => BatchAck::read_from(r).map(Self::BatchAppended),
            MsgType::Subscribe => decode_subscription(flags & flag::CAUGHT_UP != 0, r, form),
            MsgType::Cancel => Ok(Self::Cancelled),
            MsgType::HasBlobs => read_presence(r).map(Self::HasBlobs),
            MsgType::Error => Failure::read_from(r).map(Self::Error),
        }
    }

    /// Appends the response as a whole frame.
    pub fn encode(&self, req_id: u64, out: &mut BytesMut) {
        if let Self::Delivered {
            caught_up,
            delivery,
        } = self
        {
            // By the server's own encoder, which borrows its item. One encoder cannot disagree with
            // itself.
            let event = EventRef {
                position: delivery.position,
                context: delivery.context,
                item: delivery.item.as_item_ref(),
                caught_up: *caught_up,
            };
            return encode_event(out, req_id, &event);
        }
        let frame = OpenFrame::begin(out, self.msg_type(), self.header_flags(), req_id);
        self.encode_payload(out);
        frame.finish(out);
    }

    fn encode_payload(&self, out: &mut BytesMut) {
        match self {
            Self::Hello(welcome) => welcome.write_to(out),
            Self::ContextCreated(head) | Self::ContextForked(head) | Self::Head(head) => {
                head.write_to(out);
            }
            Self::TurnAppended(ack) => ack.write_to(out),
            Self::Last(items) | Self::Before(items) | Self::Range(items) => {
                write_items(items, out);
            }
            Self::Blob(bytes) => put_bytes(out, bytes),
            Self::FsAttached(attached) => attached.write_to(out),
            Self::BlobPut { hash, was_new } => {
                out.put_slice(hash.as_bytes());
                out.put_u8((*was_new).into());
            }
            Self::BundlePut { status } => out.put_u32_le(*status),
            Self::BatchAppended(ack) => ack.write_to(out),
            Self::Subscribed { .. } | Self::Delivered { .. } | Self::Cancelled => {}
            Self::HasBlobs(present) => write_presence(present, out),
            Self::Error(failure) => failure.write_to(out),
        }
    }

    /// The message's number.
    pub fn msg_type(&self) -> MsgType {
        match self {
            Self::Hello(_) => MsgType::Hello,
            Self::ContextCreated(_) => MsgType::CtxCreate,
            Self::ContextForked(_) => MsgType::CtxFork,
            Self::Head(_) => MsgType::GetHead,
            Self::TurnAppended(_) => MsgType::AppendTurn,
            Self::Last(_) => MsgType::GetLast,
            Self::Before(_) => MsgType::GetBefore,
            Self::Range(_) => MsgType::GetRangeByDepth,
            Self::Blob(_) => MsgType::GetBlob,
            Self::FsAttached(_) => MsgType::AttachFs,
            Self::BlobPut { .. } => MsgType::PutBlob,
            Self::BundlePut { .. } => MsgType::RegistryPutBundle,
            Self::BatchAppended(_) => MsgType::AppendBatch,
            Self::Subscribed { .. } | Self::Delivered { .. } => MsgType::Subscribe,
            Self::Cancelled => MsgType::Cancel,
            Self::HasBlobs(_) => MsgType::HasBlobs,
            Self::Error(_) => MsgType::Error,
        }
    }

    fn header_flags(&self) -> u16 {
        match self {
            Self::Subscribed { caught_up: true }
            | Self::Delivered {
                caught_up: true, ..
            } => flag::CAUGHT_UP,
            _ => 0,
        }
    }
}

fn decode_blob_put(reader: &mut Reader) -> Result<Response, DecodeError> {
    let hash = reader.read_hash("hash")?;
    let was_new = reader.read_bool_u8("was_new")?;
    Ok(Response::BlobPut { hash, was_new })
}

fn decode_bundle_put(reader: &mut Reader) -> Result<Response, DecodeError> {
    match reader.read_u32("status")? {
        // The statuses of the HTTP route: published now, or published before.
        status @ (201 | 204) => Ok(Response::BundlePut { status }),
        status => Err(DecodeError::BadValue {
            field: "status",
            value: status.into(),
        }),
    }
}

fn decode_subscription(
    caught_up: bool,
    reader: &mut Reader,
    form: ItemForm,
) -> Result<Response, DecodeError> {
    // The acceptance and the deliveries share a type; only deliveries have a payload.
    if reader.is_empty() {
        return Ok(Response::Subscribed { caught_up });
    }
    Ok(Response::Delivered {
        caught_up,
        delivery: Delivery::read_from(form, reader)?,
    })
}
