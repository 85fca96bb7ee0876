//! The entries and items that a beat is about to commit. The answer shows them before they are
//! durable in the world; it is sent afterwards.
//!
//! Visibility is decided by the same `can_see` as for committed entries.

use crate::audience::{Audience, can_see};
use crate::entry::Entry;
use crate::fact::PocketItem;
use crate::view::View;

/// Entries and items behind the end of a world.
#[derive(Debug, Clone, Copy, Default)]
pub struct Staged<'a> {
    /// Entries in ledger order.
    pub entries: &'a [Entry],
    /// Items of these entries.
    pub items: &'a [PocketItem],
}

impl<'a> Staged<'a> {
    /// The entries that the view's reader may see.
    pub fn visible(&self, view: &View<'_>) -> impl Iterator<Item = &'a Entry> {
        self.entries
            .iter()
            .filter(move |entry| can_see(&view.viewer, &Audience::of_entry(entry)))
    }

    /// The items that the view's reader may see, with their sources.
    pub fn items(&self, view: &View<'_>) -> impl Iterator<Item = (&'a PocketItem, &'a Entry)> {
        let entries = self.entries;
        let source = move |item: &PocketItem| entries.iter().find(|entry| entry.id == item.entry);
        let visible = move |entry: &&Entry| can_see(&view.viewer, &Audience::of_entry(entry));
        self.items
            .iter()
            .filter_map(move |item| Some((item, source(item).filter(visible)?)))
    }
}
