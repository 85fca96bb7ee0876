//! The ranking written down as plainly as it can be, from the visible entries alone.

use std::collections::HashMap;

use super::super::query::{ParsedQuery, QueryTerm};
use super::super::words::{Role, for_each_word};
use super::super::{
    AUTHOR, CONVERSATION_STEPS, NEIGHBOUR, NEXT, PREVIOUS, REACH_MILLIS, RERANKED, SESSION,
    SESSION_STEPS, Window,
};

/// An entry with everything that it owns.
#[derive(Debug, Clone)]
pub(super) struct Owned {
    pub(super) class: u32,
    pub(super) author: String,
    pub(super) label: String,
    pub(super) text: String,
    pub(super) time: i64,
    pub(super) date: String,
}

/// What is asked.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) text: String,
    pub(super) author: Option<String>,
    pub(super) window: Window,
    pub(super) limit: usize,
    pub(super) context_max: usize,
}

/// A hit: its place among the visible entries, the bits of its score, and whether it is context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) place: usize,
    pub(super) score: u32,
    pub(super) context: bool,
}

/// A place with its score.
type Scored = (usize, f32);

struct Bag {
    counts: HashMap<String, u32>,
    length: u32,
}

impl Bag {
    fn of(entry: &Owned) -> Self {
        let mut bag = Self {
            counts: HashMap::new(),
            length: 0,
        };
        for (text, counted) in [
            (&entry.label, true),
            (&entry.text, true),
            (&entry.date, false),
        ] {
            for_each_word(text, |word| {
                *bag.counts.entry(word.term.to_owned()).or_default() += 1;
                bag.length += u32::from(counted && word.role == Role::Part);
            });
        }
        bag
    }
}

/// The visible entries of a ledger.
pub(super) struct Reference<'a> {
    visible: Vec<&'a Owned>,
    bags: Vec<Bag>,
}

/// A query's terms with their weights.
type Weights<'a> = Vec<(&'a String, f32)>;

impl<'a> Reference<'a> {
    pub(super) fn new(visible: Vec<&'a Owned>) -> Self {
        let bags = visible.iter().map(|entry| Bag::of(entry)).collect();
        Self { visible, bags }
    }

