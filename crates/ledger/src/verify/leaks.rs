//! Runs of text that their author could not have seen: a report for a person, never a verdict.
//!
//! An agent may have guessed, or have been told outside the ledger. A run counts when it is long,
//! occurs in an earlier private entry that the author may not see, and in no earlier entry that the
//! author may see. The operator is an author like everyone; the world has seen what is public and
//! what it said itself.
//!
//! Runs are compared by a hash that rolls over the characters, a part of all hashes at a time: a
//! larger ledger takes more time, not more memory. What is listed was compared letter by letter.

use crate::audience::{Audience, ClassId, Viewer};
use crate::entry::{AuthorClass, Entry};
use crate::ids::EntryId;
use crate::world::World;

/// A shorter run says nothing.
pub const LEAK_CHARACTERS: usize = 32;
/// Runs that are compared at a time.
const RUNS_AT_ONCE: usize = 4 << 20;
/// Hashes are numbers below this prime.
const PRIME: u64 = (1 << 61) - 1;

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

/// A run of [`LEAK_CHARACTERS`] in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    hash: u64,
    entry: u32,
    start: u32,
}

/// A run that its author could not have seen, and the entry that has it from before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    entry: u32,
    start: u32,
    source: u32,
}

/// Every run, made as long as it is, in ledger order.
pub(super) fn find(world: &World) -> Vec<Leak> {
    find_by(world, RUNS_AT_ONCE)
}

fn find_by(world: &World, at_once: usize) -> Vec<Leak> {
    let rolling = Rolling::of(world.all_entries());
    let characters: usize = world
        .all_entries()
        .iter()
        .map(|entry| entry.text.len())
        .sum();
    let parts = characters.div_ceil(at_once).max(1) as u64;
    let mut found = Vec::new();
    for part in 0..parts {
        let mut runs: Vec<Run> = Vec::new();
        for (number, entry) in (0..).zip(world.all_entries()) {
            let hashes = rolling
                .runs(&entry.text)
                .filter(|(_, hash)| hash % parts == part);
            runs.extend(hashes.map(|(start, hash)| Run {
                hash,
                entry: number,
                start,
            }));
        }
        runs.sort_unstable();
        runs.chunk_by(|one, other| one.hash == other.hash)
            .for_each(|same| unseen(world, same, &mut found));
    }
    found.sort_unstable();
    longest(world, &found)
}

/// Those of equal runs whose author had seen none of the ones before.
fn unseen(world: &World, same: &[Run], found: &mut Vec<Found>) {
    // One place per audience is enough to know who has seen the run.
    let mut before: Vec<(ClassId, u32)> = Vec::new();
    let mut said_by_world = false;
    for runs in same.chunk_by(|one, other| one.entry == other.entry) {
        let Some((number, entry, class)) = runs.first().and_then(|run| {
            Some((
                run.entry,
                world.entry(run.entry)?,
                world.class_of(run.entry)?,
            ))
        }) else {
            continue;
        };
        let is_world = entry.author.class == AuthorClass::World;
        let author = eyes(entry);
        let seen = before
            .iter()
            .any(|(class, _)| world.classes().can_see(&author, *class));
        if let Some((_, source)) = before.first()
            && entry.author.class != AuthorClass::System
            && !(seen || is_world && said_by_world)
        {
            found.extend(runs.iter().map(|run| Found {
                entry: number,
                start: run.start,
                source: *source,
            }));
        }
        said_by_world |= is_world;
        if world.classes().audience(class) == Some(&Audience::Public) {
            return;
        }
        if !before.iter().any(|(known, _)| *known == class) {
            before.push((class, number));
        }
    }
}

/// With whose eyes an entry's author reads.
fn eyes(entry: &Entry) -> Viewer {
    match entry.author.class {
        AuthorClass::Person | AuthorClass::Operator => Viewer::Reader(entry.author.id.clone()),
        AuthorClass::World | AuthorClass::System => Viewer::Public,
    }
}

