//! The store's public functions on a disk in memory: the effects and rejections of each command.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;

use bytes::Bytes;
use turnkeep_journal::{MemoryStorage, ReadOnlyStorage};
use turnkeep_store::{
    Append, AppendPart, Appended, Command, CreateContext, EventKind, Key, Labels, NewBlob, NewTurn,
    Options, Outcome, ReadError, Refusal, Store,
};
use turnkeep_types::{BlobHash, ContextId, ManualClock, Timestamp, TurnId, TypeRef};

fn open(disk: &MemoryStorage) -> Store {
    let options = Options {
        segment_bytes: 64 << 10,
        checkpoint_every_bytes: 16 << 10,
        ..Options::default()
    };
    Store::open(
        Arc::new(disk.clone()),
        &options,
        Arc::new(ManualClock::new(Timestamp(1_000))),
    )
    .unwrap()
}

fn reopen(store: Store, disk: &MemoryStorage) -> Store {
    store.close();
    drop(store);
    open(disk)
}

fn blob(text: &str) -> NewBlob {
    NewBlob::from_raw(Bytes::copy_from_slice(text.as_bytes()), 32 << 20).unwrap()
}

fn turn(text: &str) -> NewTurn {
    NewTurn {
        declared: TypeRef::new("com.example.Note", 1),
        encoding: 1,
        payload: blob(text),
        fs_root: None,
    }
}

fn part(context: ContextId, turns: Vec<NewTurn>) -> AppendPart {
    AppendPart {
        context,
        parent: None,
        expected_head: None,
        turns,
    }
}

fn append(part: AppendPart, key: &str) -> Command {
    let key = Key::new(Bytes::copy_from_slice(key.as_bytes()));
    Command::Append(Append {
        parts: vec![part],
        key,
        strict: false,
    })
}

fn create(store: &Store, base: Option<TurnId>) -> ContextId {
    match store
        .run(Command::CreateContext(CreateContext {
            base,
            ..Default::default()
        }))
        .unwrap()
    {
        Outcome::Created(created) => created.context,
        other => panic!("{other:?}"),
    }
}

fn appended(outcome: Result<Outcome, Refusal>) -> Appended {
    match outcome.unwrap() {
        Outcome::Appended(appended) => appended,
        other => panic!("{other:?}"),
    }
}

fn say(store: &Store, context: ContextId, text: &str) -> TurnId {
    appended(store.run(append(part(context, vec![turn(text)]), ""))).turns[0].turn
}

fn texts(store: &Store, context: ContextId) -> Vec<String> {
    let turns = store.last(context, 1000).unwrap();
    let text =
        |t| String::from_utf8(store.payload(t).unwrap().raw().unwrap().into_owned()).unwrap();
    turns.iter().map(text).collect()
}

fn id(number: u64) -> TurnId {
    TurnId::new(number).unwrap()
}

#[test]
fn a_turn_goes_onto_the_head_and_a_fork_leaves_the_original_alone() {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    let main = create(&store, None);
    let (first, _) = (say(&store, main, "one"), say(&store, main, "two"));
    let fork = create(&store, Some(first));
    say(&store, fork, "other");
    let store = reopen(store, &disk);
    assert_eq!(texts(&store, main), ["one", "two"]);
    assert_eq!(texts(&store, fork), ["one", "other"]);
    let head = store.context(fork).unwrap();
    assert_eq!((head.head, head.head_depth), (Some(id(3)), 1));
}

#[test]
fn an_explicit_parent_branches_in_place() {
    let store = open(&MemoryStorage::new());
    let context = create(&store, None);
    let first = say(&store, context, "one");
    say(&store, context, "two");
    let branch = AppendPart {
        parent: Some(first),
        ..part(context, vec![turn("three")])
    };
    appended(store.run(append(branch, "")));
    assert_eq!(texts(&store, context), ["one", "three"]);
    let lost = AppendPart {
        parent: Some(id(99)),
        ..part(context, vec![turn("x")])
    };
    assert_eq!(
        store.run(append(lost, "")),
        Err(Refusal::UnknownTurn(id(99)))
    );
    let nowhere = part(ContextId::new(9).unwrap(), vec![turn("x")]);
    assert!(matches!(
        store.run(append(nowhere, "")),
        Err(Refusal::UnknownContext(_))
    ));
}

