//! What a reader could see at an earlier time, and how two readers differ.
//!
//! A time covers everything up to and including it. A cursor covers everything that its holder had
//! read. A person's own past is made from that person's view alone. The difference between two
//! people is for the audit, because it names entries that one of them may not see.

use crate::audience::Viewer;
use crate::cursor;
use crate::entry::Entry;
use crate::fault::{Code, Fault};
use crate::time::WorldTime;
use crate::view::View;
use crate::world::World;

/// Entries per answer.
pub const ENTRIES_MAX: usize = 500;
/// Bytes of text per answer. An answer always has at least one entry.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// How many entries a difference visits.
const SCAN_ENTRIES_MAX: usize = 200_000;

/// A point in a world's past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// A time, and the number of entries up to it.
    Time(WorldTime, u32),
    /// A number of entries.
    Entries(u32),
}

impl Point {
    /// Parses a time, or a cursor of the reader.
    pub fn read(world: &World, viewer: &Viewer, as_of: &str, path: &str) -> Result<Self, Fault> {
        match WorldTime::parse_in(as_of, &world.clock.timezone, path) {
            Ok(time) => {
                let entries = entries_until(world, &time);
                Ok(Self::Time(time, entries))
            }
            // An ambiguous local time is a time; only a text that is no time can be a cursor.
            Err(fault) if fault.code != Code::TimeFormat => Err(fault),
            Err(_) => entries_at_cursor(world, viewer, as_of, path).map(Self::Entries),
        }
    }

    /// Whether a record belongs to the past up to this point. There were `so_far` entries before
    /// the record; it left the world at time `then` with `position` entries. A record without
    /// entries belongs to the past of the next entry.
    pub fn covers(&self, so_far: u32, then: &WorldTime, position: u32) -> bool {
        match self {
            Self::Time(time, entries) => then <= time && position <= *entries,
            Self::Entries(entries) => so_far < *entries,
        }
    }
}

/// The number of entries at a time, or at a reader's cursor.
pub fn position(world: &World, viewer: &Viewer, as_of: &str, path: &str) -> Result<u32, Fault> {
    let (Point::Time(_, entries) | Point::Entries(entries)) =
        Point::read(world, viewer, as_of, path)?;
    Ok(entries)
}

fn entries_until(world: &World, time: &WorldTime) -> u32 {
    // Times never decrease in ledger order, so a binary search works.
    let before = world
        .all_entries()
        .partition_point(|entry| entry.time <= *time);
    u32::try_from(before).unwrap_or(u32::MAX)
}

fn entries_at_cursor(
    world: &World,
    viewer: &Viewer,
    cursor: &str,
    path: &str,
) -> Result<u32, Fault> {
    let view = world.view(viewer.clone());
    let neither = |_| {
        let message =
            "must be a time such as 2026-11-15T09:00:00Z, or a cursor of this world and view";
        Fault::new(Code::BadCursor, path, message)
    };
    let place = cursor::read(&view, cursor, path).map_err(neither)?;
    Ok(place
        .checked_sub(1)
        .map_or(0, |last| view.number_at(last) + 1))
}

/// What a view shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenEntries<'a> {
    /// How many entries are visible.
    pub count: u64,
    /// The cursor behind the last one; `None` if nothing is visible.
    pub cursor: Option<String>,
    /// The newest of them.
    pub newest: NewestEntries<'a>,
}

/// What two views do not both show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewDifference<'a> {
    /// The entries that only the first view shows.
    pub only_view: Vec<&'a Entry>,
    /// The entries that only the other view shows.
    pub only_other: Vec<&'a Entry>,
    /// Whether both lists are complete.
    pub complete: bool,
}

/// Entries in ledger order, and whether these are all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestEntries<'a> {
    /// The entries.
    pub entries: Vec<&'a Entry>,
    /// Whether no older entry was left out.
    pub complete: bool,
}

/// A page of all entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPage<'a> {
    /// The entries.
    pub entries: Vec<&'a Entry>,
    /// The position of the next page.
    pub next: u32,
}

