//! Search over what a reader may see: BM25 whose figures are sums over the audience classes of a
//! view.
//!
//! An [`Index`] takes the entries of a world in ledger order and gives each a dense number. A
//! search names the classes that a view may read and the position that it reads at; every figure of
//! the ranking (number of entries, lengths, document frequencies, neighbours) comes from entries of
//! those classes before that position. So a ledger without the hidden entries gives the same hits
//! in the same order with the same scores, to the last bit: nothing here depends on an entry's
//! absolute number, on how classes are numbered, or on how the visible entries are divided among
//! them.
//!
//! The own score of an entry is the sum over the query's terms, the rarest first, of `idf * tf *
//! (K1 + 1) / (tf + K1 * (1 - B + B * length / average))`. A first pass finds the entries that have
//! a term and score best, each with [`NEIGHBOUR`] of what the own score of the visible entry before
//! it, and of the one after it, owes to terms that it has not itself, when they are at most half an
//! hour of world time away. The best [`RERANKED`] of these are then looked at again: two entries on
//! each side in the same conversation lend [`PREVIOUS`] and [`NEXT`] of theirs, [`SESSION`] of the
//! weight of all terms that the conversation around them speaks of is added, and [`AUTHOR`] of the
//! weight of the whole query where it names their author. Entries beside them are scored the same
//! way; those that have no term come in as context. Ties go to the later entry. Author, window and
//! phrases filter what may be a hit or context; they do not change the figures, and a neighbour
//! need not pass them.
//!
//! Nothing here does I/O. The index holds no text: phrases are checked against [`Texts`].

mod bylines;
mod checkpoint;
mod columns;
mod conversation;
mod excerpt;
mod filter;
mod fold;
mod index;
mod lexicon;
mod naming;
mod postings;
mod query;
mod rank;
mod rerank;
mod scoring;
mod shown;
mod stem;
mod stops;
mod surroundings;
mod sweep;
mod terms;
mod words;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use checkpoint::CheckpointError;
pub use conversation::CONVERSATION_STEPS;
pub use excerpt::{EXCERPT_BYTES_MAX, Excerpts};
pub use index::Index;
pub use naming::{Mention, excerpt_naming};
pub use query::can_be_searched;
pub use rank::NEIGHBOUR;
pub use rerank::{AUTHOR, NEXT, PREVIOUS, RERANKED, SESSION, SESSION_STEPS};
pub use surroundings::REACH_MILLIS;

/// An audience class: all entries that the same set of people may read. The caller numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u32);

/// An entry as the index wants it.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// Who may read it.
    pub class: ClassId,
    /// The author's person id, for the filter by author.
    pub author: &'a str,
    /// The author's label. Its words count as words of the entry, and a query with all of them
    /// names the author.
    pub label: &'a str,
    /// The entry's text.
    pub text: &'a str,
    /// World time in milliseconds since 1970. Never earlier than that of the entry before.
    pub time: i64,
    /// Words of the entry's local date, as [`date_words`] makes them; they can be searched for too.
    pub date: &'a str,
}

/// What a view may see: some classes, up to a position.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The classes that the view may read. Their order is of no effect; unknown ones are empty.
    pub classes: &'a [ClassId],
    /// Only entries with a smaller number exist.
    pub at: u32,
}

/// A part of world time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// The first millisecond inside; open when absent.
    pub from: Option<i64>,
    /// The first millisecond after it; open when absent.
    pub to: Option<i64>,
}

impl Window {
    /// Whether a time lies inside.
    pub fn holds(self, time: i64) -> bool {
        self.from.is_none_or(|from| from <= time) && self.to.is_none_or(|to| time < to)
    }
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Words to rank by; a part in double quotes must occur in the text byte for byte. When it is
    /// empty the newest entries come first; words that are not searched for, and nothing else, find
    /// nothing.
    pub text: &'a str,
    /// Only entries of this person.
    pub author: Option<&'a str>,
    /// Only entries of this time.
    pub window: Window,
    /// At most so many hits, context included.
    pub limit: usize,
    /// At most so many of them may be context.
    pub context_max: usize,
}

/// An entry that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its number.
    pub entry: u32,
    /// Its rank. The first [`RERANKED`] matches of a search and their context are comparable with
    /// each other, and so are those behind them. 0 when nothing was ranked.
    pub score: f32,
    /// Whether it has nothing that was asked for, but stands beside something that has.
    pub context: bool,
}

impl Hit {
    /// An entry that has something that was asked for.
    pub(crate) fn matching(entry: u32, score: f32) -> Self {
        Self {
            entry,
            score,
            context: false,
        }
    }
}

/// Where the texts of entries are. It is asked about visible entries only.
pub trait Texts {
    /// Why a text cannot be read.
    type Error;
    /// The text of an entry.
    fn text(&self, entry: u32) -> Result<Cow<'_, str>, Self::Error>;
}

/// Texts in memory: that of entry `n` is the `n`th.
impl<T: AsRef<str>> Texts for [T] {
    type Error = std::convert::Infallible;

    fn text(&self, entry: u32) -> Result<Cow<'_, str>, Self::Error> {
        Ok(Cow::Borrowed(
            self.get(entry as usize).map_or("", AsRef::as_ref),
        ))
    }
}

/// The words by which people name a date: `2026-11-15 sunday november`. Day, month and year are
/// parts of the first one.
pub fn date_words(date: jiff::civil::Date) -> String {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let month = usize::from(date.month().unsigned_abs()) - 1;
    let weekday = format!("{:?}", date.weekday()).to_lowercase();
    format!("{date} {weekday} {}", MONTHS[month.min(11)])
}
