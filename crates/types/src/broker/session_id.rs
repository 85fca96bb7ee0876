//! The id of a session: 128 random bits in text form, chosen by the wrapper.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The longest session id.
const SESSION_ID_BYTES_MAX: usize = 128;

/// A session id. Cloning is cheap. Turnkeep's wrapper uses 32 hex digits; other wrappers may use
/// any short text without colon, white space or control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Arc<str>);

/// A text that cannot be a session id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a session id: expected 1 to 128 bytes without `:`, white space or control characters")]
pub struct BadSessionId;

impl SessionId {
    /// The id made of these random bits.
    pub fn from_random(bits: [u8; 16]) -> Self {
        Self(hex::encode(bits).into())
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = BadSessionId;

    fn from_str(text: &str) -> Result<Self, BadSessionId> {
        let is_plain = |c: char| c != ':' && !c.is_whitespace() && !c.is_control();
        let fits = (1..=SESSION_ID_BYTES_MAX).contains(&text.len());
        if fits && text.chars().all(is_plain) {
            Ok(Self(text.into()))
        } else {
            Err(BadSessionId)
        }
    }
}

impl Borrow<str> for SessionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_short_plain_text() {
        assert_eq!(SessionId::from_random([0xab; 16]).as_str(), "ab".repeat(16));
        for good in ["a", "0123", "my-session_1", &"x".repeat(128)] {
            assert_eq!(good.parse::<SessionId>().unwrap().as_str(), good);
        }
        for bad in ["", "a:1", "a b", "a\n", "\u{1b}", &"x".repeat(129)] {
            assert_eq!(bad.parse::<SessionId>(), Err(BadSessionId), "{bad:?}");
        }
    }
}
