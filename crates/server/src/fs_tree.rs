//! Filesystem trees as blobs: a directory is a msgpack array of entries, each a map of five tags.
//!
//! | tag | value |
//! |---|---|
//! | 1 | name: str, or bin when it is not UTF-8 |
//! | 2 | kind: 0 file, 1 directory, 2 symlink |
//! | 3 | permission bits |
//! | 4 | size |
//! | 5 | hash: bin of 32 bytes |
//!
//! A writer that omits zeros omits kind, mode and size; name and hash are always there. The store
//! keeps whatever a writer calls a tree, so nothing here is trusted: a decoder that is given anything
//! else fails, without recursion and without allocating more than the bytes can hold.

use rmp::Marker;
use rmp::decode::{RmpRead, read_array_len, read_int, read_map_len, read_marker};
use turnkeep_types::BlobHash;

/// Entries of one directory that are shown.
pub(crate) const ENTRIES_MAX: usize = 100_000;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) hash: BlobHash,
}

/// Why a blob is no tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TreeError {
    #[error("the tree is not a msgpack array of entries")]
    NotMsgpack,
    #[error("an entry of the tree has no {0}")]
    Missing(&'static str),
    #[error("an entry of the tree has a bad {0}")]
    Bad(&'static str),
    #[error("bytes follow the tree")]
    LeftOver,
    #[error("the directory has {actual} entries, more than the {ENTRIES_MAX} that are shown")]
    TooMany { actual: usize },
}

/// Decodes a tree.
pub(crate) fn decode(mut bytes: &[u8]) -> Result<Vec<Entry<'_>>, TreeError> {
    let count = read_array_len(&mut bytes).map_err(|_| TreeError::NotMsgpack)? as usize;
    if count > ENTRIES_MAX {
        return Err(TreeError::TooMany { actual: count });
    }
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push(entry(&mut bytes)?);
    }
    if bytes.is_empty() { Ok(entries) } else { Err(TreeError::LeftOver) }
}

fn entry<'a>(bytes: &mut &'a [u8]) -> Result<Entry<'a>, TreeError> {
    let fields = read_map_len(bytes).map_err(|_| TreeError::NotMsgpack)?;
    let (mut name, mut hash) = (None, None);
    let (mut kind, mut mode, mut size) = (Kind::File, 0, 0);
    for _ in 0..fields {
        match number(bytes, "tag")? {
            1 => name = Some(text(bytes)?),
            2 => kind = read_kind(bytes)?,
            3 => mode = u32::try_from(number(bytes, "mode")?).map_err(|_| TreeError::Bad("mode"))? & 0o7777,
            4 => size = number(bytes, "size")?,
            5 => hash = Some(BlobHash(text(bytes)?.try_into().map_err(|_| TreeError::Bad("hash"))?)),
            _ => return Err(TreeError::Bad("tag")),
        }
    }
    let name = name.ok_or(TreeError::Missing("name"))?;
    Ok(Entry { name, kind, mode, size, hash: hash.ok_or(TreeError::Missing("hash"))? })
}

fn number(bytes: &mut &[u8], what: &'static str) -> Result<u64, TreeError> {
    read_int(bytes).map_err(|_| TreeError::Bad(what))
}

fn read_kind(bytes: &mut &[u8]) -> Result<Kind, TreeError> {
    match number(bytes, "kind")? {
        0 => Ok(Kind::File),
        1 => Ok(Kind::Directory),
        2 => Ok(Kind::Symlink),
        _ => Err(TreeError::Bad("kind")),
    }
}

/// The bytes of a str or a bin, borrowed.
fn text<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], TreeError> {
    let bad = |_| TreeError::Bad("name or hash");
    let marker = read_marker(bytes).map_err(|_| TreeError::NotMsgpack)?;
    let len = match marker {
        Marker::FixStr(len) => len.into(),
        Marker::Str8 | Marker::Bin8 => bytes.read_data_u8().map_err(bad)?.into(),
        Marker::Str16 | Marker::Bin16 => bytes.read_data_u16().map_err(bad)?.into(),
        Marker::Str32 | Marker::Bin32 => bytes.read_data_u32().map_err(bad)?,
        _ => return Err(TreeError::Bad("name or hash")),
    };
    let (text, rest) = bytes.split_at_checked(len as usize).ok_or(TreeError::NotMsgpack)?;
    *bytes = rest;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmp::encode::{write_array_len, write_bin, write_map_len, write_str, write_uint};

    fn tree(entries: &[(&str, u64, u64, u64, BlobHash)]) -> Vec<u8> {
        let mut out = Vec::new();
        write_array_len(&mut out, u32::try_from(entries.len()).unwrap()).unwrap();
        for (name, kind, mode, size, hash) in entries {
            write_map_len(&mut out, 5).unwrap();
            write_uint(&mut out, 1).unwrap();
            write_str(&mut out, name).unwrap();
            for (tag, value) in [(2, *kind), (3, *mode), (4, *size)] {
                write_uint(&mut out, tag).unwrap();
                write_uint(&mut out, value).unwrap();
            }
            write_uint(&mut out, 5).unwrap();
            write_bin(&mut out, hash.as_bytes()).unwrap();
        }
        out
    }

    #[test]
    fn a_tree_reads_back() {
        let hash = BlobHash::of(b"x");
        let bytes = tree(&[("a", 0, 0o644, 1, hash), ("b", 1, 0o755, 0, hash), ("c", 2, 0o100_777, 5, hash)]);
        let entries = decode(&bytes).unwrap();
        assert_eq!(
            entries.iter().map(|e| e.kind).collect::<Vec<_>>(),
            [Kind::File, Kind::Directory, Kind::Symlink]
        );
        assert_eq!(entries[0], Entry { name: b"a", kind: Kind::File, mode: 0o644, size: 1, hash });
        assert_eq!(entries[2].mode, 0o777);
    }

    #[test]
    fn whatever_is_cut_or_changed_is_a_tree_or_an_error() {
        let hash = BlobHash::of(b"x");
        let whole = tree(&[("name", 1, 0o644, 70_000, hash), ("other", 0, 0, 0, hash)]);
        for cut in 0..whole.len() {
            assert!(decode(&whole[..cut]).is_err(), "cut at {cut}");
        }
        for place in 0..whole.len() {
            for value in [0, 0x7f, 0x80, 0xc1, 0xdc, 0xdd, 0xdf, 0xff] {
                let mut changed = whole.clone();
                changed[place] = value;
                if let Ok(entries) = decode(&changed) {
                    assert!(entries.len() <= 2);
                }
            }
        }
        assert_eq!(decode(&[&whole[..], &[0]].concat()), Err(TreeError::LeftOver));
        assert_eq!(decode(&[0xdd, 0xff, 0xff, 0xff, 0xff]), Err(TreeError::TooMany { actual: 0xffff_ffff }));
        assert_eq!(decode(&[0x91, 0x80]), Err(TreeError::Missing("name")));
    }
}
