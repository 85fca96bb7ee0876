//! Commands to the writer, their outcomes and the reasons to reject them.
//!
//! These are the caller's types: plain values, already verified and within limits. `record` has the
//! form that the log stores.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_types::{BlobHash, ContextId, Timestamp, TurnId, TypeRef};

use crate::blob::NewBlob;
use crate::registry::BundleError;

/// An idempotency key: any bytes, not empty. Its scope is a context for appends, and the store for
/// creating contexts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(Bytes);

impl Key {
    /// Makes a key. Empty bytes give `None`: the wire sends no bytes for "no key".
    pub fn new(bytes: Bytes) -> Option<Self> {
        (!bytes.is_empty()).then_some(Self(bytes))
    }

    /// The key's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A context's labels.
pub type Labels = BTreeMap<String, String>;

/// One request to the writer. Each command succeeds or fails independently of the others.
#[derive(Debug, Clone)]
pub enum Command {
    /// Creates a context. With a base turn this is a fork.
    CreateContext(CreateContext),
    /// Appends turns, all or none.
    Append(Append),
    /// Sets a turn's filesystem root, once.
    AttachFs {
        /// The turn.
        turn: TurnId,
        /// A blob that must exist.
        root: BlobHash,
    },
    /// Stores a blob.
    PutBlob(NewBlob),
    /// Publishes a registry bundle.
    PutBundle {
        /// The id under which it is published; must equal the document's.
        id: String,
        /// The JSON document as published.
        json: Bytes,
    },
    /// Replaces a context's labels.
    SetLabels {
        /// The context.
        context: ContextId,
        /// All of its labels from now on.
        labels: Labels,
    },
}

impl Command {
    /// The blobs that the command carries.
    pub fn blobs_mut(&mut self) -> Vec<&mut NewBlob> {
        match self {
            Self::Append(append) => {
                let turns = append.parts.iter_mut().flat_map(|part| &mut part.turns);
                turns.map(|turn| &mut turn.payload).collect()
            }
            Self::PutBlob(blob) => vec![blob],
            Self::CreateContext(_)
            | Self::AttachFs { .. }
            | Self::PutBundle { .. }
            | Self::SetLabels { .. } => Vec::new(),
        }
    }
}

/// Creates or forks a context.
#[derive(Debug, Clone, Default)]
pub struct CreateContext {
    /// The turn that the new context starts from.
    pub base: Option<TurnId>,
    /// Its labels.
    pub labels: Labels,
    /// Makes a repeated request return the first answer. Its scope is the store.
    pub key: Option<Key>,
}

/// Appends turns to one context or several, as one atomic command.
#[derive(Debug, Clone)]
pub struct Append {
    /// At least one part. Requests from the network have exactly one; the ledger uses several.
    pub parts: Vec<AppendPart>,
    /// Makes a repeated request return the first answer. Its scope is the first part's context.
    pub key: Option<Key>,
    /// Rejects types that the registry does not know.
    pub strict: bool,
}

/// Turns for one context, each the child of the one before.
#[derive(Debug, Clone)]
pub struct AppendPart {
    /// The context whose head moves to the last of the turns.
    pub context: ContextId,
    /// The first turn's parent; `None` means the context's current head.
    pub parent: Option<TurnId>,
    /// If set, the head that the context must have: `Some(None)` means that it must be empty.
    pub expected_head: Option<Option<TurnId>>,
    /// At least one turn.
    pub turns: Vec<NewTurn>,
}

/// One turn to append.
#[derive(Debug, Clone)]
pub struct NewTurn {
    /// The declared type.
    pub declared: TypeRef,
    /// The payload's encoding as the caller declared it; 1 is msgpack.
    pub encoding: u32,
    /// The payload.
    pub payload: NewBlob,
    /// A filesystem root; the blob must exist.
    pub fs_root: Option<BlobHash>,
}

/// The result of a command that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The context that was created, or was created by the first request with this key.
    Created(Created),
    /// The turns that were appended, or were appended by the first request with this key.
    Appended(Appended),
    /// The root is attached.
    FsAttached,
    /// The store has the blob.
    BlobPut {
        /// Whether this command added it.
        was_new: bool,
    },
    /// The bundle is published.
    BundlePut {
        /// Whether this command published it.
        was_new: bool,
    },
    /// The labels are set.
    LabelsSet,
    /// The log recorded lost ids. Only repair and recovery write such records; no command does.
    Lost,
}

/// The reply to a creation. A repeat returns the head at creation, not the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The new context.
    pub context: ContextId,
    /// Its head at creation: the base turn.
    pub head: Option<TurnId>,
    /// That turn's depth, or 0.
    pub head_depth: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// Whether an earlier request with the same key did it.
    pub replayed: bool,
}

/// The reply to an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// One row per turn, in the order of the request.
    pub turns: Vec<AppendedTurn>,
    /// Whether an earlier request with the same key did it.
    pub replayed: bool,
}

/// One appended turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendedTurn {
    /// The context that it was appended to.
    pub context: ContextId,
    /// Its id.
    pub turn: TurnId,
    /// Its parent.
    pub parent: Option<TurnId>,
    /// Its depth.
    pub depth: u32,
    /// Its payload's hash.
    pub hash: BlobHash,
    /// Its stamp.
    pub created_at: Timestamp,
}

/// Why a command was rejected. A rejected command changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such context.
    #[error("context {0} does not exist")]
    UnknownContext(ContextId),
    /// No such turn.
    #[error("turn {0} does not exist")]
    UnknownTurn(TurnId),
    /// The filesystem root is not in the store.
    #[error("blob {0} does not exist: put it first")]
    UnknownBlob(BlobHash),
    /// The context's head is not the expected one.
    #[error("the head of context {context} is {}, not the expected {}", TurnId::to_wire(*.actual), TurnId::to_wire(*.expected))]
    HeadMoved {
        /// The context.
        context: ContextId,
        /// The head that the request expected.
        expected: Option<TurnId>,
        /// The actual head.
        actual: Option<TurnId>,
    },
    /// Damage took the context's head, so nothing can be appended behind it.
    #[error(
        "the head of context {0} was lost to damage: name a parent, or fork from a turn that is left"
    )]
    HeadLost(ContextId),
    /// The key was used for a different request.
    #[error("this idempotency key was used before for a different request")]
    KeyReused,
    /// The turn has another filesystem root.
    #[error("turn {turn} already has the filesystem root {actual}")]
    FsRootSet {
        /// The turn.
        turn: TurnId,
        /// Its root.
        actual: BlobHash,
    },
    /// The append is strict and the type is not published.
    #[error("type {0} is not in the registry and this server is strict: publish its bundle first")]
    UnknownType(TypeRef),
    /// A turn's depth would not fit 32 bits.
    #[error("the turn would be more than 2^32 - 1 deep")]
    TooDeep,
    /// The bundle is malformed or contradicts published bundles.
    #[error(transparent)]
    Bundle(Arc<BundleError>),
    /// The disk is full. The caller may retry once there is space.
    #[error(
        "no space is left on the disk of the data directory: this write needs {needed_bytes} bytes"
    )]
    NoSpace {
        /// The least space that the command's group needs in the log.
        needed_bytes: u64,
    },
    /// The storage is read-only. Whatever were written would end with the process.
    #[error("the data directory cannot be written: it is on read-only storage")]
    ReadOnly,
    /// The log rejects writes until the server restarts. Reads still work.
    #[error("the log cannot be written since an earlier failure: {0}; restart the server")]
    Poisoned(Arc<str>),
    /// The store is shutting down.
    #[error("the store is shutting down")]
    Closed,
}
