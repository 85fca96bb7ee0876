//! Id types. An id is never zero: zero on the wire means "none" and becomes `Option::None`.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// A text that is not an id: ids are decimal, without sign or leading zeros, from 1 on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an id: expected a whole number from 1 on")]
pub struct ParseIdError(pub String);

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU64);

        impl $name {
            /// The id with this number; `None` for zero.
            pub const fn new(number: u64) -> Option<Self> {
                match NonZeroU64::new(number) {
                    Some(number) => Some(Self(number)),
                    None => None,
                }
            }

            /// The id's number, never zero.
            pub const fn get(self) -> u64 {
                self.0.get()
            }

            /// The number of an optional id on the wire: zero for `None`.
            pub fn to_wire(id: Option<Self>) -> u64 {
                id.map_or(0, Self::get)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let canonical = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
                let number = if canonical { text.parse().ok() } else { None };
                number.and_then(Self::new).ok_or_else(|| ParseIdError(text.to_owned()))
            }
        }
    };
}

id_type! {
    /// The id of a turn. Ids count up from 1 without gaps and are never reused.
    TurnId
}
id_type! {
    /// The id of a context. Ids count up from 1 without gaps and are never reused.
    ContextId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_is_canonical_decimal() {
        assert_eq!("12".parse::<TurnId>().unwrap().get(), 12);
        for bad in ["", "0", "01", "+1", "-1", "1 ", "x", "18446744073709551616"] {
            assert!(bad.parse::<TurnId>().is_err(), "{bad:?}");
        }
    }
}