#[test]
fn a_key_gives_the_first_ack_for_ever_and_refuses_other_requests() {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    let context = create(&store, None);
    let request = || append(part(context, vec![turn("one"), turn("two")]), "key");
    let first = appended(store.run(request()));
    say(&store, context, "three");
    let store = reopen(store, &disk);
    let again = appended(store.run(request()));
    assert_eq!((again.turns, again.replayed), (first.turns, true));
    assert_eq!(texts(&store, context), ["one", "two", "three"]);
    let other = append(part(context, vec![turn("one")]), "key");
    assert_eq!(store.run(other), Err(Refusal::KeyReused));
    let fork = create(&store, Some(id(1)));
    assert!(
        !appended(store.run(append(part(fork, vec![turn("one")]), "key"))).replayed,
        "a fork inherits none"
    );
}

#[test]
fn a_retry_of_a_successful_compare_and_set_returns_its_ack() {
    let store = open(&MemoryStorage::new());
    let context = create(&store, None);
    let first = || {
        let part = AppendPart {
            expected_head: Some(None),
            ..part(context, vec![turn("one")])
        };
        append(part, "key")
    };
    assert!(!appended(store.run(first())).replayed);
    assert!(appended(store.run(first())).replayed);
    let late = AppendPart {
        expected_head: Some(None),
        ..part(context, vec![turn("two")])
    };
    let moved = Refusal::HeadMoved {
        context,
        expected: None,
        actual: Some(id(1)),
    };
    assert_eq!(store.run(append(late, "")), Err(moved));
}

#[test]
fn creation_is_repeatable_by_key_and_replays_the_head_of_that_time() {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    let request = || {
        let key = Key::new(Bytes::from_static(b"k"));
        let labels = Labels::from([("team".into(), "a".into())]);
        Command::CreateContext(CreateContext {
            base: None,
            labels,
            key,
        })
    };
    let Outcome::Created(first) = store.run(request()).unwrap() else {
        panic!()
    };
    say(&store, first.context, "one");
    let store = reopen(store, &disk);
    let Outcome::Created(again) = store.run(request()).unwrap() else {
        panic!()
    };
    assert_eq!(
        (again.context, again.head, again.replayed),
        (first.context, None, true)
    );
    assert_eq!(store.context(first.context).unwrap().labels["team"], "a");
}

#[test]
fn a_batch_over_several_contexts_is_all_or_nothing() {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    let (a, b) = (create(&store, None), create(&store, None));
    let both = |expected| {
        let second = AppendPart {
            expected_head: Some(expected),
            ..part(b, vec![turn("b1")])
        };
        let parts = vec![part(a, vec![turn("a1")]), second, part(a, vec![turn("a2")])];
        Command::Append(Append {
            parts,
            key: None,
            strict: false,
        })
    };
    assert!(matches!(
        store.run(both(Some(id(7)))),
        Err(Refusal::HeadMoved { .. })
    ));
    assert!(texts(&store, a).is_empty());
    let done = appended(store.run(both(None)));
    assert_eq!(
        done.turns
            .iter()
            .map(|t| (t.turn.get(), t.depth))
            .collect::<Vec<_>>(),
        [(1, 0), (2, 0), (3, 1)]
    );
    let store = reopen(store, &disk);
    assert_eq!(
        (texts(&store, a), texts(&store, b)),
        (vec!["a1".into(), "a2".into()], vec!["b1".into()])
    );
}

