//! The visible state of a store as one value that tests can compare and hash.
//!
//! Reading a snapshot reads every blob and checks it against its hash, so stores with equal
//! snapshots are equal to the last payload byte.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use turnkeep_store::{EventKind, Labels, ReadError, Store};
use turnkeep_types::{BlobHash, ContextId, Timestamp, TurnId, TypeRef};

use crate::check::Violation;

/// The visible state of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleContext {
    /// Its head.
    pub head: Option<TurnId>,
    /// The head's depth, 0 for an empty context.
    pub head_depth: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its labels.
    pub labels: Labels,
}

/// The visible state of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleTurn {
    /// Its parent.
    pub parent: Option<TurnId>,
    /// Its depth.
    pub depth: u32,
    /// The context that it was appended to.
    pub context: ContextId,
    /// Its declared type.
    pub declared: TypeRef,
    /// Its encoding.
    pub encoding: u32,
    /// Its payload's hash.
    pub hash: BlobHash,
    /// Its payload's length.
    pub raw_len: u32,
    /// Its stamp.
    pub created_at: Timestamp,
    /// Its filesystem root.
    pub fs_root: Option<BlobHash>,
}

/// The visible state of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Context n is at n − 1.
    pub contexts: Vec<VisibleContext>,
    /// Turn n is at n − 1.
    pub turns: Vec<VisibleTurn>,
    /// The blobs with their lengths.
    pub blobs: BTreeMap<BlobHash, u32>,
    /// Event n is at n − 1.
    pub events: Vec<EventKind>,
    /// The bundles as published.
    pub bundles: BTreeMap<String, Bytes>,
}

impl Snapshot {
    /// Reads a store. `hashes` are the blobs that it may have in addition to payloads.
    pub fn read(store: &Store, hashes: &BTreeSet<BlobHash>) -> Result<Self, Violation> {
        let mut snapshot = Self::read_without_bytes(store, hashes)?;
        for (&hash, &raw_len) in &snapshot.blobs {
            check_bytes(store, hash, raw_len)?;
        }
        let kept = store.stats().blobs;
        if kept != snapshot.blobs.len() as u64 {
            return Err(Violation::StrayBlobs {
                kept,
                known: snapshot.blobs.len() as u64,
            });
        }
        let registry = store.registry();
        let bundles = registry
            .bundles()
            .map(|bundle| (bundle.id.to_string(), bundle.bytes.clone()));
        snapshot.bundles = bundles.collect();
        Ok(snapshot)
    }

    /// Reads a store without the blobs' bytes.
    pub fn read_without_bytes(
        store: &Store,
        hashes: &BTreeSet<BlobHash>,
    ) -> Result<Self, Violation> {
        let stats = store.stats();
        let turns: Vec<VisibleTurn> = (1..=stats.turns)
            .filter_map(TurnId::new)
            .map(|id| read_turn(store, id))
            .collect::<Result<_, _>>()?;
        let contexts = (1..=stats.contexts)
            .filter_map(ContextId::new)
            .map(|id| read_context(store, id));
        let contexts = contexts.collect::<Result<_, _>>()?;
        let event = |n| Ok(store.event(n).ok_or(Violation::MissingEvent(n))?.kind);
        let events = (1..=store.last_position())
            .map(event)
            .collect::<Result<_, Violation>>()?;
        let named = turns
            .iter()
            .map(|turn| turn.hash)
            .chain(hashes.iter().copied());
        let blobs = named
            .filter_map(|hash| Some((hash, store.has_blob(hash)?)))
            .collect();
        Ok(Self {
            contexts,
            turns,
            blobs,
            events,
            bundles: BTreeMap::new(),
        })
    }

    /// A hash of the whole snapshot.
    pub fn digest(&self) -> BlobHash {
        BlobHash::of(format!("{self:?}").as_bytes())
    }

    /// A turn.
    pub fn turn(&self, id: TurnId) -> Option<&VisibleTurn> {
        self.turns.get(usize::try_from(id.get() - 1).ok()?)
    }

    /// A context.
    pub fn context(&self, id: ContextId) -> Option<&VisibleContext> {
        self.contexts.get(usize::try_from(id.get() - 1).ok()?)
    }
}

fn unreadable(error: ReadError) -> Violation {
    Violation::Unreadable(error)
}

fn read_turn(store: &Store, id: TurnId) -> Result<VisibleTurn, Violation> {
    let turn = store.turn(id).map_err(unreadable)?;
    Ok(VisibleTurn {
        parent: turn.parent,
        depth: turn.depth,
        context: turn.context,
        declared: turn.declared,
        encoding: turn.encoding,
        hash: turn.hash,
        raw_len: turn.raw_len,
        created_at: turn.created_at,
        fs_root: turn.fs_root,
    })
}

fn read_context(store: &Store, id: ContextId) -> Result<VisibleContext, Violation> {
    let context = store.context(id).map_err(unreadable)?;
    Ok(VisibleContext {
        head: context.head,
        head_depth: context.head_depth,
        created_at: context.created_at,
        labels: Labels::clone(&context.labels),
    })
}

/// Reads a blob and returns an error unless its bytes match its hash and length.
pub(crate) fn check_bytes(store: &Store, hash: BlobHash, raw_len: u32) -> Result<(), Violation> {
    let payload = store.blob(hash).map_err(unreadable)?;
    let raw = payload.raw().map_err(unreadable)?;
    let served = BlobHash::of(&raw);
    if served == hash && raw.len() == raw_len as usize {
        return Ok(());
    }
    Err(Violation::WrongBytes { hash, served })
}
