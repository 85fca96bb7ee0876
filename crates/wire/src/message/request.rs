//! All requests of the protocol.

use bytes::{BufMut, BytesMut};
use turnkeep_types::{BlobHash, ContextId, Limits};

use super::append::{AppendBatch, AppendTurn};
use super::blob::{AttachFs, PutBlob, PutBundle, read_hashes, write_hashes};
use super::context::CreateContext;
use super::hello::Hello;
use super::read::{GetBefore, GetLast, GetRange, ItemForm, ReadOptions};
use super::subscribe::Subscribe;
use super::{check_flags, flag};
use crate::frame::{Frame, MsgType, OpenFrame};
use crate::reader::{DecodeError, Reader};

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Opens a session.
    Hello(Option<Hello>),
    /// Creates a context.
    CreateContext(CreateContext),
    /// Forks a context.
    ForkContext(CreateContext),
    /// Reads a context's head.
    GetHead(ContextId),
    /// Appends one turn.
    AppendTurn(AppendTurn),
    /// Reads the newest turns.
    GetLast(GetLast),
    /// Reads the turns before a turn.
    GetBefore(GetBefore),
    /// Reads turns by depth.
    GetRange(GetRange),
    /// Reads a blob.
    GetBlob(BlobHash),
    /// Sets a turn's filesystem root.
    AttachFs(AttachFs),
    /// Stores a blob.
    PutBlob(PutBlob),
    /// Publishes a registry bundle.
    PutBundle(PutBundle),
    /// Appends several turns, all or none.
    AppendBatch(AppendBatch),
    /// Follows appends.
    Subscribe(Subscribe),
    /// Ends the subscription with this request id.
    Cancel(u64),
    /// Asks which blobs the store has.
    HasBlobs(Vec<BlobHash>),
}

impl Request {
    /// Decodes a request. Checks counts against `limits` before it allocates.
    pub fn decode(frame: Frame, limits: &Limits) -> Result<Self, DecodeError> {
        let Frame { header, payload } = frame;
        // ERROR has a number, but only servers send it.
        let msg_type = MsgType::from_wire(header.msg_type)
            .filter(|msg_type| *msg_type != MsgType::Error)
            .ok_or(DecodeError::UnknownType(header.msg_type))?;
        check_flags(header, defined_flags(msg_type))?;
        let mut reader = Reader::new(payload);
        let request = Self::decode_payload(msg_type, header.flags, &mut reader, limits)?;
        reader.check_all_read()?;
        Ok(request)
    }

    fn decode_payload(
        msg_type: MsgType,
        flags: u16,
        r: &mut Reader,
        limits: &Limits,
    ) -> Result<Self, DecodeError> {
        match msg_type {
            MsgType::Hello => Hello::read_from(r).map(Self::Hello),
            MsgType::CtxCreate => CreateContext::read_from(flags, r).map(Self::CreateContext),
            MsgType::CtxFork => CreateContext::read_from(flags, r).map(Self::ForkContext),
            MsgType::GetHead => r.read_context_id("context_id").map(Self::GetHead),
            MsgType::AppendTurn => AppendTurn::read_from(flags, r).map(Self::AppendTurn),
            MsgType::GetLast => GetLast::read_from(flags, r).map(Self::GetLast),
            MsgType::GetBefore => GetBefore::read_from(flags, r).map(Self::GetBefore),
            MsgType::GetRangeByDepth => GetRange::read_from(flags, r).map(Self::GetRange),
            MsgType::GetBlob => r.read_hash("hash").map(Self::GetBlob),
            MsgType::AttachFs => AttachFs::read_from(r).map(Self::AttachFs),
            MsgType::PutBlob => PutBlob::read_from(r).map(Self::PutBlob),
            MsgType::RegistryPutBundle => PutBundle::read_from(r).map(Self::PutBundle),
            MsgType::AppendBatch => AppendBatch::read_from(flags, r, limits).map(Self::AppendBatch),
            MsgType::Subscribe => Subscribe::read_from(flags, r).map(Self::Subscribe),
            MsgType::Cancel => r.read_u64("req_id").map(Self::Cancel),
            MsgType::HasBlobs => read_hashes(r, limits).map(Self::HasBlobs),
            MsgType::Error => Err(DecodeError::UnknownType(msg_type.to_wire())),
        }
    }

