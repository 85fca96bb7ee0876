//! Data directories of every released version of the format, healthy and torn, opened by this
//! version.
//!
//! `UPDATE=1` writes missing directories and never changes an existing one: the files of a release
//! stay as that release wrote them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_journal::{MemoryStorage, Storage};
use turnkeep_store::{
    Append, AppendPart, Command, CreateContext, Key, Labels, NewBlob, NewTurn, Options, Outcome,
    Store, salvage,
};
use turnkeep_types::{BlobHash, ContextId, ManualClock, Timestamp, TurnId, TypeRef};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/datadirs/v1");
const SEGMENT: &str = "log/0000000001.seg";

type Files = BTreeMap<String, Vec<u8>>;

fn open(disk: &MemoryStorage) -> Store {
    let options = Options {
        segment_bytes: 64 << 10,
        random: [7; 32],
        ..Options::default()
    };
    let clock = ManualClock::new(Timestamp(1_766_174_400_000));
    Store::open(Arc::new(disk.clone()), &options, Arc::new(clock)).unwrap()
}

fn blob(text: &str) -> NewBlob {
    NewBlob::from_raw(Bytes::copy_from_slice(text.as_bytes()), 1 << 20).unwrap()
}

fn append(context: u64, parent: u64, texts: &[&str], key: &str) -> Command {
    let turn = |text: &&str| NewTurn {
        declared: TypeRef::new("com.example.Note", 1),
        encoding: 1,
        payload: blob(text),
        fs_root: None,
    };
    let part = AppendPart {
        context: ContextId::new(context).unwrap(),
        parent: TurnId::new(parent),
        expected_head: None,
        turns: texts.iter().map(turn).collect(),
    };
    let key = Key::new(Bytes::copy_from_slice(key.as_bytes()));
    Command::Append(Append {
        parts: vec![part],
        key,
        strict: false,
    })
}

fn commands() -> Vec<Command> {
    let labels = |value: &str| Labels::from([("agent".to_owned(), value.to_owned())]);
    let create = |base, labels| {
        Command::CreateContext(CreateContext {
            base: TurnId::new(base),
            labels,
            key: None,
        })
    };
    let bundle = br#"{"registry_version":1,"bundle_id":"notes","types":{"com.example.Note":{"versions":{"1":{"fields":{"1":{"name":"text","type":"string"}}}}}},"enums":{}}"#;
    let root = blob("a tree");
    let attach = Command::AttachFs {
        turn: TurnId::new(2).unwrap(),
        root: root.hash(),
    };
    vec![
        create(0, labels("first")),
        Command::PutBundle {
            id: "notes".to_owned(),
            json: Bytes::from_static(bundle),
        },
        append(1, 0, &["one", "two", ""], "batch"),
        create(2, Labels::new()),
        append(2, 0, &[&"a long text, ".repeat(500)], "long"),
        append(1, 1, &["branched in place"], ""),
        Command::PutBlob(root),
        attach,
        Command::SetLabels {
            context: ContextId::new(2).unwrap(),
            labels: labels("second"),
        },
        append(2, 0, &["one", "the last"], "last"),
    ]
}

/// The two directories as this version writes them, segments without their unused ends.
fn generate() -> [Files; 2] {
    let disk = MemoryStorage::new();
    let store = open(&disk);
    let mut last_frame = 0;
    for command in commands() {
        last_frame = usize::try_from(store.log().bytes_used()).unwrap();
        store.run(command).unwrap();
    }
    let end = usize::try_from(store.log().bytes_used()).unwrap();
    store.close();
    let mut healthy = disk.files();
    healthy.get_mut(SEGMENT).unwrap().truncate(end);
    let mut torn = healthy.clone();
    torn.retain(|name, _| name == SEGMENT);
    torn.get_mut(SEGMENT)
        .unwrap()
        .truncate(usize::midpoint(last_frame, end));
    [healthy, torn]
}

