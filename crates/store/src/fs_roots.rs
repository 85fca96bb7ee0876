//! The effective filesystem root of a turn: its own, or that of its nearest ancestor.
//!
//! A walk from parent to parent would take as many steps as the history is long. This search takes
//! O(log depth) steps. One bit per turn says whether a root lies in the turn's *span*: the turn and
//! its ancestors below its jump pointer. The search skips a span without a root in one jump. It
//! enters a span with a root at the parent, whose own span is about half as long.
//!
//! Example: turns 1 to 8 in a row, and only turn 2 has a root. The jump of turn 8 leads to turn 1
//! (see `walk`), so its span is 8 to 2 and has the bit. The parent 7 jumps to 4, and 7 to 5 have no
//! root: jump. Turn 4 jumps to 1 and has the bit: go to its parent 3, which jumps to 2: found.
//!
//! A read derives the bits that are missing, so appends pay nothing and the disk holds none. A
//! client may attach a root to a turn long after its descendants were appended. The next reader
//! then derives the bits from that turn on again. Invariant: a set bit is always right, because a
//! root is never removed; a bit that may have become wrong lies at or after `changed_from`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use turnkeep_types::{BlobHash, TurnId};

use crate::read::{LostTurn, ReadError, StoreReader};
use crate::state::{State, TurnRow};

/// A filesystem root and the turn that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsRoot {
    /// The turn that the root is attached to.
    pub turn: TurnId,
    /// The tree blob of the root directory.
    pub hash: BlobHash,
}

const WORD_BITS: u64 = 64;

/// One bit per turn: whether its span has a root.
pub(crate) struct FsSpans {
    derived: Mutex<DerivedBits>,
    /// The first row whose bit may be wrong; `u64::MAX` for none.
    changed_from: AtomicU64,
}

#[derive(Default)]
struct DerivedBits {
    words: Vec<u64>,
    /// Rows below this have their bit.
    rows: u64,
}

impl FsSpans {
    pub(crate) fn new() -> Self {
        Self {
            derived: Mutex::default(),
            changed_from: AtomicU64::new(u64::MAX),
        }
    }

    /// Marks the bits from a new root on as outdated. The turn's row must have its flag already.
    /// Only the writer may call this.
    pub(crate) fn invalidate_from(&self, turn: TurnId) {
        self.changed_from
            .fetch_min(turn.get() - 1, Ordering::AcqRel);
    }

    /// Brings the bits up to date with the state and returns them.
    fn derive_bits(&self, state: &State) -> MutexGuard<'_, DerivedBits> {
        let mut derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the first row is read: a root that is attached meanwhile then stays marked for
        // the next reader.
        let changed_from = self.changed_from.swap(u64::MAX, Ordering::AcqRel);
        let rows = state.turns.len();
        let first = derived.rows.min(changed_from);
        derived.reserve(rows);
        for row in first..rows {
            let has_root = derived.has_root_in_span(state, row);
            derived.set(row, has_root);
        }
        derived.rows = rows;
        derived
    }
}

impl DerivedBits {
    fn reserve(&mut self, rows: u64) {
        let words = usize::try_from(rows.div_ceil(WORD_BITS)).unwrap_or(usize::MAX);
        self.words.resize(words.max(self.words.len()), 0);
    }

    fn get(&self, row: u64) -> bool {
        let word = usize::try_from(row / WORD_BITS)
            .ok()
            .and_then(|at| self.words.get(at));
        word.is_some_and(|word| word >> (row % WORD_BITS) & 1 == 1)
    }

    fn set(&mut self, row: u64, has_root: bool) {
        let word = usize::try_from(row / WORD_BITS)
            .ok()
            .and_then(|at| self.words.get_mut(at));
        if let Some(word) = word {
            let bit = 1 << (row % WORD_BITS);
            *word = if has_root { *word | bit } else { *word & !bit };
        }
    }

    /// Derives one bit from the bits of older rows. A long span consists of the turn, its parent's
    /// span and the span after that; a short span is the turn alone.
    fn has_root_in_span(&self, state: &State, row: u64) -> bool {
        let Some(turn) = state.turns.get(row).map(TurnRow::from_words) else {
            return false;
        };
        // A jump to the parent means a short span.
        let parent = turn.parent.filter(|parent| parent.get() != turn.jump);
        let in_parts = parent.and_then(|parent| {
            let after_parent = state.turn(parent)?.jump;
            Some(self.get(parent.get() - 1) || self.get(after_parent.checked_sub(1)?))
        });
        turn.has_fs_root || in_parts.unwrap_or(false)
    }

    /// Iterates over the turns that a search for the nearest root visits, from `turn` on.
    fn search_path<'a>(
        &'a self,
        state: &'a State,
        turn: TurnId,
    ) -> impl Iterator<Item = (TurnId, TurnRow)> + 'a {
        let start = state.turn(turn).map(|row| (turn, row));
        std::iter::successors(start, |(at, row)| {
            // A root in the span: go step by step. Otherwise skip the whole span.
            let next = if self.get(at.get() - 1) {
                row.parent
            } else {
                TurnId::new(row.jump).filter(|jump| jump != at)
            };
            next.and_then(|next| Some((next, state.turn(next)?)))
        })
    }
}

