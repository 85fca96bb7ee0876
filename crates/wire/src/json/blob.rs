//! Blobs: the response to a put, and the search by the beginning of a hash. Blob bytes are not
//! JSON.

use serde::Serialize;
use utoipa::ToSchema;

use super::Hash;

/// The response to a put: the blob is durable.
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
    /// Whether there may be more.
    pub truncated: bool,
}
