//! Finds the events of one context without reading those of the others.
//!
//! A context's events are its creation, its turns, and the roots that were attached to these turns
//! later. The turns need no list of their own, because almost every turn is the child of the turn
//! that was appended to the same context before it. So the turns of a context form *segments*: paths
//! from child to parent. Only an append to another parent than the newest turn begins a new segment,
//! and only such a *branch* is stored.
//!
//! Worked example: context 1 gets the turns 1, 2, 5, 6, then turn 8 with parent 2, then turn 9. The
//! other turns belong to other contexts. The newest turn is 9, and the one branch is "8 after 6".
//! The segments are 1, 2, 5, 6 and 8, 9. A reader that resumes after turn 2 needs the segment that
//! ends at 6, because 6 is the first end above 2. From 6 it jumps towards the root (see `walk`) to
//! the oldest turn above 2 and finds turn 5. After turn 6 it needs the segment that begins at 8; the
//! bound keeps the walk from turn 9 from going on to turn 2, the parent of 8.
//!
//! A list of positions for each context would be simpler to read and would take 1 to 8 bytes per
//! turn. This index takes nothing for an ordinary turn, 16 bytes for a branch, 8 for an attached
//! root, 16 for a context, and 16 where other events stand between two turns of the store. The price
//! is a search of O(log turns) steps per page of a context.
//!
//! The writer indexes an event before it publishes the event's position. Several parts are read
//! one after the other, so a reader may trust them only for positions that were published before it
//! began. No lock is held during I/O. Nothing here is on disk: the events of a checkpoint go through
//! [`FeedIndex::add`] like new ones.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use turnkeep_types::{ContextId, TurnId};

use crate::run_list::RunList;
use crate::state::{EventRow, State, TurnRow};
use crate::walk;

/// Turns that one search finds at most.
const PAGE_TURNS: u32 = 64;

// Columns of `contexts` that only this module uses.
/// The turn that was appended to the context last; 0 for none. The head may be an inherited turn.
const NEWEST_TURN: usize = 3;
/// The position of the event of the context's creation; 0 if it has none.
const CREATED_AT_POSITION: usize = 4;

/// The index.
pub(crate) struct FeedIndex {
    /// The position of each turn's event. A lost turn may have no event; its entry repeats the one
    /// before it, so that positions never descend.
    turn_positions: RunList,
    /// The positions of the events of lost turns, which concern every reader.
    lost_turns: RunList,
    irregular: RwLock<HashMap<ContextId, Irregular>>,
}

/// What the tables do not tell about a context. Most contexts have none of it.
#[derive(Default)]
struct Irregular {
    /// In the order of their turns.
    branches: Vec<Branch>,
    /// The positions of the events of attached roots.
    attached: Vec<u64>,
}

/// Two turns that follow each other in a context without being parent and child.
struct Branch {
    before: TurnId,
    turn: TurnId,
}

/// A part of a context's turns in which each turn is the parent of the next one.
struct Segment {
    /// No turn of the segment has a lower id.
    least: u64,
    newest: TurnId,
}

/// Some turns of a context that follow each other.
pub(crate) struct TurnPage {
    /// The positions of their events, newest first.
    pub(crate) positions: Vec<u64>,
    pub(crate) newest: TurnId,
}

impl FeedIndex {
    pub(crate) fn new() -> Self {
        Self {
            turn_positions: RunList::new(),
            lost_turns: RunList::new(),
            irregular: RwLock::default(),
        }
    }

    /// Adds the event at the next position. Returns `None` if it names a row that does not exist or
    /// a turn that is out of order, and then adds nothing. Only the writer may call this.
    pub(crate) fn add(&self, state: &State, position: u64, event: EventRow) -> Option<()> {
        match event {
            EventRow::Turn(id) => self.add_turn(state, position, id),
            EventRow::Context(id) => set_context_word(state, id, CREATED_AT_POSITION, position),
            EventRow::Fs(id) => {
                // A root of a lost turn belongs to no known context.
                if let Some(context) = ContextId::new(state.turn(id)?.context) {
                    self.change_irregular(context, |context| context.attached.push(position));
                }
                Some(())
            }
            EventRow::Bundle(_) => Some(()),
        }
    }

    fn add_turn(&self, state: &State, position: u64, id: TurnId) -> Option<()> {
        let row = state.turn(id)?;
        let mut known = self.turn_positions.len();
        if known >= id.get() {
            return None;
        }
        let context = ContextId::new(row.context).filter(|_| !row.lost);
        let newest = match context {
            Some(context) => read_context_word(state, context, NEWEST_TURN)?,
            None => 0,
        };
        let before = known
            .checked_sub(1)
            .and_then(|last| self.turn_positions.get(last));
        while known < id.get() - 1 {
            self.turn_positions.push(before.unwrap_or(0));
            known += 1;
        }
        self.turn_positions.push(position);
        let Some(context) = context else {
            self.lost_turns.push(position);
            return Some(());
        };
        if let Some(before) = TurnId::new(newest).filter(|&newest| row.parent != Some(newest)) {
            let branch = Branch { before, turn: id };
            self.change_irregular(context, |context| context.branches.push(branch));
        }
        // Last: a reader that finds this turn also finds its position and its branch.
        set_context_word(state, context, NEWEST_TURN, id.get())
    }

