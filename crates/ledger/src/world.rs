//! The state of a world, made by applying its facts in order.
//!
//! [`World::apply`] is the only mutator, live and in replay. It cannot fail and reads nothing but
//! the fact. Everything here can be rebuilt from the log. Readers go through a [`View`]; the
//! functions that bypass it say so.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use turnkeep_types::Timestamp;

use crate::audience::{Audience, Classes, Viewer};
use crate::config::{Config, People};
use crate::entry::{AuthorClass, Entry};
use crate::epoch::RehydrationCounts;
use crate::fact::{
    AuditLine, BundleCommit, ClockState, Epoch, Fact, Fork, ItemKind, Note, Outcome, PocketItem,
    Scene, Token,
};
use crate::ids::{BundleId, EntryId, ItemId, Name, TokenId};
use crate::numbers::EntryNumbers;
use crate::search::{ClassId, Document, Index, date_words};
use crate::view::View;

/// A committed bundle and the position of its entries.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// The commit record.
    pub commit: BundleCommit,
    /// The number of its first entry; the others follow.
    pub first: u32,
}

/// A pocket item with its position in the ledger.
#[derive(Debug, Clone)]
pub struct PocketRow {
    /// The item.
    pub item: PocketItem,
    /// The number of the entry that the item comes from.
    pub entry: u32,
    /// The number of the entry that replaced the item for every reader. No view behind that entry
    /// shows the item. `u32::MAX` while it is not replaced.
    replaced_at: u32,
}

/// The state of one world.
#[derive(Debug)]
pub struct World {
    /// The world's configuration.
    pub config: Config,
    /// The people who were added.
    pub people: People,
    /// The world's clock.
    pub clock: ClockState,
    /// The origin, if the world is a fork.
    pub forked: Option<Fork>,
    entries: Vec<Entry>,
    class_of: Vec<ClassId>,
    classes: Classes,
    index: Index,
    /// Entries below this number are in `entry_numbers` before they are applied, and in the index
    /// that [`Self::adopt_index`] brings.
    indexed_before: u32,
    authored: HashMap<Name, Vec<u32>>,
    entry_numbers: EntryNumbers,
    bundles: HashMap<BundleId, Bundle>,
    items: Vec<PocketRow>,
    /// The numbers of the items that a current view may show. A long-lived world replaces most of
    /// its items, so reads of the present skip them.
    open_items: BTreeSet<usize>,
    item_numbers: HashMap<ItemId, u32>,
    outcomes: HashMap<Arc<str>, Arc<Outcome>>,
    tokens: HashMap<TokenId, Token>,
    secrets: HashMap<[u8; 32], TokenId>,
    scenes: Vec<Scene>,
    notes: HashMap<Name, Vec<Note>>,
    epoch: Option<Epoch>,
    rehydrations: Rehydrations,
}

/// How often the attached writer was rehydrated, and the figures of the last time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rehydrations {
    /// How many times.
    pub count: u64,
    /// The figures of the last time.
    pub last: Option<RehydrationCounts>,
}

impl World {
    /// Makes a world without facts.
    pub fn new(config: Config) -> Self {
        let clock = ClockState {
            time: config.start.clone(),
            timezone: config.timezone.clone(),
            paused: false,
        };
        Self {
            config,
            people: People::default(),
            clock,
            forked: None,
            entries: Vec::new(),
            class_of: Vec::new(),
            classes: Classes::default(),
            index: Index::default(),
            indexed_before: 0,
            authored: HashMap::new(),
            entry_numbers: EntryNumbers::default(),
            bundles: HashMap::new(),
            items: Vec::new(),
            open_items: BTreeSet::new(),
            item_numbers: HashMap::new(),
            outcomes: HashMap::new(),
            tokens: HashMap::new(),
            secrets: HashMap::new(),
            scenes: Vec::new(),
            notes: HashMap::new(),
            epoch: None,
            rehydrations: Rehydrations::default(),
        }
    }