/// The newest entries of a view.
pub fn seen<'a>(view: &View<'a>, limit: usize) -> SeenEntries<'a> {
    let count = view.count();
    SeenEntries {
        count,
        cursor: (count > 0).then(|| cursor::write(view, count)),
        newest: collect_newest(view.newest_first().map(|(_, entry)| entry), limit),
    }
}

/// The entries that only one of two views shows.
pub fn difference<'a>(view: &View<'a>, other: &View<'a>, limit: usize) -> ViewDifference<'a> {
    let only_in = |has: &View<'a>, lacks: &View<'a>| {
        let scanned = has.newest_first().take(SCAN_ENTRIES_MAX);
        let only = scanned
            .filter(|(number, _)| !lacks.is_visible(*number))
            .map(|(_, entry)| entry);
        let mut newest = collect_newest(only, limit);
        // Entries beyond the bound were not compared.
        newest.complete &= has.count() <= SCAN_ENTRIES_MAX as u64;
        newest
    };
    let only_view = only_in(view, other);
    let only_other = only_in(other, view);
    ViewDifference {
        complete: only_view.complete && only_other.complete,
        only_view: only_view.entries,
        only_other: only_other.entries,
    }
}

/// Takes entries from an iterator that runs backwards, as many as fit into an answer.
fn collect_newest<'a>(
    newest_first: impl Iterator<Item = &'a Entry>,
    limit: usize,
) -> NewestEntries<'a> {
    let (mut entries, mut bytes, mut complete) = (Vec::new(), 0, true);
    for entry in newest_first {
        bytes += entry.text.len();
        let is_full = entries.len() == limit.min(ENTRIES_MAX);
        if is_full || (bytes > TEXT_BYTES_MAX && !entries.is_empty()) {
            complete = false;
            break;
        }
        entries.push(entry);
    }
    entries.reverse();
    NewestEntries { entries, complete }
}

/// All entries from a position on, whoever may see them. For the audit.
pub fn everything(world: &World, from: u32, limit: usize) -> EntryPage<'_> {
    let (mut entries, mut bytes, mut next) = (Vec::new(), 0, from);
    for entry in world
        .all_entries()
        .iter()
        .skip(from as usize)
        .take(limit.clamp(1, ENTRIES_MAX))
    {
        bytes += entry.text.len();
        if bytes > TEXT_BYTES_MAX && !entries.is_empty() {
            break;
        }
        entries.push(entry);
        next += 1;
    }
    EntryPage { entries, next }
}

#[cfg(test)]
mod tests {
    use turnkeep_types::Timestamp;

    use super::*;
    use crate::config::{Config, Profile};
    use crate::entry::{Author, AuthorClass, Channel};
    use crate::fact::{BundleCommit, Fact, ProposedBy};
    use crate::ids::{BundleId, EntryId, Name};

    /// A world of entries, each with its minute, its bundle and its only reader besides the author.
    fn world(entries: &[(u64, u128, Option<&str>)]) -> World {
        let start = WorldTime::from_timestamp(Timestamp(0));
        let mut world = World::new(Config::new(
            Name::new("w").unwrap(),
            Profile::Narrative,
            start,
        ));
        for (number, (minute, bundle, reader)) in entries.iter().enumerate() {
            world.apply(Fact::Entry(Entry {
                id: EntryId(number as u128),
                bundle: BundleId(*bundle),
                request: "r".into(),
                time: WorldTime::from_timestamp(Timestamp(minute * 60_000)),
                author: Author {
                    class: AuthorClass::Person,
                    id: Name::new("A").unwrap(),
                },
                label: "A".into(),
                visible_to: reader.map(|reader| [Name::new(reader).unwrap()].into()),
                channel: Channel::People,
                text: format!("text {number}").into(),
                reply_to: None,
            }));
            let last = entries
                .get(number + 1)
                .is_none_or(|(_, next, _)| next != bundle);
            if last {
                let count = entries
                    .iter()
                    .filter(|(_, other, _)| other == bundle)
                    .count();
                world.apply(Fact::Bundle(BundleCommit {
                    id: BundleId(*bundle),
                    request: "r".into(),
                    proposed_by: ProposedBy {
                        engine: "e".into(),
                        actor: "A".into(),
                    },
                    entries: u32::try_from(count).unwrap(),
                }));
            }
        }
        world
    }

