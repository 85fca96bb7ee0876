//! Which visible entries may be hits: by author, by time, and by phrase.

use std::ops::Range;

use super::index::Index;
use super::query::{certain_terms, cut_number, cut_word};
use super::surroundings::View;
use super::{Hit, Query, Texts, Window};

/// Which entries may be hits, of those that are visible.
pub(super) struct Filter {
    author: Option<u32>,
    window: Window,
}

impl Filter {
    /// None when nothing can pass: nobody of that name has written.
    pub(super) fn of(index: &Index, query: &Query<'_>) -> Option<Self> {
        let author = match query.author {
            Some(author) => Some(index.bylines.authors.find(author)?),
            None => None,
        };
        Some(Self {
            author,
            window: query.window,
        })
    }

    /// The numbers between which all that passes lies: times never decrease.
    pub(super) fn range(&self, view: &View<'_>) -> Range<u32> {
        let times = &view.index.entries.times[..view.at as usize];
        let place = |time: i64| {
            u32::try_from(times.partition_point(|other| *other < time)).unwrap_or(view.at)
        };
        self.window.from.map_or(0, place)..self.window.to.map_or(view.at, place)
    }

    #[inline]
    pub(super) fn passes(&self, view: &View<'_>, number: u32) -> bool {
        let entries = &view.index.entries;
        self.author
            .is_none_or(|author| author == view.author(number))
            && self.window.holds(entries.times[number as usize])
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

/// The newest entries that pass; nothing is ranked.
pub(super) fn newest<T: Texts + ?Sized>(
    view: &View<'_>,
    filter: &Filter,
    phrases: &[&str],
    limit: usize,
    texts: &T,
) -> Result<Vec<Hit>, T::Error> {
    let mut hits = Vec::new();
    let range = filter.range(view);
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
pub(super) fn with_phrases<T: Texts + ?Sized>(
    view: &View<'_>,
    filter: &Filter,
    phrases: &[&str],
    texts: &T,
) -> Result<Vec<u32>, T::Error> {
    let mut found = Vec::new();
    let range = filter.range(view);
    let mut check = |entry: u32| {
        if filter.passes(view, entry) && has_phrases(entry, phrases, texts)? {
            found.push(entry);
        }
        Ok(())
    };
    match narrowest(view, phrases) {
        None => {
            view.newest_first(range.end)
                .take_while(|entry| *entry >= range.start)
                .try_for_each(&mut check)?;
        }
        Some(terms) => entries_with(view, &terms, &range)
            .into_iter()
            .try_for_each(&mut check)?,
    }
    Ok(found)
}

/// Terms of which every visible entry with these phrases has one; `None` when nothing is known of
/// them.
fn narrowest(view: &View<'_>, phrases: &[&str]) -> Option<Vec<u32>> {
    if let Some(term) = rarest_certain(view, phrases) {
        return Some(term.into_iter().collect());
    }
    let cut = |find: fn(&str) -> Option<String>| phrases.iter().find_map(|phrase| find(phrase));
    cut(cut_number)
        .or_else(|| cut(cut_word))
        .map(|cut| view.index.terms.holding(&cut))
}

/// The visible entries in a range that have one of these terms, in order.
fn entries_with(view: &View<'_>, terms: &[u32], range: &Range<u32>) -> Vec<u32> {
    let mut entries = Vec::new();
    for list in terms.iter().filter_map(|term| view.list(*term)) {
        let inside = list
            .from(range.start)
            .map(|posting| posting.entry)
            .take_while(|entry| *entry < range.end);
        entries.extend(inside.filter(|entry| view.shows(*entry)));
    }
    entries.sort_unstable();
    entries.dedup();
    entries
}

/// Of the terms that every entry with these phrases has, the one with the fewest entries;
/// `Some(None)` when there is one that no entry has, `None` when nothing is certain.
fn rarest_certain(view: &View<'_>, phrases: &[&str]) -> Option<Option<u32>> {
    let certain = phrases.iter().flat_map(|phrase| certain_terms(phrase));
    let known = certain.map(|term| view.index.terms.find(&term));
    known
        .map(|term| (term.map_or(0, |term| view.postings(term)), term))
        .min()
        .map(|(_, term)| term)
}
