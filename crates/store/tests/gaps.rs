//! Reads of a repaired store: a gap is an error that names it, never a shorter page.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_journal::{MemoryStorage, Storage};
use turnkeep_store::salvage::{Missing, MissingBlob, Report, Writers, repair, verify};
use turnkeep_store::{
    Append, AppendPart, Command, CreateContext, Event, Labels, LostTurn, NewBlob, NewTurn, Options,
    ReadError, Refusal, Store,
};
use turnkeep_types::{BlobHash, ContextId, ManualClock, Timestamp, TurnId, TypeRef};

const SEGMENT_BYTES: u64 = 1 << 16;

fn open(disk: &MemoryStorage) -> Store {
    let options = Options {
        segment_bytes: SEGMENT_BYTES,
        ..Options::default()
    };
    Store::open(
        Arc::new(disk.clone()),
        &options,
        Arc::new(ManualClock::new(Timestamp(7))),
    )
    .unwrap()
}

fn turn(id: u64) -> TurnId {
    TurnId::new(id).unwrap()
}

fn context(id: u64) -> ContextId {
    ContextId::new(id).unwrap()
}

fn blob(text: &str) -> NewBlob {
    NewBlob::from_raw(Bytes::copy_from_slice(text.as_bytes()), 1000).unwrap()
}

fn hash(text: &str) -> BlobHash {
    BlobHash::of(text.as_bytes())
}

fn create(label: &str) -> Command {
    let labels = Labels::from([("name".to_owned(), label.to_owned())]);
    Command::CreateContext(CreateContext {
        labels,
        ..CreateContext::default()
    })
}

fn append(to: u64, text: &str, fs_root: Option<BlobHash>) -> Command {
    let turn = NewTurn {
        declared: TypeRef::new("t", 1),
        encoding: 1,
        payload: blob(text),
        fs_root,
    };
    let part = AppendPart {
        context: context(to),
        parent: None,
        expected_head: None,
        turns: vec![turn],
    };
    Command::Append(Append {
        parts: vec![part],
        key: None,
        strict: false,
    })
}

/// One frame each, so that a test can lose one by its number, from 1.
fn commands() -> Vec<Command> {
    vec![
        create("first"),                      // 1: ctx:1
        append(1, "one", None),               // 2: turn:1, depth 0
        append(1, "two", None),               // 3: turn:2, depth 1
        append(1, "three", None),             // 4: turn:3, depth 2
        create("second"),                     // 5: ctx:2
        append(2, "four", None),              // 6: turn:4, depth 0
        append(1, "two", None),               // 7: turn:5, depth 3; its payload is in frame 3
        Command::PutBlob(blob("tree")),       // 8
        append(1, "six", Some(hash("tree"))), // 9: turn:6, depth 4
        create("third"),                      // 10: ctx:3, which stays empty
        Command::PutBlob(blob("unused")),     // 11
        append(1, "seven", None),             // 12: turn:7, depth 5
    ]
}

fn healthy() -> MemoryStorage {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    for command in commands() {
        store.run(command).unwrap();
    }
    store.close();
    disk
}

/// Where each frame begins.
fn frame_offsets(segment: &[u8]) -> Vec<usize> {
    (64..segment.len())
        .step_by(8)
        .filter(|&at| segment[at..].starts_with(b"TKF1"))
        .collect()
}

/// A store without the frames of these numbers, repaired; and what the repair reported.
fn repaired_without(frames: &[usize]) -> (MemoryStorage, Report) {
    let mut files = healthy().files();
    let segment = files.get_mut("log/0000000001.seg").unwrap();
    let offsets = frame_offsets(segment);
    assert_eq!(offsets.len(), commands().len());
    for frame in frames {
        segment[offsets[frame - 1] + 40] ^= 0x40;
    }
    let from: Arc<dyn Storage> = Arc::new(MemoryStorage::with_files(files));
    let to = MemoryStorage::new();
    let report = repair(
        &from,
        &(Arc::new(to.clone()) as Arc<dyn Storage>),
        SEGMENT_BYTES,
        |_, _| (),
    )
    .unwrap();
    (to, report)
}

