//! The state plus the batch so far: what the state will be once the batch is durable.
//!
//! It lives for one group. Nothing in it is shown to a reader or answered to a client; it only lets
//! the writer see which commands will surely be refused, so that they cost no record.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use turnkeep_types::{BlobHash, ContextId, TurnId};

use crate::decide::{Plan, View};
use crate::keys::KeyDigest;
use crate::record::Record;
use crate::registry::Registry;
use crate::state::{KeyEntry, State, turn_count};

/// What the batch so far will add.
#[derive(Default)]
pub(crate) struct Overlay {
    depths: Vec<u32>,
    new_contexts: u64,
    heads: HashMap<ContextId, Option<TurnId>, BuildHasherDefault<Spread>>,
    keys: HashMap<KeyDigest, KeyEntry>,
    blobs: HashMap<BlobHash, u32, BuildHasherDefault<FirstBytes>>,
    fs_roots: HashMap<TurnId, BlobHash>,
    registry: Option<Arc<Registry>>,
    /// Contexts with a command that waits for the next group: later ones to them must wait too.
    held: HashSet<ContextId>,
}

/// A state seen through an overlay.
pub(crate) struct Pending<'a> {
    pub(crate) state: &'a State,
    pub(crate) overlay: &'a Overlay,
}

impl Overlay {
    pub(crate) fn clear(&mut self) {
        self.depths.clear();
        self.new_contexts = 0;
        self.heads.clear();
        self.keys.clear();
        self.blobs.clear();
        self.fs_roots.clear();
        self.registry = None;
        self.held.clear();
    }

    /// The blob's place in the batch, if the batch brings it.
    pub(crate) fn blob(&self, hash: &BlobHash) -> Option<u32> {
        self.blobs.get(hash).copied()
    }

    pub(crate) fn add_blob(&mut self, hash: BlobHash, at: u32) {
        self.blobs.insert(hash, at);
    }

    pub(crate) fn hold(&mut self, record: &Record) {
        self.held.extend(contexts_of(record));
    }

    pub(crate) fn holds(&self, record: &Record) -> bool {
        !self.held.is_empty() && contexts_of(record).any(|context| self.held.contains(&context))
    }

    /// Takes in a command that was added to the batch.
    pub(crate) fn absorb(&mut self, state: &State, record: &Record, plan: &Plan) {
        match (record, plan) {
            (Record::Create { base, .. }, Plan::Create { key, .. }) => {
                self.absorb_create(state, *base, *key);
            }
            (Record::Append { .. }, Plan::Append { key, .. }) => {
                self.absorb_append(state, record, *key);
            }
            (Record::AttachFs { turn, root }, _) => _ = self.fs_roots.insert(*turn, *root),
            (Record::PutBundle { .. }, Plan::PutBundle(registry)) => {
                self.registry = Some(registry.clone());
            }
            _ => {}
        }
    }

    fn absorb_create(
        &mut self,
        state: &State,
        base: Option<TurnId>,
        key: Option<(KeyDigest, u64)>,
    ) {
        self.new_contexts += 1;
        let number = state.contexts.len() + self.new_contexts;
        self.heads
            .extend(ContextId::new(number).map(|context| (context, base)));
        if let Some((digest, request)) = key {
            self.keys.insert(
                digest,
                KeyEntry {
                    request,
                    first: number,
                    count: 1,
                },
            );
        }
    }

    fn absorb_append(&mut self, state: &State, record: &Record, key: Option<(KeyDigest, u64)>) {
        let Record::Append { parts, .. } = record else {
            return;
        };
        let before = state.turns.len() + self.depths.len() as u64;
        for part in parts {
            for (turn, depth) in part.turns.iter().zip(part.depth..) {
                self.depths.push(depth);
                let id = TurnId::new(state.turns.len() + self.depths.len() as u64);
                self.fs_roots.extend(id.zip(turn.fs_root));
                self.heads.insert(part.context, id);
            }
        }
        if let Some((digest, request)) = key {
            let count = turn_count(parts.iter().map(|part| part.turns.len()).sum());
            self.keys.insert(
                digest,
                KeyEntry {
                    request,
                    first: before + 1,
                    count,
                },
            );
        }
    }
}

fn contexts_of(record: &Record) -> impl Iterator<Item = ContextId> + '_ {
    let parts = if let Record::Append { parts, .. } = record {
        &parts[..]
    } else {
        &[]
    };
    parts.iter().map(|part| part.context)
}

impl View for Pending<'_> {
    fn turns(&self) -> u64 {
        self.state.turns.len() + self.overlay.depths.len() as u64
    }

    fn depth(&self, turn: TurnId) -> Option<u32> {
        let pending = (turn.get() - 1).checked_sub(self.state.turns.len());
        match pending {
            None => self.state.depth(turn),
            Some(at) => self.overlay.depths.get(usize::try_from(at).ok()?).copied(),
        }
    }

    fn head(&self, context: ContextId) -> Option<Option<TurnId>> {
        self.overlay
            .heads
            .get(&context)
            .copied()
            .or_else(|| self.state.head(context))
    }

    fn is_creation_lost(&self, context: ContextId) -> bool {
        self.state.is_creation_lost(context)
    }

    fn has_blob(&self, hash: &BlobHash) -> bool {
        self.overlay.blobs.contains_key(hash) || self.state.has_blob(hash)
    }

    fn key(&self, key: KeyDigest) -> Option<KeyEntry> {
        self.overlay
            .keys
            .get(&key)
            .copied()
            .or_else(|| self.state.find_key(key))
    }

    fn fs_root(&self, turn: TurnId) -> Option<BlobHash> {
        self.overlay
            .fs_roots
            .get(&turn)
            .copied()
            .or_else(|| self.state.fs_root(turn))
    }

    fn registry(&self) -> Arc<Registry> {
        self.overlay
            .registry
            .clone()
            .unwrap_or_else(|| self.state.registry.load_full())
    }
}

/// A hasher for keys that are hashes already: takes their first eight bytes.
#[derive(Default)]
pub(crate) struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    fn write_usize(&mut self, _length_prefix: usize) {}
}

/// A hasher for ids, which count up from one: spreads them over all bits.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = (self.0 ^ id)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(32);
    }
}