impl StoreReader<'_> {
    /// Finds the root of a turn or of its nearest ancestor that has one.
    pub(crate) fn fs_root(&self, turn: TurnId) -> Result<Option<FsRoot>, ReadError> {
        self.state.turn(turn).ok_or(ReadError::UnknownTurn(turn))?;
        let derived = self.state.fs_spans.derive_bits(self.state);
        for (at, row) in derived.search_path(self.state, turn) {
            if row.lost {
                // The lost turn may have had a nearer root than any turn above it.
                return Err(LostTurn::new(at).into());
            }
            if row.has_fs_root {
                return Ok(self.state.fs_root(at).map(|hash| FsRoot { turn: at, hash }));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_types::Timestamp;

    use super::*;
    use crate::walk;

    /// A state with nothing but turns and roots.
    struct Forest(State);

    impl Forest {
        fn new() -> Self {
            Self(State::new())
        }

        fn append(&self, parent: Option<TurnId>) -> TurnId {
            let state = &self.0;
            let id = TurnId::new(state.turns.len() + 1).unwrap();
            let depth = parent
                .and_then(|parent| state.turn(parent))
                .map_or(0, |row| row.depth + 1);
            let row = TurnRow {
                parent,
                context: 1,
                depth,
                declared: 0,
                blob: 0,
                has_fs_root: false,
                lost: false,
                created_at: Timestamp(0),
                jump: walk::choose_jump(state, id, parent),
            };
            state.turns.push(row.to_words());
            id
        }

        fn attach(&self, turn: TurnId) {
            self.0.add_fs_root(turn, 0);
        }

        fn nearest(&self, turn: TurnId) -> Option<TurnId> {
            let derived = self.0.fs_spans.derive_bits(&self.0);
            derived
                .search_path(&self.0, turn)
                .find(|(_, row)| row.has_fs_root)
                .map(|(id, _)| id)
        }

        fn nearest_by_parents(&self, turn: TurnId) -> Option<TurnId> {
            walk::towards_root(&self.0, Some(turn))
                .find(|(_, row)| row.has_fs_root)
                .map(|(id, _)| id)
        }

        fn steps(&self, turn: TurnId) -> usize {
            let derived = self.0.fs_spans.derive_bits(&self.0);
            derived
                .search_path(&self.0, turn)
                .take_while(|(_, row)| !row.has_fs_root)
                .count()
        }
    }

    /// Numbers that are the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }
    }

    #[test]
    fn the_nearest_root_is_found_whenever_it_was_attached() {
        for seed in 0..40 {
            let (forest, mut numbers) = (Forest::new(), Numbers(seed));
            let mut turns = Vec::new();
            for _ in 0..400 {
                let newest = turns.last().copied();
                let parent = match numbers.below(10) {
                    0 => None,
                    1 => turns
                        .get(usize::try_from(numbers.below(turns.len() as u64 + 1)).unwrap())
                        .copied(),
                    _ => newest,
                };
                turns.push(forest.append(parent));
                let any = |numbers: &mut Numbers| {
                    TurnId::new(1 + numbers.below(turns.len() as u64)).unwrap()
                };
                let attached = any(&mut numbers);
                if numbers.below(20) == 0 && !forest.0.turn(attached).unwrap().has_fs_root {
                    forest.attach(attached);
                }
                let asked = any(&mut numbers);
                assert_eq!(
                    forest.nearest(asked),
                    forest.nearest_by_parents(asked),
                    "seed {seed}, turn {asked}"
                );
            }
        }
    }

    #[test]
    fn a_search_takes_few_steps_however_long_history_is() {
        const TURNS: u64 = 100_000;
        let forest = Forest::new();
        let mut head = None;
        for _ in 0..TURNS {
            head = Some(forest.append(head));
        }
        let head = head.unwrap();
        let steps_max = 4 * usize::try_from(TURNS.ilog2()).unwrap();
        assert!(
            forest.steps(head) <= steps_max,
            "{} steps without any root",
            forest.steps(head)
        );
        for turn in [1, 2, 3, 777, 65_536, 99_999].map(|turn| TurnId::new(turn).unwrap()) {
            forest.attach(turn);
            assert_eq!(forest.nearest(head), forest.nearest_by_parents(head));
            assert!(
                forest.steps(head) <= steps_max,
                "{} steps to turn {turn}",
                forest.steps(head)
            );
        }
    }

    #[test]
    fn the_bits_take_an_eighth_of_a_byte_per_turn() {
        let forest = Forest::new();
        let last = (0..1000)
            .fold(None, |head, _| Some(forest.append(head)))
            .unwrap();
        assert_eq!(forest.nearest(last), None);
        assert_eq!(
            forest.0.fs_spans.derive_bits(&forest.0).words.len(),
            1000_usize.div_ceil(64)
        );
    }
}