    /// Prepares an empty world for `count` entries that need not be indexed, and whose numbers are
    /// known. The caller must then call [`Self::adopt_index`].
    pub(crate) fn expect_index(&mut self, count: u32, numbers: EntryNumbers) {
        self.entries.reserve(count as usize);
        self.class_of.reserve(count as usize);
        self.entry_numbers = numbers;
        self.indexed_before = count;
    }

    /// Takes over the index of the entries that [`Self::expect_index`] announced.
    pub(crate) fn adopt_index(&mut self, index: Index) {
        debug_assert_eq!(index.len(), self.indexed_before);
        self.index = index;
    }

    /// Applies one fact.
    pub fn apply(&mut self, fact: Fact) {
        match fact {
            Fact::Entry(entry) => self.push_entry(entry),
            Fact::Time(declaration) => self.clock = declaration.to,
            Fact::Item(item) => self.push_item(item),
            Fact::Bundle(commit) => self.close_bundle(commit),
            Fact::Outcome(outcome) => self.record_outcome(*outcome),
            Fact::Config(config) => self.config = *config,
            Fact::Forked(fork) => self.forked = Some(fork),
            Fact::Person(person) => self.people.add(person),
            Fact::Token(token) => self.add_token(token),
            // The secret stays in `secrets`, where it leads to no token.
            Fact::Revoked(token) => drop(self.tokens.remove(&token)),
            Fact::AuditLine(line) => self.record_audit_line(&line),
            Fact::Scene(scene) => self.scenes.push(scene),
            Fact::Note(note) => self
                .notes
                .entry(note.person.clone())
                .or_default()
                .push(note),
            Fact::Epoch(epoch) => self.epoch = Some(*epoch),
        }
    }

    fn push_entry(&mut self, entry: Entry) {
        let number = self.position();
        let class = self.classes.add_entry(number, &entry);
        // The index and the numbers of a checkpoint have the first entries.
        if number >= self.indexed_before {
            let id_of = |number| self.entries.get(number as usize).map(|entry| entry.id);
            self.entry_numbers.insert(entry.id, number, id_of);
            self.index.push(&Document {
                class,
                author: entry.author.id.as_str(),
                label: &entry.label,
                text: &entry.text,
                time: entry.time.unix_ms(),
                date: &date_words(entry.time.date(&self.clock.timezone)),
            });
        }
        // Not `entry()`: it would clone the name for each entry of a known author.
        match self.authored.get_mut(&entry.author.id) {
            Some(written) => written.push(number),
            None => drop(self.authored.insert(entry.author.id.clone(), vec![number])),
        }
        self.class_of.push(class);
        self.entries.push(entry);
    }

    fn push_item(&mut self, item: PocketItem) {
        // `apply` cannot fail, so an item without its entry is left out. Acceptance never makes one.
        let Some(entry) = self.number_of(item.entry) else {
            return;
        };
        let old = item
            .supersedes
            .and_then(|old| self.item_numbers.get(&old))
            .map(|&old| old as usize);
        // If the superseded item is gone for every reader, a mere cancellation need not stay open.
        let replaced_for_all = old.is_none_or(|old| self.close_item(old, entry));
        // A calendar item without a title only cancels the item that it supersedes.
        let only_ends = item.kind == ItemKind::Calendar && item.title.is_none() && replaced_for_all;
        let replaced_at = if only_ends { entry } else { u32::MAX };
        self.item_numbers
            .insert(item.id, u32::try_from(self.items.len()).unwrap_or(u32::MAX));
        if replaced_at == u32::MAX {
            self.open_items.insert(self.items.len());
        }
        self.items.push(PocketRow {
            item,
            entry,
            replaced_at,
        });
    }

