//! HELLO: identifies the client and agrees on a protocol version.

use bytes::{BufMut, Bytes, BytesMut};

use crate::frame::put_bytes;
use crate::reader::{DecodeError, Reader};
use crate::text::Text;

/// The client's version and identity. A HELLO may also be empty, which counts as version 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The highest version that the client supports.
    pub version: u16,
    /// A name for logs.
    pub tag: Text,
    /// JSON; `{"token":"…"}` if the server needs a token.
    pub meta: Bytes,
}

impl Hello {
    pub(crate) fn read_from(reader: &mut Reader) -> Result<Option<Self>, DecodeError> {
        // A HELLO without payload is legal: version 1 and no token.
        if reader.is_empty() {
            return Ok(None);
        }
        let version = reader.read_u16("version")?;
        // The only length of 16 bits in the protocol: a tag is a short name.
        let tag_len = reader.read_u16("tag")?;
        let tag = reader.read_text_of_len("tag", tag_len.into())?;
        Ok(Some(Self {
            version,
            tag,
            meta: reader.read_bytes("meta_json")?,
        }))
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        let tag_len = u16::try_from(self.tag.len()).expect("a client's tag is a short name");
        out.put_u16_le(self.version);
        out.put_u16_le(tag_len);
        out.put_slice(self.tag.as_bytes());
        put_bytes(out, &self.meta);
    }
}

/// The response to HELLO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// Not zero, and unique while the server's process lives.
    pub session_id: u64,
    /// The version that both sides use.
    pub version: u16,
}

impl Welcome {
    pub(crate) fn read_from(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            session_id: reader.read_u64("session_id")?,
            version: reader.read_u16("version")?,
        })
    }

    pub(crate) fn write_to(self, out: &mut BytesMut) {
        out.put_u64_le(self.session_id);
        out.put_u16_le(self.version);
    }
}
