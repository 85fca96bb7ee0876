//! The ranking written down as plainly as it can be, from the visible entries alone.

use std::collections::HashMap;

use super::super::query::{Wanted, Wish};
use super::super::words::{Role, words};
use super::super::{
    NEIGHBOUR, REACH_MILLIS, RERANKED, RERANKED_SMALL, SESSION, SESSION_STEPS, SMALL, Window,
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
}

struct Bag {
    counts: HashMap<String, u32>,
    length: u32,
}

impl Bag {
    fn of(entry: &Owned) -> Self {
        let mut bag = Self { counts: HashMap::new(), length: 0 };
        for (text, counted) in [(&entry.label, true), (&entry.text, true), (&entry.date, false)] {
            words(text, |word| {
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

    /// The hits by their place among the visible entries, with the bits of their scores.
    pub(super) fn search(&self, asked: &Asked) -> Vec<(usize, u32)> {
        let wanted = Wanted::of(&asked.text);
        let passes = |place: &usize| self.passes(*place, asked, &wanted);
        if wanted.is_out_of_reach() {
            return Vec::new();
        }
        if wanted.terms.is_empty() {
            let newest = (0..self.visible.len()).rev().filter(passes);
            return newest.map(|place| (place, 0)).take(asked.limit).collect();
        }
        let weights = weights(&self.bags, &wanted.terms);
        let own: Vec<f32> = own(&self.bags, &weights);
        let is_hit = |(_, score): &(usize, f32)| *score > 0.0 || !wanted.phrases.is_empty();
        let joint = |place: usize| (place, self.joint(place, &own, &weights));
        let mut hits: Vec<(usize, f32)> =
            (0..self.visible.len()).filter(passes).map(joint).filter(is_hit).collect();
        sort(&mut hits);
        let depth = if self.visible.len() as u64 <= SMALL { RERANKED_SMALL } else { RERANKED };
        let first = hits.len().min(depth);
        for (place, score) in &mut hits[..first] {
            *score += SESSION * self.said_around(*place, &weights);
        }
        sort(&mut hits[..first]);
        hits.into_iter().take(asked.limit).map(|(place, score)| (place, score.to_bits())).collect()
    }

    fn passes(&self, place: usize, asked: &Asked, wanted: &Wanted<'_>) -> bool {
        let entry = self.visible[place];
        asked.author.as_ref().is_none_or(|author| *author == entry.author)
            && asked.window.holds(entry.time)
            && wanted.phrases.iter().all(|phrase| entry.text.contains(phrase))
    }

    fn has(&self, place: usize, term: &String) -> bool {
        self.bags[place].counts.contains_key(term)
    }

    fn step(&self, place: usize, by: isize) -> Option<usize> {
        let next = place.checked_add_signed(by).filter(|next| *next < self.visible.len())?;
        let gap = self.visible[place].time.abs_diff(self.visible[next].time);
        (gap <= REACH_MILLIS).then_some(next)
    }

    fn joint(&self, place: usize, own: &[f32], weights: &Weights<'_>) -> f32 {
        let lent = |by: isize| {
            let Some(from) = self.step(place, by) else { return 0.0 };
            let all = weights.iter().filter(|(term, _)| self.has(from, term));
            let lacking = all.clone().filter(|(term, _)| !self.has(place, term)).map(|(_, weight)| weight);
            let lacking = lacking.sum::<f32>();
            if lacking == 0.0 {
                0.0
            } else {
                own[from] * (lacking / all.map(|(_, weight)| weight).sum::<f32>())
            }
        };
        own[place] + NEIGHBOUR * (lent(-1) + lent(1))
    }

    fn said_around(&self, place: usize, weights: &Weights<'_>) -> f32 {
        let mut around = vec![place];
        for by in [-1, 1] {
            let steps = std::iter::successors(self.step(place, by), |place| self.step(*place, by));
            around.extend(steps.take(SESSION_STEPS));
        }
        let is_said = |term: &String| around.iter().any(|place| self.has(*place, term));
        weights.iter().filter(|(term, _)| is_said(term)).map(|(_, weight)| weight).sum()
    }
}

fn sort(hits: &mut [(usize, f32)]) {
    hits.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "small counts")]
fn weights<'a>(bags: &[Bag], terms: &'a [Wish]) -> Weights<'a> {
    let frequency = |term: &String| bags.iter().filter(|bag| bag.counts.contains_key(term)).count();
    let is_known = |number: usize| frequency(&terms[number].term) > 0;
    let left =
        terms.iter().enumerate().filter(|(number, wish)| is_known(*number) && !wish.is_said_by(is_known));
    let mut found: Vec<(usize, usize, &String)> =
        left.map(|(place, wish)| (frequency(&wish.term), place, &wish.term)).collect();
    found.sort_unstable();
    found.truncate(32);
    let weight = |frequency: usize| {
        let (count, frequency) = (bags.len() as f64, frequency as f64);
        (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln() as f32
    };
    found.into_iter().map(|(frequency, _, term)| (term, weight(frequency))).collect()
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "small counts")]
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
