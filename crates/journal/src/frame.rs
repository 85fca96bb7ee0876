//! Frames: the units of the log. Each holds one atomic batch.
//!
//! ```text
//! offset  size  what
//!      0     4  magic "TKF1"
//!      4     4  CRC32C of bytes 8..128
//!      8     4  length of meta
//!     12     4  length of data
//!     16     4  CRC32C of meta
//!     20     4  number of blobs
//!     24     4  number of commands
//!     28     4  store tag: CRC32C of the store id
//!     32     8  position
//!     40     8  last position known durable when this was written
//!     48    32  BLAKE3 of the frame before: its header and meta; zeros for the first frame
//!     80    16  writer
//!     96     8  sequence number of the first command; the others follow
//!    104     8  created at, unix ms
//!    112    16  two marks of the state machine
//!    128     …  meta: blob headers, then commands
//!      …     …  data: the blobs' bytes, back to back; then zeros up to a multiple of 8
//!
//! blob header   hash [32] | CRC32C of its bytes u32 | form u8 | raw length varint | stored length varint
//! command       kind u8 | version u8 | length varint | body
//! ```
//! Numbers are little-endian, varints LEB128. The checksums and the chain cover header and meta,
//! and with them each blob's own checksum, but not the blobs' bytes. So replay reads no payload,
//! and a payload could be erased without breaking the chain. The store tag protects the search
//! behind damage: a frame of another store that a client stored as a payload does not count.

use std::io::{self, Read};

use turnkeep_types::varint::{self, Reader};
use turnkeep_types::{BlobHash, Compression, Timestamp};

use crate::Position;
use crate::batch::{Batch, Stamp};
use crate::segment::Locator;
use crate::storage::FileBytes;

/// The longest valid frame.
pub const FRAME_BYTES_MAX: u64 = 1 << 30;
/// The greatest valid position or sequence number. No log reaches it, and sums cannot overflow.
const NUMBER_MAX: u64 = 1 << 62;

pub(crate) const HEADER_BYTES: usize = 128;
pub(crate) const MAGIC: &[u8; 4] = b"TKF1";
/// Frames begin at multiples of this, so the search behind damage tries an eighth of all offsets.
pub(crate) const ALIGN: usize = 8;

/// The checksum of a blob's stored bytes.
pub fn blob_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) meta_len: u32,
    pub(crate) data_len: u32,
    pub(crate) meta_crc: u32,
    pub(crate) blobs: u32,
    pub(crate) commands: u32,
    pub(crate) link: ChainLink,
    pub(crate) stamp: Stamp,
}

impl FrameHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(8, &self.meta_len.to_le_bytes());
        put(12, &self.data_len.to_le_bytes());
        put(16, &self.meta_crc.to_le_bytes());
        put(20, &self.blobs.to_le_bytes());
        put(24, &self.commands.to_le_bytes());
        put(28, &self.link.store.to_le_bytes());
        put(32, &self.link.position.0.to_le_bytes());
        put(40, &self.link.durable.0.to_le_bytes());
        put(48, &self.link.prev_hash);
        put(80, &self.link.writer.to_le_bytes());
        put(96, &self.link.first_sequence.to_le_bytes());
        put(104, &self.stamp.created_at.0.to_le_bytes());
        put(112, &self.stamp.marks[0].to_le_bytes());
        put(120, &self.stamp.marks[1].to_le_bytes());
        let crc = crc32c::crc32c(&out[8..]);
        out[4..8].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Corrects the checksums of header and meta if the bytes begin like a frame, for the fuzzer.
    #[cfg(any(test, feature = "dev"))]
    pub(crate) fn fix_checksums(bytes: &mut [u8]) {
        if !bytes.starts_with(MAGIC) || bytes.len() < HEADER_BYTES {
            return;
        }
        let meta_len = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
        if let Some(meta) = bytes.get(HEADER_BYTES..HEADER_BYTES.saturating_add(meta_len)) {
            let crc = crc32c::crc32c(meta);
            bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32c::crc32c(&bytes[8..HEADER_BYTES]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    }

    /// Decodes a header; `None` if the bytes are not a valid one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<HEADER_BYTES>()?;
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if !bytes.starts_with(MAGIC) || u32_at(4) != crc32c::crc32c(&bytes[8..]) {
            return None;
        }
        let link = ChainLink {
            store: u32_at(28),
            position: Position(u64_at(32)),
            durable: Position(u64_at(40)),
            prev_hash: std::array::from_fn(|i| bytes[48 + i]),
            writer: u128::from_le_bytes(std::array::from_fn(|i| bytes[80 + i])),
            first_sequence: u64_at(96),
        };
        let header = Self {
            meta_len: u32_at(8),
            data_len: u32_at(12),
            meta_crc: u32_at(16),
            blobs: u32_at(20),
            commands: u32_at(24),
            link,
            stamp: Stamp {
                created_at: Timestamp(u64_at(104)),
                marks: [u64_at(112), u64_at(120)],
            },
        };
        // The checksum only proves that these bytes were written, perhaps by a forger.
        let in_range = header.frame_len() <= FRAME_BYTES_MAX
            && link.durable < link.position
            && link.position.0 <= NUMBER_MAX
            && link.first_sequence <= NUMBER_MAX;
        in_range.then_some(header)
    }

    /// The length of the whole frame, with its padding.
    pub(crate) fn frame_len(&self) -> u64 {
        let len = HEADER_BYTES as u64 + u64::from(self.meta_len) + u64::from(self.data_len);
        len.next_multiple_of(ALIGN as u64)
    }
}

