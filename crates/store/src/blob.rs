//! Blobs on their way in: verified against their name and in the form in which they will be kept.
//!
//! All hashing and compressing happens here, on the submitter's thread; the writer and `apply` only
//! move what a [`NewBlob`] holds.

use bytes::Bytes;
use turnkeep_types::{BlobHash, Compression};

/// Blobs shorter than this are kept as they are: compressing them costs more than it saves.
pub const COMPRESS_FROM_BYTES: usize = 4096;

/// A blob whose bytes are known to match its hash and length.
#[derive(Debug, Clone)]
pub struct NewBlob {
    pub(crate) hash: BlobHash,
    pub(crate) raw_len: u32,
    pub(crate) form: Compression,
    pub(crate) bytes: Bytes,
    pub(crate) crc: u32,
}

/// A blob as a client sent it.
#[derive(Debug, Clone)]
pub struct SentBlob {
    /// The name that the sender gave it.
    pub hash: BlobHash,
    /// The uncompressed length that the sender declared.
    pub raw_len: u32,
    /// The form of `bytes`.
    pub compression: Compression,
    /// The bytes as sent.
    pub bytes: Bytes,
}

/// Why a blob as sent is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// The bytes are not what their hash says.
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
        /// As found; for a stream that goes on beyond the declared length, the least that it can be.
        actual: u64,
    },
    /// The bytes are not one sound zstd frame within the bounds.
    #[error("the bytes do not decompress: {0}")]
    NotZstd(String),
    /// Over the limit.
    #[error("{actual} bytes are over the limit of {limit}")]
    TooLarge {
        /// The limit.
        limit: u64,
        /// The size.
        actual: u64,
    },
}

impl NewBlob {
    /// Takes bytes that are the blob itself: hashes them and compresses them where that pays.
    pub fn from_raw(_bytes: Bytes) -> Self {
        todo!()
    }

    /// Verifies a blob as sent, against its own hash and length and the limit.
    pub fn verify(_sent: SentBlob, _blob_bytes_max: usize) -> Result<Self, BlobError> {
        todo!()
    }

    /// The blob's name.
    pub fn hash(&self) -> BlobHash {
        self.hash
    }

    /// Its uncompressed length.
    pub fn raw_len(&self) -> u32 {
        self.raw_len
    }
}
