//! Forks: what a new world shares with its origin, up to a point.
//!
//! The fork shares the turns of the reality and derived contexts, so nothing is copied. Its audit
//! is its own. The audit begins with the origin's first configuration, from which the clock and the
//! index were made, then the configuration and people of that time, then the outcomes of rejected
//! bundles, so that every request of the past gets the same answer again. Tokens are not shared.
//!
//! Turn ids ascend in writing order over all contexts. So a record existed at the point if its id
//! is smaller than that of the first turn of reality behind the point.
//!
//! Worked example: the turns of reality are 10 (entry), 11 (outcome), 20 (entry), 21 (outcome), and
//! the point covers the first beat only. The shared reality ends with turn 11, and the first turn
//! behind it is 20. A person who was added with turn 15 of the audit belongs to the fork, one who
//! was added with turn 22 does not.

use std::collections::BTreeMap;

use turnkeep_store::{Store, Turn};
use turnkeep_types::TurnId;

use crate::as_of::Point;
use crate::config::{Config, Person};
use crate::fact::{Fact, Family, Fork, Outcome};
use crate::ids::Name;
use crate::log::{ForkBase, LoadError, WorldLog, find_worlds, read_fact};
use crate::record;
use crate::time::WorldTime;

/// What a fork begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPast {
    /// The last turns that it shares with its origin.
    pub base: ForkBase,
    /// The first records of its own audit.
    pub beginning: Vec<Fact>,
}

/// The world that is forked.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Its name.
    pub name: &'a Name,
    /// Its contexts, as far as they were read.
    pub log: &'a WorldLog,
}

/// How far the shared reality goes.
#[derive(Debug, Clone, Copy, Default)]
struct SharedReality {
    /// Its last turn.
    last: Option<TurnId>,
    /// The first turn that is not shared.
    next: Option<TurnId>,
    /// The number of shared entries.
    position: u32,
}

impl SharedReality {
    fn includes(&self, turn: &Turn) -> bool {
        self.next.is_none_or(|next| turn.id < next)
    }
}

/// The records for the fork's audit, while they are collected.
#[derive(Default)]
struct Setup {
    /// The first turn of the origin's audit.
    began: Option<TurnId>,
    /// The origin's own origin, if it is a fork.
    forked: Option<Fork>,
    first: Option<Config>,
    config: Option<Config>,
    people: BTreeMap<Name, Person>,
    rejected: Vec<Outcome>,
}

impl SharedPast {
    /// Collects the past of a world for a fork called `name`, up to the last beat that the point
    /// covers. Without a point it is the whole past.
    pub fn collect(
        store: &Store,
        origin: Origin<'_>,
        name: &Name,
        point: Option<&Point>,
    ) -> Result<Self, LoadError> {
        let shared = find_shared_reality(store, origin.log, point)?;
        let mut derived = None;
        origin.log.visit_turns(store, Family::Derived, |turn| {
            if shared.includes(turn) {
                derived = Some(turn.id);
            }
            Ok(())
        })?;
        let setup = collect_setup(store, origin.log, shared, point)?;
        // Without a first configuration the origin was never completed.
        let first = setup
            .first
            .clone()
            .ok_or_else(|| LoadError::NoConfiguration(origin.name.clone()))?;
        let fork = Fork {
            from: origin.name.clone(),
            position: shared.position,
        };
        let beginning = setup.into_facts(first, name, fork);
        Ok(Self {
            base: ForkBase {
                reality: shared.last,
                derived,
            },
            beginning,
        })
    }
}

/// Finds the last turn of reality that the point covers. A fork must end with a whole beat, which
/// ends with its outcome. A time declaration without a beat, from a change of the zone, is also an
/// end.
fn find_shared_reality(
    store: &Store,
    origin: &WorldLog,
    point: Option<&Point>,
) -> Result<SharedReality, LoadError> {
    let mut shared = SharedReality::default();
    origin.visit_turns(store, Family::Reality, |turn| {
        let so_far = shared.position;
        let is_end = record::has_kind(&turn.declared, &["Outcome", "TimeDeclaration"]);
        // Entries and items, the bulk of a world, are passed over without being read.
        let end = if is_end {
            BeatEnd::from_fact(read_fact(store, turn)?, so_far)
        } else {
            None
        };
        let covered =
            end.filter(|end| point.is_none_or(|at| at.covers(so_far, &end.time, end.position)));
        match covered {
            Some(end) => {
                shared = SharedReality {
                    last: Some(turn.id),
                    next: None,
                    position: end.position,
                }
            }
            // Remembers the first turn that no covered beat ends behind.
            None => shared.next = shared.next.or(Some(turn.id)),
        }
        Ok(())
    })?;
    Ok(shared)
}

