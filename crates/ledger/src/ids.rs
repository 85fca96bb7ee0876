//! Ids and names in a ledger.
//!
//! Entries, bundles and pocket items have random ids, so that an id does not reveal how much was
//! written before it. The text form is a letter, an underscore and 26 characters of base 32.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The alphabet of ids, without letters that are easily confused.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The digit of each byte, or [`NO_DIGIT`].
const DIGITS: [u8; 256] = digits();
const NO_DIGIT: u8 = u8::MAX;
/// Five bits per character.
const ID_CHARACTERS: usize = 26;

/// The text is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an id")]
pub struct ParseIdError(pub String);

fn write_id(number: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = [b'0'; ID_CHARACTERS];
    for (place, letter) in text.iter_mut().rev().enumerate() {
        let digit = usize::try_from((number >> (place * 5)) & 31).unwrap_or_default();
        *letter = *ALPHABET.get(digit).unwrap_or(&b'0');
    }
    f.write_str(std::str::from_utf8(&text).unwrap_or_default())
}

fn read_id(text: &str) -> Option<u128> {
    // 26 characters carry 130 bits; a first character above `7` would not fit into 128.
    if text.len() != ID_CHARACTERS || text.as_bytes().first().is_none_or(|&first| first > b'7') {
        return None;
    }
    text.bytes().try_fold(0u128, |number, byte| {
        let digit = DIGITS[usize::from(byte)];
        (digit != NO_DIGIT).then_some((number << 5) | u128::from(digit))
    })
}

const fn digits() -> [u8; 256] {
    let mut digits = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 32 {
        digits[ALPHABET[digit as usize] as usize] = digit;
        digit += 1;
    }
    digits
}

macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u128);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                write_id(self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let digits = text.strip_prefix($prefix).and_then(read_id);
                digits.map(Self).ok_or_else(|| ParseIdError(text.to_owned()))
            }
        }
    };
}

random_id! {
    /// A write entry.
    EntryId, "e_"
}
random_id! {
    /// A committed bundle.
    BundleId, "b_"
}
random_id! {
    /// A pocket item.
    ItemId, "i_"
}
random_id! {
    /// A person's token. The secret is separate.
    TokenId, "t_"
}

random_id! {
    /// A capsule. The id is a hash of its content.
    CapsuleId, "c_"
}
random_id! {
    /// A scene anchor. The id is a hash of its content.
    AnchorId, "s_"
}
random_id! {
    /// A rehydration. The id is a hash of its content.
    RehydrationId, "h_"
}

/// The number of an id that is a hash of these parts, in this order.
pub(crate) fn hash_parts(parts: &[&str]) -> u128 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        // The length keeps different divisions of the same bytes apart.
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    u128::from_le_bytes(bytes)
}

/// A source of random ids. The edge passes 32 random bytes; the same bytes give the same ids.
pub struct Ids(blake3::OutputReader);

impl Ids {
    /// Makes a source from 32 random bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(blake3::Hasher::new_keyed(seed).finalize_xof())
    }

    /// The next number.
    pub fn draw(&mut self) -> u128 {
        let mut bytes = [0; 16];
        self.0.fill(&mut bytes);
        u128::from_le_bytes(bytes)
    }
}

/// The fixed id of the operator in every world.
pub const OPERATOR: &str = "GEORGE";
/// The author of entries in the world's own voice.
pub const WORLD: &str = "WORLD";
/// The author of entries that the server writes.
pub const SYSTEM: &str = "SYSTEM";
/// The view of public entries only.
pub const PUBLIC: &str = "PUBLIC";
/// Names that no person may have.
pub const RESERVED: &[&str] = &[OPERATOR, WORLD, SYSTEM, "SYSTEM_INVOKER", PUBLIC];
/// The view of a person may be named with this suffix.
pub const VIEW_SUFFIX: &str = "_VIEW";

const NAME_BYTES_MAX: usize = 64;

/// The id of a person or a world: letters, digits, `_`, `.` and `-`, the first a letter or digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Makes a name, if the text is legal.
    pub fn new(text: &str) -> Option<Self> {
        Self::is_legal(text).then(|| Self(text.into()))
    }

    fn is_legal(text: &str) -> bool {
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        let begins = text
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric());
        begins && text.len() <= NAME_BYTES_MAX && text.bytes().all(legal)
    }

    /// Like [`Self::new`], with a text that `share` may take from a table.
    pub(crate) fn new_shared(text: &str, share: impl FnOnce(&str) -> Arc<str>) -> Option<Self> {
        Self::is_legal(text).then(|| Self(share(text)))
    }

    /// The operator's name.
    pub fn operator() -> Self {
        Self(OPERATOR.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a person may have this name: not a reserved word and not the name of a view.
    pub fn may_be_a_person(&self) -> bool {
        let reserved = RESERVED
            .iter()
            .any(|word| word.eq_ignore_ascii_case(&self.0));
        let suffix = self
            .0
            .len()
            .checked_sub(VIEW_SUFFIX.len())
            .and_then(|at| self.0.get(at..));
        !reserved && !suffix.is_some_and(|end| end.eq_ignore_ascii_case(VIEW_SUFFIX))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_as_they_were_written() {
        let mut ids = Ids::from_seed(&[7; 32]);
        for number in [0, 1, u128::MAX, ids.draw(), ids.draw()] {
            let text = EntryId(number).to_string();
            assert_eq!(text.parse(), Ok(EntryId(number)), "{text}");
            assert_eq!(text.len(), 28);
        }
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for bad in [
            "",
            "e_",
            "b_00000000000000000000000000",
            "e_80000000000000000000000000",
            "e_0000000000000000000000000U",
        ] {
            assert!(bad.parse::<EntryId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_plain_and_persons_are_not_reserved() {
        for (text, name, person) in [
            ("PLANNER", true, true),
            ("a.b-c_1", true, true),
            ("GEORGE", true, false),
            ("george", true, false),
            ("X_VIEW", true, false),
            ("x_view", true, false),
            ("_x", false, false),
            ("", false, false),
            ("a b", false, false),
            ("ä", false, false),
        ] {
            let made = Name::new(text);
            assert_eq!(made.is_some(), name, "{text}");
            assert_eq!(
                made.is_some_and(|made| made.may_be_a_person()),
                person,
                "{text}"
            );
        }
        assert!(Name::new(&"x".repeat(65)).is_none());
    }
}
