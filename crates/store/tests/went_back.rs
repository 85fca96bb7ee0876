//! A log that holds less than was acknowledged: opening notices it, and no id is assigned twice.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_journal::{MemoryStorage, OpenError as LogError, Storage};
use turnkeep_store::salvage::{Writers, repair, verify};
use turnkeep_store::{
    Append, AppendPart, Command, CreateContext, NewBlob, NewTurn, OpenError, Options, Outcome,
    Store,
};
use turnkeep_types::{ContextId, ManualClock, Timestamp, TypeRef};

const SEGMENT_BYTES: u64 = 1024;
type Files = BTreeMap<String, Vec<u8>>;

fn open(disk: &MemoryStorage) -> Result<Store, OpenError> {
    let options = Options {
        segment_bytes: SEGMENT_BYTES,
        ..Options::default()
    };
    Store::open(
        Arc::new(disk.clone()),
        &options,
        Arc::new(ManualClock::new(Timestamp(7))),
    )
}

fn storage(files: &Files) -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::with_files(files.clone()))
}

fn append(store: &Store, text: &str) -> u64 {
    let payload = NewBlob::from_raw(Bytes::copy_from_slice(text.as_bytes()), 1000).unwrap();
    let turn = NewTurn {
        declared: TypeRef::new("t", 1),
        encoding: 1,
        payload,
        fs_root: None,
    };
    let context = ContextId::new(1).unwrap();
    let part = AppendPart {
        context,
        parent: None,
        expected_head: None,
        turns: vec![turn],
    };
    let append = Command::Append(Append {
        parts: vec![part],
        key: None,
        strict: false,
    });
    let Outcome::Appended(appended) = store.run(append).unwrap() else {
        panic!("an append")
    };
    appended.turns[0].turn.get()
}

fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|found| found == extension)
}

/// The files of a server that was killed after it had acknowledged ten turns and before a
/// checkpoint was due.
fn killed() -> Files {
    let disk = MemoryStorage::new();
    let store = open(&disk).unwrap();
    store
        .run(Command::CreateContext(CreateContext::default()))
        .unwrap();
    for n in 1..=10 {
        assert_eq!(append(&store, &format!("turn {n} {}", "x".repeat(100))), n);
    }
    let files = disk.files();
    assert!(
        files.keys().all(|name| !has_extension(name, "ckpt")),
        "{:?}",
        files.keys()
    );
    store.close();
    files
}

fn last_segment(files: &Files) -> String {
    files
        .keys()
        .rfind(|name| has_extension(name, "seg"))
        .unwrap()
        .clone()
}

/// The loss is reported at the start, named by a verification, and after a repair ids go on behind
/// it.
fn check_loss(files: &Files, first_lost: u64) {
    let report = verify(&storage(files), Writers::None, |_, _| ()).unwrap();
    assert!(!report.is_sound());
    assert_eq!(report.missing.turns, vec![first_lost..=10]);
    let to = MemoryStorage::new();
    let target: Arc<dyn Storage> = Arc::new(to.clone());
    repair(&storage(files), &target, SEGMENT_BYTES, |_, _| ()).unwrap();
    let store = open(&to).unwrap();
    assert_eq!(append(&store, "after"), 11, "no id is given twice");
}

#[test]
fn a_deleted_last_segment_is_reported_and_its_ids_stay_taken() {
    let mut files = killed();
    files.remove(&last_segment(&files)).unwrap();
    let refused = open(&MemoryStorage::with_files(files.clone()))
        .err()
        .unwrap();
    let OpenError::MissingFrames { last, known } = refused else {
        panic!("{refused}")
    };
    assert!(
        refused.to_string().contains("the log went back"),
        "{refused}"
    );
    assert_eq!(known, 11);
    // Frame n + 1 holds turn n.
    check_loss(&files, last);
}

#[test]
fn all_segments_deleted_is_no_new_store() {
    let mut files = killed();
    files.retain(|name, _| !name.starts_with("log/"));
    let refused = open(&MemoryStorage::with_files(files)).err().unwrap();
    assert!(
        matches!(refused, OpenError::MissingFrames { last: 0, known: 11 }),
        "{refused}"
    );
}

#[test]
fn a_cut_or_garbled_tail_that_was_acknowledged_is_damage() {
    for garbled in [true, false] {
        let mut files = killed();
        let segment = files.get_mut(&last_segment(&files)).unwrap();
        let end = segment.iter().rposition(|&byte| byte != 0).unwrap();
        if garbled {
            segment[end - 150..].fill(0xee);
        } else {
            segment.truncate(end - 150);
        }
        let refused = open(&MemoryStorage::with_files(files.clone()))
            .err()
            .unwrap();
        let is_damage = matches!(refused, OpenError::Log(LogError::Damaged { .. }));
        assert!(
            is_damage || matches!(refused, OpenError::MissingFrames { .. }),
            "{refused}"
        );
        let report = verify(&storage(&files), Writers::None, |_, _| ()).unwrap();
        assert!(report.torn.is_none(), "it was acknowledged: {report:?}");
        check_loss(&files, *report.missing.turns[0].start());
    }
}

