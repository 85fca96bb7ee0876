//! Walking from a turn towards its root.
//!
//! Every turn has a jump pointer to an ancestor, chosen so that any depth is reached in O(log
//! depth) steps: the jumps of a path form a skew-binary counter. If a parent's jump and that jump's
//! jump span the same distance, the two are merged into one jump of the child, else the child jumps
//! to its parent.
//!
//! A turn that was lost to damage has no parent that is known, so no walk gets past it.

use turnkeep_types::TurnId;

use crate::state::{State, TurnRow};

/// The jump pointer of a new turn with this parent: a turn without one points to itself.
pub(crate) fn jump_of(state: &State, id: TurnId, parent: Option<TurnId>) -> u64 {
    let Some(parent) = parent else {
        return id.get();
    };
    let longer = || {
        let parent_row = state.turn(parent)?;
        let first = state.turn(TurnId::new(parent_row.jump)?)?;
        let second = state.turn(TurnId::new(first.jump)?)?;
        let equal =
            parent_row.depth.checked_sub(first.depth)? == first.depth.checked_sub(second.depth)?;
        equal.then_some(first.jump)
    };
    longer().unwrap_or(parent.get())
}

/// The ancestor of `turn` (or itself) at `depth`, or the lost turn behind which it lies; none if
/// the turn is not that deep.
pub(crate) fn at_depth(state: &State, turn: TurnId, depth: u32) -> Option<TurnId> {
    let mut at = turn;
    let mut row = state.turn(at)?;
    while row.depth > depth && !row.lost {
        let jump = TurnId::new(row.jump).filter(|&jump| jump != at);
        let far = jump
            .and_then(|jump| Some((jump, state.turn(jump)?)))
            .filter(|(_, far)| far.depth >= depth);
        (at, row) = match far {
            Some(found) => found,
            None => (row.parent?, state.turn(row.parent?)?),
        };
    }
    (row.depth == depth || row.lost).then_some(at)
}

/// How many turns are looked at for what a context had before a lost turn.
const EARLIER_TURNS_MAX: u64 = 1 << 20;

/// The newest turn that the context of `child` had before the lost turn above `child`. It is not
/// known to be an ancestor, but in a context that was only ever appended to at its head it is.
pub(crate) fn before_lost(state: &State, child: TurnId, lost: TurnId) -> Option<TurnId> {
    let context = state.turn(child)?.context;
    let lost_depth = state.turn(lost)?.depth;
    let oldest = lost.get().saturating_sub(EARLIER_TURNS_MAX).max(1);
    let mut earlier = (oldest..lost.get()).rev().filter_map(TurnId::new);
    earlier.find(|&id| {
        state
            .turn(id)
            .is_some_and(|row| !row.lost && row.context == context && row.depth < lost_depth)
    })
}

/// The turns from `turn` on towards the root, nearest first.
pub(crate) fn towards_root(
    state: &State,
    turn: Option<TurnId>,
) -> impl Iterator<Item = (TurnId, TurnRow)> + '_ {
    let start = turn.and_then(|id| Some((id, state.turn(id)?)));
    std::iter::successors(start, |(_, row)| {
        row.parent.and_then(|id| Some((id, state.turn(id)?)))
    })
}
