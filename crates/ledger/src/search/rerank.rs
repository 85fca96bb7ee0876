//! Scores the best entries again, with their conversations and the names in the query.
//!
//! The sweep uses a score that is cheap for all entries. This step takes the first [`RERANKED`]
//! entries and those beside them in their conversations. It adds up their own score, what two
//! neighbours on each side lend, a bonus for terms that occur in the conversation around them, and
//! a bonus if the query names their author. An entry with none of the query's terms is context; it
//! can only come in beside a match.
//!
//! Worked example: the query is `refund port`. Entry 7, "Which port does the refund service use?",
//! has both terms. Entry 8, "8443, as before.", is the reply and has none. The sweep finds only 7.
//! Here 8 comes in beside it: it gains half of 7's score ([`PREVIOUS`]) and [`SESSION`] of the
//! weight of both terms, and is marked as context.

use std::collections::HashMap;

use super::Hit;
use super::conversation::Conversation;
use super::filter::Filter;
use super::query::ParsedQuery;
use super::rank::{RankedHits, sort_hits};
use super::scoring::{ScoreTable, Scoring};
use super::words::for_each_word;

/// How many of the best entries are scored again. The others keep their order. Twice the default
/// limit of a search, so that a page can gain entries that the first pass put behind it.
pub const RERANKED: usize = 20;

/// What the first and second entry before an entry lend of their scores. A question says more about
/// its answer than the answer about the question, so these are greater than [`NEXT`].
pub const PREVIOUS: [f32; 2] = [0.5, 0.25];

/// What the first and second entry after an entry lend of their scores.
pub const NEXT: [f32; 2] = [0.3, 0.15];

/// The part of a term's weight that an entry gains when the entry or its conversation has the term.
pub const SESSION: f32 = 0.3;

/// How many entries of the conversation on each side count for [`SESSION`].
pub const SESSION_STEPS: usize = 6;

/// The part of the query's total weight that an entry gains when the query names its author. An
/// entry with every term of the query gains it too. Otherwise a query that quotes an entry about a
/// person would prefer entries by that person.
pub const AUTHOR: f32 = 0.3;

/// An entry with its conversation.
struct Candidate {
    entry: u32,
    conversation: Conversation,
    origin: CandidateOrigin,
}

/// How an entry became a candidate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CandidateOrigin {
    /// The sweep or the phrases found it.
    Found,
    /// It stands beside a found entry in a conversation.
    Beside,
}

/// Scores the first hits again together with the entries beside them, and sorts them. Without a
/// filter no entries beside them are added: a phrase search has found every match already.
pub(super) fn rerank(
    scoring: &Scoring<'_>,
    parsed: &ParsedQuery<'_>,
    filter: Option<&Filter>,
    mut hits: Vec<Hit>,
) -> RankedHits {
    // Later hits keep the sweep's order: their conversations are not worth the cost.
    let mut rest = hits.split_off(hits.len().min(RERANKED));
    let mut candidates = Vec::new();
    for hit in &hits {
        candidates.push(make_candidate(scoring, hit.entry, CandidateOrigin::Found));
    }
    if let Some(filter) = filter {
        let beside = entries_beside(scoring, filter, &candidates);
        // An entry that is scored again must not appear a second time among the others.
        rest.retain(|hit| beside.binary_search(&hit.entry).is_err());
        for entry in beside {
            candidates.push(make_candidate(scoring, entry, CandidateOrigin::Beside));
        }
    }
    let scores = ScoreTable::new(scoring, entries_to_score(&candidates));
    let mut names = AuthorNameCheck::new(parsed);
    let mut first = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        first.push(score_candidate(scoring, &scores, &mut names, candidate));
    }
    sort_hits(&mut first);
    RankedHits { first, rest }
}

