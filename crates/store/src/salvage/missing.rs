//! The list of everything that was acknowledged and can no longer be read.
//!
//! It is computed from the state at the end of a walk. So it contains new losses and losses that an
//! earlier repair recorded in the log.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use turnkeep_journal::Locator;
use turnkeep_types::{BlobHash, TurnId};

use crate::state::{CREATION_LOST, State, TurnRow};

/// Losses by kind. The same turn may appear under several kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    /// Turns that are known by their id only.
    pub turns: Vec<RangeInclusive<u64>>,
    /// Contexts whose creation record is lost, and with it their labels and their base turn. Their
    /// later turns may all be readable.
    pub creations: Vec<RangeInclusive<u64>>,
    /// Payloads that are known by their hash only.
    pub payloads: Vec<MissingBlob>,
    /// Filesystem roots that are known by their hash only.
    pub roots: Vec<MissingBlob>,
    /// Other lost blobs.
    pub blobs: Vec<BlobHash>,
}

/// A lost blob and the turns that use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingBlob {
    /// Its name.
    pub hash: BlobHash,
    /// The turns.
    pub turns: Vec<TurnId>,
}

impl Missing {
    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn from_state(state: &State) -> Self {
        let lost_turn = |number| {
            state
                .turns
                .get(number)
                .is_some_and(|row| TurnRow::from_words(row).lost)
        };
        let lost_creation = |number| state.contexts.read_word(number, 2) == Some(CREATION_LOST);
        let payloads = lost_payloads(state);
        let roots = lost_roots(state);
        // A lost blob that a turn names is listed with its turns. Only the others stand alone.
        let is_used = |hash: &BlobHash| payloads.contains_key(hash) || roots.contains_key(hash);
        let mut blobs: Vec<BlobHash> = state
            .lost_blobs()
            .into_iter()
            .filter(|hash| !is_used(hash))
            .collect();
        blobs.sort_unstable();
        Self {
            turns: id_ranges(state.turns.len(), lost_turn),
            creations: id_ranges(state.contexts.len(), lost_creation),
            payloads: list_missing(payloads),
            roots: list_missing(roots),
            blobs,
        }
    }

    /// The turns that use a missing blob.
    pub(super) fn users_of(&self, hash: &BlobHash) -> Vec<TurnId> {
        let users = self
            .payloads
            .iter()
            .chain(&self.roots)
            .filter(|blob| blob.hash == *hash);
        let mut turns: Vec<TurnId> = users.flat_map(|blob| blob.turns.iter().copied()).collect();
        turns.sort_unstable();
        turns.dedup();
        turns
    }
}

/// The ids of the lost rows, as ranges. Row 0 has the id 1.
fn id_ranges(rows: u64, is_lost: impl Fn(u64) -> bool) -> Vec<RangeInclusive<u64>> {
    let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
    for id in (0..rows).filter(|&row| is_lost(row)).map(|row| row + 1) {
        match ranges.last_mut() {
            Some(range) if *range.end() + 1 == id => *range = *range.start()..=id,
            _ => ranges.push(id..=id),
        }
    }
    ranges
}

type Users = BTreeMap<BlobHash, Vec<TurnId>>;

fn lost_payloads(state: &State) -> Users {
    let mut users = Users::new();
    // The loop below reads every turn, and a healthy store has nothing to find.
    if state.lost_blobs().is_empty() {
        return users;
    }
    for turn in (1..=state.turns.len()).filter_map(TurnId::new) {
        let row = state.turn(turn).filter(|row| !row.lost);
        if let Some(hash) = row.and_then(|row| lost_hash(state, row.blob)) {
            users.entry(hash).or_default().push(turn);
        }
    }
    users
}

fn lost_roots(state: &State) -> Users {
    let mut users = Users::new();
    for row in 0..state.fs_roots.len() {
        let Some([turn, blob]) = state.fs_roots.get(row) else {
            continue;
        };
        if let (Some(turn), Some(hash)) = (TurnId::new(turn), lost_hash(state, blob)) {
            users.entry(hash).or_default().push(turn);
        }
    }
    users
}

/// The hash of the blob at this row, if its bytes are lost.
fn lost_hash(state: &State, row: u64) -> Option<BlobHash> {
    state
        .blob(row)
        .filter(|blob| blob.locator == Locator::NOWHERE)
        .map(|blob| blob.hash)
}

fn list_missing(users: Users) -> Vec<MissingBlob> {
    users
        .into_iter()
        .map(|(hash, turns)| MissingBlob { hash, turns })
        .collect()
}
