//! The store's state: the tables and indexes that `apply` extends and readers read.
//!
//! All of it is derived from the log. A row's number gives its id: turn n and context n are row
//! n − 1. The writer adds a turn's row before it points a head, a child or an index entry to it, so
//! a reader that follows one of them always finds a complete row. Only the writer calls the methods
//! that change the state.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use arc_swap::ArcSwap;
use turnkeep_journal::Locator;
use turnkeep_types::{BlobHash, BlobPrefix, Compression, ContextId, Timestamp, TurnId, TypeRef};

use crate::command::Labels;
use crate::event::{Event, EventKind};
use crate::feed_index::FeedIndex;
use crate::fs_roots::FsSpans;
use crate::hash_index::HashIndex;
use crate::keys::KeyDigest;
use crate::registry::{Bundle, Registry};
use crate::run_list::RunList;
use crate::table::{List, Table};

/// All tables and indexes of one store.
pub(crate) struct State {
    pub(crate) turns: Table<6>,
    /// Head, creation time, base turn, and the two words that `feed_index` describes.
    pub(crate) contexts: Table<5>,
    pub(crate) blobs: Table<7>,
    /// Two words of key digest, the request's digest, first id and count.
    pub(crate) keys: Table<4>,
    /// Turn and blob row.
    pub(crate) fs_roots: Table<2>,
    pub(crate) fs_spans: FsSpans,
    pub(crate) events: RunList,
    pub(crate) feed_index: FeedIndex,
    pub(crate) declared: List<Declared>,
    pub(crate) labels: RwLock<HashMap<ContextId, Arc<Labels>>>,
    pub(crate) registry: ArcSwap<Registry>,
    pub(crate) last_stamp: AtomicU64,
    pub(crate) blob_raw_bytes: AtomicU64,
    pub(crate) blob_stored_bytes: AtomicU64,
    /// How many ids have lost their content to damage.
    pub(crate) lost_turns: AtomicU64,
    pub(crate) lost_contexts: AtomicU64,
    /// The rows of blobs that are named by other rows and whose bytes were lost.
    lost_blobs: RwLock<HashMap<BlobHash, u64>>,
    blob_index: HashIndex,
    key_index: HashIndex,
    fs_index: HashIndex,
    #[cfg(any(test, feature = "dev"))]
    pub(crate) feed_steps: AtomicU64,
}

/// Stored as a context's base turn if the record that created the context was lost to damage.
pub(crate) const CREATION_LOST: u64 = u64::MAX;

/// A declared type and an encoding. Stored once, however many turns have it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Declared {
    pub(crate) turn_type: TypeRef,
    pub(crate) encoding: u32,
}

/// A row of `turns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnRow {
    pub(crate) parent: Option<TurnId>,
    /// 0 for a turn that was lost to damage.
    pub(crate) context: u64,
    pub(crate) depth: u32,
    pub(crate) declared: u32,
    pub(crate) blob: u64,
    pub(crate) has_fs_root: bool,
    pub(crate) lost: bool,
    pub(crate) created_at: Timestamp,
    /// The jump pointer: an ancestor, or the turn itself if it has no parent; see `walk`.
    pub(crate) jump: u64,
}

const BLOB_COLUMN: usize = 3;
// Flags in the unused top bits of the blob column: row numbers stay below 2^40.
const HAS_FS_ROOT: u64 = 1 << 63;
const LOST: u64 = 1 << 62;

impl TurnRow {
    pub(crate) fn to_words(self) -> [u64; 6] {
        let flags =
            if self.has_fs_root { HAS_FS_ROOT } else { 0 } | if self.lost { LOST } else { 0 };
        let parent = TurnId::to_wire(self.parent);
        let depth_and_type = (u64::from(self.depth) << 32) | u64::from(self.declared);
        [
            parent,
            self.context,
            depth_and_type,
            self.blob | flags,
            self.created_at.0,
            self.jump,
        ]
    }

