//! What a fork shares with its origin: all that was so, and all that was made from it, up to a
//! point.
//!
//! Reality and what was derived are shared by the turns themselves, so nothing is copied. The audit
//! is the fork's own; it begins with the origin's first configuration, from which its clock and its
//! index were made, then with the configuration and the people of that time, and with the answers
//! that a rejected bundle got by then, so that every request of the past is answered as it was.
//! Tokens are not shared.
//!
//! Ids of turns ascend in the order in which they were written, in all contexts together: what has
//! a smaller one than the first turn of reality behind the point was there at the point.

use std::collections::BTreeMap;

use turnkeep_store::{Store, Turn};
use turnkeep_types::TurnId;

use crate::as_of::Point;
use crate::config::{Config, Person};
use crate::fact::{Fact, Family, Fork, Outcome};
use crate::ids::Name;
use crate::log::{Base, LoadError, Place, fact_of, find_worlds};
use crate::record;

/// What a fork begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// The turns that it shares with its origin end here.
    pub base: Base,
    /// What its own audit begins with.
    pub beginning: Vec<Fact>,
}

/// How far the shared reality goes.
#[derive(Debug, Clone, Copy, Default)]
struct Cut {
    /// Its last turn.
    last: Option<TurnId>,
    /// The turn behind it.
    next: Option<TurnId>,
    /// How many entries it has.
    position: u32,
}

impl Cut {
    fn has(&self, turn: &Turn) -> bool {
        self.next.is_none_or(|next| turn.id < next)
    }
}

/// What a fork's audit begins with, as it is found.
#[derive(Default)]
struct Setup {
    /// The first turn of the audit.
    began: Option<TurnId>,
    /// Where the origin was forked from itself.
    forked: Option<Fork>,
    first: Option<Config>,
    config: Option<Config>,
    people: BTreeMap<Name, Person>,
    rejected: Vec<Outcome>,
}

impl Past {
    /// The past of the world in `origin`, as far as it was taken over there, up to the last beat
    /// that the point covers; without a point all of it.
    pub fn of(
        store: &Store,
        (from, origin): (&Name, &Place),
        name: &Name,
        point: Option<&Point>,
    ) -> Result<Self, LoadError> {
        let cut = cut(store, origin, point)?;
        let mut derived = None;
        origin.walk(store, Family::Derived, |turn| {
            derived = Some(turn.id).filter(|_| cut.has(turn)).or(derived);
            Ok(())
        })?;
        let setup = setup(store, origin, cut, point)?;
        let first = setup
            .first
            .clone()
            .ok_or_else(|| LoadError::NoConfiguration(from.clone()))?;
        let fork = Fork {
            from: from.clone(),
            position: cut.position,
        };
        let beginning = setup.beginning(first, name, fork);
        Ok(Self {
            base: Base {
                reality: cut.last,
                derived,
            },
            beginning,
        })
    }
}

/// A beat ends with its outcome; a declared time stands alone where the zone was changed between
/// beats.
fn cut(store: &Store, origin: &Place, point: Option<&Point>) -> Result<Cut, LoadError> {
    let mut cut = Cut::default();
    origin.walk(store, Family::Reality, |turn| {
        let so_far = cut.position;
        let ends = record::is_of(&turn.declared, &["Outcome", "TimeDeclaration"]);
        let left = match ends.then(|| fact_of(store, turn)).transpose()? {
            Some(Fact::Outcome(beat)) => Some((beat.clock.time, beat.position)),
            Some(Fact::Time(declared)) => Some((declared.to.time, so_far)),
            _ => None,
        };
        let covered =
            |(time, position): &(_, u32)| point.is_none_or(|at| at.covers(so_far, time, *position));
        match left.filter(covered) {
            Some((_, position)) => {
                cut = Cut {
                    last: Some(turn.id),
                    next: None,
                    position,
                }
            }
            None => cut.next = cut.next.or(Some(turn.id)),
        }
        Ok(())
    })?;
    Ok(cut)
}

fn setup(
    store: &Store,
    origin: &Place,
    cut: Cut,
    point: Option<&Point>,
) -> Result<Setup, LoadError> {
    let mut setup = Setup::default();
    origin.walk(store, Family::Audit, |turn| {
        setup.began.get_or_insert(turn.id);
        let (always, then) = (&["WorldFork"], &["WorldConfig", "Person", "Outcome"]);
        // The first is the configuration that the world was made with, whatever the point.
        let wanted = setup.first.is_none()
            || record::is_of(&turn.declared, always)
            || record::is_of(&turn.declared, then) && cut.has(turn);
        if !wanted {
            return Ok(());
        }
        match fact_of(store, turn)? {
            Fact::Forked(fork) => setup.forked = Some(fork),
            Fact::Config(config) => {
                setup.first.get_or_insert_with(|| (*config).clone());
                setup.config = Some(*config);
            }
            Fact::Person(person) => drop(setup.people.insert(person.id.clone(), person)),
            Fact::Outcome(beat)
                if point
                    .is_none_or(|at| at.covers(beat.position, &beat.clock.time, beat.position)) =>
            {
                setup.rejected.push(*beat);
            }
            _ => {}
        }
        Ok(())
    })?;
    match earlier(store, &setup, cut) {
        // What was set up by then is in the audit of the world from which this one was forked.
        Some(mut place) => {
            place.skip(store)?;
            self::setup(store, &place, cut, point)
        }
        None => Ok(setup),
    }
}

/// The world from which the origin was forked, if the point lies before that.
fn earlier(store: &Store, setup: &Setup, cut: Cut) -> Option<Place> {
    let from = &setup
        .forked
        .as_ref()
        .filter(|_| cut.next < setup.began && cut.next.is_some())?
        .from;
    let found = find_worlds(store)
        .into_iter()
        .find(|(name, _)| name == from);
    found.map(|(_, contexts)| Place::new(contexts))
}

impl Setup {
    fn beginning(self, first: Config, name: &Name, fork: Fork) -> Vec<Fact> {
        let later = self.config.filter(|config| *config != first);
        let named = |config: Config| {
            Fact::Config(Box::new(Config {
                world: name.clone(),
                ..config
            }))
        };
        [named(first), Fact::Forked(fork)]
            .into_iter()
            .chain(later.map(named))
            .chain(self.people.into_values().map(Fact::Person))
            .chain(
                self.rejected
                    .into_iter()
                    .map(|beat| Fact::Outcome(Box::new(beat))),
            )
            .collect()
    }
}
