//! Filesystem trees as the store keeps them: a directory is a msgpack array of entries, each a map.
//!
//! | tag | value |
//! |---|---|
//! | 1 | name: str, or bin when it is not UTF-8 |
//! | 2 | kind: 0 file, 1 directory, 2 symlink |
//! | 3 | permission bits |
//! | 4 | size |
//! | 5 | hash: bin of 32 bytes |
//!
//! One directory has one encoding: entries sorted by name, all five tags in order, permissions as git
//! keeps them (0644 or 0755). So equal directories have equal hashes. The decoder accepts what other
//! programs write too, and trusts nothing.

use turnkeep_types::BlobHash;
use turnkeep_types::msgpack::{MsgpackReader, MsgpackWriter, Token};

use crate::tree::FileMode;

/// The most entries of one directory. Readers of the store accept no more.
pub(crate) const ENTRIES_MAX: usize = 100_000;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File(FileMode),
    Directory,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectoryEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: EntryKind,
    pub(crate) size: u64,
    pub(crate) hash: BlobHash,
}

/// Encodes a directory, whose entries are sorted by name.
pub(crate) fn encode_directory(entries: &[DirectoryEntry]) -> Vec<u8> {
    let mut out = MsgpackWriter::default();
    out.write_array_header(entries.len());
    for entry in entries {
        out.write_map_header(5);
        out.write_uint(1);
        match std::str::from_utf8(&entry.name) {
            Ok(name) => out.write_str(name),
            Err(_) => out.write_bin(&entry.name),
        }
        let (kind, permissions) = match entry.kind {
            EntryKind::File(FileMode::Symlink) => (2, 0o777),
            EntryKind::File(FileMode::Executable) => (0, 0o755),
            EntryKind::File(FileMode::Regular | FileMode::Submodule) => (0, 0o644),
            EntryKind::Directory => (1, 0o755),
        };
        for (tag, number) in [(2, kind), (3, permissions), (4, entry.size)] {
            out.write_uint(tag);
            out.write_uint(number);
        }
        out.write_uint(5);
        out.write_bin(entry.hash.as_bytes());
    }
    out.into_bytes()
}

/// Decodes a directory. `None` if the bytes are not one.
pub(crate) fn decode_directory(bytes: &[u8]) -> Option<Vec<DirectoryEntry>> {
    let mut reader = MsgpackReader::new(bytes);
    let Token::Array(count) = reader.read_token().ok()? else {
        return None;
    };
    if usize::try_from(count).ok()? > ENTRIES_MAX {
        return None;
    }
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push(decode_entry(&mut reader)?);
    }
    reader.unread().is_empty().then_some(entries)
}

fn decode_entry(reader: &mut MsgpackReader<'_>) -> Option<DirectoryEntry> {
    let Token::Map(fields) = reader.read_token().ok()? else {
        return None;
    };
    let (mut name, mut hash) = (None, None);
    // Some writers omit zeros.
    let (mut kind, mut permissions, mut size) = (0, 0, 0);
    for _ in 0..fields {
        match (decode_tag(reader)?, reader.read_token().ok()?) {
            (1, Token::Str(bytes) | Token::Bin(bytes)) => name = Some(bytes.to_vec()),
            (2, Token::Int(number)) => kind = number,
            (3, Token::Int(number)) => permissions = number,
            (4, Token::Int(number)) => size = u64::try_from(number).ok()?,
            (5, Token::Bin(bytes) | Token::Str(bytes)) => {
                hash = Some(BlobHash(bytes.try_into().ok()?));
            }
            _ => return None,
        }
    }
    Some(DirectoryEntry {
        name: name?,
        kind: kind_of(kind, permissions)?,
        size,
        hash: hash?,
    })
}

/// A tag is a number, or the same digit as a text.
fn decode_tag(reader: &mut MsgpackReader<'_>) -> Option<u8> {
    match reader.read_token().ok()? {
        Token::Int(tag) => u8::try_from(tag).ok(),
        Token::Str([digit @ b'1'..=b'5']) => Some(digit - b'0'),
        _ => None,
    }
}

/// Of the permissions only one counts: whether the owner may execute the file.
fn kind_of(kind: i128, permissions: i128) -> Option<EntryKind> {
    Some(match kind {
        0 if permissions & 0o100 != 0 => EntryKind::File(FileMode::Executable),
        0 => EntryKind::File(FileMode::Regular),
        1 => EntryKind::Directory,
        2 => EntryKind::File(FileMode::Symlink),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<DirectoryEntry> {
        let kinds = [
            EntryKind::File(FileMode::Regular),
            EntryKind::File(FileMode::Executable),
            EntryKind::File(FileMode::Symlink),
            EntryKind::Directory,
        ];
        let entries = kinds.into_iter().zip(0_u8..);
        entries
            .map(|(kind, number)| DirectoryEntry {
                name: vec![b'a' + number, 0xf0 * (number & 1)],
                kind,
                size: 70_000,
                hash: BlobHash::of(&[number]),
            })
            .collect()
    }

    #[test]
    fn a_directory_survives_the_round_trip() {
        for entries in [sample(), Vec::new()] {
            assert_eq!(decode_directory(&encode_directory(&entries)), Some(entries));
        }
    }

    #[test]
    fn damaged_bytes_are_refused_and_never_panic() {
        let whole = encode_directory(&sample());
        for cut in 0..whole.len() {
            assert_eq!(decode_directory(&whole[..cut]), None, "cut at {cut}");
        }
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xc1, 0xdd, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                decode_directory(&changed);
            }
        }
        assert_eq!(decode_directory(&[0xdd, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
