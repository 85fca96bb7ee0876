//! Refs: the text form of an object's name, in the CLI, in JSON and in URLs.

use std::fmt;
use std::str::FromStr;

use crate::{BlobHash, ContextId, TurnId};

/// Names one object of the store, such as `ctx:12`, `turn:345` or `blob:<hash>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ObjectRef {
    /// A context.
    Context(ContextId),
    /// A turn.
    Turn(TurnId),
    /// A blob.
    Blob(BlobHash),
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Context(id) => write!(f, "ctx:{id}"),
            Self::Turn(id) => write!(f, "turn:{id}"),
            Self::Blob(hash) => write!(f, "blob:{hash}"),
        }
    }
}

/// A text that is not a ref.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a ref: expected ctx:N, turn:N or blob:HASH")]
pub struct ParseRefError(pub String);

impl FromStr for ObjectRef {
    type Err = ParseRefError;

    fn from_str(text: &str) -> Result<Self, ParseRefError> {
        let parsed = text.split_once(':').and_then(|(kind, name)| match kind {
            "ctx" => name.parse().ok().map(Self::Context),
            "turn" => name.parse().ok().map(Self::Turn),
            "blob" => name.parse().ok().map(Self::Blob),
            _ => None,
        });
        parsed.ok_or_else(|| ParseRefError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ref_reads_back_as_it_prints() {
        for text in ["ctx:12", "turn:345", &format!("blob:{}", BlobHash::of(b""))] {
            assert_eq!(text.parse::<ObjectRef>().unwrap().to_string(), text);
        }
        for bad in ["", "12", "ctx:", "ctx:0", "turn:x", "blob:00", "run:1"] {
            assert!(bad.parse::<ObjectRef>().is_err(), "{bad:?}");
        }
    }
}