/// The place of a frame in the chain: the header fields that do not come from the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainLink {
    pub(crate) store: u32,
    pub(crate) position: Position,
    pub(crate) durable: Position,
    pub(crate) prev_hash: [u8; 32],
    pub(crate) writer: u128,
    pub(crate) first_sequence: u64,
}

/// The hash and the lengths of an encoded frame.
pub(crate) struct EncodedHead {
    pub(crate) hash: [u8; 32],
    /// The length of header and meta. The blobs' bytes follow.
    pub(crate) head: u64,
    /// The number of zeros after the blobs.
    pub(crate) padding: usize,
}

/// Appends the batch's header and meta to `out`. The log writes the blobs' bytes and the padding
/// after them, without copying the blobs.
#[expect(
    clippy::cast_possible_truncation,
    reason = "batches are bounded far below 4 GiB"
)]
pub(crate) fn encode_head(batch: &Batch, link: ChainLink, out: &mut Vec<u8>) -> EncodedHead {
    // The header has the lengths and the checksum of the parts behind it, so it is filled in last. The
    // blobs' bytes are not copied here: the log writes them from where they are.
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    for blob in &batch.blobs {
        out.extend_from_slice(blob.hash.as_bytes());
        out.extend_from_slice(&blob.crc.to_le_bytes());
        out.push(blob.form as u8);
        varint::put(out, blob.raw_len.into());
        varint::put(out, blob.bytes.len() as u64);
    }
    out.extend_from_slice(&batch.commands);
    let meta = start + HEADER_BYTES..out.len();
    let header = FrameHeader {
        meta_len: meta.len() as u32,
        data_len: batch.blob_bytes() as u32,
        meta_crc: crc32c::crc32c(&out[meta]),
        blobs: batch.blobs.len() as u32,
        commands: batch.command_count,
        link,
        stamp: batch.stamp,
    };
    out[start..start + HEADER_BYTES].copy_from_slice(&header.encode());
    let head = out.len() - start;
    let unpadded = head + batch.blob_bytes();
    let padding = unpadded.next_multiple_of(ALIGN) - unpadded;
    EncodedHead {
        hash: *blake3::hash(&out[start..]).as_bytes(),
        head: head as u64,
        padding,
    }
}

pub(crate) fn put_command(out: &mut Vec<u8>, kind: u8, version: u8, body: &[u8]) {
    out.extend_from_slice(&[kind, version]);
    varint::put(out, body.len() as u64);
    out.extend_from_slice(body);
}

/// One blob of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobEntry {
    /// The hash of the uncompressed bytes.
    pub hash: BlobHash,
    /// The checksum of the stored bytes.
    pub crc: u32,
    /// Their form.
    pub form: Compression,
    /// The uncompressed length.
    pub raw_len: u32,
    /// The stored length.
    pub stored_len: u32,
    /// Where the stored bytes are.
    pub locator: Locator,
}

/// A frame whose header and meta are sound. Its blobs' bytes are checked when they are read.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Its position.
    pub position: Position,
    /// The last position known to be durable when the frame was written.
    pub durable: Position,
    /// The hash of the frame before it.
    pub prev_hash: [u8; 32],
    /// Its own hash.
    pub hash: [u8; 32],
    /// The process that wrote it.
    pub writer: u128,
    /// The sequence number of its first command.
    pub first_sequence: u64,
    /// The state machine's stamp.
    pub stamp: Stamp,
    /// Its blobs.
    pub blobs: Vec<BlobEntry>,
    /// The tag of the store that it belongs to.
    pub(crate) store: u32,
    raw: FileBytes,
    data: usize,
    commands: std::ops::Range<usize>,
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The header's checksum does not hold, or there is no header.
    #[error("no frame header")]
    Header,
    /// The file ends within the frame.
    #[error("the frame is cut off")]
    Cut,
    /// The checksum of blob headers and commands does not hold.
    #[error("the frame's checksum does not hold")]
    Checksum,
    /// The checksum holds, but the content is not valid.
    #[error("the frame's content is malformed")]
    Malformed,
    /// A sound frame of another store or position.
    #[error("the frame belongs elsewhere")]
    Foreign,
}