/// What was found, each run once and as long as it is.
fn longest(world: &World, found: &[Found]) -> Vec<Leak> {
    let mut leaks = Vec::new();
    let mut end = (0, 0);
    for Found {
        entry,
        start,
        source,
    } in found
    {
        let (Some(leaking), Some(from)) = (world.entry(*entry), world.entry(*source)) else {
            continue;
        };
        if (*entry, *start as usize) < end {
            continue;
        }
        let text = common_run(
            leaking.text.get(*start as usize..).unwrap_or_default(),
            &from.text,
        );
        if !text.is_empty() {
            end = (*entry, *start as usize + text.len());
            leaks.push(Leak {
                entry: leaking.id,
                source: from.id,
                text: text.to_owned(),
            });
        }
    }
    leaks
}

/// As much of `text` from its beginning as is in `source` too; nothing if that is shorter than a
/// run.
fn common_run<'a>(text: &'a str, source: &str) -> &'a str {
    let run = text
        .char_indices()
        .nth(LEAK_CHARACTERS)
        .map_or(text, |(end, _)| text.get(..end).unwrap_or(text));
    let Some(rest) = source.find(run).and_then(|at| source.get(at..)) else {
        return "";
    };
    let same = text
        .chars()
        .zip(rest.chars())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum();
    text.get(..same).unwrap_or_default()
}

/// A hash over the last [`LEAK_CHARACTERS`] characters.
struct Rolling {
    base: u64,
    /// What the first character of a run weighs: the base to the power of how many follow it.
    gone: u64,
}

impl Rolling {
    /// The base comes from all ids, which nobody knows who could write texts for it.
    fn of(entries: &[Entry]) -> Self {
        let mut ids = blake3::Hasher::new();
        for entry in entries {
            ids.update(&entry.id.0.to_le_bytes());
        }
        let first = ids
            .finalize()
            .as_bytes()
            .first_chunk()
            .copied()
            .unwrap_or_default();
        let base = u64::from_le_bytes(first) % (PRIME - 1_000_000) + 1_000_000;
        let gone = (1..LEAK_CHARACTERS).fold(1, |power, _| times(power, base));
        Self { base, gone }
    }

    /// Where each run of a text begins, and its hash.
    fn runs<'t>(&self, text: &'t str) -> impl Iterator<Item = (u32, u64)> + use<'t> {
        let (base, gone) = (self.base, self.gone);
        let mut first = text.char_indices();
        let mut hash = 0;
        text.chars()
            .enumerate()
            .filter_map(move |(number, character)| {
                hash = (times(hash, base) + code(character)) % PRIME;
                if number + 1 < LEAK_CHARACTERS {
                    return None;
                }
                let run = hash;
                let (start, leaving) = first.next()?;
                hash = (hash + PRIME - times(code(leaving), gone)) % PRIME;
                Some((u32::try_from(start).ok()?, run))
            })
    }
}

fn code(character: char) -> u64 {
    u64::from(u32::from(character)) + 1
}

