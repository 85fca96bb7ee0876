//! Finds runs of text that their author could not have seen. The result is a report for a person,
//! never a verdict: an agent may have guessed, or have learned the text outside the ledger.
//!
//! A run counts when it is long, occurs in an earlier private entry that the author may not see,
//! and in no earlier entry that the author may see. The operator is an author like any other. The
//! world has seen what is public and what it wrote itself.
//!
//! Worked example: ANN writes BOB a private sentence of 40 characters, and CAT writes the same
//! sentence publicly without access to the first one. All 32-character windows of the sentence have
//! equal hashes in both entries. CAT saw none of the earlier ones, so each is found, and they merge
//! into one leak.
//!
//! Windows are compared by a rolling hash, one part of all hashes at a time, so a larger ledger
//! takes more time but not more memory. Every reported run was compared character by character.

use crate::audience::{Audience, ClassId, Viewer};
use crate::entry::{AuthorClass, Entry};
use crate::ids::EntryId;
use crate::world::World;

/// Shorter runs are not reported.
pub const LEAK_CHARACTERS: usize = 32;
/// How many windows are sorted at a time.
const WINDOWS_AT_ONCE: usize = 4 << 20;
/// The modulus of the hash.
const PRIME: u64 = (1 << 61) - 1;

/// A run that an author could not have seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The entry that has the run.
    pub entry: EntryId,
    /// An earlier entry that has it, hidden from the author.
    pub source: EntryId,
    /// The run.
    pub text: String,
}

/// A window of [`LEAK_CHARACTERS`] characters in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Window {
    hash: u64,
    entry: u32,
    start: u32,
}

/// A window that its author could not have seen, and an earlier entry that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct UnseenWindow {
    entry: u32,
    start: u32,
    source: u32,
}

/// All leaks in ledger order, each as long as possible.
pub(super) fn find(world: &World) -> Vec<Leak> {
    find_in_parts(world, WINDOWS_AT_ONCE)
}

fn find_in_parts(world: &World, at_once: usize) -> Vec<Leak> {
    let rolling = RollingHash::new(world.all_entries());
    let characters: usize = world
        .all_entries()
        .iter()
        .map(|entry| entry.text.len())
        .sum();
    // Equal windows have equal hashes, so they always fall into the same part.
    // Each part takes the hashes with one remainder, which bounds the memory of the sort.
    let parts = characters.div_ceil(at_once).max(1) as u64;
    let mut found = Vec::new();
    for part in 0..parts {
        let mut windows = list_windows(world, &rolling, |hash| hash % parts == part);
        windows.sort_unstable();
        for same in windows.chunk_by(|one, other| one.hash == other.hash) {
            collect_unseen(world, same, &mut found);
        }
    }
    found.sort_unstable();
    merge_windows(world, &found)
}

/// All windows of the world whose hash is wanted.
fn list_windows(
    world: &World,
    rolling: &RollingHash,
    is_wanted: impl Fn(u64) -> bool,
) -> Vec<Window> {
    let mut windows = Vec::new();
    for (entry, text) in (0..).zip(world.all_entries().iter().map(|entry| &entry.text)) {
        for (start, hash) in rolling.windows(text) {
            if is_wanted(hash) {
                windows.push(Window { hash, entry, start });
            }
        }
    }
    windows
}

/// The first entry of an audience class that has a window.
struct SeenIn {
    class: ClassId,
    entry: u32,
}

