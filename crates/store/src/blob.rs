//! New blobs: verified against their hash and compressed into their stored form.
//!
//! All hashing and compressing happens here, on the caller's thread. The writer and `apply` never
//! look at payload bytes. Verifying needs memory for the uncompressed bytes of one blob, and
//! compressing for about as many bytes as it reads ([`verifying_bytes`]). A blob that does not
//! match its hash, its length or the zstd limits is rejected with a [`BlobError`].

use bytes::Bytes;
use turnkeep_journal::{LargeBuffer, MAPPED_FROM_BYTES, blob_crc};
use turnkeep_types::{BlobHash, Compression};

/// Shorter blobs are stored uncompressed: compressing them costs more time than it saves space.
pub const COMPRESS_FROM_BYTES: usize = 4096;

/// The largest window of a zstd frame, unless the blob itself is longer. Clients receive the frame
/// as stored, and a streaming decoder allocates the whole window.
const WINDOW_BYTES_MAX: u64 = 8 << 20;

const ZSTD_LEVEL: i32 = 1;

/// A blob whose bytes are known to match its hash and length.
#[derive(Debug, Clone)]
pub struct NewBlob {
    pub(crate) hash: BlobHash,
    pub(crate) raw_len: u32,
    pub(crate) form: Compression,
    pub(crate) bytes: Bytes,
    pub(crate) crc: u32,
    /// How many of `bytes` were allocated here and not by the caller.
    made_bytes: usize,
}

/// A blob as a client sent it.
#[derive(Debug, Clone)]
pub struct SentBlob {
    /// The hash that the sender declared.
    pub hash: BlobHash,
    /// The uncompressed length that the sender declared.
    pub raw_len: u32,
    /// The form of `bytes`.
    pub compression: Compression,
    /// The bytes as sent.
    pub bytes: Bytes,
}

/// Why a blob is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// The bytes have another hash than declared.
    #[error("the bytes hash to {actual}, not to {expected} as declared")]
    HashMismatch {
        /// As declared.
        expected: BlobHash,
        /// As computed.
        actual: BlobHash,
    },
    /// The bytes are not as long as declared.
    #[error("the uncompressed length is {actual}, not {expected} as declared")]
    LengthMismatch {
        /// As declared.
        expected: u64,
        /// The actual length. For a stream that exceeds the declared length, the least possible
        /// length.
        actual: u64,
    },
    /// The bytes are not exactly one sound zstd frame within the limits.
    #[error("the bytes do not decompress: {0}")]
    NotZstd(String),
    /// The blob exceeds the size limit.
    #[error("{actual} bytes are over the limit of {limit}")]
    TooLarge {
        /// The limit.
        limit: u64,
        /// The size.
        actual: u64,
    },
    /// The system has no memory for the uncompressed bytes.
    #[error("there is no memory to unpack {0} bytes: try again in a moment")]
    NoMemory(u64),
}

/// The most memory that verifying such a blob needs at once, in addition to the bytes as sent.
pub fn verifying_bytes(sent_bytes: usize, raw_len: u32, compression: Compression) -> usize {
    match compression {
        Compression::Zstd => raw_len as usize,
        Compression::None if sent_bytes < COMPRESS_FROM_BYTES => 0,
        Compression::None => zstd::zstd_safe::compress_bound(sent_bytes),
    }
}

impl NewBlob {
    /// Makes a blob of uncompressed bytes. Compresses them if that saves at least a tenth.
    pub fn from_raw(bytes: Bytes, blob_bytes_max: usize) -> Result<Self, BlobError> {
        let raw_len = checked_len(bytes.len(), blob_bytes_max)?;
        let mut blob = Self::store_raw(BlobHash::of(&bytes), raw_len, bytes);
        blob.made_bytes = blob.bytes.len();
        Ok(blob)
    }

