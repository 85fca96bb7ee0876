//! A world: what its facts amount to.
//!
//! [`World::apply`] is the only mutator, live and in replay; it cannot fail and reads nothing but the fact.
//! Everything here can be rebuilt from the log. Reading goes through a [`View`].

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use turnkeep_types::Timestamp;

use crate::audience::{Audience, Classes, Viewer};
use crate::config::{Config, People};
use crate::entry::{AuthorClass, Entry};
use crate::epoch::Carried;
use crate::fact::{
    AuditLine, BundleCommit, ClockState, Epoch, Fact, Fork, ItemKind, Note, Outcome, PocketItem,
    Scene, Token,
};
use crate::ids::{BundleId, EntryId, ItemId, Name, TokenId};
use crate::numbers::Numbers;
use crate::search::{ClassId, Document, Index, date_words};
use crate::view::View;

/// A bundle and where its entries are.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// What was committed.
    pub commit: BundleCommit,
    /// The number of its first entry.
    pub first: u32,
}

/// A pocket item and the number of its source.
#[derive(Debug, Clone)]
pub struct Pocketed {
    /// The item.
    pub item: PocketItem,
    /// The number of its entry.
    pub entry: u32,
    /// In a world with more entries than this nobody is shown anything by it.
    over: u32,
}

/// A world.
#[derive(Debug)]
pub struct World {
    /// How it is set up.
    pub config: Config,
    /// Who was added.
    pub people: People,
    /// Its time.
    pub clock: ClockState,
    /// Where it was forked from.
    pub forked: Option<Fork>,
    entries: Vec<Entry>,
    class_of: Vec<ClassId>,
    classes: Classes,
    index: Index,
    authored: HashMap<Name, Vec<u32>>,
    entry_numbers: Numbers,
    bundles: HashMap<BundleId, Bundle>,
    items: Vec<Pocketed>,
    /// The numbers of those items that may still be shown to somebody.
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

/// How often the attached writer began anew because it was full, and what the last time took along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rehydrations {
    /// How often.
    pub count: u64,
    /// The last time.
    pub last: Option<Carried>,
}

impl World {
    /// A world in which nothing has happened.
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
            authored: HashMap::new(),
            entry_numbers: Numbers::default(),
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

    /// Takes an index over that has the entries already which are to be applied first. There are
    /// none yet.
    pub(crate) fn adopt(&mut self, index: Index) {
        let count = index.len() as usize;
        self.entries.reserve(count);
        self.class_of.reserve(count);
        self.entry_numbers.reserve(count, |_| None);
        self.index = index;
    }

