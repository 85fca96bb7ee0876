//! Verification: checks offline that the records of a world fit together.
//!
//! Facts are read in order and applied to a fresh world; each is checked against the world before
//! it. Bundles must be whole and in sequence, time must never go back, cited entries must exist,
//! packs must quote what they cite, and recorded answers must be reproducible. Nothing is repaired:
//! every misfit is reported.

mod leaks;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde_json::Value;
use turnkeep_store::Store;
use turnkeep_types::TurnId;

use crate::audience::Viewer;
use crate::entry::{AuthorClass, Channel, Entry};
use crate::epoch;
use crate::fact::{BundleCommit, Fact, Outcome, PocketItem, RequestKind, Span};
use crate::ids::{EntryId, ItemId, Name};
use crate::log::{LoadError, WorldContexts, WorldLog};
use crate::outcome;
use crate::time::WorldTime;
use crate::world::World;

pub use leaks::{LEAK_CHARACTERS, Leak};

/// A record that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The turn that holds it.
    pub turn: TurnId,
    /// What is wrong.
    pub what: String,
}

/// What a verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Checked entries.
    pub entries: u32,
    /// Checked bundles.
    pub bundles: u32,
    /// Answers that were made again.
    pub answers: u32,
    /// Answers that can only be made again with the original request.
    pub answers_skipped: u32,
    /// The misfits; empty for a sound world.
    pub misfits: Vec<Misfit>,
}

impl Report {
    /// Whether everything fits.
    pub fn is_sound(&self) -> bool {
        self.misfits.is_empty()
    }
}

/// Checks the world in these contexts; `None` without a configuration. A record that cannot be read
/// is a misfit and ends the check, because later records mean nothing without it.
pub fn verify(store: &Store, contexts: WorldContexts) -> Result<Option<Report>, LoadError> {
    let mut checker: Option<Checker> = None;
    let read = WorldLog::new(contexts).read_new_facts(store, |turn, fact| {
        if let (None, Fact::Config(config)) = (&checker, &fact) {
            checker = Some(Checker::new(World::new((**config).clone())));
        }
        if let Some(checker) = &mut checker {
            checker.check_fact(turn, fact, RecordOrigin::of_turn(store, contexts, turn));
        }
    });
    let Err(error) = read else {
        return Ok(checker.map(Checker::finish));
    };
    let Some(turn) = error.turn() else {
        return Err(error);
    };
    // The records before the damage were checked, so their result is kept.
    let mut report = checker.map(|checker| checker.report).unwrap_or_default();
    report.misfits.push(Misfit {
        turn,
        what: format!("it cannot be read: {error}"),
    });
    Ok(Some(report))
}

/// Finds runs of text that their author could not have seen.
pub fn leaks(world: &World) -> Vec<Leak> {
    leaks::find(world)
}

/// Where a record was written. A fork shares records with its origin, whose name is part of its
/// packs' hashes, so those packs are checked in the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordOrigin {
    Own,
    Shared,
}

impl RecordOrigin {
    fn of_turn(store: &Store, contexts: WorldContexts, turn: TurnId) -> Self {
        match store.turn(turn) {
            Ok(turn) if contexts.all().contains(&turn.context) => Self::Own,
            _ => Self::Shared,
        }
    }
}

/// The world so far, and what the next records are checked against.
struct Checker {
    world: World,
    report: Report,
    entry_ids: HashSet<EntryId>,
    item_ids: HashSet<ItemId>,
    /// Everyone in whose name an attached writer was ever allowed to write.
    writers: HashSet<Name>,
    /// Entries since the last bundle commit.
    open: Vec<Entry>,
    last_turn: Option<TurnId>,
    last_time: Option<WorldTime>,
}

impl Checker {
    fn new(world: World) -> Self {
        Self {
            world,
            report: Report::default(),
            entry_ids: HashSet::new(),
            item_ids: HashSet::new(),
            writers: HashSet::new(),
            open: Vec::new(),
            last_turn: None,
            last_time: None,
        }
    }

    fn add_misfit(&mut self, turn: TurnId, what: impl Into<String>) {
        self.report.misfits.push(Misfit {
            turn,
            what: what.into(),
        });
    }

    fn check_fact(&mut self, turn: TurnId, fact: Fact, origin: RecordOrigin) {
        self.last_turn = Some(turn);
        if let Fact::Config(config) = &fact {
            self.writers
                .extend(config.writer_persons.iter().flatten().cloned());
        }
        let mut faults = match &fact {
            Fact::Entry(entry) => self.check_entry(entry),
            Fact::Item(item) => self.check_item(item),
            Fact::Bundle(commit) => self.check_bundle(commit),
            Fact::Scene(scene) => self.check_cited(&scene.cited, scene.position),
            Fact::Note(note) => self.check_cited(&note.cited, note.position),
            Fact::Time(declaration) if declaration.to.time < declaration.from => {
                vec!["a declared time goes back".to_owned()]
            }
            Fact::Epoch(epoch) if origin == RecordOrigin::Own && !self.is_valid_epoch(epoch) => {
                vec![format!(
                    "the packs of epoch {} quote what no view shows",
                    epoch.number
                )]
            }
            _ => Vec::new(),
        };
        // The answer shows the world after the beat, so the outcome is checked after `apply`.
        let outcome = match &fact {
            Fact::Outcome(outcome) => Some((**outcome).clone()),
            _ => None,
        };
        self.world.apply(fact);
        faults.extend(outcome.and_then(|outcome| self.check_outcome(&outcome)));
        for what in faults {
            self.add_misfit(turn, what);
        }
    }