#[test]
fn a_filesystem_root_must_exist_and_is_set_once() {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    let context = create(&store, None);
    let turn_id = say(&store, context, "one");
    let attach = |root: &str| Command::AttachFs {
        turn: turn_id,
        root: BlobHash::of(root.as_bytes()),
    };
    assert!(matches!(
        store.run(attach("root")),
        Err(Refusal::UnknownBlob(_))
    ));
    assert_eq!(
        store.run(Command::PutBlob(blob("root"))),
        Ok(Outcome::BlobPut { was_new: true })
    );
    assert_eq!(
        store.run(Command::PutBlob(blob("root"))),
        Ok(Outcome::BlobPut { was_new: false })
    );
    store.run(Command::PutBlob(blob("other"))).unwrap();
    assert_eq!(store.run(attach("root")), Ok(Outcome::FsAttached));
    let store = reopen(store, &disk);
    assert_eq!(store.run(attach("root")), Ok(Outcome::FsAttached));
    assert!(matches!(
        store.run(attach("other")),
        Err(Refusal::FsRootSet { .. })
    ));
    assert_eq!(
        store.turn(turn_id).unwrap().fs_root,
        Some(BlobHash::of(b"root"))
    );
    let with_root = NewTurn {
        fs_root: Some(BlobHash::of(b"other")),
        ..turn("two")
    };
    let made = appended(store.run(append(part(context, vec![with_root]), "")));
    assert_eq!(
        store.turn(made.turns[0].turn).unwrap().fs_root,
        Some(BlobHash::of(b"other"))
    );
}

#[test]
fn a_blob_is_kept_once_and_comes_back_as_it_went_in() {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    let (a, b) = (create(&store, None), create(&store, None));
    let long = "long ".repeat(10_000);
    for context in [a, b, a] {
        say(&store, context, &long);
        say(&store, context, "");
    }
    assert_eq!(store.stats().blobs, 2);
    let store = reopen(store, &disk);
    assert_eq!(texts(&store, b), [long.as_str(), ""]);
    assert_eq!(store.stats().blobs, 2);
    assert!(store.stats().blob_stored_bytes < 1000, "it is compressed");
    assert!(matches!(
        store.blob(BlobHash::of(b"?")),
        Err(ReadError::UnknownBlob(_))
    ));
}

#[test]
fn reading_by_depth_and_before_a_turn_gives_the_nearest_in_order() {
    let store = open(&MemoryStorage::new());
    let context = create(&store, None);
    let turns = (0..500).map(|n| turn(&n.to_string())).collect();
    appended(store.run(append(part(context, turns), "")));
    let depths =
        |turns: Vec<turnkeep_store::Turn>| turns.iter().map(|t| t.depth).collect::<Vec<u32>>();
    let none: [u32; 0] = [];
    assert_eq!(
        depths(store.range(context, 100, 3).unwrap()),
        [100, 101, 102]
    );
    assert_eq!(depths(store.range(context, 498, 9).unwrap()), [498, 499]);
    assert_eq!(depths(store.range(context, 500, 9).unwrap()), none);
    assert_eq!(
        depths(store.range(context, 0, usize::MAX).unwrap()).len(),
        500
    );
    assert_eq!(depths(store.before(id(3), 9).unwrap()), [0, 1]);
    assert_eq!(depths(store.before(id(1), 9).unwrap()), none);
    assert_eq!(depths(store.last(context, 2).unwrap()), [498, 499]);
    assert_eq!(depths(store.last(context, 0).unwrap()), none);
    assert_eq!(
        depths(store.range(create(&store, None), 0, 5).unwrap()),
        none
    );
}

#[test]
fn events_are_dense_and_survive() {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    let context = create(&store, None);
    let turn_id = say(&store, context, "one");
    store.run(Command::PutBlob(blob("root"))).unwrap();
    store
        .run(Command::AttachFs {
            turn: turn_id,
            root: BlobHash::of(b"root"),
        })
        .unwrap();
    let json = br#"{"registry_version":1,"bundle_id":"b","types":{},"enums":{}}"#;
    store
        .run(Command::PutBundle {
            id: "b".into(),
            json: Bytes::from_static(json),
        })
        .unwrap();
    let kinds = |store: &Store| {
        (1..=5)
            .map(|p| store.event(p).map(|e| e.kind))
            .collect::<Vec<_>>()
    };
    let expected = vec![
        Some(EventKind::ContextCreated(context)),
        Some(EventKind::TurnAppended(turn_id)),
        Some(EventKind::FsAttached(turn_id)),
        Some(EventKind::RegistryPut("b".into())),
        None,
    ];
    assert_eq!(kinds(&store), expected);
    let store = reopen(store, &disk);
    assert_eq!((kinds(&store), store.last_position()), (expected, 4));
}