    #[expect(clippy::cast_possible_truncation, reason = "two halves of a word")]
    pub(crate) fn from_words(
        [parent, context, depth_and_type, blob, created_at, jump]: [u64; 6],
    ) -> Self {
        Self {
            parent: TurnId::new(parent),
            context,
            depth: (depth_and_type >> 32) as u32,
            declared: depth_and_type as u32,
            blob: blob & !(HAS_FS_ROOT | LOST),
            has_fs_root: blob & HAS_FS_ROOT != 0,
            lost: blob & LOST != 0,
            created_at: Timestamp(created_at),
            jump,
        }
    }
}

/// A row of `blobs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlobRow {
    pub(crate) hash: BlobHash,
    pub(crate) locator: Locator,
    pub(crate) raw_len: u32,
    pub(crate) crc: u32,
    pub(crate) stored_len: u32,
    pub(crate) form: Compression,
}

impl BlobRow {
    pub(crate) fn to_words(self) -> [u64; 7] {
        let [a, b, c, d] = hash_to_words(&self.hash);
        let len_and_crc = (u64::from(self.raw_len) << 32) | u64::from(self.crc);
        let stored = (u64::from(self.stored_len) << 1) | u64::from(self.form.to_wire());
        [a, b, c, d, self.locator.to_u64(), len_and_crc, stored]
    }

    #[expect(clippy::cast_possible_truncation, reason = "two halves of a word")]
    pub(crate) fn from_words([a, b, c, d, locator, len_and_crc, stored]: [u64; 7]) -> Self {
        Self {
            hash: words_to_hash([a, b, c, d]),
            locator: Locator::from_u64(locator),
            raw_len: (len_and_crc >> 32) as u32,
            crc: len_and_crc as u32,
            stored_len: (stored >> 1) as u32,
            form: if stored & 1 == 0 {
                Compression::None
            } else {
                Compression::Zstd
            },
        }
    }
}

fn hash_to_words(hash: &BlobHash) -> [u64; 4] {
    std::array::from_fn(|i| {
        u64::from_le_bytes(hash.0[i * 8..][..8].try_into().expect("eight bytes"))
    })
}

fn words_to_hash(words: [u64; 4]) -> BlobHash {
    let mut hash = [0; 32];
    for (bytes, word) in hash.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    BlobHash(hash)
}

/// The request that used an idempotency key: its digest, the first id that it created and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyEntry {
    /// The digest of the request.
    pub(crate) request: u64,
    pub(crate) first: u64,
    pub(crate) count: u32,
}

/// The lower bits of a key's last word hold a count of turns, the upper 40 the first id.
const COUNT_BITS: u32 = 24;

/// A number of turns as a key's entry stores it.
pub(crate) fn turn_count(turns: usize) -> u32 {
    u32::try_from(turns)
        .ok()
        .filter(|&count| count < 1 << COUNT_BITS)
        .expect("a batch is bounded")
}

mod event_kind {
    pub(super) const TURN: u64 = 0;
    pub(super) const CONTEXT: u64 = 1;
    pub(super) const FS: u64 = 2;
    pub(super) const BUNDLE: u64 = 3;
}

/// An event as the table holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventRow {
    Turn(TurnId),
    Context(ContextId),
    Fs(TurnId),
    /// The bundle's number in the order of publication, from 0.
    Bundle(u64),
}

impl EventRow {
    fn to_word(self) -> u64 {
        let (kind, number) = match self {
            Self::Turn(id) => (event_kind::TURN, id.get()),
            Self::Context(id) => (event_kind::CONTEXT, id.get()),
            Self::Fs(id) => (event_kind::FS, id.get()),
            Self::Bundle(number) => (event_kind::BUNDLE, number),
        };
        // Consecutive turns give consecutive numbers, which `RunList` stores as one run.
        (kind << 60) | number
    }

