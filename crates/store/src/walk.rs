//! Walks from a turn towards its root.
//!
//! Every turn has a jump pointer to an ancestor, so a walk reaches any depth in O(log depth) steps.
//! The jumps of a path form a skew-binary counter: if the parent's jump and the next jump after it
//! span the same distance, the child's jump covers both; otherwise the child jumps to its parent.
//!
//! Worked example, a path of 8 turns: turn 1 points to itself, then the jumps are 2→1, 3→2, 4→1,
//! 5→4, 6→5, 7→4, 8→1. Turn 4 jumps to 1 because 3→2 and 2→1 both span one turn. To get from turn 8
//! to turn 5: 8→1 is too far, so go to the parent 7; 7→4 is too far, so 6; 6→5 arrives.
//!
//! The parent of a turn that was lost to damage is unknown, so no walk gets past a lost turn.

use turnkeep_types::TurnId;

use crate::state::{State, TurnRow};

/// Chooses the jump pointer of a new turn. A turn without a parent points to itself.
pub(crate) fn choose_jump(state: &State, id: TurnId, parent: Option<TurnId>) -> u64 {
    let Some(parent) = parent else {
        return id.get();
    };
    merge_jumps(state, parent).unwrap_or(parent.get())
}

/// The end of the parent's second jump, if its first and second jump span the same distance.
fn merge_jumps(state: &State, parent: TurnId) -> Option<u64> {
    let parent_row = state.turn(parent)?;
    let first = state.turn(TurnId::new(parent_row.jump)?)?;
    let second = state.turn(TurnId::new(first.jump)?)?;
    let first_span = parent_row.depth.checked_sub(first.depth)?;
    let second_span = first.depth.checked_sub(second.depth)?;
    (first_span == second_span).then_some(first.jump)
}

/// Finds the ancestor of `turn` (or `turn` itself) at `depth`. Returns the lost turn if one lies on
/// the way, and `None` if the turn is not that deep.
pub(crate) fn find_at_depth(state: &State, turn: TurnId, depth: u32) -> Option<TurnId> {
    let mut at = turn;
    let mut row = state.turn(at)?;
    while row.depth > depth && !row.lost {
        let jump = TurnId::new(row.jump).filter(|&jump| jump != at);
        let jump_row = jump.and_then(|jump| state.turn(jump));
        (at, row) = match (jump, jump_row) {
            (Some(jump), Some(jump_row)) if jump_row.depth >= depth => (jump, jump_row),
            // The jump would overshoot.
            _ => (row.parent?, state.turn(row.parent?)?),
        };
    }
    (row.depth == depth || row.lost).then_some(at)
}

/// Finds the oldest ancestor of `turn` that has a property, or `turn` itself if its parent lacks the
/// property. No turn above one that lacks it may have it.
pub(crate) fn find_oldest(
    state: &State,
    turn: TurnId,
    has_property: impl Fn(TurnId, &TurnRow) -> bool,
) -> Option<(TurnId, TurnRow)> {
    let (mut at, mut row) = (turn, state.turn(turn)?);
    loop {
        // The jump first, because it leads further.
        let ways = [TurnId::new(row.jump), row.parent];
        let next = ways.into_iter().flatten().find_map(|id| {
            let row = state.turn(id).filter(|_| id != at)?;
            has_property(id, &row).then_some((id, row))
        });
        let Some(next) = next else {
            return Some((at, row));
        };
        (at, row) = next;
    }
}

/// How many turns `find_newest_before_lost` examines. Bounds the cost of an error message.
const EARLIER_TURNS_MAX: u64 = 1 << 20;

/// Finds the newest turn that the context of `child` had before its lost parent. It need not be an
/// ancestor, but it is one if every append to the context was to its head.
pub(crate) fn find_newest_before_lost(
    state: &State,
    child: TurnId,
    lost: TurnId,
) -> Option<TurnId> {
    let context = state.turn(child)?.context;
    let lost_depth = state.turn(lost)?.depth;
    // Ids ascend from parent to child, so every candidate has a lower id.
    let oldest = lost.get().saturating_sub(EARLIER_TURNS_MAX).max(1);
    for id in (oldest..lost.get()).rev().filter_map(TurnId::new) {
        let row = state.turn(id)?;
        if !row.lost && row.context == context && row.depth < lost_depth {
            return Some(id);
        }
    }
    None
}

/// Iterates from `turn` to the root, nearest first.
pub(crate) fn towards_root(
    state: &State,
    turn: Option<TurnId>,
) -> impl Iterator<Item = (TurnId, TurnRow)> + '_ {
    let start = turn.and_then(|id| Some((id, state.turn(id)?)));
    std::iter::successors(start, |(_, row)| {
        row.parent.and_then(|id| Some((id, state.turn(id)?)))
    })
}
