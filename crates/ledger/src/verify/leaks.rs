//! Runs of text that their author could not have seen: a report for a person, never a verdict.
//!
//! An agent may have guessed, or have been told outside the ledger. A run counts when it is long, occurs in
//! an earlier private entry that the author may not see, and in no earlier entry that the author may see.

use std::collections::HashMap;

use crate::audience::{Audience, Viewer, can_see};
use crate::entry::{AuthorClass, Entry};
use crate::ids::EntryId;
use crate::world::World;

/// A shorter run says nothing.
pub const LEAK_CHARACTERS: usize = 32;

/// A run that an author could not have seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// Where it is.
    pub entry: EntryId,
    /// Where it was, hidden from the author.
    pub source: EntryId,
    /// The run.
    pub text: String,
}

/// Every run of [`LEAK_CHARACTERS`] of a text, with where it begins and ends.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = text.char_indices().map(|(at, _)| at);
    let ends = text.char_indices().map(|(at, _)| at).skip(LEAK_CHARACTERS).chain([text.len()]);
    let whole = text.chars().nth(LEAK_CHARACTERS - 1).is_some();
    starts
        .zip(ends)
        .filter(move |_| whole)
        .filter_map(move |(start, end)| Some((start, text.get(start..end)?)))
}

/// Where each run occurred first, by audience.
#[derive(Default)]
struct Seen<'a>(HashMap<&'a str, Vec<usize>>);

pub(super) fn find(world: &World) -> Vec<Leak> {
    let entries = world.all_entries();
    let audiences: Vec<Audience> = entries.iter().map(Audience::of).collect();
    let mut seen = Seen::default();
    let mut leaks = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        if entry.author.class == AuthorClass::Person {
            leaks.extend(leak_of(entries, &audiences, &seen, number));
        }
        for (_, run) in runs(&entry.text) {
            let places = seen.0.entry(run).or_default();
            // One place per audience is enough to know who has seen the run.
            if !places.iter().any(|&place| audiences.get(place) == audiences.get(number)) {
                places.push(number);
            }
        }
    }
    leaks
}

/// The first run of an entry that its author could not have seen, made as long as it is.
fn leak_of(entries: &[Entry], audiences: &[Audience], seen: &Seen<'_>, number: usize) -> Option<Leak> {
    let entry = entries.get(number)?;
    let author = Viewer::Reader(entry.author.id.clone());
    let visible = |&place: &usize| audiences.get(place).is_some_and(|audience| can_see(&author, audience));
    runs(&entry.text).find_map(|(start, run)| {
        let places = seen.0.get(run).filter(|places| !places.iter().any(&visible))?;
        let source = entries.get(*places.first()?)?;
        let text = common_run(entry.text.get(start..)?, &source.text, run);
        Some(Leak { entry: entry.id, source: source.id, text: text.to_owned() })
    })
}

/// As much of `text` from its beginning as follows `run` in `source`.
fn common_run<'a>(text: &'a str, source: &str, run: &str) -> &'a str {
    let Some(rest) = source.find(run).and_then(|at| source.get(at..)) else { return "" };
    let same = text.chars().zip(rest.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    text.get(..same).unwrap_or_default()
}
