//! Frames: each carries one message.
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | `len` u32: payload bytes that follow the header |
//! | 4..6 | `msg_type` u16 |
//! | 6..8 | `flags` u16 |
//! | 8..16 | `req_id` u64: chosen by the client, repeated in every response |
//!
//! All numbers are little-endian. A reader does not read a frame over the limit. It then cannot
//! find the next frame either, so it closes the connection.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The length of a frame's header.
pub const HEADER_BYTES: usize = 16;

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Payload bytes that follow.
    pub len: u32,
    /// The message's number; see [`MsgType`].
    pub msg_type: u16,
    /// Flag bits, whose meaning depends on the message.
    pub flags: u16,
    /// The request's id.
    pub req_id: u64,
}

/// A whole frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its header.
    pub header: Header,
    /// Its payload, `header.len` bytes.
    pub payload: Bytes,
}

/// A frame declares a length over the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {} bytes is over the limit of {limit}", .header.len)]
pub struct FrameTooLong {
    /// The header of the frame.
    pub header: Header,
    /// The limit.
    pub limit: usize,
}

impl Header {
    /// Reads the header at the start of `bytes`; `None` if there are fewer than [`HEADER_BYTES`].
    pub fn peek(bytes: &[u8]) -> Option<Self> {
        let mut bytes = bytes.get(..HEADER_BYTES)?;
        Some(Self {
            len: bytes.get_u32_le(),
            msg_type: bytes.get_u16_le(),
            flags: bytes.get_u16_le(),
            req_id: bytes.get_u64_le(),
        })
    }

    /// Appends the header.
    pub fn encode(self, out: &mut BytesMut) {
        out.put_u32_le(self.len);
        out.put_u16_le(self.msg_type);
        out.put_u16_le(self.flags);
        out.put_u64_le(self.req_id);
    }
}

impl Frame {
    /// Splits the first frame off `buffer` without copying; `None` while it is incomplete.
    pub fn split_first(
        buffer: &mut BytesMut,
        frame_bytes_max: usize,
    ) -> Result<Option<Self>, FrameTooLong> {
        let Some(header) = Header::peek(buffer) else {
            return Ok(None);
        };
        let len = header.len as usize;
        // By the header alone: the payload of a frame over the limit is never buffered. A peer could
        // otherwise make the reader hold 4 GiB.
        if len > frame_bytes_max {
            return Err(FrameTooLong {
                header,
                limit: frame_bytes_max,
            });
        }
        if buffer.len() < HEADER_BYTES + len {
            return Ok(None);
        }
        // The payload shares the receive buffer, and so does each field that is read from it.
        let mut payload = buffer.split_to(HEADER_BYTES + len).freeze();
        payload.advance(HEADER_BYTES);
        Ok(Some(Self { header, payload }))
    }
}

/// A frame under construction at the end of a buffer. `finish` fills in the header's `len`.
pub(crate) struct OpenFrame {
    start: usize,
}

impl OpenFrame {
    pub(crate) fn begin(out: &mut BytesMut, msg_type: MsgType, flags: u16, req_id: u64) -> Self {
        let start = out.len();
        Header {
            len: 0,
            msg_type: msg_type.to_wire(),
            flags,
            req_id,
        }
        .encode(out);
        Self { start }
    }

    /// Continues the frame that was begun at `start`.
    pub(crate) fn at(start: usize) -> Self {
        Self { start }
    }

    pub(crate) fn finish(self, out: &mut BytesMut) {
        // `len` is the header's first field, so it is at the start of the frame.
        let len = wire_len(out.len() - self.start - HEADER_BYTES);
        out[self.start..self.start + 4].copy_from_slice(&len.to_le_bytes());
    }
}

/// A length as a wire field. Encoders stay within limits far below 4 GiB.
pub(crate) fn wire_len(len: usize) -> u32 {
    u32::try_from(len).expect("parts of a frame are kept within the frame limit")
}

/// Appends a `u32` length and the bytes.
pub(crate) fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32_le(wire_len(bytes.len()));
    out.put_slice(bytes);
}