    /// Marks an item as replaced by one from entry `by`. Returns whether that holds for every
    /// reader.
    fn close_item(&mut self, old: usize, by: u32) -> bool {
        let Some(PocketRow {
            item,
            entry,
            replaced_at,
        }) = self.items.get(old)
        else {
            return false;
        };
        if *replaced_at <= by {
            return true;
        }
        // Every reader of the old item sees the new one if both have the same class or the new one
        // is public.
        let (before, after) = (self.class_of(*entry), self.class_of(by));
        let is_public =
            after.and_then(|class| self.classes.audience(class)) == Some(&Audience::Public);
        // An item that replaced another one for some readers only must stay: without it, those
        // readers would see the older item again.
        let earlier = item.supersedes.and_then(|earlier| self.item(earlier));
        let is_last = earlier.is_none_or(|earlier| earlier.replaced_at <= *entry);
        let for_all = before == after || is_public;
        if let Some(row) = self.items.get_mut(old).filter(|_| for_all && is_last) {
            row.replaced_at = by;
            self.open_items.remove(&old);
        }
        for_all && is_last
    }

    fn close_bundle(&mut self, commit: BundleCommit) {
        // A bundle commit comes directly behind its entries and counts them.
        let first = self.position().saturating_sub(commit.entries);
        self.bundles.insert(commit.id, Bundle { commit, first });
    }

    fn add_token(&mut self, token: Token) {
        self.secrets.insert(token.secret, token.id);
        self.tokens.insert(token.id, token);
    }

    /// Keeps the figures of rehydrations. Other audit lines stay in the log only.
    fn record_audit_line(&mut self, line: &AuditLine) {
        if let Some(carried) = RehydrationCounts::from_line(line) {
            self.rehydrations = Rehydrations {
                count: self.rehydrations.count + 1,
                last: Some(carried),
            };
        }
    }

    fn record_outcome(&mut self, outcome: Outcome) {
        // A rejected proposal without operator input must not move the clock.
        if !outcome.leaves_reality_alone() {
            self.clock = outcome.clock.clone();
        }
        self.outcomes
            .insert(Arc::clone(&outcome.request), Arc::new(outcome));
    }

    /// The number of entries.
    pub fn position(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    /// The world as the viewer may see it now.
    pub fn view(&self, viewer: Viewer) -> View<'_> {
        self.view_at(viewer, self.position())
    }