/// The time and position at the end of a beat.
struct BeatEnd {
    time: WorldTime,
    position: u32,
}

impl BeatEnd {
    fn from_fact(fact: Fact, so_far: u32) -> Option<Self> {
        match fact {
            Fact::Outcome(beat) => Some(Self {
                time: beat.clock.time,
                position: beat.position,
            }),
            Fact::Time(declared) => Some(Self {
                time: declared.to.time,
                position: so_far,
            }),
            _ => None,
        }
    }
}

fn collect_setup(
    store: &Store,
    origin: &WorldLog,
    shared: SharedReality,
    point: Option<&Point>,
) -> Result<Setup, LoadError> {
    let mut setup = Setup::default();
    origin.visit_turns(store, Family::Audit, |turn| {
        setup.began.get_or_insert(turn.id);
        if setup.wants(turn, shared) {
            setup.add_fact(read_fact(store, turn)?, point);
        }
        Ok(())
    })?;
    match find_earlier_origin(store, &setup, shared) {
        // The point lies before the origin was forked itself: its setup is in the earlier world.
        Some(mut earlier) => {
            earlier.skip_to_end(store)?;
            collect_setup(store, &earlier, shared, point)
        }
        None => Ok(setup),
    }
}

/// The origin's own origin, if the point lies before that fork.
fn find_earlier_origin(store: &Store, setup: &Setup, shared: SharedReality) -> Option<WorldLog> {
    let fork = setup.forked.as_ref()?;
    if shared.next.is_none() || shared.next >= setup.began {
        return None;
    }
    let found = find_worlds(store)
        .into_iter()
        .find(|found| found.name == fork.from);
    found.map(|found| WorldLog::new(found.contexts))
}

impl Setup {
    /// Whether a record of the audit may belong to the setup, by its kind and position.
    fn wants(&self, turn: &Turn, shared: SharedReality) -> bool {
        // The first record is the configuration that the world was made with, needed for any point.
        self.first.is_none()
            || record::has_kind(&turn.declared, &["WorldFork"])
            || record::has_kind(&turn.declared, &["WorldConfig", "Person", "Outcome"])
                && shared.includes(turn)
    }

    fn add_fact(&mut self, fact: Fact, point: Option<&Point>) {
        match fact {
            Fact::Forked(fork) => self.forked = Some(fork),
            Fact::Config(config) => {
                self.first.get_or_insert_with(|| (*config).clone());
                self.config = Some(*config);
            }
            Fact::Person(person) => drop(self.people.insert(person.id.clone(), person)),
            Fact::Outcome(beat) => {
                // A rejected beat adds no entry, so the world has the same position before and after.
                let covers = |at: &Point| at.covers(beat.position, &beat.clock.time, beat.position);
                if point.is_none_or(covers) {
                    self.rejected.push(*beat);
                }
            }
            _ => {}
        }
    }

    /// The first records of the fork's audit, in order.
    fn into_facts(self, first: Config, name: &Name, fork: Fork) -> Vec<Fact> {
        // The first configuration is always recorded; a later one only if it differs.
        let later = self.config.filter(|config| *config != first);
        let renamed = |config: Config| {
            Fact::Config(Box::new(Config {
                world: name.clone(),
                ..config
            }))
        };
        let mut facts = vec![renamed(first), Fact::Forked(fork)];
        facts.extend(later.map(renamed));
        facts.extend(self.people.into_values().map(Fact::Person));
        for outcome in self.rejected {
            facts.push(Fact::Outcome(Box::new(outcome)));
        }
        facts
    }
}
