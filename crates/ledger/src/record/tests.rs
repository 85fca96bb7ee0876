//! Every kind of fact survives the store, and damaged bytes are refused.

use turnkeep_types::Timestamp;

use super::*;
use crate::config::{Config, Person, Profile};
use crate::entry::{Author, AuthorClass, Channel, Entry};
use crate::fact::*;
use crate::ids::{BundleId, EntryId, ItemId, Name, TokenId};
use crate::time::{WorldTime, Zone};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn time(text: &str) -> WorldTime {
    WorldTime::parse(text).unwrap()
}

fn clock() -> ClockState {
    ClockState {
        time: time("2026-01-01T02:00:00+02:00"),
        timezone: Zone::named("Europe/Berlin").unwrap(),
        paused: true,
    }
}

fn entry(visible_to: Option<&[&str]>) -> Entry {
    Entry {
        id: EntryId(7),
        bundle: BundleId(8),
        request: "r-1".into(),
        time: time("2026-01-01T00:00:00.000Z"),
        author: Author {
            class: AuthorClass::Person,
            id: name("PLANNER"),
        },
        label: "The planner".into(),
        visible_to: visible_to.map(|names| names.iter().map(|n| name(n)).collect()),
        channel: Channel::People,
        text: "a\r\n\u{202e}b\u{301} 🦀".into(),
        reply_to: Some(EntryId(5)),
    }
}

#[test]
fn records_that_name_the_same_share_one_text() {
    let entries = [
        entry(Some(&["CODER"])),
        Entry {
            id: EntryId(9),
            ..entry(Some(&["CODER"]))
        },
    ];
    let read = entries.map(|entry| {
        let (declared, payload) = encode(&Fact::Entry(entry.clone()));
        let Ok(Fact::Entry(read)) = decode(&declared, &payload) else {
            panic!("an entry")
        };
        assert_eq!(read, entry);
        read
    });
    let [one, other] = &read;
    assert!(std::sync::Arc::ptr_eq(&one.label, &other.label));
    assert!(std::sync::Arc::ptr_eq(&one.request, &other.request));
    let texts = read
        .each_ref()
        .map(|entry| entry.author.id.as_str().as_ptr());
    assert_eq!(texts[0], texts[1]);
}

fn outcome() -> Outcome {
    Outcome {
        request: "r-1".into(),
        principal: "person:PLANNER".into(),
        fingerprint: [3; 32],
        kind: RequestKind::Beat,
        rejection: Some("SHAPE: entries".into()),
        viewer: "PLANNER".into(),
        cursor_before: None,
        page_start: 5,
        cursor_after: Some("abc".into()),
        clock: clock(),
        clock_moved: true,
        position: 9,
        bundle: Some(BundleId(8)),
        pocket_available: true,
        version: 1,
        response: [4; 32],
    }
}

