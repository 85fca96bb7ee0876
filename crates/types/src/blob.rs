//! Content addresses: a blob is named by the BLAKE3-256 of its uncompressed bytes.

use std::fmt;
use std::str::FromStr;

/// The BLAKE3-256 of a blob's uncompressed bytes; its name everywhere. Text form: 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobHash(pub [u8; 32]);

impl BlobHash {
    /// Hashes uncompressed bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The hash's bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The wire's form of an optional hash: all zeros for none.
    pub fn to_wire(hash: Option<Self>) -> [u8; 32] {
        hash.map_or([0; 32], |h| h.0)
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobHash({self})")
    }
}

/// A text that is not a hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a hash: expected 64 lower-case hex digits")]
pub struct ParseHashError(pub String);

impl FromStr for BlobHash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, ParseHashError> {
        let lower = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let mut hash = [0; 32];
        match hex::decode_to_slice(text, &mut hash) {
            Ok(()) if lower => Ok(Self(hash)),
            _ => Err(ParseHashError(text.to_owned())),
        }
    }
}

/// The form in which bytes travel or are kept. The numbers are the wire's and the log's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compression {
    /// As they are.
    None = 0,
    /// Exactly one zstd frame.
    Zstd = 1,
}

impl Compression {
    /// The compression with this number, if there is one.
    pub const fn from_wire(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The wire's number.
    pub const fn to_wire(self) -> u32 {
        self as u32
    }
}