#[test]
fn strict_mode_refuses_types_that_nobody_published() {
    let store = open(&MemoryStorage::new());
    let context = create(&store, None);
    let strict = || {
        let parts = vec![part(context, vec![turn("one")])];
        Command::Append(Append {
            parts,
            key: None,
            strict: true,
        })
    };
    assert!(matches!(store.run(strict()), Err(Refusal::UnknownType(_))));
    let json = br#"{"registry_version":1,"bundle_id":"b","types":{"com.example.Note":{"versions":{"1":{"fields":{}}}}},"enums":{}}"#;
    store
        .run(Command::PutBundle {
            id: "b".into(),
            json: Bytes::from_static(json),
        })
        .unwrap();
    appended(store.run(strict()));
}

#[test]
fn pipelined_commands_see_the_ones_before_them() {
    let store = open(&MemoryStorage::new());
    let context = create(&store, None);
    let (send, receive) = std::sync::mpsc::sync_channel(64);
    for n in 0..50_u64 {
        let expected_head = Some(TurnId::new(n));
        let part = AppendPart {
            expected_head,
            ..part(context, vec![turn(&n.to_string())])
        };
        let send = send.clone();
        store
            .submit(append(part, ""), move |outcome| send.send(outcome).unwrap())
            .unwrap();
    }
    for _ in 0..50 {
        receive.recv().unwrap().unwrap();
    }
    assert_eq!(store.context(context).unwrap().head, Some(id(50)));
}

#[test]
fn one_key_from_many_threads_makes_one_turn() {
    let store = open(&MemoryStorage::new());
    let context = create(&store, None);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..50 {
                    let key = format!("key {n}");
                    appended(store.run(append(part(context, vec![turn(&key)]), &key)));
                }
            });
        }
    });
    assert_eq!(store.stats().turns, 50);
}

#[test]
fn a_deleted_index_is_rebuilt_equal() {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    let context = create(&store, None);
    for n in 0..300 {
        let key = format!("key {n}");
        appended(store.run(append(part(context, vec![turn(&"text ".repeat(n))]), &key)));
    }
    store.close();
    let before = (store.last(context, 1000).unwrap(), store.last_position());
    drop(store);
    let mut files = disk.files();
    assert!(
        files.keys().any(|name| name.starts_with("index/")),
        "there is a checkpoint"
    );
    let store = open(&disk);
    assert_eq!(
        (store.last(context, 1000).unwrap(), store.last_position()),
        before
    );
    drop(store);
    files.retain(|name, _| !name.starts_with("index/"));
    let store = open(&MemoryStorage::with_files(files));
    assert_eq!(
        (store.last(context, 1000).unwrap(), store.last_position()),
        before
    );
    let again = appended(store.run(append(part(context, vec![turn("")]), "key 0")));
    assert!(again.replayed);
}

#[test]
fn an_index_of_another_store_is_discarded() {
    let disk_of = |random, turns| {
        let disk = MemoryStorage::new();
        let options = Options {
            random: [random; 32],
            segment_bytes: 64 << 10,
            ..Options::default()
        };
        let clock = Arc::new(ManualClock::new(Timestamp(1)));
        let store = Store::open(Arc::new(disk.clone()), &options, clock).unwrap();
        let context = create(&store, None);
        (0..turns).for_each(|n| _ = say(&store, context, &format!("{random} {n}")));
        store.close();
        disk.files()
    };
    let mut files = disk_of(1, 3);
    files.retain(|name, _| name.starts_with("log/"));
    files.extend(
        disk_of(2, 9)
            .into_iter()
            .filter(|(name, _)| name.starts_with("index/")),
    );
    let store = open(&MemoryStorage::with_files(files));
    assert_eq!(
        texts(&store, ContextId::new(1).unwrap()),
        ["1 0", "1 1", "1 2"]
    );
}

