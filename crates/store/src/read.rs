//! What readers get: values copied out of the tables, and payloads that borrow the log's pages.

use std::sync::Arc;

use turnkeep_types::{BlobHash, Compression, ContextId, Timestamp, TurnId, TypeRef};

use crate::command::Labels;

/// A context as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Its id.
    pub id: ContextId,
    /// Its head.
    pub head: Option<TurnId>,
    /// The head's depth, 0 for an empty context.
    pub head_depth: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its labels.
    pub labels: Arc<Labels>,
}

/// A turn without its payload's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Its parent.
    pub parent: Option<TurnId>,
    /// 0 without a parent, else the parent's plus 1.
    pub depth: u32,
    /// The context that it was appended to.
    pub context: ContextId,
    /// The declared type.
    pub declared: TypeRef,
    /// The encoding that the writer named.
    pub encoding: u32,
    /// The payload's hash.
    pub hash: BlobHash,
    /// The payload's uncompressed length.
    pub raw_len: u32,
    /// The batch's stamp.
    pub created_at: Timestamp,
    /// The filesystem root, once set.
    pub fs_root: Option<BlobHash>,
    pub(crate) blob: u64,
}

/// A blob's bytes as the store keeps them, checked against their checksum.
#[derive(Debug, Clone)]
pub struct Payload {
    /// The form of the bytes.
    pub form: Compression,
    /// The uncompressed length.
    pub raw_len: u32,
    pub(crate) bytes: turnkeep_journal::View,
}

impl Payload {
    /// The bytes in the stored form.
    pub fn stored(&self) -> &[u8] {
        &self.bytes
    }

    /// The uncompressed bytes; borrows when they are kept raw.
    pub fn raw(&self) -> Result<std::borrow::Cow<'_, [u8]>, ReadError> {
        todo!()
    }
}

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No such context.
    #[error("context {0} does not exist")]
    UnknownContext(ContextId),
    /// No such turn.
    #[error("turn {0} does not exist")]
    UnknownTurn(TurnId),
    /// No such blob.
    #[error("blob {0} does not exist")]
    UnknownBlob(BlobHash),
    /// The turn was in a damaged part of the log and could not be repaired.
    #[error("turn {0} was lost to damage of the log")]
    LostTurn(TurnId),
    /// The bytes that the store holds are not the bytes that it was given.
    #[error("the stored bytes of blob {hash} are damaged: {what}")]
    Corrupt {
        /// The blob.
        hash: BlobHash,
        /// What is wrong.
        what: String,
    },
}
