//! A made-up world in a data directory, as a server would have written it, and questions to it.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use turnkeep_journal::FileStorage;
use turnkeep_ledger::config::{Config, Person, Profile};
use turnkeep_ledger::entry::{Author, AuthorClass, Channel, Entry};
use turnkeep_ledger::fact::{BundleCommit, Fact, ItemKind, PocketItem, ProposedBy};
use turnkeep_ledger::ids::{BundleId, EntryId, Ids, ItemId, Name};
use turnkeep_ledger::log::{ForkBase, WorldContexts, WorldLog, create_contexts};
use turnkeep_ledger::time::WorldTime;
use turnkeep_store::{Options, Outcome, Store};
use turnkeep_teamworld::{TeamWorld, WrittenEntry};
use turnkeep_types::{ManualClock, Timestamp};

use crate::report_progress;

/// The world's name.
pub(super) const WORLD: &str = "team";
/// Entries of one bundle.
const BUNDLE: usize = 8;
/// Entries of one append.
const APPENDED: usize = 50 * BUNDLE;
/// One of so many bundles has something for the calendar.
const PLANNED: usize = 1000;
/// Said once in so many entries.
const TOLD: usize = 100_000;

/// Opens the store of a data directory that no server has.
pub(super) fn open_store(data: &Path) -> Result<Store> {
    let clock = Arc::new(ManualClock::new(Timestamp(1)));
    Store::open(Arc::new(FileStorage::new(data)), &Options::default(), clock)
        .context("cannot open the store")
}

/// Writes the world. Returns its contexts and the ids of its entries.
pub(super) fn write_world(
    team: &TeamWorld,
    store: &Store,
) -> Result<(WorldContexts, Vec<EntryId>)> {
    let name = parse_name(WORLD)?;
    let contexts = make_contexts(&name, store)?;
    let mut place = WorldLog::new(contexts);
    append_facts(store, &mut place, &founding_facts(name, team)?)?;
    let mut writer = FactWriter {
        team,
        ids: Ids::from_seed(&[1; 32]),
        entries: Vec::new(),
    };
    // Many bundles in one append: one sync each would take an hour for a million entries.
    for said in team.entries.chunks(APPENDED) {
        let (written, all) = (writer.entries.len(), team.entries.len());
        if written.is_multiple_of(TOLD) {
            report_progress(&format!("writing entry {written} of {all}"));
        }
        append_facts(store, &mut place, &writer.next_facts(said)?)?;
    }
    Ok((contexts, writer.entries))
}

fn make_contexts(name: &Name, store: &Store) -> Result<WorldContexts> {
    let mut contexts = Vec::new();
    for command in create_contexts(name, ForkBase::default()) {
        match store.run(command)? {
            Outcome::Created(created) => contexts.push(created.context),
            other => bail!("an unexpected outcome: {other:?}"),
        }
    }
    let [reality, audit, derived] = contexts[..] else {
        bail!("a context is missing");
    };
    Ok(WorldContexts {
        reality,
        audit,
        derived,
    })
}

/// The first facts of a world: its configuration and its persons.
fn founding_facts(name: Name, team: &TeamWorld) -> Result<Vec<Fact>> {
    let start = WorldTime::from_timestamp(Timestamp(1));
    let config = Config::new(name, Profile::Narrative, start);
    let mut facts = vec![Fact::Config(Box::new(config))];
    for label in &team.persons {
        facts.push(Fact::Person(Person {
            label: label.clone(),
            ..Person::with_id(parse_name(&label.to_uppercase())?)
        }));
    }
    Ok(facts)
}

fn append_facts(store: &Store, place: &mut WorldLog, facts: &[Fact]) -> Result<()> {
    let command = place.append_command(facts)?.context("nothing to append")?;
    match store.run(command)? {
        Outcome::Appended(appended) => place.record_appended(&appended),
        other => bail!("an unexpected outcome: {other:?}"),
    }
    Ok(())
}

fn parse_name(text: &str) -> Result<Name> {
    Name::new(text).with_context(|| format!("{text} is no name"))
}

struct FactWriter<'a> {
    team: &'a TeamWorld,
    ids: Ids,
    entries: Vec<EntryId>,
}

impl FactWriter<'_> {
    fn next_facts(&mut self, said: &[WrittenEntry]) -> Result<Vec<Fact>> {
        let mut facts = Vec::new();
        for bundle in said.chunks(BUNDLE) {
            self.add_bundle(bundle, &mut facts)?;
        }
        Ok(facts)
    }

    fn add_bundle(&mut self, said: &[WrittenEntry], facts: &mut Vec<Fact>) -> Result<()> {
        let bundle = BundleId(self.ids.draw());
        let request: Arc<str> = format!("made-{}", self.entries.len()).into();
        for said in said {
            facts.push(Fact::Entry(self.make_entry(said, bundle, &request)?));
        }
        if (self.entries.len() / BUNDLE).is_multiple_of(PLANNED) {
            facts.extend(self.calendar_item());
        }
        // A bundle's commit comes after its entries, as a server writes them.
        facts.push(Fact::Bundle(BundleCommit {
            id: bundle,
            request,
            proposed_by: ProposedBy {
                engine: "bench".to_owned(),
                actor: "bench".to_owned(),
            },
            entries: u32::try_from(said.len())?,
        }));
        Ok(())
    }

    fn make_entry(
        &mut self,
        said: &WrittenEntry,
        bundle: BundleId,
        request: &Arc<str>,
    ) -> Result<Entry> {
        let visible_to = self.readers_of(said)?;
        let id = EntryId(self.ids.draw());
        self.entries.push(id);
        Ok(Entry {
            id,
            bundle,
            request: Arc::clone(request),
            time: WorldTime::from_timestamp(Timestamp(u64::try_from(said.time)?)),
            author: Author {
                class: AuthorClass::Person,
                id: parse_name(&self.team.person_id(said.author))?,
            },
            label: self.team.persons[said.author].as_str().into(),
            visible_to: visible_to.map(Into::into),
            channel: Channel::People,
            text: said.text.as_str().into(),
            reply_to: None,
        })
    }

    /// The readers whom an entry names. `None`: everyone, which is class 0.
    fn readers_of(&self, said: &WrittenEntry) -> Result<Option<Vec<Name>>> {
        if said.class == 0 {
            return Ok(None);
        }
        let readers = self.team.audiences[said.class as usize].iter();
        let names = readers.map(|reader| parse_name(&self.team.person_id(*reader)));
        Ok(Some(names.collect::<Result<_>>()?))
    }

    /// Something for the calendar, from the last entry.
    fn calendar_item(&mut self) -> Option<Fact> {
        Some(Fact::Item(PocketItem {
            id: ItemId(self.ids.draw()),
            kind: ItemKind::Calendar,
            entry: *self.entries.last()?,
            title: Some(0..3),
            time: None,
            location: None,
            notes: None,
            supersedes: None,
        }))
    }
}