/// Collects those of equal windows whose author may see none of the earlier ones.
fn collect_unseen(world: &World, same: &[Window], found: &mut Vec<UnseenWindow>) {
    // One entry per audience class is enough to know who may have seen the window.
    let mut before: Vec<SeenIn> = Vec::new();
    let mut said_by_world = false;
    for runs in same.chunk_by(|one, other| one.entry == other.entry) {
        let Some(number) = runs.first().map(|run| run.entry) else {
            continue;
        };
        let (Some(entry), Some(class)) = (world.entry(number), world.class_of(number)) else {
            continue;
        };
        let is_world = entry.author.class == AuthorClass::World;
        let author = author_viewer(entry);
        let has_seen = |earlier: &SeenIn| world.classes().can_see(&author, earlier.class);
        let is_known = before.iter().any(has_seen) || is_world && said_by_world;
        if let Some(source) = before.first()
            && entry.author.class != AuthorClass::System
            && !is_known
        {
            found.extend(runs.iter().map(|run| UnseenWindow {
                entry: number,
                start: run.start,
                source: source.entry,
            }));
        }
        // The world is one author, who knows its own private words although it reads as the public.
        said_by_world |= is_world;
        // From a public entry on, every author has seen the window.
        if world.classes().audience(class) == Some(&Audience::Public) {
            return;
        }
        if !before.iter().any(|earlier| earlier.class == class) {
            before.push(SeenIn {
                class,
                entry: number,
            });
        }
    }
}

/// The reader as whom the author of an entry reads.
fn author_viewer(entry: &Entry) -> Viewer {
    match entry.author.class {
        AuthorClass::Person | AuthorClass::Operator => Viewer::Reader(entry.author.id.clone()),
        AuthorClass::World | AuthorClass::System => Viewer::Public,
    }
}

/// Merges overlapping windows into runs.
fn merge_windows(world: &World, found: &[UnseenWindow]) -> Vec<Leak> {
    let mut leaks = Vec::new();
    // Windows before this position are inside the run that was reported last.
    let mut end = (0, 0);
    for UnseenWindow {
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

/// The longest beginning of `text` that occurs in `source`; empty if it is shorter than a window.
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

/// A polynomial hash over the last [`LEAK_CHARACTERS`] characters.
struct RollingHash {
    base: u64,
    /// The weight of the first character of a window: the base to the power of the characters
    /// behind it.
    first_weight: u64,
}

impl RollingHash {
    /// Derives the base from all entry ids, which an author of texts cannot know in advance.
    fn new(entries: &[Entry]) -> Self {
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
        let first_weight = (1..LEAK_CHARACTERS).fold(1, |power, _| multiply(power, base));
        Self { base, first_weight }
    }

    /// The start and the hash of each window of a text.
    fn windows<'t>(&self, text: &'t str) -> impl Iterator<Item = (u32, u64)> + use<'t> {
        let (base, first_weight) = (self.base, self.first_weight);
        let mut first = text.char_indices();
        let mut hash = 0;
        text.chars()
            .enumerate()
            .filter_map(move |(number, character)| {
                hash = (multiply(hash, base) + character_code(character)) % PRIME;
                if number + 1 < LEAK_CHARACTERS {
                    return None;
                }
                let run = hash;
                let (start, leaving) = first.next()?;
                // Removes the first character of the window before the next one is added.
                hash = (hash + PRIME - multiply(character_code(leaving), first_weight)) % PRIME;
                Some((u32::try_from(start).ok()?, run))
            })
    }
}

fn character_code(character: char) -> u64 {
    u64::from(u32::from(character)) + 1
}

fn multiply(one: u64, other: u64) -> u64 {
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
            WorldTime::from_timestamp(Timestamp(1)),
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
        let wanted = find_in_parts(&world, usize::MAX);
        assert_eq!(wanted.len(), 2, "{wanted:?}");
        assert_eq!(wanted[1], leak(2, two));
        assert!(
            one.ends_with(&wanted[0].text) && wanted[0].text.ends_with("stone, says Ann"),
            "{wanted:?}"
        );
        for at_once in [1, 7, 100] {
            assert_eq!(find_in_parts(&world, at_once), wanted, "{at_once}");
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
        let rolling = RollingHash {
            base: 1_234_567_891,
            first_weight: (1..LEAK_CHARACTERS).fold(1, |p, _| multiply(p, 1_234_567_891)),
        };
        let run = "äöü 0123456789 0123456789 012345";
        assert_eq!(run.chars().count(), LEAK_CHARACTERS);
        let alone: Vec<_> = rolling.windows(run).collect();
        assert_eq!(alone.len(), 1);
        let text = format!("something before it: {run}");
        assert_eq!(rolling.windows(&text).last().unwrap().1, alone[0].1);
        assert_eq!(rolling.windows(&run[..30]).count(), 0);
    }
}