    fn reader(name: &str) -> Viewer {
        Viewer::Reader(Name::new(name).unwrap())
    }

    fn texts<'a>(entries: &[&'a Entry]) -> Vec<&'a str> {
        entries.iter().map(|entry| &*entry.text).collect()
    }

    #[test]
    fn a_time_includes_what_was_written_at_it_and_a_cursor_what_was_consumed() {
        let world = world(&[(1, 1, None), (2, 2, Some("B")), (3, 3, None)]);
        let check = |viewer: &str, as_of: &str, expect: u32| {
            assert_eq!(
                position(&world, &reader(viewer), as_of, "as_of"),
                Ok(expect),
                "{viewer} {as_of}"
            );
        };
        check("B", "1970-01-01T00:00:59Z", 0);
        check("B", "1970-01-01T00:01:00Z", 1);
        check("B", "1970-01-01T02:02:00+02:00", 2);
        check("B", "2030-01-01T00:00:00", 3);
        for (viewer, place, expect) in [("B", 0, 0), ("B", 2, 2), ("C", 1, 1), ("C", 2, 3)] {
            check(
                viewer,
                &cursor::write(&world.view(reader(viewer)), place),
                expect,
            );
        }
        let foreign = cursor::write(&world.view(reader("B")), 1);
        for bad in ["yesterday", "", foreign.as_str()] {
            assert_eq!(
                position(&world, &reader("C"), bad, "as_of")
                    .unwrap_err()
                    .code,
                Code::BadCursor,
                "{bad}"
            );
        }
    }

    #[test]
    fn one_s_own_past_holds_what_one_may_see_and_nothing_of_the_rest() {
        let world = world(&[(1, 1, None), (2, 2, Some("B")), (3, 3, None)]);
        let at = |viewer, position| seen(&world.view_at(reader(viewer), position), 10);
        assert_eq!(
            texts(&at("B", 3).newest.entries),
            ["text 0", "text 1", "text 2"]
        );
        assert_eq!(texts(&at("C", 3).newest.entries), ["text 0", "text 2"]);
        assert_eq!(texts(&at("C", 2).newest.entries), ["text 0"]);
        assert_eq!(at("C", 2), at("C", 1), "a hidden entry moves nothing");
        let short = seen(&world.view(reader("B")), 2).newest;
        assert_eq!(
            (texts(&short.entries), short.complete),
            (vec!["text 1", "text 2"], false)
        );
    }

    #[test]
    fn the_difference_says_what_each_saw_alone() {
        let world = world(&[(1, 1, None), (2, 2, Some("B")), (3, 3, Some("C"))]);
        let difference = difference(&world.view(reader("B")), &world.view(reader("C")), 10);
        assert_eq!(texts(&difference.only_view), ["text 1"]);
        assert_eq!(texts(&difference.only_other), ["text 2"]);
        assert_eq!(
            difference.only_view[0].visible_to.as_deref(),
            Some(&[Name::new("B").unwrap()][..])
        );
    }

    #[test]
    fn everything_comes_in_pages() {
        let world = world(&[(1, 1, None), (2, 2, Some("B")), (3, 3, None)]);
        let first = everything(&world, 0, 2);
        assert_eq!((first.entries.len(), first.next), (2, 2));
        let rest = everything(&world, 2, 2);
        assert_eq!((rest.entries.len(), rest.next), (1, 3));
        let end = EntryPage {
            entries: vec![],
            next: 3,
        };
        assert_eq!(
            everything(&world, rest.next, 2),
            end,
            "an auditor goes on from the end"
        );
    }
}
