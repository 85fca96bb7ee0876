//! The second look at the best: what their conversations, and the names in the query, say about
//! them.
//!
//! The sweep finds the entries that match best by a score that is cheap for all entries. The first
//! [`RERANKED`] of these, and the entries beside them in their conversations, are scored anew: their own
//! words, what two neighbours on each side lend, the terms that the conversation around them speaks
//! of, and whether the query names their author. An entry that has none of the query's terms is
//! context; it can only come in beside one that has.

use super::Hit;
use super::conversation::Conversation;
use super::filter::Filter;
use super::query::Wanted;
use super::rank::{Ranked, sort};
use super::scoring::{Known, Scoring};
use super::words::words;

/// So many of the best are looked at again; those behind them keep their places.
pub const RERANKED: usize = 20;

/// What the first and the second entry before an entry lend of their scores. A question tells more
/// about its answer than the answer about its question, so these are more than [`NEXT`].
pub const PREVIOUS: [f32; 2] = [0.5, 0.25];

/// What the first and the second entry after an entry lend.
pub const NEXT: [f32; 2] = [0.3, 0.15];

/// The part of a term's weight that an entry gets when it or its surroundings have the term.
pub const SESSION: f32 = 0.3;

/// So many entries of the conversation on each side are an entry's surroundings.
pub const SESSION_STEPS: usize = 6;

/// The part of the whole query's weight that an entry gets when the query names its author. An
/// entry that has every term of the query gets it too: somebody who quotes an entry that mentions a
/// person does not mean what that person wrote.
pub const AUTHOR: f32 = 0.3;

/// An entry with its conversation.
struct Candidate {
    entry: u32,
    conversation: Conversation,
    /// Whether it was found; else it only stands beside one that was.
    was_found: bool,
}

/// Scores the first of these anew together with what stands beside them, and puts them in order
/// again. Without a filter nothing beside them is looked at: whatever has the phrases was found.
pub(super) fn rerank(
    scoring: &Scoring<'_>,
    wanted: &Wanted<'_>,
    filter: Option<&Filter>,
    mut hits: Vec<Hit>,
) -> Ranked {
    let mut rest = hits.split_off(hits.len().min(RERANKED));
    let mut candidates: Vec<Candidate> = hits
        .iter()
        .map(|hit| candidate(scoring, hit.entry, true))
        .collect();
    if let Some(filter) = filter {
        let beside = entries_beside(scoring, filter, &candidates);
        rest.retain(|hit| beside.binary_search(&hit.entry).is_err());
        candidates.extend(
            beside
                .into_iter()
                .map(|entry| candidate(scoring, entry, false)),
        );
    }
    let known = Known::new(scoring, entries_of(&candidates));
    let mut names = Names::of(wanted);
    let mut first = Vec::with_capacity(candidates.len());
    for Candidate {
        entry,
        conversation,
        was_found,
    } in &candidates
    {
        let terms = known.slot(*entry).terms;
        let is_meant = terms == scoring.all_terms() || names.name(scoring, *entry);
        let bonus = if is_meant {
            scoring.whole_weight()
        } else {
            0.0
        };
        let score = score(scoring, &known, *entry, conversation) + AUTHOR * bonus;
        first.push(Hit {
            entry: *entry,
            score,
            context: terms == 0 && !was_found,
        });
    }
    sort(&mut first);
    Ranked { first, rest }
}

fn candidate(scoring: &Scoring<'_>, entry: u32, was_found: bool) -> Candidate {
    let conversation = Conversation::around(scoring.view, entry, SESSION_STEPS);
    Candidate {
        entry,
        conversation,
        was_found,
    }
}

/// The entries that stand beside the candidates in their conversations and pass the filter,
/// ascending, without the candidates themselves.
fn entries_beside(scoring: &Scoring<'_>, filter: &Filter, candidates: &[Candidate]) -> Vec<u32> {
    let mut found: Vec<u32> = candidates.iter().map(|candidate| candidate.entry).collect();
    found.sort_unstable();
    let mut beside = Vec::new();
    for Candidate { conversation, .. } in candidates {
        beside.extend(conversation.before.iter().take(PREVIOUS.len()));
        beside.extend(conversation.after.iter().take(NEXT.len()));
    }
    beside.sort_unstable();
    beside.dedup();
    beside
        .retain(|entry| found.binary_search(entry).is_err() && filter.passes(scoring.view, *entry));
    beside
}

/// All entries whose own scores matter, ascending.
fn entries_of(candidates: &[Candidate]) -> Vec<u32> {
    let mut entries = Vec::new();
    for Candidate {
        entry,
        conversation,
        ..
    } in candidates
    {
        entries.push(*entry);
        entries.extend(&conversation.before);
        entries.extend(&conversation.after);
    }
    entries.sort_unstable();
    entries.dedup();
    entries
}

/// What an entry scores with its conversation.
fn score(scoring: &Scoring<'_>, known: &Known, entry: u32, conversation: &Conversation) -> f32 {
    let own = known.slot(entry);
    let (mut score, mut terms) = (own.score, own.terms);
    for (side, factors) in [
        (&conversation.before, PREVIOUS),
        (&conversation.after, NEXT),
    ] {
        for (neighbour, factor) in side.iter().zip(factors) {
            score += factor * scoring.lent(Some(known.slot(*neighbour)), own.terms);
        }
        terms = side
            .iter()
            .fold(terms, |terms, entry| terms | known.slot(*entry).terms);
    }
    score + SESSION * scoring.weight(terms)
}

/// Which authors a query names: those all of whose label's words, or all of whose id's, are in it.
struct Names<'w> {
    wanted: &'w Wanted<'w>,
    /// The bylines that were looked at, sorted, each with the answer.
    known: Vec<(u32, bool)>,
}

impl<'w> Names<'w> {
    fn of(wanted: &'w Wanted<'w>) -> Self {
        Self {
            wanted,
            known: Vec::new(),
        }
    }

    /// Whether the query names the author of an entry.
    fn name(&mut self, scoring: &Scoring<'_>, entry: u32) -> bool {
        let index = scoring.view.index;
        let byline = index.entries.bylines[entry as usize];
        match self
            .known
            .binary_search_by_key(&byline, |(byline, _)| *byline)
        {
            Ok(place) => self.known[place].1,
            Err(place) => {
                let names = index.bylines.names(byline).unwrap_or_default();
                let is_named = names.iter().any(|name| self.wanted.names(name));
                self.known.insert(place, (byline, is_named));
                is_named
            }
        }
    }
}

impl Wanted<'_> {
    /// Whether all words of a name are wanted. A name without words is never named.
    pub(super) fn names(&self, name: &str) -> bool {
        let (mut all, mut some) = (true, false);
        words(name, |word| {
            some = true;
            all = all && self.terms.iter().any(|wish| wish.term == word.term);
        });
        all && some
    }
}

impl Ranked {
    /// The best, at most so many in all and so many of them context. Context that scores less than
    /// all that was looked at again comes last.
    pub(super) fn take(self, limit: usize, context_max: usize) -> Vec<Hit> {
        let Self { mut first, rest } = self;
        let matches = first
            .iter()
            .rposition(|hit| !hit.context)
            .map_or(0, |last| last + 1);
        let trailing = first.split_off(matches);
        let mut left = context_max;
        let mut may_stay = |hit: &Hit| {
            let stays = !hit.context || left > 0;
            left -= usize::from(hit.context && stays);
            stays
        };
        first
            .into_iter()
            .chain(rest)
            .chain(trailing)
            .filter(|hit| may_stay(hit))
            .take(limit)
            .collect()
    }
}