    /// Verifies a blob against its declared hash and length and against the size limit.
    pub fn verify(sent: SentBlob, blob_bytes_max: usize) -> Result<Self, BlobError> {
        // Before anything is unpacked: the declared length bounds the memory below.
        checked_len(sent.raw_len as usize, blob_bytes_max)?;
        match sent.compression {
            Compression::None => {
                // Before hashing, which costs time in proportion to the bytes.
                check_len(sent.raw_len, sent.bytes.len())?;
                check_hash(sent.hash, &sent.bytes)?;
                Ok(Self::store_raw(sent.hash, sent.raw_len, sent.bytes))
            }
            Compression::Zstd => {
                let raw = decompress(&sent.bytes, sent.raw_len)?;
                check_hash(sent.hash, &raw)?;
                Ok(Self::with_stored(
                    sent.hash,
                    sent.raw_len,
                    Compression::Zstd,
                    sent.bytes,
                ))
            }
        }
    }

    /// The BLAKE3 of the uncompressed bytes.
    pub fn hash(&self) -> BlobHash {
        self.hash
    }

    /// Its uncompressed length.
    pub fn raw_len(&self) -> u32 {
        self.raw_len
    }

    /// How many bytes this blob allocated in addition to the caller's.
    pub fn made_bytes(&self) -> usize {
        self.made_bytes
    }

    /// Drops `guard` together with the blob's bytes: after they are written, or the command fails.
    pub fn keep_with_bytes(&mut self, guard: impl Send + 'static) {
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = Bytes::from_owner(GuardedBytes {
            bytes,
            _guard: guard,
        });
    }

    /// Stores uncompressed bytes, compressed if that pays.
    fn store_raw(hash: BlobHash, raw_len: u32, bytes: Bytes) -> Self {
        match compress_if_smaller(&bytes) {
            Some(smaller) => {
                let made_bytes = smaller.len();
                Self {
                    made_bytes,
                    ..Self::with_stored(hash, raw_len, Compression::Zstd, smaller)
                }
            }
            None => Self::with_stored(hash, raw_len, Compression::None, bytes),
        }
    }

    fn with_stored(hash: BlobHash, raw_len: u32, form: Compression, bytes: Bytes) -> Self {
        let crc = blob_crc(&bytes);
        Self {
            hash,
            raw_len,
            form,
            bytes,
            crc,
            made_bytes: 0,
        }
    }
}

/// Bytes with a guard that is dropped after them.
struct GuardedBytes<G> {
    bytes: Bytes,
    _guard: G,
}

impl<G> AsRef<[u8]> for GuardedBytes<G> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn checked_len(len: usize, max: usize) -> Result<u32, BlobError> {
    let too_large = BlobError::TooLarge {
        limit: max as u64,
        actual: len as u64,
    };
    if len > max {
        return Err(too_large);
    }
    u32::try_from(len).map_err(|_| too_large)
}

fn check_len(declared: u32, actual: usize) -> Result<(), BlobError> {
    if declared as usize == actual {
        return Ok(());
    }
    Err(BlobError::LengthMismatch {
        expected: declared.into(),
        actual: actual as u64,
    })
}

fn check_hash(expected: BlobHash, raw: &[u8]) -> Result<(), BlobError> {
    let actual = BlobHash::of(raw);
    if actual == expected {
        Ok(())
    } else {
        Err(BlobError::HashMismatch { expected, actual })
    }
}

/// Compresses bytes; `None` unless the result is at least a tenth smaller.
fn compress_if_smaller(raw: &[u8]) -> Option<Bytes> {
    if raw.len() < COMPRESS_FROM_BYTES {
        return None;
    }
    let pays = |smaller: usize| smaller <= raw.len() - raw.len() / 10;
    if raw.len() < MAPPED_FROM_BYTES {
        let smaller = zstd::bulk::compress(raw, ZSTD_LEVEL).ok()?;
        return pays(smaller.len()).then(|| smaller.into());
    }
    // If the system has no memory for the result, the blob is stored uncompressed.
    let mut smaller = LargeBuffer::zeroed(zstd::zstd_safe::compress_bound(raw.len())).ok()?;
    let len = zstd::bulk::compress_to_buffer(raw, &mut smaller[..], ZSTD_LEVEL).ok()?;
    if !pays(len) {
        return None;
    }
    smaller.truncate(len);
    // A mapped buffer costs at least a page and a system call, so a short result is copied.
    Some(if len < MAPPED_FROM_BYTES {
        Bytes::copy_from_slice(&smaller)
    } else {
        smaller.into_bytes()
    })
}