    /// The hits, the best first.
    pub(super) fn search(&self, asked: &Asked) -> Vec<Expected> {
        let parsed = ParsedQuery::parse(&asked.text);
        let passes = |place: &usize| self.passes(*place, asked, &parsed);
        if parsed.is_unsearchable() {
            return Vec::new();
        }
        if parsed.terms.is_empty() {
            let newest = (0..self.visible.len()).rev().filter(passes);
            return newest
                .map(|place| expected((place, 0.0), false))
                .take(asked.limit)
                .collect();
        }
        let weights = weights(&self.bags, &parsed.terms);
        let own: Vec<f32> = own(&self.bags, &weights);
        let is_hit = |place: &usize| own[*place] > 0.0 || !parsed.phrases.is_empty();
        let score_with_neighbours =
            |place: usize| (place, self.score_with_neighbours(place, &own, &weights));
        let mut hits: Vec<Scored> = (0..self.visible.len())
            .filter(passes)
            .filter(is_hit)
            .map(score_with_neighbours)
            .collect();
        sort(&mut hits);
        let mut rest = hits.split_off(hits.len().min(RERANKED));
        let again = |place: usize| (place, self.score_again(place, &own, &weights, &parsed));
        let mut first: Vec<(Scored, bool)> = hits
            .iter()
            .map(|(place, _)| (again(*place), false))
            .collect();
        if parsed.phrases.is_empty() {
            let mut beside: Vec<usize> = hits
                .iter()
                .flat_map(|(place, _)| self.beside(*place))
                .collect();
            beside.sort_unstable();
            beside.dedup();
            beside.retain(|place| hits.iter().all(|(hit, _)| hit != place) && passes(place));
            rest.retain(|(place, _)| !beside.contains(place));
            first.extend(
                beside
                    .into_iter()
                    .map(|place| (again(place), own[place] == 0.0)),
            );
        }
        first.sort_by(|(one, _), (other, _)| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
        let matches = first
            .iter()
            .rposition(|(_, context)| !context)
            .map_or(0, |last| last + 1);
        let trailing = first.split_off(matches);
        let rest = rest.into_iter().map(|scored| (scored, false));
        let all = first.into_iter().chain(rest).chain(trailing);
        let mut shown: Vec<Expected> = Vec::new();
        for (scored, context) in all {
            let used = shown.iter().filter(|hit| hit.context).count();
            if shown.len() < asked.limit && (!context || used < asked.context_max) {
                shown.push(expected(scored, context));
            }
        }
        shown
    }

    fn passes(&self, place: usize, asked: &Asked, parsed: &ParsedQuery<'_>) -> bool {
        let entry = self.visible[place];
        asked
            .author
            .as_ref()
            .is_none_or(|author| *author == entry.author)
            && asked.window.contains(entry.time)
            && parsed
                .phrases
                .iter()
                .all(|phrase| entry.text.contains(phrase))
    }

    fn has(&self, place: usize, term: &String) -> bool {
        self.bags[place].counts.contains_key(term)
    }

    fn step(&self, place: usize, by: isize) -> Option<usize> {
        let next = place
            .checked_add_signed(by)
            .filter(|next| *next < self.visible.len())?;
        let gap = self.visible[place].time.abs_diff(self.visible[next].time);
        (gap <= REACH_MILLIS).then_some(next)
    }

    /// What an entry owes to the terms of another that it has not itself.
    fn lent_score(&self, place: usize, from: usize, own: &[f32], weights: &Weights<'_>) -> f32 {
        let all = weights.iter().filter(|(term, _)| self.has(from, term));
        let lacking = all
            .clone()
            .filter(|(term, _)| !self.has(place, term))
            .map(|(_, weight)| weight);
        let lacking = lacking.sum::<f32>();
        if lacking == 0.0 {
            0.0
        } else {
            own[from] * (lacking / all.map(|(_, weight)| weight).sum::<f32>())
        }
    }

    fn score_with_neighbours(&self, place: usize, own: &[f32], weights: &Weights<'_>) -> f32 {
        let lent = |by: isize| {
            self.step(place, by)
                .map_or(0.0, |from| self.lent_score(place, from, own, weights))
        };
        own[place] + NEIGHBOUR * (lent(-1) + lent(1))
    }

    /// The places around one, the nearest first.
    fn chain(&self, place: usize, by: isize) -> Vec<usize> {
        let steps = std::iter::successors(self.step(place, by), |place| self.step(*place, by));
        steps.take(CONVERSATION_STEPS).collect()
    }

    /// With whom the author talks: who stands beside the author most often around this place.
    fn partner(&self, place: usize) -> Option<&String> {
        let author = |place: usize| &self.visible[place].author;
        let (own, [before, after]) = (author(place), [-1, 1].map(|by| self.chain(place, by)));
        let mut around: Vec<usize> = before.iter().rev().copied().collect();
        around.push(place);
        around.extend(&after);
        let count = |other: &String| {
            let pairs = around
                .windows(2)
                .map(|pair| (author(pair[0]), author(pair[1])));
            pairs
                .filter(|(one, next)| {
                    (*one, *next) == (own, other) || (*one, *next) == (other, own)
                })
                .count()
        };
        let mut best: Option<(usize, &String)> = None;
        for distance in 0..CONVERSATION_STEPS {
            for side in [&before, &after] {
                let Some(other) = side.get(distance).map(|place| author(*place)) else {
                    continue;
                };
                if other != own && best.is_none_or(|(most, _)| count(other) > most) {
                    best = Some((count(other), other));
                }
            }
        }
        best.map(|(_, other)| other)
    }

    /// The entries of the same conversation on one side, the nearest first.
    fn conversation(&self, place: usize, by: isize) -> Vec<usize> {
        let (own, partner) = (&self.visible[place].author, self.partner(place));
        let mut members = Vec::new();
        let mut last = place;
        for other in self.chain(place, by) {
            let author = &self.visible[other].author;
            if author != own && Some(author) != partner {
                continue;
            }
            if self.visible[last].time.abs_diff(self.visible[other].time) > REACH_MILLIS {
                break;
            }
            members.push(other);
            last = other;
        }
        members.truncate(SESSION_STEPS);
        members
    }

    fn beside(&self, place: usize) -> Vec<usize> {
        [-1, 1]
            .into_iter()
            .flat_map(|by| self.conversation(place, by).into_iter().take(2))
            .collect()
    }

    fn score_again(
        &self,
        place: usize,
        own: &[f32],
        weights: &Weights<'_>,
        parsed: &ParsedQuery<'_>,
    ) -> f32 {
        let mut score = own[place];
        let mut around = vec![place];
        for (by, parts) in [(-1, PREVIOUS), (1, NEXT)] {
            let members = self.conversation(place, by);
            for (from, part) in members.iter().zip(parts) {
                score += part * self.lent_score(place, *from, own, weights);
            }
            around.extend(members);
        }
        let is_said = |term: &String| around.iter().any(|place| self.has(*place, term));
        let said = weights
            .iter()
            .filter(|(term, _)| is_said(term))
            .map(|(_, weight)| weight);
        score += SESSION * said.sum::<f32>();
        let entry = self.visible[place];
        let is_named = |name: &String| {
            let mut terms = Vec::new();
            for_each_word(name, |word| terms.push(word.term.to_owned()));
            !terms.is_empty()
                && terms.iter().all(|term| {
                    parsed
                        .terms
                        .iter()
                        .any(|query_term| query_term.term == *term)
                })
        };
        let whole = weights.iter().map(|(_, weight)| weight).sum::<f32>();
        let has_all = weights.iter().all(|(term, _)| self.has(place, term));
        let is_meant = has_all || is_named(&entry.label) || is_named(&entry.author);
        score + AUTHOR * if is_meant { whole } else { 0.0 }
    }
}

fn expected((place, score): Scored, context: bool) -> Expected {
    Expected {
        place,
        score: score.to_bits(),
        context,
    }
}

fn sort(hits: &mut [(usize, f32)]) {
    hits.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "small counts"
)]
fn weights<'a>(bags: &[Bag], terms: &'a [QueryTerm]) -> Weights<'a> {
    let frequency = |term: &String| {
        bags.iter()
            .filter(|bag| bag.counts.contains_key(term))
            .count()
    };
    let is_known = |number: usize| frequency(&terms[number].term) > 0;
    let left = terms
        .iter()
        .enumerate()
        .filter(|(number, query_term)| is_known(*number) && !query_term.is_covered_by(is_known));
    let mut found: Vec<(usize, usize, &String)> = left
        .map(|(place, query_term)| (frequency(&query_term.term), place, &query_term.term))
        .collect();
    found.sort_unstable();
    found.truncate(32);
    let weight = |frequency: usize| {
        let (count, frequency) = (bags.len() as f64, frequency as f64);
        (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln() as f32
    };
    found
        .into_iter()
        .map(|(frequency, _, term)| (term, weight(frequency)))
        .collect()
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "small counts"
)]
fn own(bags: &[Bag], weights: &Weights<'_>) -> Vec<f32> {
    let total: u64 = bags.iter().map(|bag| u64::from(bag.length)).sum();
    let average = (total as f64 / bags.len() as f64).max(f64::MIN_POSITIVE) as f32;
    let own = |bag: &Bag| {
        let damping = 0.9_f32 * (1.0 - 0.4 + 0.4 * (bag.length as f32 / average));
        let mut score = 0.0_f32;
        for (term, weight) in weights {
            if let Some(count) = bag.counts.get(*term) {
                let count = (*count).min(255) as f32;
                score += weight * (0.9 + 1.0) * (count / (count + damping));
            }
        }
        score
    };
    bags.iter().map(own).collect()
}
