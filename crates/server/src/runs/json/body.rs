//! Reads the bodies of requests.
//!
//! Clients may wrap a body in an object with one field, such as `{"node": {…}}`. Fields that the
//! server does not know are ignored, but a field that no request may set is rejected: a caller that
//! sends it expects something to happen.

use serde::de::DeserializeOwned;
use serde_json::Value;
use turnkeep_wire::runs as wire;

use super::path_reader::PathReader;
use crate::error::ApiError;

/// Why a body is rejected, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub(crate) struct BodyError {
    /// Such as `limits.fanInMs` or `artifacts[0]`; empty for the whole body.
    path: String,
    message: String,
}

impl BodyError {
    /// An error about the whole value.
    pub(super) fn here(message: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            message: message.into(),
        }
    }

    /// An error about a field.
    pub(super) fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }

    /// The same error, seen from the object that has the field.
    #[must_use]
    pub(super) fn in_field(self, name: &str) -> Self {
        let path = match self.path.chars().next() {
            None => name.to_owned(),
            Some('[') => format!("{name}{}", self.path),
            Some(_) => format!("{name}.{}", self.path),
        };
        Self { path, ..self }
    }

    /// The same error, seen from the list that has the item.
    #[must_use]
    pub(super) fn in_item(self, place: usize) -> Self {
        self.in_field(&format!("[{place}]"))
    }

    fn text(&self) -> String {
        if self.path.is_empty() {
            format!("the body {}", self.message)
        } else {
            format!("{} {}", self.path, self.message)
        }
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        let rejected = Self::bad_request(error.text());
        if error.path.is_empty() {
            rejected
        } else {
            rejected.with("path", error.path)
        }
    }
}

/// The body of a request.
pub(crate) trait RequestBody: DeserializeOwned {
    /// The fields that the body may be wrapped in.
    const WRAPPERS: &'static [&'static str] = &[];
    /// Paths of fields that no request may set.
    const FIXED: &'static [&'static str] = &[];
}

macro_rules! request_bodies {
    ($($name:ident { $($item:tt)* })*) => {
        $(impl RequestBody for wire::$name { $($item)* })*
    };
}

request_bodies! {
    CreateRun {}
    ChangeRun {
        const WRAPPERS: &'static [&'static str] = &["patch"];
        const FIXED: &'static [&'static str] = &["cwd", "world", "phase", "usage"];
    }
    CreateNode {
        const WRAPPERS: &'static [&'static str] = &["node"];
    }
    ChangeNode {
        const WRAPPERS: &'static [&'static str] = &["node", "patch"];
        const FIXED: &'static [&'static str] = &["status", "usage", "person", "session.sessionId"];
    }
    CreateEdge {
        const WRAPPERS: &'static [&'static str] = &["edge"];
    }
    SendChat {}
    ResolveApproval {
        const WRAPPERS: &'static [&'static str] = &["resolution"];
    }
    SendHandoff {}
    ResetNode {}
    TurnFiles {}
    ForkRun {}
    PutFile {}
    SpawnNodeArgs {}
    AskUserArgs {}
    CompleteRunArgs {}
    ReadArtifactArgs {}
}

/// Reads a body. The path of an error includes the wrapper.
pub(crate) fn read_body<T: RequestBody>(document: &Value) -> Result<T, BodyError> {
    match find_wrapped(document, T::WRAPPERS) {
        Some((name, inner)) => read_plain(inner).map_err(|error| error.in_field(name)),
        None => read_plain(document),
    }
}

/// The inner object of a wrapped body.
fn find_wrapped<'a>(
    document: &'a Value,
    wrappers: &[&'static str],
) -> Option<(&'static str, &'a Value)> {
    let fields = document.as_object().filter(|fields| fields.len() == 1)?;
    wrappers.iter().find_map(|name| {
        let inner = fields.get(*name).filter(|inner| inner.is_object())?;
        Some((*name, inner))
    })
}

fn read_plain<T: RequestBody>(body: &Value) -> Result<T, BodyError> {
    for path in T::FIXED {
        let pointer = format!("/{}", path.replace('.', "/"));
        if body.pointer(&pointer).is_some() {
            return Err(BodyError::at(
                *path,
                "cannot be set by a request: leave it out",
            ));
        }
    }
    T::deserialize(PathReader(body))
}