/// Decompresses exactly one frame to exactly the declared length.
///
/// It unpacks into one buffer of that length. The streaming decoder would need a window in
/// addition, which may be as long as the blob.
fn decompress(bytes: &[u8], raw_len: u32) -> Result<LargeBuffer, BlobError> {
    check_frame(bytes, raw_len)?;
    let mut raw =
        LargeBuffer::zeroed(raw_len as usize).map_err(|_| BlobError::NoMemory(raw_len.into()))?;
    let len = zstd::zstd_safe::decompress(&mut raw[..], bytes)
        .map_err(|code| decompress_error(code, raw_len))?;
    check_len(raw_len, len)?;
    Ok(raw)
}

/// Translates an error of zstd: the frame exceeds the declared length, or it is damaged.
fn decompress_error(code: zstd::zstd_safe::ErrorCode, raw_len: u32) -> BlobError {
    match zstd::zstd_safe::get_error_name(code) {
        "Destination buffer is too small" => BlobError::LengthMismatch {
            expected: raw_len.into(),
            actual: u64::from(raw_len) + 1,
        },
        what => BlobError::NotZstd(what.to_owned()),
    }
}

/// Checks that the bytes are exactly one frame, without a dictionary and with a bounded window, and
/// that its content length, if it declares one, is `raw_len`.
fn check_frame(bytes: &[u8], raw_len: u32) -> Result<(), BlobError> {
    let not = |what: &str| BlobError::NotZstd(what.to_owned());
    let header = zstd_header::parse(bytes).ok_or_else(|| not("no zstd frame"))?;
    if let Some(actual) = header.content_len
        && actual != u64::from(raw_len)
    {
        return Err(BlobError::LengthMismatch {
            expected: raw_len.into(),
            actual,
        });
    }
    if header.needs_dictionary {
        return Err(not("the frame needs a dictionary"));
    }
    if header.window > WINDOW_BYTES_MAX.max(raw_len.into()) {
        return Err(not("the frame's window is over the limit"));
    }
    // A second frame would make the length ambiguous between decoders.
    match zstd::zstd_safe::find_frame_compressed_size(bytes) {
        Ok(len) if len == bytes.len() => Ok(()),
        Ok(_) => Err(not("there are bytes after the frame")),
        Err(_) => Err(not("the frame is not whole")),
    }
}

/// Parses the header of a zstd frame (RFC 8878).
mod zstd_header {
    pub(super) struct FrameHeader {
        pub(super) needs_dictionary: bool,
        pub(super) window: u64,
        pub(super) content_len: Option<u64>,
    }

    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