    /// Appends the request as a whole frame. The request must fit a frame.
    pub fn encode(&self, req_id: u64, out: &mut BytesMut) {
        let frame = OpenFrame::begin(out, self.msg_type(), self.header_flags(), req_id);
        match self {
            Self::Hello(hello) => hello.iter().for_each(|hello| hello.write_to(out)),
            Self::CreateContext(create) | Self::ForkContext(create) => create.write_to(out),
            Self::GetHead(context) => out.put_u64_le(context.get()),
            Self::AppendTurn(append) => append.write_to(out),
            Self::GetLast(get) => get.write_to(out),
            Self::GetBefore(get) => get.write_to(out),
            Self::GetRange(get) => get.write_to(out),
            Self::GetBlob(hash) => out.put_slice(hash.as_bytes()),
            Self::AttachFs(attach) => attach.write_to(out),
            Self::PutBlob(put) => put.write_to(out),
            Self::PutBundle(put) => put.write_to(out),
            Self::AppendBatch(append) => append.write_to(out),
            Self::Subscribe(subscribe) => subscribe.write_to(out),
            Self::Cancel(req_id) => out.put_u64_le(*req_id),
            Self::HasBlobs(hashes) => write_hashes(hashes, out),
        }
        frame.finish(out);
    }

    /// The message's number.
    pub fn msg_type(&self) -> MsgType {
        match self {
            Self::Hello(_) => MsgType::Hello,
            Self::CreateContext(_) => MsgType::CtxCreate,
            Self::ForkContext(_) => MsgType::CtxFork,
            Self::GetHead(_) => MsgType::GetHead,
            Self::AppendTurn(_) => MsgType::AppendTurn,
            Self::GetLast(_) => MsgType::GetLast,
            Self::GetBefore(_) => MsgType::GetBefore,
            Self::GetRange(_) => MsgType::GetRangeByDepth,
            Self::GetBlob(_) => MsgType::GetBlob,
            Self::AttachFs(_) => MsgType::AttachFs,
            Self::PutBlob(_) => MsgType::PutBlob,
            Self::PutBundle(_) => MsgType::RegistryPutBundle,
            Self::AppendBatch(_) => MsgType::AppendBatch,
            Self::Subscribe(_) => MsgType::Subscribe,
            Self::Cancel(_) => MsgType::Cancel,
            Self::HasBlobs(_) => MsgType::HasBlobs,
        }
    }

    /// The form of the items in this request's response.
    pub fn item_form(&self) -> ItemForm {
        match self {
            Self::GetLast(get) => get.options.item_form(),
            Self::GetBefore(get) => get.options.item_form(),
            Self::GetRange(get) => get.options.item_form(),
            Self::Subscribe(subscribe) => subscribe.options.item_form(),
            _ => ItemForm::Plain,
        }
    }

    fn header_flags(&self) -> u16 {
        match self {
            Self::CreateContext(create) | Self::ForkContext(create) => create.header_flags(),
            Self::AppendTurn(append) => append.header_flags(),
            Self::AppendBatch(append) => append.header_flags(),
            Self::GetLast(get) => get.options.header_flags(),
            Self::GetBefore(get) => get.options.header_flags(),
            Self::GetRange(get) => get.options.header_flags(),
            Self::Subscribe(subscribe) => subscribe.options.header_flags(),
            _ => 0,
        }
    }
}

fn defined_flags(msg_type: MsgType) -> u16 {
    match msg_type {
        MsgType::CtxCreate | MsgType::CtxFork => flag::KEY,
        MsgType::AppendTurn => flag::FS_ROOT | flag::EXPECTED_HEAD,
        MsgType::AppendBatch => flag::EXPECTED_HEAD,
        MsgType::GetLast | MsgType::GetBefore | MsgType::GetRangeByDepth | MsgType::Subscribe => {
            ReadOptions::FLAGS
        }
        _ => 0,
    }
}
