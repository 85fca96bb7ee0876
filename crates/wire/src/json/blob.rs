//! Blobs: the ack of a put, and names by their beginning. Their bytes travel as they are.

use serde::Serialize;
use utoipa::ToSchema;

use super::Hash;

/// The ack of a put: the blob is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct BlobPut {
    /// The blob's name.
    pub content_hash_b3: Hash,
    /// Its length.
    pub uncompressed_len: u32,
    /// False if the store held it already.
    pub was_new: bool,
}

/// The blobs whose names begin with some digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct BlobNames {
    /// Their names.
    pub hashes: Vec<Hash>,
    /// Whether there may be more of them.
    pub truncated: bool,
}
