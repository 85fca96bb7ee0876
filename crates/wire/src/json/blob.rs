//! Blobs: the ack of a put. Their bytes travel as they are.

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
