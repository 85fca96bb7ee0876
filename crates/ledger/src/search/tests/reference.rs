//! The ranking written down as plainly as it can be, from the visible entries alone.

use std::collections::HashMap;

use super::super::query::{Wanted, Wish};
use super::super::words::{Role, words};
use super::super::{NEIGHBOUR, REACH_MILLIS, RERANKED, SESSION, SESSION_STEPS, Window};

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

/// The hits among visible entries, by their place among them, with the bits of their scores.
pub(super) fn search(visible: &[&Owned], asked: &Asked) -> Vec<(usize, u32)> {
    let wanted = Wanted::of(&asked.text);
    let passes = |place: &usize| {
        let entry = visible[*place];
        asked.author.as_ref().is_none_or(|author| *author == entry.author)
            && asked.window.holds(entry.time)
            && wanted.phrases.iter().all(|phrase| entry.text.contains(phrase))
    };
    if wanted.terms.is_empty() {
        return (0..visible.len()).rev().filter(passes).map(|place| (place, 0)).take(asked.limit).collect();
    }
    let bags: Vec<Bag> = visible.iter().map(|entry| Bag::of(entry)).collect();
    let weights = weights(&bags, &wanted.terms);
    let own: Vec<f32> = bags.iter().map(|bag| own(bag, &bags, &weights)).collect();
    let near = |one: usize, other: usize| visible[one].time.abs_diff(visible[other].time) <= REACH_MILLIS;
    let before = |place: usize| place.checked_sub(1).filter(|other| near(*other, place));
    let after = |place: usize| Some(place + 1).filter(|other| *other < visible.len() && near(place, *other));
    let has = |place: usize, term: &String| bags[place].counts.contains_key(term);
    let lent = |place: Option<usize>, to: usize| {
        let Some(from) = place else { return 0.0 };
        let all = weights.iter().filter(|(term, _)| has(from, term));
        let lacking = all.clone().filter(|(term, _)| !has(to, term));
        let (all, lacking) =
            (all.map(|(_, weight)| weight).sum::<f32>(), lacking.map(|(_, weight)| weight).sum::<f32>());
        if lacking == 0.0 { 0.0 } else { own[from] * (lacking / all) }
    };
    let joint =
        |place: usize| own[place] + NEIGHBOUR * (lent(before(place), place) + lent(after(place), place));
    let is_hit = |(_, score): &(usize, f32)| *score > 0.0 || !wanted.phrases.is_empty();
    let mut hits: Vec<(usize, f32)> =
        (0..visible.len()).filter(passes).map(|place| (place, joint(place))).filter(is_hit).collect();
    sort(&mut hits);
    let first = hits.len().min(RERANKED);
    for (place, score) in &mut hits[..first] {
        let mut around = vec![*place];
        for step in [&before as &dyn Fn(usize) -> Option<usize>, &after] {
            let steps = std::iter::successors(step(*place), |place| step(*place));
            around.extend(steps.take(SESSION_STEPS));
        }
        let said = weights.iter().filter(|(term, _)| around.iter().any(|place| has(*place, term)));
        *score += SESSION * said.map(|(_, weight)| *weight).sum::<f32>();
    }
    sort(&mut hits[..first]);
    hits.into_iter().take(asked.limit).map(|(place, score)| (place, score.to_bits())).collect()
}

fn sort(hits: &mut [(usize, f32)]) {
    hits.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "small counts")]
fn weights<'a>(bags: &[Bag], terms: &'a [Wish]) -> Vec<(&'a String, f32)> {
    let frequency = |term: &String| bags.iter().filter(|bag| bag.counts.contains_key(term)).count();
    let is_known = |number: usize| frequency(&terms[number].term) > 0;
    let left =
        terms.iter().enumerate().filter(|(number, wish)| is_known(*number) && !wish.is_said_by(is_known));
    let mut found: Vec<(usize, usize, &String)> =
        left.map(|(place, wish)| (frequency(&wish.term), place, &wish.term)).collect();
    found.sort_unstable();
    found.truncate(32);
    found.sort_unstable_by_key(|(_, place, _)| *place);
    let weight = |frequency: usize| {
        let (count, frequency) = (bags.len() as f64, frequency as f64);
        (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln() as f32
    };
    found.into_iter().map(|(frequency, _, term)| (term, weight(frequency))).collect()
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "small counts")]
fn own(bag: &Bag, bags: &[Bag], weights: &[(&String, f32)]) -> f32 {
    let total: u64 = bags.iter().map(|bag| u64::from(bag.length)).sum();
    let average = (total as f64 / bags.len() as f64).max(f64::MIN_POSITIVE) as f32;
    let damping = 0.9_f32 * (1.0 - 0.4 + 0.4 * (bag.length as f32 / average));
    let mut score = 0.0_f32;
    for (term, weight) in weights {
        if let Some(count) = bag.counts.get(*term) {
            let count = (*count).min(255) as f32;
            score += weight * (0.9 + 1.0) * (count / (count + damping));
        }
    }
    score
}
