//! Reads the facts of a context in order, with several threads if there are many.
//!
//! [`READERS`] threads read a long range ahead, page by page in turn, while the caller consumes the
//! facts. The caller reads a short range alone. Either way it receives the same facts in the same
//! order, up to the page with the first fault. If a thread cannot be started, the caller reads that
//! thread's pages itself.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use turnkeep_store::{LostTurn, ReadError, Store, Turn};
use turnkeep_types::{ContextId, TurnId};

use crate::fact::Fact;
use crate::log::{LoadError, read_fact};

/// How many turns are read at a time.
pub(crate) const PAGE_TURNS: u32 = 1024;
/// How many threads read a long range.
const READERS: usize = 2;
/// How many pages a thread may be ahead of the caller; this bounds the memory.
const PAGES_AHEAD: usize = 128;
/// The caller reads fewer pages alone: starting threads would take longer.
const PAGES_MIN: u32 = 4;

/// A fact and the turn that holds it.
#[derive(Debug)]
pub(crate) struct TurnFact {
    pub(crate) turn: TurnId,
    pub(crate) fact: Fact,
}

/// The facts of one page, in order.
pub(crate) type Page = Vec<TurnFact>;

/// A range of the turns of a context, by depth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnRange {
    pub(crate) context: ContextId,
    /// The first depth.
    pub(crate) from: u32,
    /// The first depth behind the range.
    pub(crate) end: u32,
}

/// Reads exactly `count` turns of a context. The store rejects a page with a gap; this function
/// rejects a page that is short for another reason, because a world with a gap in its past is
/// wrong.
pub(crate) fn read_whole_page(
    store: &Store,
    context: ContextId,
    from: u32,
    count: u32,
) -> Result<Vec<Turn>, LoadError> {
    let turns = store.range(context, from, count as usize)?;
    if turns.len() == count as usize {
        return Ok(turns);
    }
    // Names the turn at the gap if there is one, so that the error points to the damage.
    let lost = turns
        .first()
        .and_then(|behind| behind.parent)
        .or(store.context(context)?.head);
    let lost = lost.map(|turn| ReadError::LostTurn(LostTurn::new(turn)));
    Err(lost.unwrap_or(ReadError::UnknownContext(context)).into())
}

impl TurnRange {
    fn page_count(self) -> u32 {
        self.end.saturating_sub(self.from).div_ceil(PAGE_TURNS)
    }

    /// Reads and decodes one page.
    fn read_page(self, store: &Store, page: u32) -> Result<Page, LoadError> {
        let from = self.from + page * PAGE_TURNS;
        let turns = read_whole_page(store, self.context, from, PAGE_TURNS.min(self.end - from))?;
        let mut facts = Vec::with_capacity(turns.len());
        for turn in &turns {
            facts.push(TurnFact {
                turn: turn.id,
                fact: read_fact(store, turn)?,
            });
        }
        Ok(facts)
    }

    /// Passes all pages to `take`, in order, and stops at the first fault.
    pub(crate) fn visit_pages(
        self,
        store: &Store,
        mut take: impl FnMut(Page),
    ) -> Result<(), LoadError> {
        if self.page_count() < PAGES_MIN {
            for page in 0..self.page_count() {
                take(self.read_page(store, page)?);
            }
            return Ok(());
        }
        thread::scope(|scope| {
            let mut readers: Vec<Receiver<_>> = Vec::with_capacity(READERS);
            for reader in 0..READERS {
                let (sender, pages) = sync_channel(PAGES_AHEAD);
                let work = move || self.read_ahead(store, reader, &sender);
                // If the thread cannot start, its sender is dropped and `recv` below fails.
                thread::Builder::new().spawn_scoped(scope, work).ok();
                readers.push(pages);
            }
            // Reader 0 has pages 0, 2, 4 and so on: asking in turn keeps the order.
            for (page, reader) in (0..self.page_count()).zip(readers.iter().cycle()) {
                let facts = match reader.recv() {
                    Ok(facts) => facts,
                    Err(_) => self.read_page(store, page),
                };
                take(facts?);
            }
            Ok(())
        })
    }

    /// Reads every page of this reader, until one is at fault or the caller has stopped.
    fn read_ahead(
        self,
        store: &Store,
        reader: usize,
        sender: &SyncSender<Result<Page, LoadError>>,
    ) {
        for page in (0..self.page_count()).skip(reader).step_by(READERS) {
            let facts = self.read_page(store, page);
            let is_fault = facts.is_err();
            if sender.send(facts).is_err() || is_fault {
                return;
            }
        }
    }
}
