//! Blobs, filesystem roots and registry bundles.

use bytes::{BufMut, Bytes, BytesMut};
use turnkeep_types::{BlobHash, Limits, TurnId};

use crate::frame::{MsgType, OpenFrame, put_bytes, wire_len};
use crate::reader::{DecodeError, Reader};
use crate::text::Text;

/// Sets a turn's filesystem root. The response repeats both fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachFs {
    /// The turn.
    pub turn: TurnId,
    /// The root tree's blob.
    pub root: BlobHash,
}

impl AttachFs {
    pub(crate) fn read_from(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            turn: reader.read_turn_id("turn_id")?,
            root: reader.read_hash("fs_root_hash")?,
        })
    }

    pub(crate) fn write_to(self, out: &mut BytesMut) {
        out.put_u64_le(self.turn.get());
        out.put_slice(self.root.as_bytes());
    }
}

/// Stores a blob, which is sent uncompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutBlob {
    /// The bytes' BLAKE3.
    pub hash: BlobHash,
    /// The bytes.
    pub bytes: Bytes,
}

impl PutBlob {
    pub(crate) fn read_from(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            hash: reader.read_hash("hash")?,
            bytes: reader.read_bytes("bytes")?,
        })
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        out.put_slice(self.hash.as_bytes());
        put_bytes(out, &self.bytes);
    }
}

/// Appends the response to `GET_BLOB` as a whole frame.
pub fn encode_blob(out: &mut BytesMut, req_id: u64, bytes: &[u8]) {
    let frame = OpenFrame::begin(out, MsgType::GetBlob, 0, req_id);
    put_bytes(out, bytes);
    frame.finish(out);
}

/// Publishes a registry bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutBundle {
    /// The bundle's id, equal to the one in the document.
    pub id: Text,
    /// The document.
    pub json: Bytes,
}

impl PutBundle {
    pub(crate) fn read_from(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            id: reader.read_text("bundle_id")?,
            json: reader.read_bytes("bundle_json")?,
        })
    }

    pub(crate) fn write_to(&self, out: &mut BytesMut) {
        put_bytes(out, self.id.as_bytes());
        put_bytes(out, &self.json);
    }
}

pub(crate) fn read_hashes(
    reader: &mut Reader,
    limits: &Limits,
) -> Result<Vec<BlobHash>, DecodeError> {
    // A frame could hold over a million hashes, and the connection's task looks each of them up.
    let count = reader.read_count("count", 32, limits.has_blobs_max)?;
    (0..count).map(|_| reader.read_hash("hashes")).collect()
}

pub(crate) fn write_hashes(hashes: &[BlobHash], out: &mut BytesMut) {
    out.put_u32_le(wire_len(hashes.len()));
    for hash in hashes {
        out.put_slice(hash.as_bytes());
    }
}

pub(crate) fn read_presence(reader: &mut Reader) -> Result<Vec<bool>, DecodeError> {
    // The client's own request decided the number of blobs, so the limit is the frame's length.
    let count = reader.read_count("count", 1, usize::MAX)?;
    (0..count).map(|_| reader.read_bool_u8("present")).collect()
}

pub(crate) fn write_presence(present: &[bool], out: &mut BytesMut) {
    out.put_u32_le(wire_len(present.len()));
    for &present in present {
        out.put_u8(present.into());
    }
}