impl Frame {
    /// Reads the frame at the beginning of `bytes`. `at` is the place of `bytes` in the log.
    pub(crate) fn read(bytes: &FileBytes, at: Locator) -> Result<Self, FrameError> {
        let header = FrameHeader::decode(bytes).ok_or(FrameError::Header)?;
        let len = usize::try_from(header.frame_len()).map_err(|_| FrameError::Cut)?;
        // The header's length is compared with the file before anything is sliced.
        if bytes.len() < len {
            return Err(FrameError::Cut);
        }
        let raw = bytes.slice(..len);
        let data = HEADER_BYTES + header.meta_len as usize;
        if crc32c::crc32c(&raw[HEADER_BYTES..data]) != header.meta_crc {
            return Err(FrameError::Checksum);
        }
        let first_byte = at.offset() + data as u64;
        let meta = parse_meta(
            &raw[HEADER_BYTES..data],
            &header,
            Locator::new(at.segment(), first_byte),
        )
        .ok_or(FrameError::Malformed)?;
        let FrameHeader { link, stamp, .. } = header;
        Ok(Self {
            position: link.position,
            durable: link.durable,
            prev_hash: link.prev_hash,
            hash: *blake3::hash(&raw[..data]).as_bytes(),
            writer: link.writer,
            first_sequence: link.first_sequence,
            stamp,
            blobs: meta.blobs,
            store: link.store,
            raw,
            data,
            commands: data - meta.command_bytes..data,
        })
    }

    /// Copies the frame's bytes and reads the copy, so that later changes of the file do not
    /// matter.
    pub(crate) fn copy_from_map(&self, at: Locator) -> Result<Self, FrameError> {
        Self::read(&FileBytes::copy_from_slice(&self.raw), at)
    }

    /// The sequence number of the command after its last one.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.first_sequence + self.commands().count() as u64
    }

    /// The bytes of the whole frame.
    pub fn raw(&self) -> &FileBytes {
        &self.raw
    }

    /// The commands, in order.
    pub fn commands(&self) -> impl Iterator<Item = FrameCommand<'_>> + '_ {
        let mut rest = Reader(&self.raw[self.commands.clone()]);
        std::iter::from_fn(move || read_command(&mut rest))
    }

    /// The stored bytes of a blob of this frame; `None` if they do not match their checksum.
    pub fn blob_bytes(&self, blob: usize) -> Option<FileBytes> {
        let (first, entry) = (self.blobs.first()?, self.blobs.get(blob)?);
        // Locators count from the segment's start, so their difference is the offset in the data.
        let before = usize::try_from(entry.locator.offset() - first.locator.offset()).ok()?;
        let start = self.data + before;
        let bytes = self.raw.slice(start..start + entry.stored_len as usize);
        (blob_crc(&bytes) == entry.crc).then_some(bytes)
    }

    /// Whether every blob's bytes are sound.
    pub fn blobs_are_sound(&self) -> bool {
        let mut start = self.data;
        self.blobs.iter().all(|blob| {
            let bytes = &self.raw[start..start + blob.stored_len as usize];
            start += bytes.len();
            blob_crc(bytes) == blob.crc
        })
    }
}

/// One command of a frame. The state machine interprets kind, version and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameCommand<'a> {
    /// The kind of command.
    pub kind: u8,
    /// The version of the body's format.
    pub version: u8,
    /// The encoded command.
    pub body: &'a [u8],
}

fn read_command<'a>(rest: &mut Reader<'a>) -> Option<FrameCommand<'a>> {
    Some(FrameCommand {
        kind: rest.u8()?,
        version: rest.u8()?,
        body: rest.bytes()?,
    })
}

/// The parsed meta of a frame.
struct FrameMeta {
    blobs: Vec<BlobEntry>,
    /// The length of the commands, which follow the blob headers.
    command_bytes: usize,
}

/// Parses the meta of a frame whose data begins at `data`.
fn parse_meta(meta: &[u8], header: &FrameHeader, data: Locator) -> Option<FrameMeta> {
    let mut meta = Reader(meta);
    // Without a capacity: the count comes from the header and could claim more than the meta holds.
    let mut blobs = Vec::new();
    let mut offset = data.offset();
    for _ in 0..header.blobs {
        let hash = BlobHash(meta.read_bytes(32)?.try_into().ok()?);
        let crc = u32::from_le_bytes(meta.read_bytes(4)?.try_into().ok()?);
        let form = Compression::from_wire(meta.u8()?.into())?;
        let (raw_len, stored_len) = (meta.u32()?, meta.u32()?);
        let locator = Locator::new(data.segment(), offset);
        offset += u64::from(stored_len);
        blobs.push(BlobEntry {
            hash,
            crc,
            form,
            raw_len,
            stored_len,
            locator,
        });
    }
    let mut rest = meta;
    // Every command is parsed once here, so that iterating over them later cannot fail.
    for _ in 0..header.commands {
        read_command(&mut rest)?;
    }
    // Lengths must add up exactly, or a blob's locator would point into another blob.
    let whole = rest.end().is_some() && offset - data.offset() == u64::from(header.data_len);
    whole.then_some(FrameMeta {
        blobs,
        command_bytes: meta.0.len(),
    })
}