    /// Takes a fact over.
    pub fn apply(&mut self, fact: Fact) {
        match fact {
            Fact::Entry(entry) => self.push_entry(entry),
            Fact::Time(declaration) => self.clock = declaration.to,
            Fact::Item(item) => self.push_item(item),
            Fact::Bundle(commit) => self.close_bundle(commit),
            Fact::Outcome(outcome) => self.remember(*outcome),
            Fact::Config(config) => self.config = *config,
            Fact::Forked(fork) => self.forked = Some(fork),
            Fact::Person(person) => self.people.add(person),
            Fact::Token(token) => self.give(token),
            Fact::Revoked(token) => drop(self.tokens.remove(&token)),
            Fact::Line(line) => self.note(&line),
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
        let class = self.classes.push(number, &entry);
        if number >= self.index.len() {
            self.index.push(&Document {
                class,
                author: entry.author.id.as_str(),
                label: &entry.label,
                text: &entry.text,
                time: entry.time.unix_ms(),
                date: &date_words(entry.time.date(&self.clock.timezone)),
            });
        }
        match self.authored.get_mut(&entry.author.id) {
            Some(written) => written.push(number),
            None => drop(self.authored.insert(entry.author.id.clone(), vec![number])),
        }
        let id_of = |number| self.entries.get(number as usize).map(|entry| entry.id);
        self.entry_numbers.insert(entry.id, number, id_of);
        self.class_of.push(class);
        self.entries.push(entry);
    }

    fn push_item(&mut self, item: PocketItem) {
        let Some(entry) = self.number_of(item.entry) else {
            return;
        };
        let old = item
            .supersedes
            .and_then(|old| self.item_numbers.get(&old))
            .map(|&old| old as usize);
        let replaced_for_all = old.is_none_or(|old| self.end_item(old, entry));
        // An item without a title only takes another one away.
        let only_ends = item.kind == ItemKind::Calendar && item.title.is_none() && replaced_for_all;
        let over = if only_ends { entry } else { u32::MAX };
        self.item_numbers
            .insert(item.id, u32::try_from(self.items.len()).unwrap_or(u32::MAX));
        if over == u32::MAX {
            self.open_items.insert(self.items.len());
        }
        self.items.push(Pocketed { item, entry, over });
    }

    /// Notes that an item is replaced by one from this entry; tells whether it is so for all who
    /// see it.
    fn end_item(&mut self, old: usize, by: u32) -> bool {
        let Some(Pocketed { item, entry, over }) = self.items.get(old) else {
            return false;
        };
        if *over <= by {
            return true;
        }
        let (before, after) = (self.class_of(*entry), self.class_of(by));
        let is_public =
            after.and_then(|class| self.classes.audience(class)) == Some(&Audience::Public);
        // What it replaced itself must not come back when it is passed over.
        let earlier = item.supersedes.and_then(|earlier| self.item(earlier));
        let is_last = earlier.is_none_or(|earlier| earlier.over <= *entry);
        let for_all = before == after || is_public;
        if let Some(row) = self.items.get_mut(old).filter(|_| for_all && is_last) {
            row.over = by;
            self.open_items.remove(&old);
        }
        for_all && is_last
    }

    fn close_bundle(&mut self, commit: BundleCommit) {
        let first = self.position().saturating_sub(commit.entries);
        self.bundles.insert(commit.id, Bundle { commit, first });
    }

    fn give(&mut self, token: Token) {
        self.secrets.insert(token.secret, token.id);
        self.tokens.insert(token.id, token);
    }

    /// Of all lines of audit only those about rehydrations are shown with the world.
    fn note(&mut self, line: &AuditLine) {
        if let Some(carried) = Carried::read(line) {
            self.rehydrations = Rehydrations {
                count: self.rehydrations.count + 1,
                last: Some(carried),
            };
        }
    }

    fn remember(&mut self, outcome: Outcome) {
        if !outcome.leaves_reality_alone() {
            self.clock = outcome.clock.clone();
        }
        self.outcomes
            .insert(Arc::clone(&outcome.request), Arc::new(outcome));
    }

    /// How many entries there are.
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

    /// How a request ended.
    pub fn outcome(&self, request: &str) -> Option<&Arc<Outcome>> {
        self.outcomes.get(request)
    }

    /// Everything, whoever may see it: for the audit and for verification, never for an answer to a
    /// reader.
    pub fn all_entries(&self) -> &[Entry] {
        &self.entries
    }

    /// An entry, whoever may see it: for the audit, never for an answer to a reader.
    pub fn any_entry(&self, id: EntryId) -> Option<&Entry> {
        self.entry(self.number_of(id)?)
    }

    /// The tokens that count, in no order.
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

    /// The token whose secret has this hash, if it counts at this time.
    pub fn token_at(&self, secret: &[u8; 32], now: Timestamp) -> Option<&Token> {
        self.token_of_secret(secret)
            .filter(|token| token.expires_at.is_none_or(|end| now < end))
    }

    /// Somebody whose name is this one in another spelling, as far as the owner knows without the
    /// audit: who has a token, or wrote or was written to in what the operator may see.
    pub fn spelt_otherwise(&self, id: &Name) -> Option<Name> {
        let operator = self.view(Viewer::operator());
        let holders = self.tokens.values().map(|token| &token.person);
        let authors = self
            .authored
            .iter()
            .filter(|(_, written)| written.iter().any(|n| operator.sees(*n)));
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

    /// The attached writer's present life.
    pub fn epoch(&self) -> Option<&Epoch> {
        self.epoch.as_ref()
    }

    /// How often the attached writer began anew because it was full: for the owner.
    pub fn rehydrations(&self) -> Rehydrations {
        self.rehydrations
    }

    /// What an author is called, as it is fixed in an entry.
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

    /// Everyone who wrote, with the numbers of their entries, whoever may see them.
    pub(crate) fn authors(&self) -> impl Iterator<Item = (&Name, &[u32])> {
        self.authored
            .iter()
            .map(|(author, written)| (author, written.as_slice()))
    }

    pub(crate) fn bundle(&self, id: BundleId) -> Option<&Bundle> {
        self.bundles.get(&id)
    }

    pub(crate) fn classes(&self) -> &Classes {
        &self.classes
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// The pocket items that may be shown to somebody in a world with so many entries, or that keep
    /// others from being shown. Their entries ascend.
    pub(crate) fn items(&self, at: u32) -> Box<dyn Iterator<Item = &Pocketed> + '_> {
        // What is over is so by an entry that is there: it is looked at only for the past.
        if at >= self.position() {
            return Box::new(
                self.open_items
                    .iter()
                    .filter_map(|&number| self.items.get(number)),
            );
        }
        let before = self.items.partition_point(|row| row.entry < at);
        Box::new(
            self.items
                .get(..before)
                .unwrap_or_default()
                .iter()
                .filter(move |row| row.over >= at),
        )
    }

    /// All pocket items from this entry on.
    pub(crate) fn items_from(&self, entry: u32) -> impl Iterator<Item = &Pocketed> {
        self.items
            .get(self.items.partition_point(|row| row.entry < entry)..)
            .unwrap_or_default()
            .iter()
    }

    pub(crate) fn item(&self, id: ItemId) -> Option<&Pocketed> {
        self.items.get(*self.item_numbers.get(&id)? as usize)
    }

    pub(crate) fn scenes(&self) -> &[Scene] {
        &self.scenes
    }

    /// What was noted about a person, the newest last, whoever may know of it.
    pub(crate) fn notes_on(&self, person: &str) -> &[Note] {
        self.notes.get(person).map_or(&[], Vec::as_slice)
    }
}
