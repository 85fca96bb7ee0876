//! A world as one reader may see it, at one position.
//!
//! Every answer to a reader is made from a view and from nothing else. Entry numbers stay inside
//! this crate. A reader gets ids, and places that count *visible* entries, so that hidden entries
//! never change them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::audience::{ClassId, Viewer};
use crate::entry::Entry;
use crate::fact::PocketItem;
use crate::ids::{BundleId, EntryId};
use crate::time::WorldTime;
use crate::world::World;

/// A world as one reader may see it, at one position.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// The world.
    pub world: &'a World,
    /// The reader.
    pub viewer: Viewer,
    classes: Vec<ClassId>,
    at: u32,
}

impl<'a> View<'a> {
    pub(crate) fn new(world: &'a World, viewer: Viewer, at: u32) -> Self {
        let classes = world.classes().visible_to(&viewer);
        Self {
            world,
            viewer,
            classes,
            at,
        }
    }

    /// The audience classes that the reader may see.
    pub fn classes(&self) -> &[ClassId] {
        &self.classes
    }

    /// The number of entries that the view covers, hidden ones included.
    pub fn position(&self) -> u32 {
        self.at
    }

    /// Whether the entry of this number is visible.
    pub(crate) fn is_visible(&self, number: u32) -> bool {
        // Entries behind the position do not exist for the view, whoever may see them.
        let class = self.world.class_of(number).filter(|_| number < self.at);
        class.is_some_and(|class| self.world.classes().can_see(&self.viewer, class))
    }

    /// The entry of this number, if it is visible.
    pub(crate) fn entry_at(&self, number: u32) -> Option<&'a Entry> {
        self.world.entry(number).filter(|_| self.is_visible(number))
    }

    /// The number of an entry, if it is visible.
    pub(crate) fn number_of(&self, id: EntryId) -> Option<u32> {
        self.world
            .number_of(id)
            .filter(|&number| self.is_visible(number))
    }

    /// An entry, if it is visible. Unknown and hidden entries take the same path and get the same
    /// answer.
    pub fn entry(&self, id: EntryId) -> Option<&'a Entry> {
        self.world.entry(self.number_of(id)?)
    }

    /// The visible entries of a bundle; none if the bundle is unknown.
    pub fn entries_of_bundle(&self, id: BundleId) -> impl Iterator<Item = (u32, &'a Entry)> + '_ {
        self.bundle_numbers(id)
            .filter_map(|number| Some((number, self.entry_at(number)?)))
    }

    /// The pocket items of the visible entries of a bundle, in the bundle's order.
    pub fn items_of_bundle(&self, id: BundleId) -> impl Iterator<Item = &'a PocketItem> + '_ {
        let numbers = self.bundle_numbers(id);
        let rows = self.world.items_from(numbers.start);
        rows.take_while(move |row| row.entry < numbers.end)
            .filter(|row| self.is_visible(row.entry))
            .map(|row| &row.item)
    }

    /// The time of the newest visible entry, or the world's start.
    pub fn newest_time(&self) -> &'a WorldTime {
        self.newest_first()
            .next()
            .map_or(&self.world.config.start, |(_, entry)| &entry.time)
    }

    /// Whether the view covers something that was recorded when the world had `position` entries:
    /// no visible entry lies between. Comparing the positions as numbers would reveal hidden
    /// entries.
    pub(crate) fn covers(&self, position: u32) -> bool {
        self.class_lists().all(|list| {
            list.get(list.partition_point(|&n| n < self.at))
                .is_none_or(|&n| n >= position)
        })
    }

    /// The number of visible entries.
    pub fn count(&self) -> u64 {
        self.count_before(self.at)
    }

    /// The number of visible entries with a smaller number.
    pub(crate) fn count_before(&self, number: u32) -> u64 {
        let number = number.min(self.at);
        self.class_lists()
            .map(|list| list.partition_point(|&n| n < number) as u64)
            .sum()
    }

    /// The number of the visible entry with this index, counted from zero. Past the end it is the
    /// view's position.
    pub(crate) fn number_at(&self, place: u64) -> u32 {
        // A binary search over numbers; each step counts with one binary search per class.
        let (mut low, mut high) = (0, self.at);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.count_before(middle + 1) > place {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// The visible entries from a number on, in ledger order. A heap merges the sorted lists of the
    /// classes.
    pub fn entries_from(&self, number: u32) -> impl Iterator<Item = (u32, &'a Entry)> + use<'a> {
        let at = self.at;
        let lists = self.class_lists().filter_map(|list| {
            let rest = list.get(list.partition_point(|&n| n < number)..)?;
            let (&first, rest) = rest.split_first()?;
            Some(Reverse((first, rest)))
        });
        // The heap holds the next entry of each class; the smallest number comes out first.
        let mut heads: BinaryHeap<Reverse<(u32, &'a [u32])>> = lists.collect();
        let world = self.world;
        std::iter::from_fn(move || {
            let Reverse((number, rest)) =
                heads.pop().filter(|Reverse((number, _))| *number < at)?;
            if let Some((&next, rest)) = rest.split_first() {
                heads.push(Reverse((next, rest)));
            }
            Some((number, world.entry(number)?))
        })
    }

    /// The visible entries behind a place, in ledger order.
    pub fn entries_after(&self, place: u64) -> impl Iterator<Item = &'a Entry> + use<'a> {
        self.entries_from(self.number_at(place))
            .map(|(_, entry)| entry)
    }

    /// The entry that an entry replies to, if that one is visible as well.
    pub fn replied_to(&self, entry: &Entry) -> Option<&'a Entry> {
        self.entry(entry.reply_to?)
    }

    /// The visible entries, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = (u32, &'a Entry)> + use<'a> {
        let lists = self.class_lists().filter_map(|list| {
            let (&last, rest) = list
                .get(..list.partition_point(|&n| n < self.at))?
                .split_last()?;
            Some((last, rest))
        });
        // The heap holds the last entry of each class; the greatest number comes out first.
        let mut heads: BinaryHeap<(u32, &'a [u32])> = lists.collect();
        let world = self.world;
        std::iter::from_fn(move || {
            let (number, rest) = heads.pop()?;
            if let Some((&next, rest)) = rest.split_last() {
                heads.push((next, rest));
            }
            Some((number, world.entry(number)?))
        })
    }

    /// The numbers of a bundle's entries, hidden ones included. They are consecutive, because one
    /// append writes the whole bundle.
    fn bundle_numbers(&self, id: BundleId) -> Range<u32> {
        self.world.bundle(id).map_or(0..0, |bundle| {
            bundle.first..bundle.first + bundle.commit.entries
        })
    }

    /// The sorted entry numbers of each visible class.
    fn class_lists(&self) -> impl Iterator<Item = &'a [u32]> + '_ {
        self.classes
            .iter()
            .map(|&class| self.world.classes().entries(class))
    }
}
