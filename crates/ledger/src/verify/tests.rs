//! Sound records verify; each kind of fault is found.

use turnkeep_types::TurnId;

use super::*;
use crate::config::{Config, Person, Profile};
use crate::entry::Author;
use crate::fact::{BundleCommit, ItemKind, ProposedBy, Scene};
use crate::ids::{BundleId, Name};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn time(second: u32) -> WorldTime {
    WorldTime::parse(&format!("2026-01-01T00:00:{second:02}Z")).unwrap()
}

fn world() -> World {
    let mut world = World::new(Config::new(name("w"), Profile::Workspace, time(0)));
    for person in ["A", "B", "C"] {
        world.apply(Fact::Person(Person::with_id(name(person))));
    }
    world
}

fn entry(
    id: u128,
    bundle: u128,
    second: u32,
    author: &str,
    to: Option<&[&str]>,
    text: &str,
) -> Entry {
    Entry {
        id: EntryId(id),
        bundle: BundleId(bundle),
        request: format!("r-{bundle}").into(),
        time: time(second),
        author: Author {
            class: AuthorClass::Person,
            id: name(author),
        },
        label: author.into(),
        visible_to: to.map(|names| names.iter().map(|n| name(n)).collect()),
        channel: Channel::People,
        text: text.into(),
        reply_to: None,
    }
}

fn commit(bundle: u128, entries: u32) -> Fact {
    Fact::Bundle(BundleCommit {
        id: BundleId(bundle),
        request: format!("r-{bundle}").into(),
        proposed_by: ProposedBy {
            engine: "e".into(),
            actor: "A".into(),
        },
        entries,
    })
}

fn item(id: u128, entry: u128, end: u32, supersedes: Option<u128>) -> Fact {
    Fact::Item(PocketItem {
        id: ItemId(id),
        kind: ItemKind::Calendar,
        entry: EntryId(entry),
        title: Some(0..end),
        time: None,
        location: None,
        notes: None,
        supersedes: supersedes.map(ItemId),
    })
}

fn faults(facts: Vec<Fact>) -> Vec<String> {
    let mut checker = Checker::new(world());
    let turns = (1..).filter_map(TurnId::new);
    turns
        .zip(facts)
        .for_each(|(turn, fact)| checker.check_fact(turn, fact, RecordOrigin::Own));
    checker
        .finish()
        .misfits
        .into_iter()
        .map(|misfit| misfit.what)
        .collect()
}

#[test]
fn records_that_fit_together_are_sound() {
    let facts = vec![
        Fact::Entry(entry(1, 1, 0, "A", None, "plan")),
        Fact::Entry(entry(2, 1, 1, "A", Some(&["B"]), "psst")),
        item(1, 1, 4, None),
        commit(1, 2),
        Fact::Entry(entry(3, 2, 1, "B", None, "new plan")),
        item(2, 3, 8, Some(1)),
        commit(2, 1),
        Fact::Scene(Scene {
            position: 3,
            text: "Quiet.".into(),
            cited: vec![EntryId(1)],
        }),
    ];
    assert_eq!(faults(facts), Vec::<String>::new());
}

#[test]
fn each_kind_of_fault_is_found() {
    let public = |id, bundle, second| Fact::Entry(entry(id, bundle, second, "A", None, "text"));
    for (facts, wanted) in [
        (
            vec![public(1, 1, 0), commit(1, 2)],
            "not made of the entries",
        ),
        (
            vec![public(1, 1, 0), commit(2, 1)],
            "not made of the entries",
        ),
        (
            vec![public(1, 1, 0), public(2, 2, 0), commit(2, 2)],
            "interleaved",
        ),
        (vec![public(1, 1, 0)], "belongs to no bundle"),
        (
            vec![public(1, 1, 5), public(2, 1, 4), commit(1, 2)],
            "time goes back",
        ),
        (
            vec![public(1, 1, 0), public(1, 1, 0), commit(1, 2)],
            "given before",
        ),
        (
            vec![Fact::Entry(entry(1, 1, 0, "A", None, "")), commit(1, 1)],
            "no text",
        ),
        (
            vec![
                Fact::Entry(entry(1, 1, 0, "A", Some(&[]), "x")),
                commit(1, 1),
            ],
            "private and has no readers",
        ),
        (
            vec![public(1, 1, 0), item(1, 1, 9, None), commit(1, 1)],
            "outside its text",
        ),
        (
            vec![public(1, 1, 0), item(1, 7, 1, None), commit(1, 1)],
            "not in its bundle",
        ),
        (
            vec![public(1, 1, 0), item(1, 1, 1, Some(5)), commit(1, 1)],
            "an item that does not exist",
        ),
        (
            vec![Fact::Scene(Scene {
                position: 0,
                text: "x".into(),
                cited: vec![EntryId(9)],
            })],
            "was not there",
        ),
        (
            vec![Fact::Scene(Scene {
                position: 0,
                text: "x".into(),
                cited: vec![],
            })],
            "cites nothing",
        ),
    ] {
        let found = faults(facts);
        assert!(
            found.iter().any(|what| what.contains(wanted)),
            "{wanted}: {found:?}"
        );
    }
}

#[test]
fn a_long_run_from_a_hidden_entry_is_reported_and_a_public_one_is_not() {
    let secret = "the rollback key is under the third stone";
    let mut world = world();
    for fact in [
        Fact::Entry(entry(1, 1, 0, "A", Some(&["B"]), secret)),
        Fact::Entry(entry(
            2,
            2,
            1,
            "B",
            None,
            "I know that the rollback key is und and no more",
        )),
        Fact::Entry(entry(
            3,
            3,
            2,
            "C",
            Some(&["A"]),
            &format!("They say {secret}!"),
        )),
        Fact::Entry(entry(4, 4, 3, "B", None, secret)),
        Fact::Entry(entry(5, 5, 4, "C", None, secret)),
    ] {
        world.apply(fact);
    }
    let found = leaks(&world);
    assert_eq!(
        found,
        [Leak {
            entry: EntryId(3),
            source: EntryId(1),
            text: secret.to_owned()
        }]
    );
}
