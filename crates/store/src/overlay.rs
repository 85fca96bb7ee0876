//! The overlay: the changes that the current batch will make to the state once it is durable.
//!
//! It lives for one group of commands. The writer decides each command against the state plus the
//! overlay, so it can leave rejected commands out of the log. Readers never see the overlay, and no
//! reply to a client may depend on it, because the batch may still fail.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use turnkeep_types::{BlobHash, ContextId, TurnId};

use crate::decide::{KeyUse, Plan, StateView};
use crate::keys::KeyDigest;
use crate::record::Record;
use crate::registry::Registry;
use crate::state::{KeyEntry, State, turn_count};

/// The changes of the batch so far.
#[derive(Default)]
pub(crate) struct Overlay {
    /// The depths of the new turns. Their ids follow those of the state.
    depths: Vec<u32>,
    new_contexts: u64,
    heads: HashMap<ContextId, Option<TurnId>, BuildHasherDefault<SpreadIds>>,
    keys: HashMap<KeyDigest, KeyEntry>,
    /// The places of the batch's blobs.
    blobs: HashMap<BlobHash, u32, BuildHasherDefault<FirstBytes>>,
    fs_roots: HashMap<TurnId, BlobHash>,
    registry: Option<Arc<Registry>>,
    /// Contexts with a command that waits for the next group. Later commands to them wait too.
    held_back: HashSet<ContextId>,
}

/// The state as it will be once the batch is durable.
pub(crate) struct PendingState<'a> {
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
        self.held_back.clear();
    }

    /// The place of a blob in the batch, if the batch has it.
    pub(crate) fn blob_place(&self, hash: &BlobHash) -> Option<u32> {
        self.blobs.get(hash).copied()
    }

    pub(crate) fn add_blob(&mut self, hash: BlobHash, at: u32) {
        self.blobs.insert(hash, at);
    }

    pub(crate) fn hold_back(&mut self, record: &Record) {
        self.held_back.extend(appended_contexts(record));
    }

    pub(crate) fn is_held_back(&self, record: &Record) -> bool {
        // The set is almost always empty; then there is nothing to hash.
        !self.held_back.is_empty()
            && appended_contexts(record).any(|context| self.held_back.contains(&context))
    }

    /// Adds the changes of a command that is now in the batch.
    pub(crate) fn add_planned(&mut self, state: &State, record: &Record, plan: &Plan) {
        match (record, plan) {
            (Record::Create { base, .. }, Plan::Create { key, .. }) => {
                self.add_create(state, *base, *key);
            }
            (Record::Append { .. }, Plan::Append { key, .. }) => {
                self.add_append(state, record, *key);
            }
            (Record::AttachFs { turn, root }, _) => _ = self.fs_roots.insert(*turn, *root),
            (Record::PutBundle { .. }, Plan::PutBundle(registry)) => {
                self.registry = Some(registry.clone());
            }
            // Labels change no decision. `add_blob` has noted the blobs.
            _ => {}
        }
    }

    fn add_create(&mut self, state: &State, base: Option<TurnId>, key: Option<KeyUse>) {
        self.new_contexts += 1;
        let number = state.contexts.len() + self.new_contexts;
        self.heads
            .extend(ContextId::new(number).map(|context| (context, base)));
        self.add_key(key, number, 1);
    }

    fn add_append(&mut self, state: &State, record: &Record, key: Option<KeyUse>) {
        let Record::Append { parts, .. } = record else {
            return;
        };
        // The ids that `apply` will assign: turns are numbered in batch order.
        let before = state.turns.len() + self.depths.len() as u64;
        for part in parts {
            for (turn, depth) in part.turns.iter().zip(part.depth..) {
                self.depths.push(depth);
                let id = TurnId::new(state.turns.len() + self.depths.len() as u64);
                self.fs_roots.extend(id.zip(turn.fs_root));
                self.heads.insert(part.context, id);
            }
        }
        let count = parts.iter().map(|part| part.turns.len()).sum();
        self.add_key(key, before + 1, turn_count(count));
    }

    fn add_key(&mut self, key: Option<KeyUse>, first: u64, count: u32) {
        if let Some(KeyUse { key, request }) = key {
            let entry = KeyEntry {
                request,
                first,
                count,
            };
            self.keys.insert(key, entry);
        }
    }
}

/// The contexts that an append writes to. Other commands do not depend on the order of a context.
fn appended_contexts(record: &Record) -> impl Iterator<Item = ContextId> + '_ {
    let parts = if let Record::Append { parts, .. } = record {
        &parts[..]
    } else {
        &[]
    };
    parts.iter().map(|part| part.context)
}

impl StateView for PendingState<'_> {
    fn turns(&self) -> u64 {
        self.state.turns.len() + self.overlay.depths.len() as u64
    }

    fn depth(&self, turn: TurnId) -> Option<u32> {
        // Ids beyond the state's last turn belong to the batch.
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
        // Only repair and recovery record losses, and they do not run beside a writer.
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

/// A hasher for keys that are hashes themselves. It returns their first eight bytes.
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

    // `Hash` of an array writes its length first, which is the same for every key.
    fn write_usize(&mut self, _length_prefix: usize) {}
}

/// A hasher for ids. They count up from one, so it spreads them over all bits.
#[derive(Default)]
pub(crate) struct SpreadIds(u64);

impl Hasher for SpreadIds {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, id: u64) {
        // 2^64 divided by the golden ratio. Neighbouring ids differ mostly in the product's upper
        // bits; the rotation brings these down, where the map takes its bucket from.
        self.0 = (self.0 ^ id)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(32);
    }
}