    pub(super) fn parse(bytes: &[u8]) -> Option<FrameHeader> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (&descriptor, mut rest) = rest.split_first()?;
        let single_segment = descriptor & 0x20 != 0;
        let mut window = 0;
        if !single_segment {
            let (&byte, after) = rest.split_first()?;
            // Window descriptor: five bits of exponent, three bits of mantissa.
            let base = 1_u64 << (10 + (byte >> 3));
            window = base + (base / 8) * u64::from(byte & 7);
            rest = after;
        }
        // The two low bits of the descriptor encode the length of the dictionary id.
        let id_len = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let id = rest.get(..id_len)?;
        let size_len = match descriptor >> 6 {
            0 => usize::from(single_segment),
            flag => 1 << flag,
        };
        // RFC 8878: a two-byte size has an offset of 256, because one byte covers 0 to 255.
        let size = little_endian(rest.get(id_len..id_len + size_len)?)
            + if size_len == 2 { 256 } else { 0 };
        Some(FrameHeader {
            needs_dictionary: id.iter().any(|&b| b != 0),
            window: if single_segment { size } else { window },
            content_len: (size_len > 0).then_some(size),
        })
    }

    fn little_endian(bytes: &[u8]) -> u64 {
        bytes.iter().rev().fold(0, |n, &b| (n << 8) | u64::from(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 32 << 20;

    fn sent(raw: &[u8], compression: Compression, bytes: impl Into<Bytes>) -> SentBlob {
        SentBlob {
            hash: BlobHash::of(raw),
            raw_len: raw.len().try_into().unwrap(),
            compression,
            bytes: bytes.into(),
        }
    }

    #[test]
    fn small_blobs_stay_raw_and_large_ones_are_compressed_when_that_pays() {
        let form = |bytes: Vec<u8>| NewBlob::from_raw(bytes.into(), MAX).unwrap().form;
        assert_eq!(form(vec![7; 4095]), Compression::None);
        assert_eq!(form(vec![7; 4096]), Compression::Zstd);
        let noise: Vec<u8> = (0..200_u32)
            .flat_map(|i| BlobHash::of(&i.to_le_bytes()).0)
            .collect();
        assert_eq!(form(noise), Compression::None);
        assert_eq!(form(vec![]), Compression::None);
    }

    #[test]
    fn zstd_is_kept_as_sent() {
        let raw = vec![1; 100];
        let packed = zstd::bulk::compress(&raw, 19).unwrap();
        let blob = NewBlob::verify(sent(&raw, Compression::Zstd, packed.clone()), MAX).unwrap();
        assert_eq!(
            (blob.form, &blob.bytes[..]),
            (Compression::Zstd, &packed[..])
        );
    }

    #[test]
    fn contradictions_are_named() {
        let raw = b"payload".as_slice();
        let mut wrong_hash = sent(raw, Compression::None, raw.to_vec());
        wrong_hash.hash = BlobHash::of(b"other");
        assert!(matches!(
            NewBlob::verify(wrong_hash, MAX),
            Err(BlobError::HashMismatch { .. })
        ));
        let mut wrong_len = sent(raw, Compression::None, raw.to_vec());
        wrong_len.raw_len = 8;
        assert_eq!(
            NewBlob::verify(wrong_len, MAX).unwrap_err(),
            BlobError::LengthMismatch {
                expected: 8,
                actual: 7
            }
        );
        assert!(matches!(
            NewBlob::verify(sent(raw, Compression::None, raw.to_vec()), 6),
            Err(BlobError::TooLarge {
                limit: 6,
                actual: 7
            })
        ));
    }

    #[test]
    fn only_one_whole_bounded_frame_without_dictionary_is_zstd() {
        let raw = vec![9; 5000];
        let packed = zstd::bulk::compress(&raw, 1).unwrap();
        let refused = |bytes: Vec<u8>| {
            NewBlob::verify(sent(&raw, Compression::Zstd, bytes), MAX).unwrap_err()
        };
        assert!(matches!(refused(raw.clone()), BlobError::NotZstd(_)));
        assert!(matches!(
            refused(packed[..packed.len() - 1].to_vec()),
            BlobError::NotZstd(_)
        ));
        assert!(matches!(
            refused([&packed[..], &packed[..]].concat()),
            BlobError::NotZstd(_)
        ));
        assert!(matches!(
            refused([&packed[..], &[0]].concat()),
            BlobError::NotZstd(_)
        ));
        let mut with_dictionary = packed.clone();
        with_dictionary[4] |= 1;
        with_dictionary.insert(5, 42);
        assert!(matches!(refused(with_dictionary), BlobError::NotZstd(_)));
        assert!(matches!(refused(vec![]), BlobError::NotZstd(_)));
    }

    #[test]
    fn a_bomb_stops_at_the_declared_length() {
        let raw = vec![0; 30 << 20];
        let says_so = zstd::bulk::compress(&raw, 1).unwrap();
        let silent = zstd::stream::encode_all(&raw[..], 1).unwrap();
        for (packed, found) in [(says_so, 30 << 20), (silent, 11)] {
            let bomb = SentBlob {
                hash: BlobHash::of(&raw),
                raw_len: 10,
                compression: Compression::Zstd,
                bytes: packed.into(),
            };
            let refused = NewBlob::verify(bomb, MAX).unwrap_err();
            assert_eq!(
                refused,
                BlobError::LengthMismatch {
                    expected: 10,
                    actual: found
                }
            );
        }
    }
}