    fn from_word(word: u64) -> Option<Self> {
        let number = word & ((1 << 60) - 1);
        Some(match word >> 60 {
            event_kind::TURN => Self::Turn(TurnId::new(number)?),
            event_kind::CONTEXT => Self::Context(ContextId::new(number)?),
            event_kind::FS => Self::Fs(TurnId::new(number)?),
            event_kind::BUNDLE => Self::Bundle(number),
            _ => return None,
        })
    }
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            turns: Table::new(),
            contexts: Table::new(),
            blobs: Table::new(),
            keys: Table::new(),
            fs_roots: Table::new(),
            fs_spans: FsSpans::new(),
            events: RunList::new(),
            feed_index: FeedIndex::new(),
            declared: List::new(),
            labels: RwLock::default(),
            registry: ArcSwap::from_pointee(Registry::default()),
            last_stamp: AtomicU64::new(0),
            blob_raw_bytes: AtomicU64::new(0),
            blob_stored_bytes: AtomicU64::new(0),
            lost_turns: AtomicU64::new(0),
            lost_contexts: AtomicU64::new(0),
            lost_blobs: RwLock::default(),
            blob_index: HashIndex::new(),
            key_index: HashIndex::new(),
            fs_index: HashIndex::new(),
            #[cfg(any(test, feature = "dev"))]
            feed_steps: AtomicU64::new(0),
        }
    }

    pub(crate) fn turn(&self, id: TurnId) -> Option<TurnRow> {
        self.turns.get(id.get() - 1).map(TurnRow::from_words)
    }

    /// Replaces the row of a lost turn. No other turn ever changes.
    pub(crate) fn set_turn(&self, id: TurnId, row: TurnRow) {
        for (column, word) in row.to_words().into_iter().enumerate() {
            self.turns.set_word(id.get() - 1, column, word);
        }
    }

    /// A blob's row. If the blob was lost and put again since, the row of the new copy.
    pub(crate) fn blob(&self, row: u64) -> Option<BlobRow> {
        let blob = BlobRow::from_words(self.blobs.get(row)?);
        if blob.locator != Locator::NOWHERE {
            return Some(blob);
        }
        // Rows of lost blobs are not in the index, so the index finds a newer copy or nothing.
        let put_again = self
            .find_blob(&blob.hash)
            .and_then(|row| self.blobs.get(row));
        Some(put_again.map_or(blob, BlobRow::from_words))
    }

    /// The row number of a blob whose bytes the store has.
    pub(crate) fn find_blob(&self, hash: &BlobHash) -> Option<u64> {
        let words = hash_to_words(hash);
        let is_it = |row| self.blobs.get(row).is_some_and(|found| found[..4] == words);
        self.blob_index.find(words[0], is_it)
    }

    /// Up to `max` blobs whose hashes begin with these digits, each once. Reads every row.
    pub(crate) fn blobs_with_prefix(&self, prefix: &BlobPrefix, max: usize) -> Vec<BlobHash> {
        let rows = (0..self.blobs.len()).filter_map(|row| self.blobs.get(row));
        let mut found: Vec<BlobHash> = Vec::new();
        for blob in rows.map(BlobRow::from_words) {
            // A blob that was lost and put again has two rows, one of them without bytes.
            if prefix.is_of(&blob.hash)
                && blob.locator != Locator::NOWHERE
                && !found.contains(&blob.hash)
            {
                found.push(blob.hash);
                if found.len() == max {
                    break;
                }
            }
        }
        found
    }

    /// Adds a blob that the store lacks and returns its row number.
    pub(crate) fn add_blob(&self, blob: BlobRow) -> u64 {
        if blob.locator == Locator::NOWHERE {
            return self.add_missing_blob(blob.hash);
        }
        let words = blob.to_words();
        let row = self.blobs.push(words);
        self.blob_index.insert(words[0], row, |row| {
            self.blobs.read_word(row, 0).unwrap_or(0)
        });
        // Counters for `stats`; no decision depends on them.
        self.blob_raw_bytes
            .fetch_add(blob.raw_len.into(), Ordering::Relaxed);
        self.blob_stored_bytes
            .fetch_add(blob.stored_len.into(), Ordering::Relaxed);
        row
    }

    /// Points a blob's row to a new copy, because the first copy was found damaged.
    pub(crate) fn move_blob(&self, row: u64, blob: BlobRow) {
        // Word by word. A reader in between may combine words of both copies. At worst its read
        // fails, as it did before the move.
        for (column, word) in blob.to_words().into_iter().enumerate() {
            self.blobs.set_word(row, column, word);
        }
    }

    /// Adds a row for a blob that was lost to damage. The row is not in the index, so a client can
    /// put the blob again.
    pub(crate) fn add_missing_blob(&self, hash: BlobHash) -> u64 {
        // One row per lost blob, however many turns name it.
        let mut lost = self
            .lost_blobs
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let row = BlobRow {
            hash,
            locator: Locator::NOWHERE,
            raw_len: 0,
            crc: 0,
            stored_len: 0,
            form: Compression::None,
        };
        *lost
            .entry(hash)
            .or_insert_with(|| self.blobs.push(row.to_words()))
    }

    /// Whether a blob was lost to damage and not put again since.
    pub(crate) fn is_lost_blob(&self, hash: &BlobHash) -> bool {
        self.read_lost_blobs().contains_key(hash) && self.find_blob(hash).is_none()
    }

    /// The blobs that were lost to damage and not put again since.
    pub(crate) fn lost_blobs(&self) -> Vec<BlobHash> {
        self.read_lost_blobs()
            .keys()
            .filter(|hash| self.find_blob(hash).is_none())
            .copied()
            .collect()
    }

    /// How many rows of `blobs` have a hash and no bytes.
    pub(crate) fn lost_blob_rows(&self) -> u64 {
        self.read_lost_blobs().len() as u64
    }

    fn read_lost_blobs(&self) -> RwLockReadGuard<'_, HashMap<BlobHash, u64>> {
        self.lost_blobs
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push_turn(&self, row: TurnRow) {
        self.lost_turns
            .fetch_add(u64::from(row.lost), Ordering::Relaxed);
        self.turns.push(row.to_words());
    }

    /// Adds a context's row, with the base turn as its head. The base `CREATION_LOST` means no
    /// head.
    pub(crate) fn push_context(&self, created_at: Timestamp, base: u64) -> u64 {
        let is_lost = base == CREATION_LOST;
        self.lost_contexts
            .fetch_add(u64::from(is_lost), Ordering::Relaxed);
        let head = if is_lost { 0 } else { base };
        self.contexts.push([head, created_at.0, base, 0, 0])
    }

    pub(crate) fn find_key(&self, KeyDigest([a, b]): KeyDigest) -> Option<KeyEntry> {
        let is_it = |row| self.keys.get(row).is_some_and(|found| found[..2] == [a, b]);
        let [_, _, request, made] = self.keys.get(self.key_index.find(a, is_it)?)?;
        Some(KeyEntry {
            request,
            first: made >> COUNT_BITS,
            count: (made & ((1 << COUNT_BITS) - 1)) as u32,
        })
    }

    pub(crate) fn add_key(&self, digest: KeyDigest, entry: KeyEntry) {
        let KeyDigest([a, b]) = digest;
        // One word holds both: ids stay below 2^40, and a batch has fewer than 2^24 turns.
        let made = (entry.first << COUNT_BITS) | u64::from(entry.count);
        self.add_key_row([a, b, entry.request, made]);
    }

    pub(crate) fn add_key_row(&self, words: [u64; 4]) {
        let row = self.keys.push(words);
        self.key_index.insert(words[0], row, |row| {
            self.keys.read_word(row, 0).unwrap_or(0)
        });
    }

    /// The filesystem root that is attached to this very turn.
    pub(crate) fn fs_root(&self, turn: TurnId) -> Option<BlobHash> {
        let is_it = |row| self.fs_roots.read_word(row, 0) == Some(turn.get());
        let row = self.fs_index.find(spread_bits(turn.get()), is_it)?;
        Some(self.blob(self.fs_roots.read_word(row, 1)?)?.hash)
    }

    pub(crate) fn add_fs_root(&self, turn: TurnId, blob: u64) {
        let row = self.fs_roots.push([turn.get(), blob]);
        self.fs_index.insert(spread_bits(turn.get()), row, |row| {
            spread_bits(self.fs_roots.read_word(row, 0).unwrap_or(0))
        });
        // The flag in the turn's row saves readers an index lookup for the many turns without a
        // root.
        if let Some(word) = self.turns.read_word(turn.get() - 1, BLOB_COLUMN) {
            self.turns
                .set_word(turn.get() - 1, BLOB_COLUMN, word | HAS_FS_ROOT);
        }
        self.fs_spans.invalidate_from(turn);
    }

    /// The head of a context; the outer `None` means that there is no such context.
    pub(crate) fn head(&self, context: ContextId) -> Option<Option<TurnId>> {
        self.contexts
            .read_word(context.get() - 1, 0)
            .map(TurnId::new)
    }

    pub(crate) fn is_creation_lost(&self, context: ContextId) -> bool {
        self.contexts.read_word(context.get() - 1, 2) == Some(CREATION_LOST)
    }

    pub(crate) fn set_head(&self, context: ContextId, head: TurnId) {
        self.contexts.set_word(context.get() - 1, 0, head.get());
    }

    pub(crate) fn read_labels(&self, context: ContextId) -> Arc<Labels> {
        let labels = self.labels.read().unwrap_or_else(PoisonError::into_inner);
        labels.get(&context).cloned().unwrap_or_default()
    }

    pub(crate) fn set_labels(&self, context: ContextId, labels: Arc<Labels>) {
        self.labels
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(context, labels);
    }

    /// Adds an event of a row that exists. Only the writer may call this.
    pub(crate) fn add_event(&self, event: EventRow) {
        let added = self.index_and_push(event);
        assert!(added.is_some(), "an event follows its row");
    }

    /// Adds an event of a checkpoint file; `None` if it names no row or is out of order.
    pub(crate) fn restore_event(&self, word: u64) -> Option<()> {
        self.index_and_push(EventRow::from_word(word)?)
    }

    fn index_and_push(&self, event: EventRow) -> Option<()> {
        // The index first: a reader looks in it only up to the published length.
        self.feed_index.add(self, self.events.len() + 1, event)?;
        self.events.push(event.to_word());
        Some(())
    }

    pub(crate) fn event(&self, position: u64) -> Option<Event> {
        self.count_feed_step();
        let word = self.events.get(position.checked_sub(1)?)?;
        let kind = match EventRow::from_word(word)? {
            EventRow::Turn(id) => EventKind::TurnAppended(id),
            EventRow::Context(id) => EventKind::ContextCreated(id),
            EventRow::Fs(id) => EventKind::FsAttached(id),
            EventRow::Bundle(number) => {
                EventKind::RegistryPut(find_bundle(&self.registry.load(), number)?.id.clone())
            }
        };
        Some(Event { position, kind })
    }

    /// Counts an event or a turn that a reader of the feed looks at. Tests compare the counts.
    #[cfg(any(test, feature = "dev"))]
    pub(crate) fn count_feed_step(&self) {
        self.feed_steps.fetch_add(1, Ordering::Relaxed);
    }

    #[cfg(not(any(test, feature = "dev")))]
    #[expect(clippy::unused_self, reason = "tests count here")]
    pub(crate) fn count_feed_step(&self) {}
}

/// Spreads dense numbers over all bits: the index takes its shard from the top ones. The factor is
/// 2^64 divided by the golden ratio.
fn spread_bits(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// The bundle with this number in the order of publication, from 0.
pub(crate) fn find_bundle(registry: &Registry, number: u64) -> Option<&Bundle> {
    registry.bundles().nth(usize::try_from(number).ok()?)
}