fn times(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other) % u128::from(PRIME);
    u64::try_from(product).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use turnkeep_types::Timestamp;

    use super::*;
    use crate::config::{Config, Profile};
    use crate::entry::{Author, Channel};
    use crate::fact::Fact;
    use crate::ids::{BundleId, Name};
    use crate::time::WorldTime;

    /// Of which class somebody of this name is, and where the words stand.
    fn voice(author: &str) -> (AuthorClass, Channel) {
        match author {
            "GEORGE" => (AuthorClass::Operator, Channel::User),
            "WORLD" => (AuthorClass::World, Channel::Voice),
            _ => (AuthorClass::Person, Channel::People),
        }
    }

    fn world(entries: &[(&str, Option<&[&str]>, &str)]) -> World {
        let (name, time) = (
            |text: &str| Name::new(text).unwrap(),
            WorldTime::at(Timestamp(1)),
        );
        let mut world = World::new(Config::new(name("w"), Profile::Narrative, time.clone()));
        for (number, (author, readers, text)) in (1..).zip(entries) {
            let (class, channel) = voice(author);
            world.apply(Fact::Entry(Entry {
                id: EntryId(number),
                bundle: BundleId(number),
                request: Arc::from("r"),
                time: time.clone(),
                author: Author {
                    class,
                    id: name(author),
                },
                label: "L".into(),
                visible_to: readers
                    .map(|readers| readers.iter().map(|reader| name(reader)).collect()),
                channel,
                text: (*text).into(),
                reply_to: None,
            }));
        }
        world
    }

    #[test]
    fn every_run_is_listed_and_how_many_are_compared_at_a_time_changes_nothing() {
        let one = "the first secret is ünder the blue stone, says Ann";
        let two = "the second one is behind the old door of the barn.";
        let both = format!("I heard: {one}; and also: {two} Really!");
        let short = &one[..31];
        let world = world(&[
            ("ANN", Some(&["BOB"]), one),
            ("ANN", Some(&["BOB"]), two),
            ("CAT", None, short),
            (
                "BOB",
                None,
                "the first secret is ünder the blue stone, he knows",
            ),
            ("CAT", None, &both),
            ("DAN", None, &both),
        ]);
        let leak = |source, text: &str| Leak {
            entry: EntryId(5),
            source: EntryId(source),
            text: text.to_owned(),
        };
        // What BOB said of the first is public: only the rest of it is news.
        let wanted = find_by(&world, usize::MAX);
        assert_eq!(wanted.len(), 2, "{wanted:?}");
        assert_eq!(wanted[1], leak(2, two));
        assert!(
            one.ends_with(&wanted[0].text) && wanted[0].text.ends_with("stone, says Ann"),
            "{wanted:?}"
        );
        for at_once in [1, 7, 100] {
            assert_eq!(find_by(&world, at_once), wanted, "{at_once}");
        }
    }

    #[test]
    fn the_world_and_the_operator_leak_like_everyone() {
        let secret = "the key is under the third stone from the gate";
        let to: fn(&'static str) -> Option<&'static [&'static str]> = |reader| match reader {
            "BOB" => Some(&["BOB"]),
            "GEORGE" => Some(&["GEORGE"]),
            _ => None,
        };
        // Who told it to whom, who said it next to whom, and which entries have words from which.
        for (first, then, expect) in [
            (("ANN", to("BOB")), ("WORLD", None), vec![(2, 1)]),
            (("ANN", to("BOB")), ("GEORGE", None), vec![(2, 1)]),
            (("ANN", to("BOB")), ("CAT", None), vec![(2, 1)]),
            (("ANN", to("GEORGE")), ("GEORGE", None), vec![]),
            (("ANN", to("BOB")), ("BOB", None), vec![]),
            (("WORLD", to("BOB")), ("WORLD", None), vec![]),
            (("WORLD", to("BOB")), ("GEORGE", None), vec![(2, 1)]),
            (("GEORGE", to("BOB")), ("GEORGE", None), vec![]),
            (("GEORGE", to("BOB")), ("WORLD", to("BOB")), vec![(2, 1)]),
            (("ANN", None), ("WORLD", None), vec![]),
        ] {
            let world = world(&[(first.0, first.1, secret), (then.0, then.1, secret)]);
            let found: Vec<_> = find(&world)
                .iter()
                .map(|leak| (leak.entry.0, leak.source.0))
                .collect();
            assert_eq!(found, expect, "{first:?} {then:?}");
        }
    }

    #[test]
    fn the_hash_of_a_run_does_not_depend_on_what_was_before_it() {
        let rolling = Rolling {
            base: 1_234_567_891,
            gone: (1..LEAK_CHARACTERS).fold(1, |p, _| times(p, 1_234_567_891)),
        };
        let run = "äöü 0123456789 0123456789 012345";
        assert_eq!(run.chars().count(), LEAK_CHARACTERS);
        let alone: Vec<_> = rolling.runs(run).collect();
        assert_eq!(alone.len(), 1);
        let text = format!("something before it: {run}");
        assert_eq!(rolling.runs(&text).last().unwrap().1, alone[0].1);
        assert_eq!(rolling.runs(&run[..30]).count(), 0);
    }
}
