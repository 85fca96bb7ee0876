//! The facts of a context, in order, however many threads read them.
//!
//! A long stretch of turns is read by [`READERS`] threads, page by page in turns, while the caller
//! takes the facts over; a short one by the caller alone. The caller gets the same facts in the
//! same order, up to the page with the first fault. A reader that cannot be started costs time
//! only: the caller reads what it should have read.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use turnkeep_store::{LostTurn, ReadError, Store, Turn};
use turnkeep_types::{ContextId, TurnId};

use crate::fact::Fact;
use crate::log::{LoadError, fact_of};

/// How many turns are read at a time.
pub(crate) const PAGE_TURNS: u32 = 1024;
/// How many threads read a long stretch.
const READERS: usize = 2;
/// Pages that a reader may be ahead.
const PAGES_AHEAD: usize = 128;
/// Fewer pages are read by the caller alone.
const PAGES_MIN: u32 = 4;

/// Facts, each with its turn.
pub(crate) type Page = Vec<(TurnId, Fact)>;

/// A part of a context: turns by their depth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turns {
    /// The context.
    pub(crate) context: ContextId,
    /// The first one.
    pub(crate) from: u32,
    /// Behind the last one.
    pub(crate) end: u32,
}

/// The turns of a context from a depth on, all of them: half a past is none. The store itself
/// refuses a page with a gap; a page that is short for another reason is refused here.
pub(crate) fn whole_page(
    store: &Store,
    context: ContextId,
    from: u32,
    count: u32,
) -> Result<Vec<Turn>, LoadError> {
    let turns = store.range(context, from, count as usize)?;
    if turns.len() == count as usize {
        return Ok(turns);
    }
    let lost = turns
        .first()
        .and_then(|behind| behind.parent)
        .or(store.context(context)?.head);
    let lost = lost.map(|turn| ReadError::LostTurn(LostTurn::new(turn)));
    Err(lost.unwrap_or(ReadError::UnknownContext(context)).into())
}

impl Turns {
    fn pages(self) -> u32 {
        self.end.saturating_sub(self.from).div_ceil(PAGE_TURNS)
    }

    /// Reads one page.
    fn read(self, store: &Store, page: u32) -> Result<Page, LoadError> {
        let from = self.from + page * PAGE_TURNS;
        let turns = whole_page(store, self.context, from, PAGE_TURNS.min(self.end - from))?;
        turns
            .iter()
            .map(|turn| Ok((turn.id, fact_of(store, turn)?)))
            .collect()
    }

    /// Gives all pages to `take`, in order. The first fault ends it.
    pub(crate) fn each(self, store: &Store, mut take: impl FnMut(Page)) -> Result<(), LoadError> {
        if self.pages() < PAGES_MIN {
            return (0..self.pages()).try_for_each(|page| self.read(store, page).map(&mut take));
        }
        thread::scope(|scope| {
            let pages: Vec<Receiver<_>> = (0..READERS)
                .map(|reader| {
                    let (give, pages) = sync_channel(PAGES_AHEAD);
                    // Without the thread its sender is gone, and the caller notices.
                    let work = move || self.read_ahead(store, reader, &give);
                    thread::Builder::new().spawn_scoped(scope, work).ok();
                    pages
                })
                .collect();
            let mut readers = pages.iter().cycle();
            (0..self.pages()).try_for_each(|page| {
                let ahead = readers.next().and_then(|pages| pages.recv().ok());
                ahead
                    .unwrap_or_else(|| self.read(store, page))
                    .map(&mut take)
            })
        })
    }

    /// Reads every page that is this reader's, until one is at fault or nobody wants more.
    fn read_ahead(self, store: &Store, reader: usize, give: &SyncSender<Result<Page, LoadError>>) {
        for page in (0..self.pages()).skip(reader).step_by(READERS) {
            let read = self.read(store, page);
            let is_fault = read.is_err();
            if give.send(read).is_err() || is_fault {
                return;
            }
        }
    }
}
