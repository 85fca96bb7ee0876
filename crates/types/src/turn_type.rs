//! The declared type of a payload.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A type id with a version. An empty id means that the writer declared no type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeRef {
    /// The stable type id, at most `type_id_bytes_max` bytes of UTF-8.
    pub id: Arc<str>,
    /// The version. Published versions start at 1; writers may still send 0.
    pub version: u32,
}

impl TypeRef {
    /// A reference to `id` at `version`.
    pub fn new(id: impl Into<Arc<str>>, version: u32) -> Self {
        Self {
            id: id.into(),
            version,
        }
    }

    /// Whether the writer declared a type.
    pub fn is_declared(&self) -> bool {
        !self.id.is_empty()
    }
}

impl fmt::Display for TypeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.id, self.version)
    }
}

/// A text that is not `TYPE@VERSION`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a type: expected TYPE@VERSION, for example com.example.Message@1")]
pub struct ParseTypeError(pub String);

impl FromStr for TypeRef {
    type Err = ParseTypeError;

    fn from_str(text: &str) -> Result<Self, ParseTypeError> {
        // The last `@`: a type id may contain others.
        let parsed = text
            .rsplit_once('@')
            .and_then(|(id, v)| Some((id, v.parse().ok()?)));
        match parsed {
            Some((id, version)) if !id.is_empty() => Ok(Self::new(id, version)),
            _ => Err(ParseTypeError(text.to_owned())),
        }
    }
}