fn every_kind() -> Vec<Fact> {
    let mut config = Config::new(
        name("payments"),
        Profile::Workspace,
        time("2026-01-01T00:00:00Z"),
    );
    config.writer = crate::config::Writer::Command("python3 writer.py".into());
    config.writer_persons = Some(vec![name("PLANNER"), name("WORLD")]);
    let cited = vec![EntryId(7), EntryId(9)];
    vec![
        Fact::Entry(entry(None)),
        Fact::Entry(entry(Some(&["REVIEWER", "GEORGE"]))),
        Fact::Time(TimeDeclaration {
            from: time("2026-01-01T00:00:00Z"),
            to: clock(),
        }),
        Fact::Item(PocketItem {
            id: ItemId(1),
            kind: ItemKind::Calendar,
            entry: EntryId(7),
            title: Some(0..1),
            time: Some(time("2026-01-02T00:00:00Z")),
            location: None,
            notes: Some(1..3),
            supersedes: Some(ItemId(2)),
        }),
        Fact::Bundle(BundleCommit {
            id: BundleId(8),
            request: "r-1".into(),
            proposed_by: ProposedBy {
                engine: "e".into(),
                actor: "PLANNER".into(),
            },
            entries: 2,
        }),
        Fact::Outcome(Box::new(outcome())),
        Fact::Config(Box::new(config)),
        Fact::Forked(Fork {
            from: name("origin"),
            position: 4,
        }),
        Fact::Person(Person {
            aliases: vec!["Rev".into()],
            human: true,
            ..Person::with_id(name("REVIEWER"))
        }),
        Fact::Token(Token {
            id: TokenId(5),
            person: name("CODER"),
            write: true,
            created_at: Timestamp(1),
            expires_at: Some(Timestamp(2)),
            secret: [9; 32],
        }),
        Fact::Revoked(TokenId(5)),
        Fact::AuditLine(AuditLine {
            at: Timestamp(3),
            principal: "owner".into(),
            what: "acting-as".into(),
            request: None,
            details: "{}".into(),
        }),
        Fact::Scene(Scene {
            position: 2,
            text: "A room.".into(),
            cited: cited.clone(),
        }),
        Fact::Note(Note {
            position: 2,
            person: name("CODER"),
            text: "Careful.".into(),
            cited,
        }),
        Fact::Epoch(Box::new(Epoch {
            number: 1,
            position: 2,
            anchor: "{}".into(),
            rehydration: None,
        })),
    ]
}

#[test]
fn every_kind_of_fact_reads_back_as_it_was_written() {
    for fact in every_kind() {
        let (declared, payload) = encode(&fact);
        assert_eq!(decode(&declared, &payload), Ok(fact.clone()), "{declared}");
        assert_eq!(
            encode(&decode(&declared, &payload).unwrap()).1,
            payload,
            "{declared}"
        );
    }
}

#[test]
fn every_kind_of_fact_is_in_the_published_bundle() {
    let [first, second] = BUNDLES.map(|bundle| crate::json::parse(bundle.json.as_bytes()).unwrap());
    for fact in every_kind() {
        let (declared, payload) = encode(&fact);
        let bundle = if declared.version == VERSION {
            &first
        } else {
            &second
        };
        let fields =
            &bundle["types"][&*declared.id]["versions"][declared.version.to_string()]["fields"];
        let mut rest = &payload[..];
        let count = rmp::decode::read_map_len(&mut rest).unwrap();
        assert!(
            count > 0 && fields.as_object().unwrap().len() >= count as usize,
            "{declared}"
        );
        let tag: u64 = rmp::decode::read_int(&mut rest).unwrap();
        assert!(fields[tag.to_string()].is_object(), "{declared} tag {tag}");
    }
}

#[test]
fn a_record_cut_or_changed_anywhere_is_refused_or_differs_and_never_panics() {
    for fact in every_kind() {
        let (declared, payload) = encode(&fact);
        for cut in 0..payload.len() {
            assert!(
                decode(&declared, &payload[..cut]).is_err(),
                "{declared} cut at {cut}"
            );
            let mut changed = payload.to_vec();
            changed[cut] ^= 0x55;
            assert_ne!(
                decode(&declared, &changed),
                Ok(fact.clone()),
                "{declared} changed at {cut}"
            );
        }
    }
}

#[test]
fn a_foreign_type_is_refused() {
    let (_, payload) = encode(&Fact::Revoked(TokenId(1)));
    for declared in [
        TypeRef::new("com.example.X", 1),
        TypeRef::new("turnkeep.ledger.TokenRevoked", 2),
        TypeRef::new("turnkeep.ledger.Mood", 1),
    ] {
        assert!(
            matches!(
                decode(&declared, &payload),
                Err(RecordError::UnknownType(_))
            ),
            "{declared}"
        );
    }
}

#[test]
fn a_zone_that_the_table_has_no_more_is_read_back_by_its_name() {
    let to = ClockState {
        timezone: Zone::recorded("Mars/Olympus"),
        ..clock()
    };
    let fact = Fact::Time(TimeDeclaration {
        from: to.time.clone(),
        to,
    });
    let (declared, payload) = encode(&fact);
    assert_eq!(decode(&declared, &payload), Ok(fact));
}
