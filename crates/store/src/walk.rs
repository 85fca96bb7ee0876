//! Walking from a turn towards its root.
//!
//! Every turn has a jump pointer to an ancestor, chosen so that any depth is reached in O(log depth)
//! steps: the jumps of a path form a skew-binary counter. If a parent's jump and that jump's jump span
//! the same distance, the two are merged into one jump of the child, else the child jumps to its parent.

use turnkeep_types::TurnId;

use crate::state::{State, TurnRow};

/// The jump pointer of a new turn with this parent: a turn without one points to itself.
pub(crate) fn jump_of(state: &State, id: TurnId, parent: Option<TurnId>) -> u64 {
    let Some(parent) = parent else { return id.get() };
    let longer = || {
        let parent_row = state.turn(parent)?;
        let first = state.turn(TurnId::new(parent_row.jump)?)?;
        let second = state.turn(TurnId::new(first.jump)?)?;
        let equal = parent_row.depth.checked_sub(first.depth)? == first.depth.checked_sub(second.depth)?;
        equal.then_some(first.jump)
    };
    longer().unwrap_or(parent.get())
}

/// The ancestor of `turn` (or itself) at `depth`; none if the turn is not that deep.
pub(crate) fn at_depth(state: &State, turn: TurnId, depth: u32) -> Option<TurnId> {
    let mut at = turn;
    let mut row = state.turn(at)?;
    while row.depth > depth {
        let jump = TurnId::new(row.jump).filter(|&jump| jump != at);
        let far = jump.and_then(|jump| Some((jump, state.turn(jump)?))).filter(|(_, far)| far.depth >= depth);
        (at, row) = match far {
            Some(found) => found,
            None => (row.parent?, state.turn(row.parent?)?),
        };
    }
    (row.depth == depth).then_some(at)
}

/// The turns from `turn` on towards the root, nearest first.
pub(crate) fn towards_root(
    state: &State,
    turn: Option<TurnId>,
) -> impl Iterator<Item = (TurnId, TurnRow)> + '_ {
    let start = turn.and_then(|id| Some((id, state.turn(id)?)));
    std::iter::successors(start, |(_, row)| row.parent.and_then(|id| Some((id, state.turn(id)?))))
}
