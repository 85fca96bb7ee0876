//! What the writer makes reads back, and anything else is an error.

use std::io::{Cursor, Write as _};

use turnkeep_types::Timestamp;

use super::*;

const AT: Timestamp = Timestamp(1_767_225_600_000);

fn make(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()), AT);
    for (name, content) in entries {
        writer.add(name, content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn open(bytes: &[u8]) -> Result<ZipReader<Cursor<&[u8]>>, ZipError> {
    ZipReader::open(Cursor::new(bytes))
}

fn sample() -> Vec<u8> {
    make(&[
        ("a.txt", b"hello"),
        ("b/empty", b""),
        ("b/c.bin", &[0xff; 300]),
    ])
}

/// The place of a name in the directory, which comes after all entries.
fn last_place_of(bytes: &[u8], name: &[u8]) -> usize {
    let ends = 0..=bytes.len() - name.len();
    ends.rev()
        .find(|start| &bytes[*start..*start + name.len()] == name)
        .unwrap()
}

#[test]
fn entries_read_back_as_they_were_written() {
    let bytes = sample();
    let mut reader = open(&bytes).unwrap();
    assert_eq!(
        reader.names().collect::<Vec<_>>(),
        ["a.txt", "b/c.bin", "b/empty"]
    );
    assert_eq!(reader.read("a.txt", 5).unwrap(), b"hello");
    assert_eq!(reader.read("b/empty", 0).unwrap(), b"");
    assert_eq!(reader.read("b/c.bin", 300).unwrap(), [0xff; 300]);
    assert!(matches!(
        reader.read("a.txt", 4),
        Err(ZipError::TooLong { .. })
    ));
    assert!(matches!(reader.read("none", 4), Err(ZipError::Missing(_))));
    assert_eq!(sample(), bytes, "equal contents make equal files");
}

#[test]
fn an_entry_in_pieces_is_the_same_as_one_at_once() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()), AT);
    writer.begin("a.txt").unwrap();
    for piece in ["he", "", "llo"] {
        writer.write_all(piece.as_bytes()).unwrap();
    }
    writer.end().unwrap();
    let pieces = writer.finish().unwrap().into_inner();
    assert_eq!(pieces, make(&[("a.txt", b"hello")]));
}

#[test]
fn a_file_that_is_cut_anywhere_is_an_error() {
    let bytes = sample();
    for end in 0..bytes.len() {
        assert!(open(&bytes[..end]).is_err(), "cut at {end}");
    }
    for more in [b"x".as_slice(), &[0; 22]] {
        assert!(open(&[&bytes, more].concat()).is_err());
    }
}

#[test]
fn a_changed_byte_is_an_error_or_changes_no_content() {
    let bytes = sample();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[place] ^= 1 << bit;
            let Ok(mut reader) = open(&changed) else {
                continue;
            };
            // Such as the maker's version in the directory.
            assert_eq!(reader.read("a.txt", 5).unwrap(), b"hello", "byte {place}");
            assert_eq!(reader.read("b/c.bin", 300).unwrap(), [0xff; 300]);
        }
    }
}

#[test]
fn names_that_lead_elsewhere_are_rejected_on_both_sides() {
    for bad in [
        "", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\\b", "c:a", "a\0", "a\nb",
    ] {
        assert!(!is_safe_name(bad), "{bad:?}");
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()), AT);
        assert!(writer.add(bad, b"").is_err(), "{bad:?}");
    }
    // The same length, so that only the name is wrong.
    let evil = |name: &[u8]| {
        let mut bytes = make(&[("a.txt", b"hello")]);
        let row = last_place_of(&bytes, b"a.txt");
        bytes[row..row + 5].copy_from_slice(name);
        let entry = 30;
        bytes[entry..entry + 5].copy_from_slice(name);
        bytes
    };
    assert!(open(&evil(b"b.txt")).is_ok());
    for bad in [
        b"../ab",
        b"/etc/",
        b"a\\..b",
        b"a\0txt",
        b"\xff\xfe\xfd\xfc\xfb",
    ] {
        assert!(open(&evil(bad)).is_err(), "{bad:?}");
    }
}

/// The offsets of fields in a row of the directory, from its name on backwards.
const ROW_METHOD: usize = 46 - 10;
const ROW_BYTES: usize = 46 - 24;
const ROW_OFFSET: usize = 46 - 42;

#[test]
fn bombs_are_rejected() {
    let two = make(&[("one", &[b'x'; 100]), ("two", &[b'y'; 100])]);
    let row = last_place_of(&two, b"two");
    let changed = |place: usize, value: &[u8]| {
        let mut bytes = two.clone();
        bytes[row - place..row - place + value.len()].copy_from_slice(value);
        bytes
    };
    let reject = |bytes: &[u8], expect: &str| {
        let error = open(bytes).err().unwrap().to_string();
        assert!(error.contains(expect), "{error}");
    };
    reject(&changed(ROW_METHOD, &8u16.to_le_bytes()), "is compressed");
    // The second entry lies over the first one.
    reject(&changed(ROW_OFFSET, &0u32.to_le_bytes()), "does not follow");
    reject(
        &changed(ROW_BYTES, &u32::MAX.to_le_bytes()),
        "is compressed",
    );
    // More rows than there are bytes.
    let mut many = two.clone();
    let end = many.len() - 22;
    many[end + 8..end + 12].copy_from_slice(&[0xfe, 0xff, 0xfe, 0xff]);
    reject(&many, "too short");
    reject(&make(&[("one", b""), ("one", b"")]), "is there twice");
}
