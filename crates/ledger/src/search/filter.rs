//! Selects the visible entries that may be hits: by author, by time, and by phrase.
//!
//! A phrase is checked against the text itself. To read few texts, the phrase search first narrows
//! the entries by a term that every text with the phrase must have.

use std::ops::Range;

use super::index::Index;
use super::index_view::{IndexView, RarestTerm};
use super::query::{certain_terms, longest_number_piece, longest_word_piece};
use super::{Hit, Query, Texts, Window};

/// The author and time conditions of a query.
pub(super) struct Filter {
    author: Option<u32>,
    window: Window,
}

impl Filter {
    /// Returns `None` when no entry can pass because the author has written nothing.
    pub(super) fn from_query(index: &Index, query: &Query<'_>) -> Option<Self> {
        let author = match query.author {
            // An author without entries has no number, so no entry can pass.
            Some(author) => Some(index.bylines.authors.find(author)?),
            None => None,
        };
        Some(Self {
            author,
            window: query.window,
        })
    }

    /// The range of entry numbers that the time window allows. Times never decrease in a ledger.
    pub(super) fn entry_range(&self, view: &IndexView<'_>) -> Range<u32> {
        // Times never decrease, so a window is a contiguous range of entries.
        let times = &view.index.entries.times[..view.at as usize];
        let place = |time: i64| {
            u32::try_from(times.partition_point(|other| *other < time)).unwrap_or(view.at)
        };
        self.window.from.map_or(0, place)..self.window.to.map_or(view.at, place)
    }

    #[inline]
    pub(super) fn passes(&self, view: &IndexView<'_>, number: u32) -> bool {
        let entries = &view.index.entries;
        self.author
            .is_none_or(|author| author == view.author_of(number))
            && self.window.contains(entries.times[number as usize])
    }
}

fn has_phrases<T: Texts + ?Sized>(
    number: u32,
    phrases: &[&str],
    texts: &T,
) -> Result<bool, T::Error> {
    if phrases.is_empty() {
        return Ok(true);
    }
    let text = texts.text(number)?;
    Ok(phrases.iter().all(|phrase| text.contains(phrase)))
}

/// The newest entries that pass and have the phrases, without a ranking.
pub(super) fn newest_matches<T: Texts + ?Sized>(
    view: &IndexView<'_>,
    filter: &Filter,
    phrases: &[&str],
    limit: usize,
    texts: &T,
) -> Result<Vec<Hit>, T::Error> {
    let mut hits = Vec::new();
    let range = filter.entry_range(view);
    let inside = view
        .newest_first(range.end)
        .take_while(|entry| *entry >= range.start);
    for entry in inside.filter(|entry| filter.passes(view, *entry)) {
        if hits.len() >= limit {
            break;
        }
        if has_phrases(entry, phrases, texts)? {
            hits.push(Hit::matching(entry, 0.0));
        }
    }
    Ok(hits)
}

/// All entries that pass and have the phrases.
pub(super) fn entries_with_phrases<T: Texts + ?Sized>(
    view: &IndexView<'_>,
    filter: &Filter,
    phrases: &[&str],
    texts: &T,
) -> Result<Vec<u32>, T::Error> {
    let mut found = Vec::new();
    let range = filter.entry_range(view);
    let candidates = match terms_for_phrases(view, phrases) {
        // No term is certain, so every visible entry in the range is a candidate.
        None => view
            .newest_first(range.end)
            .take_while(|entry| *entry >= range.start)
            .collect(),
        Some(terms) => entries_with_any_term(view, &terms, &range),
    };
    for entry in candidates {
        if filter.passes(view, entry) && has_phrases(entry, phrases, texts)? {
            found.push(entry);
        }
    }
    Ok(found)
}

/// Terms of which every visible entry with these phrases has at least one. Returns `None` when no
/// such terms can be derived.
fn terms_for_phrases(view: &IndexView<'_>, phrases: &[&str]) -> Option<Vec<u32>> {
    match rarest_certain_term(view, phrases) {
        Some(RarestTerm::Known(term)) => return Some(vec![term]),
        // Every match would have a term that occurs nowhere, so there is no match.
        Some(RarestTerm::Missing) => return Some(Vec::new()),
        None => {}
    }
    // The phrases may cut each of their words. A piece of a word still selects all terms that
    // contain it. A number selects fewer terms than a word, so it comes first.
    let mut piece = phrases
        .iter()
        .find_map(|phrase| longest_number_piece(phrase));
    if piece.is_none() {
        piece = phrases.iter().find_map(|phrase| longest_word_piece(phrase));
    }
    piece.map(|piece| view.index.terms.terms_containing(&piece))
}

/// The visible entries in a range that have one of these terms, ascending.
fn entries_with_any_term(view: &IndexView<'_>, terms: &[u32], range: &Range<u32>) -> Vec<u32> {
    let mut entries = Vec::new();
    for list in terms.iter().filter_map(|term| view.posting_list(*term)) {
        let inside = list
            .postings_from(range.start)
            .map(|posting| posting.entry)
            .take_while(|entry| *entry < range.end);
        entries.extend(inside.filter(|entry| view.is_visible(*entry)));
    }
    entries.sort_unstable();
    entries.dedup();
    entries
}

/// The rarest of the terms that every entry with these phrases has; `None` when no term is certain.
fn rarest_certain_term(view: &IndexView<'_>, phrases: &[&str]) -> Option<RarestTerm> {
    let certain = phrases.iter().flat_map(|phrase| certain_terms(phrase));
    let numbers = certain.map(|term| view.index.terms.find(&term));
    view.rarest_term(numbers)
}