    /// The world as the viewer could see it when it had `position` entries.
    pub fn view_at(&self, viewer: Viewer, position: u32) -> View<'_> {
        View::new(self, viewer, position.min(self.position()))
    }

    /// The recorded outcome of a request.
    pub fn outcome(&self, request: &str) -> Option<&Arc<Outcome>> {
        self.outcomes.get(request)
    }

    /// All entries, whoever may see them. For the audit and for verification, never for an answer
    /// to a reader.
    pub fn all_entries(&self) -> &[Entry] {
        &self.entries
    }

    /// An entry, whoever may see it. For the audit, never for an answer to a reader.
    pub fn any_entry(&self, id: EntryId) -> Option<&Entry> {
        self.entry(self.number_of(id)?)
    }

    /// The tokens that are not revoked, in no order.
    pub fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.tokens.values()
    }

    /// The token of this id.
    pub fn token(&self, id: TokenId) -> Option<&Token> {
        self.tokens.get(&id)
    }

    /// The token whose secret has this hash.
    pub fn token_of_secret(&self, secret: &[u8; 32]) -> Option<&Token> {
        self.tokens.get(self.secrets.get(secret)?)
    }

    /// The token whose secret has this hash, if it has not expired.
    pub fn token_at(&self, secret: &[u8; 32], now: Timestamp) -> Option<&Token> {
        self.token_of_secret(secret)
            .filter(|token| token.expires_at.is_none_or(|end| now < end))
    }

    /// Finds a person whose name differs from this one only in upper and lower case. It considers
    /// token holders, and authors and readers of entries that the operator may see; hidden names
    /// stay hidden.
    pub fn find_other_spelling(&self, id: &Name) -> Option<Name> {
        // Names that occur only in entries hidden from the operator must stay unknown to the owner.
        let operator = self.view(Viewer::operator());
        let holders = self.tokens.values().map(|token| &token.person);
        let authors = self
            .authored
            .iter()
            .filter(|(_, written)| written.iter().any(|n| operator.is_visible(*n)));
        let audiences =
            operator
                .classes()
                .iter()
                .filter_map(|class| match self.classes.audience(*class)? {
                    Audience::Public => None,
                    Audience::Readers(readers) => Some(readers.iter()),
                });
        let mut used = holders
            .chain(authors.map(|(author, _)| author))
            .chain(audiences.flatten());
        used.find(|used| *used != id && used.as_str().eq_ignore_ascii_case(id.as_str()))
            .cloned()
    }

    /// The current epoch of the attached writer.
    pub fn epoch(&self) -> Option<&Epoch> {
        self.epoch.as_ref()
    }

    /// How often the attached writer was rehydrated, for the owner.
    pub fn rehydrations(&self) -> Rehydrations {
        self.rehydrations
    }

    /// The label that a new entry of this author gets.
    pub fn label_of(&self, class: AuthorClass, id: &str) -> Arc<str> {
        match class {
            AuthorClass::Operator => self.config.operator_label.as_str().into(),
            _ => self
                .people
                .get(id)
                .map_or(id, |person| &person.label)
                .into(),
        }
    }

    pub(crate) fn entry(&self, number: u32) -> Option<&Entry> {
        self.entries.get(number as usize)
    }

    pub(crate) fn class_of(&self, number: u32) -> Option<ClassId> {
        self.class_of.get(number as usize).copied()
    }

    pub(crate) fn number_of(&self, id: EntryId) -> Option<u32> {
        self.entry_numbers
            .find(id, |number| self.entry(number).map(|entry| entry.id))
    }

    /// The entries of an author, ascending, whoever may see them.
    pub(crate) fn authored_by(&self, id: &str) -> &[u32] {
        self.authored.get(id).map_or(&[], Vec::as_slice)
    }

    /// All authors with the numbers of their entries, whoever may see them.
    pub(crate) fn authors(&self) -> impl Iterator<Item = (&Name, &[u32])> {
        self.authored
            .iter()
            .map(|(author, written)| (author, written.as_slice()))
    }

    pub(crate) fn bundle(&self, id: BundleId) -> Option<&Bundle> {
        self.bundles.get(&id)
    }

    /// All bundles, in no order.
    pub(crate) fn bundles(&self) -> impl Iterator<Item = &Bundle> {
        self.bundles.values()
    }

    /// All outcomes, in no order.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &Arc<Outcome>> {
        self.outcomes.values()
    }

    pub(crate) fn classes(&self) -> &Classes {
        &self.classes
    }

    pub(crate) fn entry_numbers(&self) -> &EntryNumbers {
        &self.entry_numbers
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// The pocket items that a view at this position may show, or that hide others. Their entries
    /// ascend.
    pub(crate) fn items(&self, at: u32) -> Box<dyn Iterator<Item = &PocketRow> + '_> {
        // Only a view of the past can still show an item that was replaced since.
        if at >= self.position() {
            return Box::new(
                self.open_items
                    .iter()
                    .filter_map(|&number| self.items.get(number)),
            );
        }
        // Items are in the order of their entries.
        let before = self.items.partition_point(|row| row.entry < at);
        Box::new(
            self.items
                .get(..before)
                .unwrap_or_default()
                .iter()
                .filter(move |row| row.replaced_at >= at),
        )
    }

    /// All pocket items from this entry on.
    pub(crate) fn items_from(&self, entry: u32) -> impl Iterator<Item = &PocketRow> {
        self.items
            .get(self.items.partition_point(|row| row.entry < entry)..)
            .unwrap_or_default()
            .iter()
    }

    pub(crate) fn item(&self, id: ItemId) -> Option<&PocketRow> {
        self.items.get(*self.item_numbers.get(&id)? as usize)
    }

    pub(crate) fn scenes(&self) -> &[Scene] {
        &self.scenes
    }

    /// The notes about a person, the newest last, whoever may see them.
    pub(crate) fn notes_on(&self, person: &str) -> &[Note] {
        self.notes.get(person).map_or(&[], Vec::as_slice)
    }
}
