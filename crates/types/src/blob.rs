//! Content addresses: the BLAKE3-256 of a blob's uncompressed bytes is its name.

use std::fmt;
use std::str::FromStr;

/// The name of a blob: the BLAKE3-256 of its uncompressed bytes. Text form: 64 lower-case hex
/// digits.
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

    /// An optional hash on the wire: all zeros for `None`.
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
        // One text per hash: `hex` alone would also accept upper-case digits.
        let lower = text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let mut hash = [0; 32];
        match hex::decode_to_slice(text, &mut hash) {
            Ok(()) if lower => Ok(Self(hash)),
            _ => Err(ParseHashError(text.to_owned())),
        }
    }
}

/// The first hex digits of a hash: at least one, at most the whole hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobPrefix(String);

impl BlobPrefix {
    const DIGITS_MAX: usize = 64;

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hash, if the prefix has all digits.
    pub fn whole(&self) -> Option<BlobHash> {
        self.0.parse().ok()
    }

    /// Whether a hash begins with these digits.
    pub fn is_of(&self, hash: &BlobHash) -> bool {
        let digit = |byte: u8, is_second: bool| if is_second { byte & 0x0f } else { byte >> 4 };
        // Digit by digit, because a prefix may end in the middle of a byte.
        let digits = hash
            .0
            .iter()
            .flat_map(|byte| [digit(*byte, false), digit(*byte, true)]);
        let wanted = self.0.chars().filter_map(|c| c.to_digit(16));
        wanted
            .zip(digits)
            .all(|(wanted, digit)| wanted == u32::from(digit))
    }
}

/// A text that is not the beginning of a hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the beginning of a hash: expected 1 to 64 lower-case hex digits")]
pub struct ParsePrefixError(pub String);

impl FromStr for BlobPrefix {
    type Err = ParsePrefixError;

    fn from_str(text: &str) -> Result<Self, ParsePrefixError> {
        let fits = (1..=Self::DIGITS_MAX).contains(&text.len());
        let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if fits && text.bytes().all(is_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParsePrefixError(text.to_owned()))
        }
    }
}

impl fmt::Display for BlobPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The form of bytes on the wire and in the log, with its number in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compression {
    /// Uncompressed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_of_the_hashes_that_begin_with_it() {
        let hash = BlobHash::of(b"");
        let text = hash.to_string();
        for digits in [1, 2, 5, 17, 63, 64] {
            let prefix: BlobPrefix = text[..digits].parse().unwrap();
            assert!(
                prefix.is_of(&hash) && !prefix.is_of(&BlobHash::of(b"x")),
                "{prefix}"
            );
            assert_eq!(prefix.whole(), (digits == 64).then_some(hash), "{prefix}");
        }
        for bad in ["", "AF13", "af1g", &format!("{text}0")] {
            assert!(bad.parse::<BlobPrefix>().is_err(), "{bad}");
        }
    }
}