/// Looks at a store as it was repaired, and once more as its index has it.
fn look_twice(disk: &MemoryStorage, look: impl Fn(&Store)) {
    for _ in 0..2 {
        let store = open(disk);
        look(&store);
        store.close();
    }
}

fn check_missing(disk: &MemoryStorage, report: &Report, missing: &Missing) {
    assert_eq!(&report.missing, missing, "what the repair says");
    let again = verify(
        &(Arc::new(disk.clone()) as Arc<dyn Storage>),
        Writers::None,
        |_, _| (),
    )
    .unwrap();
    assert_eq!(
        &again.missing, missing,
        "what a verification of the new directory says"
    );
    assert!(again.is_intact() && !again.is_sound(), "{again:?}");
    assert_eq!(again.dropped, Vec::<String>::new());
}

fn ids(turns: Result<Vec<turnkeep_store::Turn>, ReadError>) -> Result<Vec<u64>, ReadError> {
    Ok(turns?.iter().map(|turn| turn.id.get()).collect())
}

fn events(store: &Store) -> Vec<Event> {
    (1..=store.last_position())
        .map(|position| store.event(position).unwrap())
        .collect()
}

#[test]
fn a_lost_turn_is_an_error_wherever_a_read_would_cross_it() {
    let (disk, report) = repaired_without(&[3]);
    let payload = MissingBlob {
        hash: hash("two"),
        turns: vec![turn(5)],
    };
    check_missing(
        &disk,
        &report,
        &Missing {
            turns: vec![2..=2],
            payloads: vec![payload],
            ..Missing::default()
        },
    );
    let every_event = events(&open(&healthy()));
    look_twice(&disk, |store| {
        let one = context(1);
        let gap = ReadError::LostTurn(LostTurn {
            turn: turn(2),
            earlier: Some(turn(1)),
            next_depth: Some(2),
        });
        let lost = ReadError::LostTurn(LostTurn::new(turn(2)));
        for (start, limit) in [(0, 1), (0, 2), (0, 100), (1, 1), (1, 100)] {
            assert_eq!(
                ids(store.range(one, start, limit)),
                Err(gap.clone()),
                "depth {start}, limit {limit}"
            );
        }
        assert_eq!(ids(store.range(one, 2, 100)), Ok(vec![3, 5, 6, 7]));
        assert_eq!(ids(store.range(one, 6, 100)), Ok(vec![]), "beyond the head");
        assert_eq!(ids(store.before(turn(3), 9)), Err(gap));
        assert_eq!(ids(store.before(turn(2), 9)), Err(lost.clone()));
        assert_eq!(ids(store.before(turn(1), 9)), Ok(vec![]));
        assert_eq!(store.turn(turn(2)), Err(lost));
        // A page that ends at the gap says so by its first turn, whose parent is not on it.
        let page = store.last(one, 100).unwrap();
        assert_eq!((page[0].id, page[0].parent), (turn(3), Some(turn(2))));
        // The payload that only the lost frame held.
        let corrupt = |read: Result<_, ReadError>| matches!(read, Err(ReadError::Corrupt { hash: h, .. }) if h == hash("two"));
        assert!(corrupt(
            store.payload(&store.turn(turn(5)).unwrap()).map(drop)
        ));
        assert!(corrupt(store.blob(hash("two")).map(drop)));
        assert!(corrupt(store.blob_len(hash("two")).map(drop)));
        assert_eq!(
            store.has_blob(hash("two")),
            None,
            "so that it is sent again"
        );
        // The feed has the lost turn's place.
        assert_eq!(events(store), every_event);
        assert_eq!(
            (store.stats().lost_turns, store.stats().lost_contexts),
            (1, 0)
        );
    });
    // A payload that is sent again heals the turns that use it.
    let store = open(&disk);
    store.run(Command::PutBlob(blob("two"))).unwrap();
    assert_eq!(
        &*store
            .payload(&store.turn(turn(5)).unwrap())
            .unwrap()
            .raw()
            .unwrap(),
        b"two"
    );
    store.close();
    let again = verify(
        &(Arc::new(disk.clone()) as Arc<dyn Storage>),
        Writers::None,
        |_, _| (),
    )
    .unwrap();
    assert_eq!(
        again.missing,
        Missing {
            turns: vec![2..=2],
            ..Missing::default()
        }
    );
}

