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
//! A tag is an integer or the same digit as a text: many msgpack libraries write the fields of a
//! struct with text keys. A writer that omits zeros omits kind, mode and size; name and hash are
//! always present. The store accepts any blob as a tree, so the decoder trusts nothing: it returns
//! an error for anything else, without recursion and without allocating more than the bytes can
//! hold.

use turnkeep_types::BlobHash;
use turnkeep_types::msgpack::{MsgpackError, MsgpackReader, Token};

/// The most entries of one directory that a reader accepts. A decoded entry takes several times its
/// bytes, so a blob of the largest size could otherwise take gigabytes.
pub const TREE_ENTRIES_MAX: u32 = 100_000;

/// The bits of a mode that a tree keeps.
const MODE_BITS: u32 = 0o7777;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeEntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// One path element, which need not be UTF-8.
    pub name: Vec<u8>,
    /// What the entry is.
    pub kind: TreeEntryKind,
    /// The permission bits, with setuid, setgid and sticky.
    pub mode: u32,
    /// The size that the writer recorded.
    pub size: u64,
    /// The blob of the file's content, the directory's tree or the symlink's target.
    pub hash: BlobHash,
}

/// Why a blob is not a tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The bytes are not msgpack, or not an array of maps.
    #[error("the tree is not a msgpack array of entries")]
    NotMsgpack,
    /// A part that every entry needs is absent.
    #[error("an entry of the tree has no {0}")]
    Missing(&'static str),
    /// A part has the wrong type or value.
    #[error("an entry of the tree has a bad {0}")]
    Bad(&'static str),
    /// Bytes follow the array.
    #[error("bytes follow the tree")]
    LeftOver,
    /// The array declares more entries than a reader accepts.
    #[error("the directory has {actual} entries, more than the {TREE_ENTRIES_MAX} that are read")]
    TooMany {
        /// How many it declares.
        actual: u32,
    },
}

impl From<MsgpackError> for TreeError {
    fn from(_: MsgpackError) -> Self {
        Self::NotMsgpack
    }
}

/// Decodes a tree.
pub fn decode_tree(bytes: &[u8]) -> Result<Vec<TreeEntry>, TreeError> {
    let mut entries = Vec::new();
    visit_entries(bytes, |entry| entries.push(entry))?;
    Ok(entries)
}

/// Finds the first entry with a name. The whole tree is checked, as when it is decoded, but no more
/// than one entry of it is kept.
pub fn find_entry(bytes: &[u8], name: &[u8]) -> Result<Option<TreeEntry>, TreeError> {
    let mut found = None;
    visit_entries(bytes, |entry| {
        if found.is_none() && entry.name == name {
            found = Some(entry);
        }
    })?;
    Ok(found)
}

fn visit_entries(bytes: &[u8], mut visit: impl FnMut(TreeEntry)) -> Result<(), TreeError> {
    let mut reader = MsgpackReader::new(bytes);
    let Token::Array(count) = reader.read_token()? else {
        return Err(TreeError::NotMsgpack);
    };
    if count > TREE_ENTRIES_MAX {
        return Err(TreeError::TooMany { actual: count });
    }
    for _ in 0..count {
        visit(decode_entry(&mut reader)?);
    }
    // The same tree must not have two hashes, one with and one without a tail.
    if reader.unread().is_empty() {
        Ok(())
    } else {
        Err(TreeError::LeftOver)
    }
}

fn decode_entry(reader: &mut MsgpackReader<'_>) -> Result<TreeEntry, TreeError> {
    let Token::Map(fields) = reader.read_token()? else {
        return Err(TreeError::NotMsgpack);
    };
    let (mut name, mut hash) = (None, None);
    // The zeros that a writer may omit.
    let (mut kind, mut mode, mut size) = (TreeEntryKind::File, 0, 0);
    for _ in 0..fields {
        match decode_tag(reader)? {
            1 => name = Some(decode_bytes(reader, "name")?.to_vec()),
            2 => kind = decode_kind(reader)?,
            3 => mode = decode_mode(reader)?,
            4 => size = decode_number(reader, "size")?,
            5 => hash = Some(decode_hash(reader)?),
            _ => return Err(TreeError::Bad("tag")),
        }
    }
    let name = name.ok_or(TreeError::Missing("name"))?;
    let hash = hash.ok_or(TreeError::Missing("hash"))?;
    Ok(TreeEntry {
        name,
        kind,
        mode,
        size,
        hash,
    })
}

/// A tag as an integer or as its digit. All tags have one digit, so `"01"` is not a tag.
fn decode_tag(reader: &mut MsgpackReader<'_>) -> Result<u64, TreeError> {
    match reader.read_token()? {
        Token::Int(tag) => u64::try_from(tag).map_err(|_| TreeError::Bad("tag")),
        Token::Str([digit @ b'1'..=b'9']) => Ok(u64::from(digit - b'0')),
        _ => Err(TreeError::Bad("tag")),
    }
}

fn decode_number(reader: &mut MsgpackReader<'_>, what: &'static str) -> Result<u64, TreeError> {
    match reader.read_token()? {
        Token::Int(number) => u64::try_from(number).map_err(|_| TreeError::Bad(what)),
        _ => Err(TreeError::Bad(what)),
    }
}

fn decode_kind(reader: &mut MsgpackReader<'_>) -> Result<TreeEntryKind, TreeError> {
    match decode_number(reader, "kind")? {
        0 => Ok(TreeEntryKind::File),
        1 => Ok(TreeEntryKind::Directory),
        2 => Ok(TreeEntryKind::Symlink),
        _ => Err(TreeError::Bad("kind")),
    }
}

fn decode_mode(reader: &mut MsgpackReader<'_>) -> Result<u32, TreeError> {
    let mode = u32::try_from(decode_number(reader, "mode")?).map_err(|_| TreeError::Bad("mode"))?;
    // Some writers store the whole `st_mode`, whose higher bits repeat the kind.
    Ok(mode & MODE_BITS)
}

fn decode_hash(reader: &mut MsgpackReader<'_>) -> Result<BlobHash, TreeError> {
    let bytes = decode_bytes(reader, "hash")?;
    Ok(BlobHash(
        bytes.try_into().map_err(|_| TreeError::Bad("hash"))?,
    ))
}

/// The bytes of a str or a bin, borrowed.
fn decode_bytes<'a>(
    reader: &mut MsgpackReader<'a>,
    what: &'static str,
) -> Result<&'a [u8], TreeError> {
    match reader.read_token()? {
        Token::Str(bytes) | Token::Bin(bytes) => Ok(bytes),
        _ => Err(TreeError::Bad(what)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a writer spells the tags of an entry.
    #[derive(Clone, Copy)]
    enum Keys {
        Integers,
        Digits,
    }

    /// A directory with one entry per kind, as some other program would write it.
    fn sample_tree(keys: Keys) -> Vec<u8> {
        let mut out = vec![0x93];
        for (name, kind, mode) in [(b'a', 0, 0o644), (b'b', 1, 0o755), (b'c', 2, 0o120_777)] {
            out.push(0x85);
            push_tag(&mut out, keys, 1);
            out.extend([0xa1, name]);
            push_tag(&mut out, keys, 2);
            out.extend([0xcc, kind]);
            push_tag(&mut out, keys, 3);
            out.push(0xce);
            out.extend(u32::to_be_bytes(mode));
            push_tag(&mut out, keys, 4);
            out.push(0xcf);
            out.extend(u64::to_be_bytes(70_000));
            push_tag(&mut out, keys, 5);
            out.extend([0xc4, 32]);
            out.extend(BlobHash::of(b"x").as_bytes());
        }
        out
    }

    fn push_tag(out: &mut Vec<u8>, keys: Keys, tag: u8) {
        match keys {
            Keys::Integers => out.push(tag),
            Keys::Digits => out.extend([0xa1, b'0' + tag]),
        }
    }

    #[test]
    fn tags_are_read_as_integers_and_as_digits() {
        let entry = |name: &[u8], kind, mode| TreeEntry {
            name: name.to_vec(),
            kind,
            mode,
            size: 70_000,
            hash: BlobHash::of(b"x"),
        };
        let expect = [
            entry(b"a", TreeEntryKind::File, 0o644),
            entry(b"b", TreeEntryKind::Directory, 0o755),
            entry(b"c", TreeEntryKind::Symlink, 0o777),
        ];
        for keys in [Keys::Integers, Keys::Digits] {
            assert_eq!(decode_tree(&sample_tree(keys)).unwrap(), expect);
        }
    }

    #[test]
    fn only_the_five_tags_are_read() {
        let bad_tag = Err(TreeError::Bad("tag"));
        for key in [
            &[0xa1, b'0'][..],
            &[0xa1, b'6'],
            &[0xa1, b'x'],
            &[0xa2, b'0', b'1'],
            &[0xa0],
            &[6],
            &[0xc0],
        ] {
            let tree = [&[0x91, 0x81], key, &[0xa1, b'a']].concat();
            assert_eq!(decode_tree(&tree), bad_tag, "{key:x?}");
        }
    }

    #[test]
    fn a_cut_or_changed_tree_is_a_tree_or_an_error() {
        for keys in [Keys::Integers, Keys::Digits] {
            let whole = sample_tree(keys);
            for cut in 0..whole.len() {
                assert!(decode_tree(&whole[..cut]).is_err(), "cut at {cut}");
            }
            for place in 0..whole.len() {
                for value in [0, 0x7f, 0x80, 0xc1, 0xdc, 0xdd, 0xdf, 0xff] {
                    let mut changed = whole.clone();
                    changed[place] = value;
                    if let Ok(entries) = decode_tree(&changed) {
                        assert!(entries.len() <= 3);
                    }
                }
            }
            assert_eq!(
                decode_tree(&[&whole[..], &[0]].concat()),
                Err(TreeError::LeftOver)
            );
        }
        assert_eq!(
            decode_tree(&[0xdd, 0xff, 0xff, 0xff, 0xff]),
            Err(TreeError::TooMany { actual: u32::MAX })
        );
        assert_eq!(decode_tree(&[0x91, 0x80]), Err(TreeError::Missing("name")));
        assert_eq!(decode_tree(&[0x80]), Err(TreeError::NotMsgpack));
    }
}