/// The messages' numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum MsgType {
    /// Opens a session.
    Hello = 1,
    /// Creates a context.
    CtxCreate = 2,
    /// Forks a context.
    CtxFork = 3,
    /// Reads a context's head.
    GetHead = 4,
    /// Appends one turn.
    AppendTurn = 5,
    /// Reads the newest turns.
    GetLast = 6,
    /// Reads the turns before a turn.
    GetBefore = 7,
    /// Reads turns by depth.
    GetRangeByDepth = 8,
    /// Reads a blob.
    GetBlob = 9,
    /// Sets a turn's filesystem root.
    AttachFs = 10,
    /// Stores a blob.
    PutBlob = 11,
    /// Publishes a registry bundle.
    RegistryPutBundle = 12,
    /// Appends several turns, all or none.
    AppendBatch = 13,
    /// Follows appends.
    Subscribe = 14,
    /// Ends a subscription.
    Cancel = 15,
    /// Asks which blobs the store has.
    HasBlobs = 16,
    /// The response to a request that failed.
    Error = 255,
}

impl MsgType {
    /// The message with this number, if there is one.
    pub const fn from_wire(number: u16) -> Option<Self> {
        Some(match number {
            1 => Self::Hello,
            2 => Self::CtxCreate,
            3 => Self::CtxFork,
            4 => Self::GetHead,
            5 => Self::AppendTurn,
            6 => Self::GetLast,
            7 => Self::GetBefore,
            8 => Self::GetRangeByDepth,
            9 => Self::GetBlob,
            10 => Self::AttachFs,
            11 => Self::PutBlob,
            12 => Self::RegistryPutBundle,
            13 => Self::AppendBatch,
            14 => Self::Subscribe,
            15 => Self::Cancel,
            16 => Self::HasBlobs,
            255 => Self::Error,
            _ => return None,
        })
    }

    /// The message's number.
    pub const fn to_wire(self) -> u16 {
        self as u16
    }

    /// The message's name in the protocol.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hello => "HELLO",
            Self::CtxCreate => "CTX_CREATE",
            Self::CtxFork => "CTX_FORK",
            Self::GetHead => "GET_HEAD",
            Self::AppendTurn => "APPEND_TURN",
            Self::GetLast => "GET_LAST",
            Self::GetBefore => "GET_BEFORE",
            Self::GetRangeByDepth => "GET_RANGE_BY_DEPTH",
            Self::GetBlob => "GET_BLOB",
            Self::AttachFs => "ATTACH_FS",
            Self::PutBlob => "PUT_BLOB",
            Self::RegistryPutBundle => "REGISTRY_PUT_BUNDLE",
            Self::AppendBatch => "APPEND_BATCH",
            Self::Subscribe => "SUBSCRIBE",
            Self::Cancel => "CANCEL",
            Self::HasBlobs => "HAS_BLOBS",
            Self::Error => "ERROR",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(len: u32) -> Header {
        Header {
            len,
            msg_type: 4,
            flags: 0,
            req_id: 7,
        }
    }

    #[test]
    fn a_frame_is_taken_only_when_it_is_whole() {
        let mut whole = BytesMut::new();
        header(3).encode(&mut whole);
        whole.put_slice(b"abcrest");
        for cut in 0..HEADER_BYTES + 3 {
            let mut part = BytesMut::from(&whole[..cut]);
            assert_eq!(Frame::split_first(&mut part, 10), Ok(None), "cut at {cut}");
            assert_eq!(part.len(), cut, "an unfinished frame stays in the buffer");
        }
        let frame = Frame::split_first(&mut whole, 10).unwrap().unwrap();
        assert_eq!(
            (frame.header, &frame.payload[..], &whole[..]),
            (header(3), &b"abc"[..], &b"rest"[..])
        );
    }

    #[test]
    fn a_frame_over_the_limit_is_refused_by_its_header_alone() {
        let mut buffer = BytesMut::new();
        header(11).encode(&mut buffer);
        assert_eq!(
            Frame::split_first(&mut buffer, 10),
            Err(FrameTooLong {
                header: header(11),
                limit: 10
            })
        );
    }

    #[test]
    fn every_number_names_at_most_one_message() {
        for number in 0..=u16::MAX {
            if let Some(msg_type) = MsgType::from_wire(number) {
                assert_eq!(msg_type.to_wire(), number);
            }
        }
    }
}
