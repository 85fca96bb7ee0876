//! What can be asked of the writer, what comes of it, and why it may be refused.
//!
//! These are the submitter's types: plain values, already verified and within limits. What the log
//! holds of them is in `record`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_types::{BlobHash, ContextId, Timestamp, TurnId, TypeRef};

use crate::blob::NewBlob;
use crate::registry::BundleError;

/// An idempotency key: any bytes, not empty. Appends keep it per context, creation per store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(Bytes);

impl Key {
    /// A key of these bytes; `None` for no bytes, which is the wire's word for "no key".
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

/// One request to the writer. Each succeeds or fails by itself.
#[derive(Debug, Clone)]
pub enum Command {
    /// Creates a context whose head is a base turn, or none. Forking is the same.
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
    /// Keeps a blob.
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
    /// The blobs that the command brings along.
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
    /// Makes the creation repeatable; its scope is the store.
    pub key: Option<Key>,
}

/// Appends turns to one context or several, as one atomic command.
#[derive(Debug, Clone)]
pub struct Append {
    /// At least one part. Several parts are for the rooms inside this process; the wire has one.
    pub parts: Vec<AppendPart>,
    /// Makes the append repeatable; its scope is the first part's context.
    pub key: Option<Key>,
    /// Refuse types that the registry does not know.
    pub strict: bool,
}

/// Turns for one context, each the child of the one before.
#[derive(Debug, Clone)]
pub struct AppendPart {
    /// The context whose head moves to the last of the turns.
    pub context: ContextId,
    /// The first turn's parent; none means the context's current head.
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
    /// The payload's encoding as the writer named it; 1 is msgpack.
    pub encoding: u32,
    /// The payload.
    pub payload: NewBlob,
    /// A filesystem root; the blob must exist.
    pub fs_root: Option<BlobHash>,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The context that was created, or was created by the first request with this key.
    Created(Created),
    /// The turns that were appended, or were appended by the first request with this key.
    Appended(Appended),
    /// The root is attached.
    FsAttached,
    /// The blob is kept; whether it was new.
    BlobPut {
        /// False if the store held it already.
        was_new: bool,
    },
    /// The bundle is published; whether it was new.
    BundlePut {
        /// False if the identical bundle had been published already.
        was_new: bool,
    },
    /// The labels are set.
    LabelsSet,
    /// Repair noted what was lost; nobody can ask for this.
    Lost,
}

/// The ack of a creation. A replay gives the head at creation, not the current one.
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

/// The ack of an append.
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

/// Why a command was not carried out. Nothing of it is left behind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such context.
    #[error("context {0} does not exist")]
    UnknownContext(ContextId),
    /// No such turn.
    #[error("turn {0} does not exist")]
    UnknownTurn(TurnId),
    /// A filesystem root that is not in the store.
    #[error("blob {0} does not exist: put it first")]
    UnknownBlob(BlobHash),
    /// The context's head is not the expected one.
    #[error("the head of context {context} is {}, not the expected {}", TurnId::to_wire(*.actual), TurnId::to_wire(*.expected))]
    HeadMoved {
        /// The context.
        context: ContextId,
        /// What the request expected.
        expected: Option<TurnId>,
        /// What it is.
        actual: Option<TurnId>,
    },
    /// Damage took the context's head, so nothing can be appended behind it.
    #[error(
        "the head of context {0} was lost to damage: name a parent, or fork from a turn that is left"
    )]
    HeadLost(ContextId),
    /// The key was used for something else.
    #[error("this idempotency key was used before for a different request")]
    KeyReused,
    /// Another filesystem root is attached already.
    #[error("turn {turn} already has the filesystem root {actual}")]
    FsRootSet {
        /// The turn.
        turn: TurnId,
        /// Its root.
        actual: BlobHash,
    },
    /// Strict mode, and nobody published the type.
    #[error("type {0} is not in the registry and this server is strict: publish its bundle first")]
    UnknownType(TypeRef),
    /// A turn would be deeper than can be counted.
    #[error("the turn would be more than 2^32 - 1 deep")]
    TooDeep,
    /// The bundle is malformed or an illegal evolution.
    #[error(transparent)]
    Bundle(Arc<BundleError>),
    /// No room on the disk; it may be tried again when there is.
    #[error(
        "no space is left on the disk of the data directory: this write needs {needed_bytes} bytes"
    )]
    NoSpace {
        /// What it takes to log the group that the command was in, at least.
        needed_bytes: u64,
    },
    /// The log cannot be written until the server restarts; reads go on.
    #[error("the log cannot be written since an earlier failure: {0}; restart the server")]
    Poisoned(Arc<str>),
    /// The store is shutting down.
    #[error("the store is shutting down")]
    Closed,
}
