//! Segments: the files of the log.
//!
//! ```text
//! offset  size  what
//!      0     8  magic "TKSEG\0\0\1" (the last byte is the format's version)
//!      8     4  CRC32C of bytes 16..64
//!     12     4  zero
//!     16    16  store id
//!     32     8  segment number
//!     40     8  position of the first frame
//!     48    16  zero
//!     64     …  frames, each at a multiple of 8
//! ```
//! A new segment is full of zeros, header included. The first write holds the header and the first
//! frame. The frames end at zeros, at the end of the file, or at the first position of the next
//! segment: doubtful frames that recovery wrote again are then in both, and the later copy counts.

use std::sync::{Arc, OnceLock};

use crate::storage::{Storage, StorageFile};
use crate::{Position, frame::blob_crc};

pub(crate) const LOG_DIR: &str = "log";
pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const MAGIC: &[u8; 8] = b"TKSEG\0\0\x01";
/// The offset of the format's version in the magic.
const VERSION_AT: usize = 7;

/// A locator has 40 bits for the offset in a segment (1 TiB, where a frame has at most 1 GiB) and
/// 24 for the segment's number.
const OFFSET_BITS: u32 = 40;

/// The place of a blob's bytes in the log. It never changes, and only the log can interpret it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Locator(u64);

impl Locator {
    /// The place of a lost blob. Reading it fails.
    pub const NOWHERE: Self = Self(0);

    pub(crate) fn new(segment: u64, offset: u64) -> Self {
        Self((segment << OFFSET_BITS) | offset)
    }

    pub(crate) fn segment(self) -> u64 {
        self.0 >> OFFSET_BITS
    }

    pub(crate) fn offset(self) -> u64 {
        self.0 & ((1 << OFFSET_BITS) - 1)
    }

    /// The locator as a number, for tables.
    pub fn to_u64(self) -> u64 {
        self.0
    }

    /// The locator with this number.
    pub fn from_u64(number: u64) -> Self {
        Self(number)
    }
}

/// The content of a segment's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) store_id: [u8; 16],
    pub(crate) number: u64,
    pub(crate) first: Position,
}

/// The result of reading a segment's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderRead {
    Sound(SegmentHeader),
    /// Sound, but of another format version.
    OtherVersion(u8),
    /// Only zeros: no frame was written yet.
    Blank,
    Bad,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[16..32].copy_from_slice(&self.store_id);
        out[32..40].copy_from_slice(&self.number.to_le_bytes());
        out[40..48].copy_from_slice(&self.first.0.to_le_bytes());
        let crc = blob_crc(&out[16..]);
        out[8..12].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Corrects the checksum, for the fuzzer.
    #[cfg(any(test, feature = "dev"))]
    pub(crate) fn fix_checksums(bytes: &mut [u8]) {
        if let Some(bytes) = bytes.first_chunk_mut::<HEADER_BYTES>() {
            let crc = blob_crc(&bytes[16..]);
            bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        }
    }

    pub(crate) fn read(bytes: &[u8]) -> HeaderRead {
        if bytes.iter().take(HEADER_BYTES).all(|&b| b == 0) {
            return HeaderRead::Blank;
        }
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return HeaderRead::Bad;
        };
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let header = Self {
            store_id: std::array::from_fn(|i| bytes[16 + i]),
            number: word(32),
            first: Position(word(40)),
        };
        // The checksum does not cover the version, so a header of another version still proves
        // that it is one. Encoding again also checks the bytes that must be zero.
        let mut as_ours = *bytes;
        as_ours[VERSION_AT] = MAGIC[VERSION_AT];
        if header.encode() != as_ours {
            HeaderRead::Bad
        } else if as_ours == *bytes {
            HeaderRead::Sound(header)
        } else {
            HeaderRead::OtherVersion(bytes[VERSION_AT])
        }
    }
}

/// The tag that every frame of a store carries.
pub(crate) fn store_tag(store_id: &[u8; 16]) -> u32 {
    blob_crc(store_id)
}

/// Writes a header again and syncs it. It was written together with the first frame; if that frame
/// is cut or moved, the header stays and is as doubtful as the frame was.
pub(crate) fn rewrite_header(file: &dyn StorageFile) -> std::io::Result<()> {
    file.write_at(0, &file.read(0..HEADER_BYTES as u64)?)?;
    file.sync()
}

/// Reads a segment's header and no frame: a log may be far larger than memory.
pub(crate) fn read_header(storage: &dyn Storage, number: u64) -> std::io::Result<HeaderRead> {
    let file = storage.open(&file_name(number))?;
    Ok(SegmentHeader::read(&file.read(0..HEADER_BYTES as u64)?))
}

pub(crate) fn file_name(number: u64) -> String {
    format!("{LOG_DIR}/{number:010}.seg")
}

/// Lists the numbers of the existing segment files, in order.
pub(crate) fn list_numbers(storage: &dyn Storage) -> std::io::Result<Vec<u64>> {
    let names = storage.list(LOG_DIR)?;
    let mut numbers: Vec<u64> = names
        .iter()
        .filter_map(|name| name.strip_suffix(".seg")?.parse().ok())
        .collect();
    // `7.seg` and `0000000007.seg` parse alike, but only one of them is a segment.
    numbers.retain(|&number| names.contains(&format!("{number:010}.seg")));
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// A segment in use. Its file is opened on the first read.
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) first: Position,
    file: OnceLock<Arc<dyn StorageFile>>,
}

impl Segment {
    pub(crate) fn closed(number: u64, first: Position) -> Arc<Self> {
        Arc::new(Self {
            number,
            first,
            file: OnceLock::new(),
        })
    }

    pub(crate) fn opened(number: u64, first: Position, file: Arc<dyn StorageFile>) -> Arc<Self> {
        Arc::new(Self {
            number,
            first,
            file: OnceLock::from(file),
        })
    }

    pub(crate) fn open_file(
        &self,
        storage: &dyn Storage,
    ) -> std::io::Result<&Arc<dyn StorageFile>> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let opened = storage.open(&file_name(self.number))?;
        Ok(self.file.get_or_init(|| opened))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_a_flipped_bit_does_not() {
        let header = SegmentHeader {
            store_id: [7; 16],
            number: 3,
            first: Position(9),
        };
        let bytes = header.encode();
        assert_eq!(SegmentHeader::read(&bytes), HeaderRead::Sound(header));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let expected = match bit / 8 {
                VERSION_AT => HeaderRead::OtherVersion(flipped[VERSION_AT]),
                _ => HeaderRead::Bad,
            };
            assert_eq!(SegmentHeader::read(&flipped), expected, "bit {bit}");
        }
        assert_eq!(SegmentHeader::read(&[0; 64]), HeaderRead::Blank);
        assert_eq!(SegmentHeader::read(&bytes[..20]), HeaderRead::Bad);
    }
}