    fn check_bundle(&mut self, commit: &BundleCommit) -> Vec<String> {
        let is_whole = self.open.len() == commit.entries as usize
            && self
                .open
                .iter()
                .all(|entry| entry.bundle == commit.id && entry.request == commit.request);
        self.open.clear();
        self.report.bundles += 1;
        if is_whole {
            return Vec::new();
        }
        vec![format!(
            "bundle {} is not made of the entries before it",
            commit.id
        )]
    }

    fn check_entry(&mut self, entry: &Entry) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |holds: bool, what: &str| {
            if !holds {
                faults.push(format!("entry {}: {what}", entry.id));
            }
        };
        check(self.entry_ids.insert(entry.id), "its id was given before");
        check(
            self.last_time
                .as_ref()
                .is_none_or(|last| *last <= entry.time),
            "its time goes back",
        );
        check(
            Channel::for_class(entry.author.class) == entry.channel,
            "its channel does not fit its author",
        );
        check(!entry.text.is_empty(), "it has no text");
        check(
            entry
                .visible_to
                .as_ref()
                .is_none_or(|readers| !readers.is_empty()),
            "it is private and has no readers",
        );
        let operator = entry.author.class == AuthorClass::Operator;
        check(
            operator == (entry.author.id.as_str() == crate::ids::OPERATOR),
            "its author is not of its class",
        );
        check(
            self.open
                .last()
                .is_none_or(|last| last.bundle == entry.bundle),
            "bundles are interleaved",
        );
        self.last_time = Some(entry.time.clone());
        self.open.push(entry.clone());
        self.report.entries += 1;
        faults
    }

    fn check_item(&mut self, item: &PocketItem) -> Vec<String> {
        let source = self.open.iter().find(|entry| entry.id == item.entry);
        let fits = |span: &Option<Span>| {
            let part = span
                .as_ref()
                .map(|span| span.start as usize..span.end as usize);
            part.is_none_or(|part| source.is_some_and(|source| source.text.get(part).is_some()))
        };
        let mut faults = Vec::new();
        let mut check = |holds: bool, what: &str| {
            if !holds {
                faults.push(format!("item {}: {what}", item.id));
            }
        };
        check(source.is_some(), "its source is not in its bundle");
        check(
            fits(&item.title) && fits(&item.location) && fits(&item.notes),
            "a range is outside its text",
        );
        check(
            item.supersedes
                .is_none_or(|old| self.item_ids.contains(&old)),
            "it replaces an item that does not exist",
        );
        check(self.item_ids.insert(item.id), "its id was given before");
        faults
    }

    fn check_cited(&self, cited: &[EntryId], position: u32) -> Vec<String> {
        let known = |id: &EntryId| {
            self.world
                .number_of(*id)
                .is_some_and(|number| number < position)
        };
        let missing = cited.iter().find(|id| !known(id));
        match missing {
            Some(id) => vec![format!("it cites {id}, which was not there")],
            None if cited.is_empty() => vec!["it cites nothing".to_owned()],
            None => Vec::new(),
        }
    }

    /// Whether the packs of an epoch are valid. A pack names its viewer only inside its hash, so
    /// all possible viewers are tried.
    fn is_valid_epoch(&self, recorded: &crate::fact::Epoch) -> bool {
        let persons = self
            .world
            .people
            .iter()
            .map(|person| Viewer::Reader(person.id.clone()));
        let named = self.writers.iter().cloned().map(Viewer::Reader);
        let mut viewers = std::iter::once(Viewer::Public).chain(persons).chain(named);
        viewers.any(|viewer| {
            epoch::validate(&self.world.view_at(viewer, recorded.position), recorded).is_ok()
        })
    }

    fn check_outcome(&mut self, outcome: &Outcome) -> Option<String> {
        if outcome.position != self.world.position() && !outcome.leaves_reality_alone() {
            return Some(format!(
                "request {} ended at another position",
                outcome.request
            ));
        }
        // The answer repeats a bundle that was rejected or wrote nothing, and such a bundle is not
        // recorded.
        let needs_request = outcome.kind == RequestKind::Beat
            && (outcome.rejection.is_some() || outcome.bundle.is_none());
        if needs_request {
            self.report.answers_skipped += 1;
            return None;
        }
        self.report.answers += 1;
        // A committed bundle is made again from the ledger, so none needs to be given.
        let again = outcome::replay(&self.world, outcome, Some(&Value::Null));
        again
            .err()
            .map(|_| format!("the answer to {} cannot be made again", outcome.request))
    }

    fn finish(mut self) -> Report {
        if let (Some(entry), Some(turn)) = (self.open.first(), self.last_turn) {
            let what = format!("entry {} belongs to no bundle", entry.id);
            self.add_misfit(turn, what);
        }
        self.report
    }
}