/// Reads the next frame of a stream of raw frames, such as an export; `None` at the end. Memory
/// grows with the bytes that arrive, not with the announced length.
pub fn read_frame(stream: &mut impl Read) -> io::Result<Option<Frame>> {
    let mut raw = Vec::new();
    stream
        .by_ref()
        .take(HEADER_BYTES as u64)
        .read_to_end(&mut raw)?;
    if raw.is_empty() {
        return Ok(None);
    }
    let invalid = |e: FrameError| io::Error::new(io::ErrorKind::InvalidData, e);
    let header = FrameHeader::decode(&raw).ok_or(invalid(FrameError::Header))?;
    // `read_to_end` grows with the bytes that arrive, so a false length costs no memory.
    stream
        .by_ref()
        .take(header.frame_len() - HEADER_BYTES as u64)
        .read_to_end(&mut raw)?;
    let frame = Frame::read(&raw.into(), Locator::new(0, 0)).map_err(invalid)?;
    if !frame.blobs_are_sound() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a blob's checksum does not hold",
        ));
    }
    Ok(Some(frame))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::BlobRecord;

    fn sample() -> (Vec<u8>, [u8; 32]) {
        let mut batch = Batch::new();
        batch.restart(Stamp {
            created_at: Timestamp(5),
            marks: [1, 2],
        });
        for text in [&b"first"[..], b"", &[9; 300]] {
            let bytes = FileBytes::copy_from_slice(text);
            let (hash, crc) = (BlobHash::of(text), blob_crc(text));
            batch.push_blob(BlobRecord {
                hash,
                raw_len: text.len().try_into().unwrap(),
                form: Compression::None,
                crc,
                bytes,
            });
        }
        batch.push_command(1, 1, b"one");
        batch.push_command(2, 1, b"");
        let link = ChainLink {
            store: 77,
            position: Position(7),
            durable: Position(6),
            prev_hash: [3; 32],
            writer: 11,
            first_sequence: 40,
        };
        let mut out = Vec::new();
        let EncodedHead { hash, padding, .. } = encode_head(&batch, link, &mut out);
        batch
            .blobs
            .iter()
            .for_each(|blob| out.extend_from_slice(&blob.bytes));
        out.resize(out.len() + padding, 0);
        (out, hash)
    }

    #[test]
    fn a_frame_reads_back() {
        let (bytes, hash) = sample();
        let frame = Frame::read(&bytes.clone().into(), Locator::new(1, 64)).unwrap();
        assert_eq!(
            (frame.position, frame.durable, frame.hash),
            (Position(7), Position(6), hash)
        );
        assert_eq!(
            frame.commands().collect::<Vec<_>>(),
            [
                FrameCommand {
                    kind: 1,
                    version: 1,
                    body: b"one"
                },
                FrameCommand {
                    kind: 2,
                    version: 1,
                    body: b""
                },
            ]
        );
        assert_eq!(&frame.blob_bytes(0).unwrap()[..], b"first");
        assert_eq!(&frame.blob_bytes(2).unwrap()[..], [9; 300]);
        assert_eq!(frame.raw().len() % ALIGN, 0);
        let from_stream = read_frame(&mut &bytes[..]).unwrap().unwrap();
        assert_eq!(from_stream.hash, hash);
    }

    #[test]
    fn a_flipped_bit_is_noticed_wherever_it_is() {
        let (bytes, _) = sample();
        let meaningful = bytes.len() - bytes.len().next_multiple_of(ALIGN) + bytes.len();
        for at in 0..meaningful {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            let read = Frame::read(&flipped.into(), Locator::new(1, 64));
            let padding = at >= bytes.len() - ALIGN;
            assert!(
                padding || read.is_err() || !read.unwrap().blobs_are_sound(),
                "byte {at}"
            );
        }
    }

    #[test]
    fn a_cut_stream_is_an_error_and_not_an_end() {
        let (bytes, _) = sample();
        for cut in 1..bytes.len() {
            assert!(read_frame(&mut &bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert!(read_frame(&mut &[][..]).unwrap().is_none());
    }
}
