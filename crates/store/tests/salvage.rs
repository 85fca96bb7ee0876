//! Damage at every byte: it is always reported and never returned as data, and a repair keeps every
//! other turn unchanged.

#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_journal::{MemoryStorage, Storage};
use turnkeep_store::salvage::{Report, Writers, repair, verify};
use turnkeep_store::{
    Append, AppendPart, Command, CreateContext, Key, NewBlob, NewTurn, Options, Store, archive,
};
use turnkeep_types::{ContextId, ManualClock, Timestamp, TurnId, TypeRef};

type Seen = BTreeMap<TurnId, (Option<TurnId>, u32, ContextId, Vec<u8>)>;

fn open(disk: &MemoryStorage) -> Result<Store, turnkeep_store::OpenError> {
    let options = Options {
        segment_bytes: 2048,
        ..Options::default()
    };
    Store::open(
        Arc::new(disk.clone()),
        &options,
        Arc::new(ManualClock::new(Timestamp(7))),
    )
}

fn disk(files: BTreeMap<String, Vec<u8>>) -> (MemoryStorage, Arc<dyn Storage>) {
    let disk = MemoryStorage::with_files(files);
    (disk.clone(), Arc::new(disk))
}

/// A small log: contexts, forks, batches, keys, repeated payloads, roots, strict appends.
fn sample() -> BTreeMap<String, Vec<u8>> {
    let disk = MemoryStorage::new();
    let store = open(&disk).unwrap();
    let context = |n| ContextId::new(n).unwrap();
    let create = |base| {
        Command::CreateContext(CreateContext {
            base: TurnId::new(base),
            ..Default::default()
        })
    };
    let blob =
        |text: &str| NewBlob::from_raw(Bytes::copy_from_slice(text.as_bytes()), 1000).unwrap();
    let turn = |text: &str| NewTurn {
        declared: TypeRef::new("t", 1),
        encoding: 1,
        payload: blob(text),
        fs_root: text.strip_prefix("rooted ").map(|root| blob(root).hash()),
    };
    let append = |context, texts: &[&str]| {
        let turns = texts.iter().map(|text| turn(text)).collect();
        let part = AppendPart {
            context,
            parent: None,
            expected_head: None,
            turns,
        };
        let key = Key::new(Bytes::copy_from_slice(texts.concat().as_bytes()));
        Command::Append(Append {
            parts: vec![part],
            key,
            strict: true,
        })
    };
    let json = br#"{"registry_version":1,"bundle_id":"b","types":{"t":{"versions":{"1":{"fields":{}}}}},"enums":{}}"#;
    for command in [
        Command::PutBundle {
            id: "b".into(),
            json: Bytes::from_static(json),
        },
        Command::PutBlob(blob("root")),
        create(0),
        append(context(1), &["one", "two"]),
        append(context(1), &["three"]),
        create(2),
        append(context(2), &["rooted root", "one"]),
        append(context(1), &["five"]),
        create(5),
        append(context(3), &["six"]),
        Command::AttachFs {
            turn: TurnId::new(1).unwrap(),
            root: blob("root").hash(),
        },
        append(context(2), &["seven"]),
    ] {
        store.run(command).unwrap();
    }
    store.close();
    let mut files = disk.files();
    files.retain(|_, bytes| bytes.iter().any(|&b| b != 0));
    files
}

fn without_index(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    files.retain(|name, _| name.starts_with("log/"));
    files
}

/// Every turn that can be read whole.
fn seen(store: &Store) -> Seen {
    let turn = |id| {
        let turn = store.turn(id).ok()?;
        let bytes = store.payload(&turn).ok()?.raw().ok()?.into_owned();
        Some((id, (turn.parent, turn.depth, turn.context, bytes)))
    };
    (1..=store.stats().turns)
        .filter_map(TurnId::new)
        .filter_map(turn)
        .collect()
}

/// The turns that a report names.
fn named(report: &Report) -> BTreeSet<TurnId> {
    let lost = report
        .damage
        .iter()
        .filter_map(|damage| damage.turns.clone())
        .flatten();
    let bad = report
        .bad_blobs
        .iter()
        .flat_map(|blob| blob.turns.iter().copied());
    lost.filter_map(TurnId::new).chain(bad).collect()
}

