//! Reads the feed in order: all of it, or the events of some contexts.
//!
//! A cursor over contexts merges their events. It looks at no event of other contexts, whether it
//! starts at an old position or waits for news, and holds at most a page of positions per context.

use std::sync::Arc;

use turnkeep_types::ContextId;

use crate::event::Event;
use crate::feed_index::{FeedIndex, TurnPage};
use crate::state::State;

/// A place in the feed, from which a reader goes on as events are added.
pub struct FeedCursor {
    state: Arc<State>,
    /// The contexts that the reader wants; `None` for all events.
    contexts: Option<Vec<ContextCursor>>,
    position: u64,
}

impl FeedCursor {
    pub(crate) fn of_all(state: Arc<State>, after: u64) -> Self {
        Self {
            state,
            contexts: None,
            position: after,
        }
    }

    pub(crate) fn of_contexts(state: Arc<State>, contexts: &[ContextId], after: u64) -> Self {
        let turns_to = state.feed_index.newest_turn_up_to(after);
        let cursors = contexts.iter().map(|&context| ContextCursor {
            context,
            page: Vec::new(),
            turns_to,
        });
        Self {
            contexts: Some(cursors.collect()),
            state,
            position: after,
        }
    }

    /// The position up to which the reader has got every event that it wants.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Takes the next event, if there is one up to the position `last`.
    pub fn next_up_to(&mut self, last: u64) -> Option<Event> {
        self.position = self.peek_up_to(last)?;
        self.state.event(self.position)
    }

    /// The position of the next event, if there is one up to the position `last`. Otherwise the
    /// cursor moves on to `last`, but not beyond the end of the feed.
    pub fn peek_up_to(&mut self, last: u64) -> Option<u64> {
        // Read before the index, which may know of events that are not published yet.
        let last = last.min(self.state.events.len());
        let next = self.find_next().filter(|&next| next <= last);
        if next.is_none() {
            self.position = self.position.max(last);
        }
        next
    }

    /// The first position after the cursor that has an event which the reader wants.
    fn find_next(&mut self) -> Option<u64> {
        let (state, after) = (&*self.state, self.position);
        let Some(contexts) = &mut self.contexts else {
            return Some(after.saturating_add(1));
        };
        let lost = state.feed_index.next_lost_turn(after);
        let of_contexts = contexts
            .iter_mut()
            .filter_map(|context| context.find_next(state, after));
        of_contexts.chain(lost).min()
    }
}

/// The place in one context's events.
struct ContextCursor {
    context: ContextId,
    /// The positions of its next turns, newest first.
    page: Vec<u64>,
    /// The newest turn that was found.
    turns_to: u64,
}

impl ContextCursor {
    /// The first position after `after` that has an event of this context.
    fn find_next(&mut self, state: &State, after: u64) -> Option<u64> {
        let created = FeedIndex::creation(state, self.context).filter(|&created| created > after);
        let attached = state.feed_index.next_attached(self.context, after);
        let appended = self.find_next_turn(state, after);
        [created, attached, appended].into_iter().flatten().min()
    }

    fn find_next_turn(&mut self, state: &State, after: u64) -> Option<u64> {
        loop {
            // Turns at or before `after` are there if the reader started beyond the feed's end.
            while self.page.last().is_some_and(|&position| position <= after) {
                self.page.pop();
            }
            if let Some(&next) = self.page.last() {
                return Some(next);
            }
            let page = state
                .feed_index
                .turns_after(state, self.context, self.turns_to)?;
            let TurnPage { positions, newest } = page;
            self.page = positions;
            self.turns_to = newest.get();
        }
    }
}