    /// The position of the event of a context's creation.
    pub(crate) fn creation(state: &State, context: ContextId) -> Option<u64> {
        read_context_word(state, context, CREATED_AT_POSITION).filter(|&position| position > 0)
    }

    /// The first position after `after` at which a root was attached to a turn of this context.
    pub(crate) fn next_attached(&self, context: ContextId, after: u64) -> Option<u64> {
        self.read_irregular(context, |context| {
            let at = context
                .attached
                .partition_point(|&position| position <= after);
            context.attached.get(at).copied()
        })
    }

    /// The first position after `after` that has the event of a lost turn.
    pub(crate) fn next_lost_turn(&self, after: u64) -> Option<u64> {
        self.lost_turns.get(self.lost_turns.count_up_to(after))
    }

    /// The newest turn whose event is at or before a position; 0 for none.
    pub(crate) fn newest_turn_up_to(&self, position: u64) -> u64 {
        self.turn_positions.count_up_to(position)
    }

    /// Finds the oldest turns of a context with ids above `after`, up to `PAGE_TURNS`.
    pub(crate) fn turns_after(
        &self,
        state: &State,
        context: ContextId,
        after: u64,
    ) -> Option<TurnPage> {
        let segment = self.find_segment(state, context, after)?;
        let is_in_page = |id: TurnId, row: &TurnRow| {
            state.count_feed_step();
            id.get() >= segment.least && row.context == context.get()
        };
        let (oldest, oldest_row) = walk::find_oldest(state, segment.newest, is_in_page)?;
        // In a segment each turn is one deeper than the turn before it, so the depth finds the end of
        // the page. A shorter segment ends the page with its newest turn.
        let depth = oldest_row.depth.saturating_add(PAGE_TURNS - 1);
        let (newest, _) = walk::find_oldest(state, segment.newest, |id, row| {
            state.count_feed_step();
            id >= oldest && row.depth >= depth
        })?;
        let turns = walk::towards_root(state, Some(newest)).take_while(|(id, _)| *id >= oldest);
        let positions = turns.filter_map(|(id, _)| {
            state.count_feed_step();
            self.turn_positions.get(id.get() - 1)
        });
        Some(TurnPage {
            positions: positions.collect(),
            newest,
        })
    }

    /// Finds the first segment that has turns with ids above `after`, and bounds it to them.
    fn find_segment(&self, state: &State, context: ContextId, after: u64) -> Option<Segment> {
        // Before the branches: the branch that leads to the newest turn is then among them.
        let newest = TurnId::new(read_context_word(state, context, NEWEST_TURN)?)?;
        if newest.get() <= after {
            return None;
        }
        let whole = Segment {
            least: after + 1,
            newest,
        };
        let bounded = self.read_irregular(context, |context| {
            let branches = &context.branches;
            let at = branches.partition_point(|branch| branch.before.get() <= after);
            let begin = at.checked_sub(1).and_then(|last| branches.get(last));
            let end = branches.get(at);
            Some(Segment {
                least: begin.map_or(0, |branch| branch.turn.get()).max(after + 1),
                newest: end.map_or(newest, |branch| branch.before),
            })
        });
        Some(bounded.unwrap_or(whole))
    }

    fn read_irregular<T>(
        &self,
        context: ContextId,
        read: impl FnOnce(&Irregular) -> Option<T>,
    ) -> Option<T> {
        let irregular = self.irregular.read();
        let irregular = irregular.unwrap_or_else(PoisonError::into_inner);
        irregular.get(&context).and_then(read)
    }

    fn change_irregular(&self, context: ContextId, change: impl FnOnce(&mut Irregular)) {
        let irregular = self.irregular.write();
        let mut irregular = irregular.unwrap_or_else(PoisonError::into_inner);
        change(irregular.entry(context).or_default());
    }
}

fn read_context_word(state: &State, context: ContextId, column: usize) -> Option<u64> {
    state.contexts.read_word(context.get() - 1, column)
}

/// Changes a word of a context; `None` if there is no such context.
fn set_context_word(state: &State, context: ContextId, column: usize, word: u64) -> Option<()> {
    read_context_word(state, context, column)?;
    state.contexts.set_word(context.get() - 1, column, word);
    Some(())
}

#[cfg(test)]
mod tests;