fn score_candidate(
    scoring: &Scoring<'_>,
    scores: &ScoreTable,
    names: &mut AuthorNameCheck<'_>,
    candidate: &Candidate,
) -> Hit {
    let Candidate {
        entry,
        conversation,
        origin,
    } = candidate;
    let terms = scores.get(*entry).terms;
    // An entry that has all terms gets the author's bonus too; see `AUTHOR`.
    let is_meant = terms == scoring.all_terms() || names.is_author_named(scoring, *entry);
    let bonus = if is_meant {
        scoring.total_weight()
    } else {
        0.0
    };
    let score = score_in_conversation(scoring, scores, *entry, conversation) + AUTHOR * bonus;
    Hit {
        entry: *entry,
        score,
        context: terms == 0 && *origin == CandidateOrigin::Beside,
    }
}

fn make_candidate(scoring: &Scoring<'_>, entry: u32, origin: CandidateOrigin) -> Candidate {
    let conversation = Conversation::around(scoring.view, entry, SESSION_STEPS);
    Candidate {
        entry,
        conversation,
        origin,
    }
}

/// The entries beside the candidates in their conversations that pass the filter, ascending,
/// without the candidates themselves.
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

/// All entries whose own scores are needed, ascending.
fn entries_to_score(candidates: &[Candidate]) -> Vec<u32> {
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

/// The score of an entry with its conversation.
fn score_in_conversation(
    scoring: &Scoring<'_>,
    scores: &ScoreTable,
    entry: u32,
    conversation: &Conversation,
) -> f32 {
    let own = scores.get(entry);
    let (mut score, mut terms) = (own.score, own.terms);
    for (side, factors) in [
        (&conversation.before, PREVIOUS),
        (&conversation.after, NEXT),
    ] {
        // `zip` stops after two neighbours; the other members only add their terms below.
        for (neighbour, factor) in side.iter().zip(factors) {
            score += factor * scoring.lent_score(Some(scores.get(*neighbour)), own.terms);
        }
        terms = side
            .iter()
            .fold(terms, |terms, entry| terms | scores.get(*entry).terms);
    }
    // By weight, not by score: a conversation that repeats a word is not a better one.
    score + SESSION * scoring.weight_of(terms)
}

/// Answers whether the query names an author: it has all words of the author's label or id.
struct AuthorNameCheck<'w> {
    query: &'w ParsedQuery<'w>,
    /// The answers so far. Few authors occur among the candidates.
    answers: HashMap<u32, bool>,
}

impl<'w> AuthorNameCheck<'w> {
    fn new(query: &'w ParsedQuery<'w>) -> Self {
        Self {
            query,
            answers: HashMap::new(),
        }
    }

    /// Whether the query names the author of an entry.
    fn is_author_named(&mut self, scoring: &Scoring<'_>, entry: u32) -> bool {
        let index = scoring.view.index;
        let byline = index.entries.bylines[entry as usize];
        *self.answers.entry(byline).or_insert_with(|| {
            let names = index.bylines.names(byline).unwrap_or_default();
            names.iter().any(|name| self.query.has_all_words_of(name))
        })
    }
}

impl ParsedQuery<'_> {
    /// Whether all words of a name are terms of the query. A name without words never matches.
    pub(super) fn has_all_words_of(&self, name: &str) -> bool {
        let (mut all, mut some) = (true, false);
        for_each_word(name, |word| {
            some = true;
            all = all
                && self
                    .terms
                    .iter()
                    .any(|query_term| query_term.term == word.term);
        });
        all && some
    }
}

impl RankedHits {
    /// Returns at most `limit` hits, of which at most `context_max` are context.
    pub(super) fn into_page(self, limit: usize, context_max: usize) -> Vec<Hit> {
        let Self { mut first, rest } = self;
        // Context that scores below every match goes behind the remaining matches as well.
        let matches = first
            .iter()
            .rposition(|hit| !hit.context)
            .map_or(0, |last| last + 1);
        let trailing = first.split_off(matches);
        let mut page = Vec::new();
        let mut context_left = context_max;
        for hit in first.into_iter().chain(rest).chain(trailing) {
            if page.len() >= limit {
                break;
            }
            // A skipped context entry does not end the page: matches may follow it.
            if hit.context {
                if context_left == 0 {
                    continue;
                }
                context_left -= 1;
            }
            page.push(hit);
        }
        page
    }
}
