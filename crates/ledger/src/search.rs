//! Full-text search over the entries that a reader may see: BM25 with conversations.
//!
//! An [`Index`] numbers the entries of a world in ledger order. A search names the audience classes
//! that a view may read and its position. Every figure of the ranking (number of entries, lengths,
//! frequencies, neighbours) comes from visible entries before that position.
//!
//! Invariant: a ledger without the hidden entries returns the same hits in the same order with the
//! same scores, to the last bit. Nothing depends on absolute entry numbers, on how classes are
//! numbered, or on how the visible entries are divided among classes.
//!
//! A search has two steps. The sweep scores every entry that has a term of the query: the sum over
//! the terms, the rarest first, of `idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length /
//! average))`, plus [`NEIGHBOUR`] of the scores that the visible entries directly before and after
//! have by terms that the entry lacks. The second step scores the best [`RERANKED`] entries again. Two
//! entries on each side of the same conversation lend [`PREVIOUS`] and [`NEXT`] of their scores,
//! the terms of the conversation add [`SESSION`] of their weight, and a query that names the author
//! adds [`AUTHOR`] of its weight. Entries beside them that have no term come in as context. The
//! later entry wins a tie.
//!
//! Author, window and phrases decide what may be a hit or context. They do not change the figures,
//! and a neighbour need not pass them. Nothing here does I/O: the index has no texts, and reads
//! those that it needs for phrases through [`Texts`].

mod bylines;
mod checkpoint;
mod columns;
mod conversation;
mod excerpt;
mod filter;
mod fold;
mod index;
mod index_view;
mod lexicon;
mod naming;
mod postings;
mod query;
mod rank;
mod rerank;
mod scoring;
mod stem;
mod stops;
mod sweep;
mod terms;
mod visible;
mod words;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use checkpoint::CheckpointError;
pub use conversation::CONVERSATION_STEPS;
pub use excerpt::{EXCERPT_BYTES_MAX, Excerpts};
pub use index::Index;
pub use index_view::REACH_MILLIS;
pub use naming::{Mention, excerpt_naming};
pub use query::can_be_searched;
pub use rank::NEIGHBOUR;
pub use rerank::{AUTHOR, NEXT, PREVIOUS, RERANKED, SESSION, SESSION_STEPS};

/// An audience class: the entries that the same set of people may read. The caller numbers classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u32);

/// An entry to be indexed.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// The audience class of the entry.
    pub class: ClassId,
    /// The author's person id, for the filter by author.
    pub author: &'a str,
    /// The author's label. Its words count as words of the entry, and a query with all of them
    /// names the author.
    pub label: &'a str,
    /// The entry's text.
    pub text: &'a str,
    /// World time in milliseconds since 1970. It must not be earlier than that of the previous
    /// entry.
    pub time: i64,
    /// Words of the entry's local date, made by [`date_words`], so that a query can name the date.
    pub date: &'a str,
}

/// The entries that a view may see: some classes, up to a position.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The readable classes, in any order. Unknown classes are empty.
    pub classes: &'a [ClassId],
    /// Only entries with smaller numbers are visible.
    pub at: u32,
}

/// An interval of world time in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// The first millisecond inside; `None` is open.
    pub from: Option<i64>,
    /// The first millisecond behind the interval; `None` is open.
    pub to: Option<i64>,
}

impl Window {
    /// Whether a time lies in the interval.
    pub fn contains(self, time: i64) -> bool {
        self.from.is_none_or(|from| from <= time) && self.to.is_none_or(|to| time < to)
    }
}

/// What a search looks for.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Words to rank by. A part in double quotes must occur in the text byte for byte. A blank text
    /// returns the newest entries; a text of stop words only finds nothing.
    pub text: &'a str,
    /// If given, only entries of this person match.
    pub author: Option<&'a str>,
    /// Only entries of this time match.
    pub window: Window,
    /// The maximal number of hits, context included.
    pub limit: usize,
    /// The maximal number of context entries among the hits.
    pub context_max: usize,
}

/// An entry that a search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The entry's number.
    pub entry: u32,
    /// The rank, or 0 when nothing was ranked. The first [`RERANKED`] matches and their context
    /// have comparable scores, and so have the matches after them.
    pub score: f32,
    /// Whether the entry does not match but stands beside a match in a conversation.
    pub context: bool,
}

impl Hit {
    /// A hit that is not context.
    pub(crate) fn matching(entry: u32, score: f32) -> Self {
        Self {
            entry,
            score,
            context: false,
        }
    }
}

/// Reads the texts of entries. A search only asks for visible entries.
pub trait Texts {
    /// Why a text cannot be read.
    type Error;
    /// The text of an entry.
    fn text(&self, entry: u32) -> Result<Cow<'_, str>, Self::Error>;
}

/// Texts in memory, indexed by entry number.
impl<T: AsRef<str>> Texts for [T] {
    type Error = std::convert::Infallible;

    fn text(&self, entry: u32) -> Result<Cow<'_, str>, Self::Error> {
        Ok(Cow::Borrowed(
            self.get(entry as usize).map_or("", AsRef::as_ref),
        ))
    }
}

/// The words by which people name a date: `2026-11-15 sunday november`. The tokenizer also splits
/// the first one into year, month and day.
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