#[test]
fn without_the_index_the_same_tail_is_a_torn_one() {
    let mut files = killed();
    files.retain(|name, _| name.starts_with("log/"));
    let segment = files.get_mut(&last_segment(&files)).unwrap();
    let end = segment.iter().rposition(|&byte| byte != 0).unwrap();
    segment[end - 50..].fill(0xee);
    let store = open(&MemoryStorage::with_files(files)).unwrap();
    assert!(store.torn_tail().is_some());
}

#[test]
fn a_killed_store_starts_and_one_of_another_store_does_not_count() {
    let files = killed();
    let store = open(&MemoryStorage::with_files(files.clone())).unwrap();
    assert_eq!((append(&store, "on"), store.lost_ids()), (11, None));
    store.close();
    // The record of another store's writes says nothing about this one.
    let disk = MemoryStorage::new();
    let options = Options {
        random: [9; 32],
        ..Options::default()
    };
    let other = Store::open(
        Arc::new(disk.clone()),
        &options,
        Arc::new(ManualClock::new(Timestamp(7))),
    )
    .unwrap();
    other
        .run(Command::CreateContext(CreateContext::default()))
        .unwrap();
    other.close();
    let mut mixed = disk.files();
    mixed.retain(|name, _| name.starts_with("log/"));
    mixed.insert(
        "index/acknowledged".into(),
        files["index/acknowledged"].clone(),
    );
    assert_eq!(
        append(&open(&MemoryStorage::with_files(mixed)).unwrap(), "first"),
        1
    );
}

#[test]
fn a_log_is_verified_while_its_server_writes() {
    let disk = MemoryStorage::new();
    let store = open(&disk).unwrap();
    store
        .run(Command::CreateContext(CreateContext::default()))
        .unwrap();
    append(&store, "one");
    // A frame that is being written: only its beginning is there.
    let mut files = disk.files();
    let segment = files.get_mut(&last_segment(&files)).unwrap();
    let end = segment
        .iter()
        .rposition(|&byte| byte != 0)
        .unwrap()
        .next_multiple_of(8);
    segment[end..end + 40].fill(0xee);
    let report = verify(&storage(&files), Writers::Running, |_, _| ()).unwrap();
    assert!(report.is_sound() && report.torn.is_none(), "{report:?}");
    assert_eq!((report.turns, report.frames), (1, 2));
    // Damage of durable frames is reported while a server runs, too.
    let at = segment_position(&files, b"one");
    files.get_mut(&last_segment(&files)).unwrap()[at] ^= 1;
    let report = verify(&storage(&files), Writers::Running, |_, _| ()).unwrap();
    assert_eq!((report.is_sound(), report.bad_blobs.len()), (false, 1));
    store.close();
}

fn segment_position(files: &Files, text: &[u8]) -> usize {
    files[&last_segment(files)]
        .windows(text.len())
        .position(|window| window == text)
        .unwrap()
}

/// Opens a store in a directory whose `index/acknowledged` was replaced.
fn open_with_acknowledged(replace: impl FnOnce(&Path)) -> Result<Store, OpenError> {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let storage = Arc::new(turnkeep_journal::FileStorage::new(dir.path()));
        let clock = Arc::new(ManualClock::new(Timestamp(7)));
        Store::open(storage, &Options::default(), clock)
    };
    drop(open().unwrap());
    let file = dir.path().join("index/acknowledged");
    std::fs::remove_file(&file).unwrap();
    replace(&file);
    open()
}

#[test]
fn a_store_does_not_open_where_acknowledged_writes_cannot_be_noted() {
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(outside.path(), "precious").unwrap();
    let linked = open_with_acknowledged(|file| {
        std::os::unix::fs::symlink(outside.path(), file).unwrap();
    });
    assert!(matches!(linked, Err(OpenError::Io(_))));
    assert_eq!(std::fs::read(outside.path()).unwrap(), b"precious");
    let directory = open_with_acknowledged(|file| std::fs::create_dir(file).unwrap());
    let Err(OpenError::Io(error)) = directory else {
        panic!("a directory is no file")
    };
    assert!(error.to_string().contains("index/acknowledged"), "{error}");
    assert!(
        open_with_acknowledged(|_| ()).is_ok(),
        "a missing file is made"
    );
}