fn write(dir: &Path, files: &Files) {
    for (name, bytes) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn read(dir: &Path) -> Files {
    let below = |sub: &str| fs::read_dir(dir.join(sub)).into_iter().flatten();
    let paths = ["log", "index"]
        .into_iter()
        .flat_map(below)
        .map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
    paths
        .map(|path| (name(&path), fs::read(path).unwrap()))
        .collect()
}

/// Everything that a store holds, in lines.
fn content(store: &Store) -> String {
    let mut text = String::new();
    for context in store.contexts(None) {
        let head = TurnId::to_wire(context.head);
        let (id, depth, at, labels) = (
            context.id,
            context.head_depth,
            context.created_at.0,
            context.labels,
        );
        writeln!(
            text,
            "context {id} head {head} depth {depth} created {at} labels {labels:?}"
        )
        .unwrap();
    }
    for id in (1..=store.stats().turns).filter_map(TurnId::new) {
        let turn = store.turn(id).unwrap();
        let payload = store.payload(&turn).unwrap();
        let raw = payload.raw().unwrap();
        assert_eq!(BlobHash::of(&raw), turn.hash);
        let shown: String = String::from_utf8_lossy(&raw).chars().take(30).collect();
        let (parent, root) = (
            TurnId::to_wire(turn.parent),
            turn.fs_root.map(|root| root.to_string()),
        );
        let (depth, context, declared, at) =
            (turn.depth, turn.context, turn.declared, turn.created_at.0);
        let place = format!("turn {id} parent {parent} depth {depth} context {context}");
        writeln!(
            text,
            "{place} type {declared} encoding {} created {at}",
            turn.encoding
        )
        .unwrap();
        writeln!(
            text,
            "  {} bytes {} {:?} root {root:?}",
            raw.len(),
            turn.hash,
            shown
        )
        .unwrap();
    }
    for event in (1..=store.last_position()).filter_map(|at| store.event(at)) {
        writeln!(text, "event {} {:?}", event.position, event.kind).unwrap();
    }
    for bundle in store.registry().bundles() {
        writeln!(text, "bundle {} {}", bundle.id, bundle.etag).unwrap();
    }
    text
}

/// The directory's files and what they must amount to; written first if asked for and not there.
fn case(name: &str, generated: Files) -> (Files, String) {
    let dir = Path::new(ROOT).join(name);
    let expected = dir.join("content.txt");
    if std::env::var_os("UPDATE").is_some() && !dir.exists() {
        write(&dir, &generated);
        fs::write(
            &expected,
            content(&open(&MemoryStorage::with_files(generated))),
        )
        .unwrap();
    }
    (read(&dir), fs::read_to_string(expected).unwrap())
}

fn replayed(store: &Store, command: Command) -> (bool, Vec<u64>) {
    match store.run(command).unwrap() {
        Outcome::Appended(appended) => (
            appended.replayed,
            appended.turns.iter().map(|turn| turn.turn.get()).collect(),
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_healthy_directory_of_version_1_opens_with_and_without_its_index() {
    let [healthy, _] = generate();
    let (files, expected) = case("healthy", healthy);
    assert!(files.keys().any(|name| name.starts_with("index/")));
    let report = salvage::verify(
        &(Arc::new(MemoryStorage::with_files(files.clone())) as Arc<dyn Storage>),
        salvage::Writers::None,
        |_, _| {},
    );
    assert!(report.unwrap().is_sound());
    let log_only = files
        .iter()
        .filter(|(name, _)| *name == SEGMENT)
        .map(|(n, b)| (n.clone(), b.clone()));
    for files in [log_only.collect(), files] {
        let disk = MemoryStorage::with_files(files);
        let store = open(&disk);
        assert_eq!(
            (content(&store), store.torn_tail()),
            (expected.clone(), None)
        );
        assert_eq!(
            replayed(&store, append(1, 0, &["one", "two", ""], "batch")),
            (true, vec![1, 2, 3])
        );
        assert_eq!(
            replayed(&store, append(1, 0, &["more"], "new")),
            (false, vec![8])
        );
        drop(store);
        assert_eq!(open(&disk).stats().turns, 8);
    }
}

#[test]
fn a_torn_directory_of_version_1_opens_without_its_last_frame() {
    let [_, torn] = generate();
    let (files, expected) = case("torn", torn);
    let len = files[SEGMENT].len() as u64;
    let disk = MemoryStorage::with_files(files);
    let store = open(&disk);
    assert_eq!(content(&store), expected);
    let tail = store.torn_tail().unwrap();
    assert_eq!((&tail.file[..], tail.offset + tail.bytes), (SEGMENT, len));
    assert_eq!(disk.files()[&tail.copied_to].len() as u64, tail.bytes);
    assert_eq!(
        replayed(&store, append(2, 0, &["one", "the last"], "last")),
        (false, vec![6, 7])
    );
    drop(store);
    let store = open(&disk);
    assert_eq!((store.torn_tail(), store.stats().turns), (None, 7));
}