#[test]
fn of_a_lost_creation_only_the_labels_and_the_base_are_gone() {
    let (disk, report) = repaired_without(&[5]);
    check_missing(
        &disk,
        &report,
        &Missing {
            creations: vec![2..=2],
            ..Missing::default()
        },
    );
    look_twice(&disk, |store| {
        let second = store.context(context(2)).unwrap();
        assert!(second.creation_lost && second.labels.is_empty());
        assert_eq!(ids(store.last(context(2), 9)), Ok(vec![4]));
        assert!(!store.context(context(1)).unwrap().creation_lost);
        assert_eq!(store.stats().lost_contexts, 1);
    });
}

#[test]
fn a_context_of_which_nothing_is_left_is_not_an_empty_one() {
    let (disk, report) = repaired_without(&[10]);
    check_missing(
        &disk,
        &report,
        &Missing {
            creations: vec![3..=3],
            ..Missing::default()
        },
    );
    look_twice(&disk, |store| {
        let lost = ReadError::LostContext(context(3));
        assert!(store.context(context(3)).unwrap().creation_lost);
        assert_eq!(ids(store.last(context(3), 9)), Err(lost.clone()));
        assert_eq!(ids(store.range(context(3), 0, 9)), Err(lost));
    });
}

#[test]
fn an_append_cannot_hide_that_a_contexts_turns_were_lost() {
    let (disk, _) = repaired_without(&[10]);
    let store = open(&disk);
    let lost = context(3);
    let refused = store.run(append(3, "in their place", None));
    assert_eq!(refused.unwrap_err(), Refusal::HeadLost(lost));
    assert!(store.context(lost).unwrap().check_head().is_err());
}

#[test]
fn a_lost_tree_keeps_its_name() {
    let (disk, report) = repaired_without(&[8]);
    let root = MissingBlob {
        hash: hash("tree"),
        turns: vec![turn(6)],
    };
    check_missing(
        &disk,
        &report,
        &Missing {
            roots: vec![root],
            ..Missing::default()
        },
    );
    look_twice(&disk, |store| {
        assert_eq!(store.turn(turn(6)).unwrap().fs_root, Some(hash("tree")));
        assert!(matches!(
            store.blob(hash("tree")),
            Err(ReadError::Corrupt { .. })
        ));
    });
}

#[test]
fn several_losses_are_each_named() {
    let (disk, report) = repaired_without(&[2, 3, 5, 6, 10]);
    let payload = MissingBlob {
        hash: hash("two"),
        turns: vec![turn(5)],
    };
    let missing = Missing {
        turns: vec![1..=2, 4..=4],
        creations: vec![2..=3],
        payloads: vec![payload],
        ..Missing::default()
    };
    check_missing(&disk, &report, &missing);
    look_twice(&disk, |store| {
        let gap = LostTurn {
            turn: turn(2),
            earlier: None,
            next_depth: Some(2),
        };
        assert_eq!(ids(store.range(context(1), 0, 9)), Err(gap.into()));
        assert_eq!(
            ids(store.last(context(2), 9)),
            Err(ReadError::LostContext(context(2)))
        );
    });
}

#[test]
fn a_sound_store_misses_nothing() {
    let (disk, report) = repaired_without(&[]);
    assert!(report.is_sound() && report.missing.is_empty(), "{report:?}");
    let same: BTreeMap<_, _> = events(&open(&disk))
        .into_iter()
        .map(|event| (event.position, event))
        .collect();
    assert_eq!(same.len(), 10, "three contexts, seven turns");
}
