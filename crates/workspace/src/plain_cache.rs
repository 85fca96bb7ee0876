//! Remembers the hashes of files, so that an unchanged file is not read again.
//!
//! A file is unchanged if its size, times and inode are. That is not safe for a file that was written
//! a moment ago: a second write in the same tick of the clock changes none of them. So only files that
//! have been still for [`STILL_MS`] at the time of the snapshot are remembered.
//!
//! The file in the state directory is a msgpack array: a version, then six values per file. A damaged
//! or missing cache is an empty one.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use turnkeep_types::msgpack::{MsgpackReader, MsgpackWriter, Token};
use turnkeep_types::{BlobHash, Timestamp};

use crate::error::WorkspaceError;
use crate::repository::replace_file;

/// How long a file must have been unchanged. Some file systems count in whole seconds or in two.
const STILL_MS: i128 = 4000;

const VERSION: u64 = 1;

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) size: u64,
    pub(crate) modified_ns: i128,
    /// When the inode changed last. Programs can set the other time, but not this one.
    pub(crate) changed_ns: i128,
    pub(crate) inode: u64,
}

/// The hashes of the files of one workspace, by path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HashCache(HashMap<Vec<u8>, (FileStamp, BlobHash)>);

impl HashCache {
    pub(crate) fn load(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_default();
        Self::decode(&bytes).unwrap_or_default()
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), WorkspaceError> {
        replace_file(path, &self.encode())
    }

    /// The hash of a file, if the file is as it was.
    pub(crate) fn find(&self, path: &[u8], stamp: FileStamp) -> Option<BlobHash> {
        let (known, hash) = self.0.get(path)?;
        (*known == stamp).then_some(*hash)
    }

    /// Remembers a hash if the file has been still long enough.
    pub(crate) fn remember(
        &mut self,
        path: &[u8],
        stamp: FileStamp,
        hash: BlobHash,
        now: Timestamp,
    ) {
        let last_change_ms = stamp.modified_ns.max(stamp.changed_ns) / 1_000_000;
        if last_change_ms + STILL_MS < i128::from(now.0) {
            self.0.insert(path.to_vec(), (stamp, hash));
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MsgpackWriter::default();
        out.write_array_header(1 + 6 * self.0.len());
        out.write_uint(VERSION);
        for (path, (stamp, hash)) in &self.0 {
            out.write_bin(path);
            out.write_uint(stamp.size);
            out.write_int(stamp.modified_ns);
            out.write_int(stamp.changed_ns);
            out.write_uint(stamp.inode);
            out.write_bin(hash.as_bytes());
        }
        out.into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = MsgpackReader::new(bytes);
        let Token::Array(values) = reader.read_token().ok()? else {
            return None;
        };
        if read_int(&mut reader)? != i128::from(VERSION) {
            return None;
        }
        let mut files = HashMap::new();
        // The version is one value more, which the division drops.
        for _ in 0..values / 6 {
            let path = read_bytes(&mut reader)?.to_vec();
            let stamp = FileStamp {
                size: u64::try_from(read_int(&mut reader)?).ok()?,
                modified_ns: read_int(&mut reader)?,
                changed_ns: read_int(&mut reader)?,
                inode: u64::try_from(read_int(&mut reader)?).ok()?,
            };
            let hash = BlobHash(read_bytes(&mut reader)?.try_into().ok()?);
            files.insert(path, (stamp, hash));
        }
        Some(Self(files))
    }
}

fn read_int(reader: &mut MsgpackReader<'_>) -> Option<i128> {
    match reader.read_token().ok()? {
        Token::Int(number) => Some(number),
        _ => None,
    }
}

fn read_bytes<'a>(reader: &mut MsgpackReader<'a>) -> Option<&'a [u8]> {
    match reader.read_token().ok()? {
        Token::Bin(bytes) => Some(bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(modified_ms: i128) -> FileStamp {
        FileStamp {
            size: 3,
            modified_ns: modified_ms * 1_000_000,
            changed_ns: modified_ms * 1_000_000 - 5,
            inode: 77,
        }
    }

    #[test]
    fn a_file_written_a_moment_ago_is_not_remembered() {
        let now = Timestamp(100_000);
        let hash = BlobHash::of(b"abc");
        for (modified_ms, expect) in [
            (0, true),
            (95_999, true),
            (96_000, false),
            (100_000, false),
            (200_000, false),
        ] {
            let mut cache = HashCache::default();
            cache.remember(b"a", stamp(modified_ms), hash, now);
            let found = cache.find(b"a", stamp(modified_ms));
            assert_eq!(found.is_some(), expect, "{modified_ms}");
            assert_eq!(cache.find(b"a", stamp(modified_ms + 1)), None);
        }
    }

    #[test]
    fn the_cache_survives_the_round_trip_and_damage_empties_it() {
        let mut cache = HashCache::default();
        for name in [&b"a"[..], b"b/\xff"] {
            cache.remember(name, stamp(1), BlobHash::of(name), Timestamp(100_000));
        }
        let bytes = cache.encode();
        assert_eq!(HashCache::decode(&bytes).as_ref(), Some(&cache));
        for cut in 0..bytes.len() {
            assert_eq!(HashCache::decode(&bytes[..cut]), None, "cut at {cut}");
        }
    }
}