#[test]
fn a_blob_that_is_damaged_on_disk_is_kept_anew_when_it_comes_again() {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    let context = create(&store, None);
    let needle = b"a payload that will be damaged";
    let first = say(&store, context, std::str::from_utf8(needle).unwrap());
    say(&store, context, "another");
    let store = reopen(store, &disk);
    drop(store);
    let mut files = disk.files();
    for bytes in files
        .iter_mut()
        .filter(|(name, _)| name.starts_with("log/"))
        .map(|(_, bytes)| bytes)
    {
        if let Some(at) = bytes
            .windows(needle.len())
            .position(|window| window == needle)
        {
            bytes[at] ^= 1;
        }
    }
    let disk = MemoryStorage::with_files(files);
    let store = open(&disk);
    let read = |store: &Store| {
        store
            .payload(&store.turn(first).unwrap())
            .map(|p| p.stored().to_vec())
    };
    assert!(matches!(read(&store), Err(ReadError::Corrupt { .. })));
    let again = || Command::PutBlob(blob(std::str::from_utf8(needle).unwrap()));
    assert_eq!(store.run(again()), Ok(Outcome::BlobPut { was_new: true }));
    assert_eq!(store.run(again()), Ok(Outcome::BlobPut { was_new: false }));
    assert_eq!(read(&store).unwrap(), needle);
    let store = reopen(store, &disk);
    assert_eq!(read(&store).unwrap(), needle, "from the index");
    drop(store);
    let mut files = disk.files();
    files.retain(|name, _| !name.starts_with("index/"));
    assert_eq!(
        read(&open(&MemoryStorage::with_files(files))).unwrap(),
        needle,
        "from the log"
    );
}

#[test]
fn one_bundle_put_by_many_at_once_is_published_once() {
    let store = open(&MemoryStorage::new());
    let put = |n: u32| {
        let json = format!(
            r#"{{"registry_version":1,"bundle_id":"b","types":{{}},"enums":{{"e":{{"1":"{n}"}}}}}}"#
        );
        store.run(Command::PutBundle {
            id: "b".into(),
            json: json.into(),
        })
    };
    let outcomes = |n| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| put(n))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect::<Vec<_>>()
        })
    };
    let same = outcomes(1);
    let new = same
        .iter()
        .filter(|outcome| **outcome == Ok(Outcome::BundlePut { was_new: true }))
        .count();
    let there = same
        .iter()
        .filter(|outcome| **outcome == Ok(Outcome::BundlePut { was_new: false }))
        .count();
    assert_eq!((new, there, store.stats().bundles), (1, 15, 1));
    assert!(
        outcomes(2)
            .iter()
            .all(|outcome| matches!(outcome, Err(Refusal::Bundle(_))))
    );
}

#[test]
fn a_read_only_store_is_read_and_takes_no_command() {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    let context = create(&store, None);
    appended(store.run(append(part(context, vec![turn("kept")]), "")));
    store.close();
    drop(store);
    let options = Options {
        read_only: true,
        ..Options::default()
    };
    let storage = ReadOnlyStorage::over(Arc::new(disk.clone()));
    let clock = ManualClock::new(Timestamp(1_000));
    let store = Store::open(Arc::new(storage), &options, Arc::new(clock)).unwrap();
    let fork = CreateContext {
        base: TurnId::new(1),
        ..Default::default()
    };
    for command in [
        Command::CreateContext(fork),
        append(part(context, vec![turn("lost")]), ""),
        Command::PutBlob(blob("lost")),
    ] {
        assert_eq!(store.run(command), Err(Refusal::ReadOnly));
    }
    assert_eq!(store.stats().turns, 1);
    assert!(store.turn(TurnId::new(1).unwrap()).is_ok());
}
