//! Decodes directory trees that other programs wrote.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use turnkeep_wire::fs_tree::{TreeEntry, TreeEntryKind, decode_tree};

const TREES: &str = include_str!("../../../testdata/interop/trees.json");

fn shown(entry: &TreeEntry) -> Value {
    let kind = match entry.kind {
        TreeEntryKind::File => "file",
        TreeEntryKind::Directory => "directory",
        TreeEntryKind::Symlink => "symlink",
    };
    json!({
        "name": String::from_utf8(entry.name.clone()).unwrap(),
        "kind": kind,
        "mode": entry.mode,
        "size": entry.size.to_string(),
        "hash": entry.hash.to_string(),
    })
}

#[test]
fn directories_of_other_programs_are_read() {
    let cases: Vec<Value> = serde_json::from_str(TREES).unwrap();
    assert!(cases.len() > 10);
    for case in cases {
        let tree = hex::decode(case["tree"].as_str().unwrap()).unwrap();
        let read = decode_tree(&tree).map(|entries| entries.iter().map(shown).collect::<Vec<_>>());
        match case.get("entries") {
            Some(expect) => assert_eq!(json!(read.unwrap()), *expect, "{}", case["name"]),
            None => assert!(read.is_err(), "{}", case["name"]),
        }
    }
}