#[test]
fn a_sound_log_is_found_sound_and_repairs_to_itself() {
    let (healthy, storage) = disk(without_index(sample()));
    let report = verify(&storage, Writers::None, |_, _| ()).unwrap();
    assert!(report.is_sound() && report.torn.is_none(), "{report:?}");
    assert_eq!((report.turns, report.contexts, report.frames), (8, 3, 12));
    let (repaired, to) = disk(BTreeMap::new());
    repair(&storage, &to, 2048, |_, _| ()).unwrap();
    assert_eq!(
        seen(&open(&repaired).unwrap()),
        seen(&open(&healthy).unwrap())
    );
}

#[test]
fn a_flipped_bit_anywhere_is_named_and_all_other_turns_survive_a_repair() {
    flip_everywhere(&without_index(sample()));
}

#[test]
fn with_an_index_the_end_of_the_log_is_no_different() {
    flip_everywhere(&sample());
}

fn flip_everywhere(files: &BTreeMap<String, Vec<u8>>) {
    let (healthy, _) = disk(files.clone());
    let all = seen(&open(&healthy).unwrap());
    for (name, bytes) in files.iter().filter(|(name, _)| name.starts_with("log/")) {
        for at in 0..bytes.len() {
            let mut damaged = files.clone();
            damaged.get_mut(name).unwrap()[at] ^= 0x40;
            check(&all, damaged, &format!("{name} byte {at}"));
        }
    }
}

fn check(all: &Seen, files: BTreeMap<String, Vec<u8>>, place: &str) {
    let (_, storage) = disk(files.clone());
    let report = verify(&storage, Writers::None, |_, _| ()).unwrap();
    if let Ok(store) = open(&disk(files).0) {
        for (id, content) in seen(&store) {
            assert_eq!(
                Some(&content),
                all.get(&id),
                "{place}: a wrong turn is served"
            );
        }
    } else {
        assert!(
            !report.damage.is_empty(),
            "{place}: the start is refused, but verify finds nothing"
        );
    }
    let (repaired, to) = disk(BTreeMap::new());
    repair(&storage, &to, 2048, |_, _| ()).unwrap();
    let store = open(&repaired).unwrap();
    let after = seen(&store);
    let named = named(&report);
    if report.torn.is_none() {
        assert_eq!(
            store.stats().turns,
            all.len() as u64,
            "{place}: every id is kept, {report:?}"
        );
    }
    for (id, content) in all {
        let torn_away = report.torn.is_some() && id.get() == all.len() as u64;
        match after.get(id) {
            Some(found) => assert_eq!(found, content, "{place}: {id:?}"),
            None => assert!(
                named.contains(id) || torn_away || depends_on_lost(all, &named, *id),
                "{place}: {id:?} is gone, and the report does not say so: {report:?}"
            ),
        }
    }
}

/// A payload that was kept once, in the lost frame, is lost for every turn that uses it.
fn depends_on_lost(all: &Seen, named: &BTreeSet<TurnId>, id: TurnId) -> bool {
    named
        .iter()
        .filter_map(|lost| all.get(lost))
        .any(|lost| lost.3 == all[&id].3)
}

#[test]
fn an_export_imports_to_the_same_store_and_a_cut_one_to_nothing() {
    let (healthy, _) = disk(without_index(sample()));
    let store = open(&healthy).unwrap();
    let mut file = Vec::new();
    archive::export(&store, &mut file, |_, _| ()).unwrap();
    let (copy, storage) = disk(BTreeMap::new());
    let imported = archive::import(&storage, 2048, &mut &file[..], |_, _| ()).unwrap();
    assert_eq!(imported.frames, 12);
    let copied = open(&copy).unwrap();
    assert_eq!((seen(&copied), copied.id()), (seen(&store), store.id()));
    assert!(matches!(
        archive::import(&storage, 2048, &mut &file[..], |_, _| ()),
        Err(archive::ImportError::NotEmpty)
    ));
    for cut in 0..file.len() {
        let (empty, storage) = disk(BTreeMap::new());
        assert!(
            archive::import(&storage, 2048, &mut &file[..cut], |_, _| ()).is_err(),
            "cut at {cut}"
        );
        assert!(empty.files().is_empty(), "cut at {cut} leaves nothing");
    }
}
