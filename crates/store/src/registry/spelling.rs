//! Other spellings of types, as bundles of similar stores have them.
//!
//! | spelling | means |
//! |---|---|
//! | `int32`, `int64` | `i32`, `i64` |
//! | `{"type": "ref", "ref": ID}` | `{"type": ID}` |
//!
//! A descriptor is rewritten before it is read, so that both spellings are one type in every later
//! check: a version may change from one to the other. What is published stays as it was sent.
//!
//! Invariant: a name that is some type's id means that type. Logs from before these spellings were
//! known may hold types with such ids, and keep their meaning.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::ID_BYTES_MAX;

const REFERENCE: &str = "ref";

/// All names that are read as something else, unless they are types' ids.
pub(super) const OTHER_SPELLINGS: [&str; 3] = ["int32", "int64", REFERENCE];

/// The parts of a descriptor that hold a type's name or another descriptor.
const PARTS: [&str; 3] = ["items", "key_type", "value_type"];

/// The spellings that count for one bundle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spellings {
    counts: [bool; OTHER_SPELLINGS.len()],
}

impl Spellings {
    /// The spellings that are not ids of types.
    pub(super) fn unless_types(is_type: impl Fn(&str) -> bool) -> Self {
        Self {
            counts: OTHER_SPELLINGS.map(|name| !is_type(name)),
        }
    }

    fn count(self, name: &str) -> bool {
        OTHER_SPELLINGS
            .iter()
            .zip(self.counts)
            .any(|(known, counts)| counts && *known == name)
    }

    /// The usual name of a built-in type.
    fn usual_name(self, name: &str) -> Option<&'static str> {
        match name {
            "int32" if self.count(name) => Some("i32"),
            "int64" if self.count(name) => Some("i64"),
            _ => None,
        }
    }

    /// Whether a descriptor has such a spelling anywhere.
    pub(super) fn occur_in(self, descriptor: &Map<String, Value>) -> bool {
        let names = |value: &Value| match value {
            Value::String(name) => self.count(name),
            Value::Object(inner) => self.occur_in(inner),
            _ => false,
        };
        descriptor.get("type").is_some_and(names)
            || PARTS
                .iter()
                .filter_map(|part| descriptor.get(*part))
                .any(names)
    }

    /// The descriptor in the usual spelling. A `ref` without an id stays as it is
    /// and resolves to no type.
    pub(super) fn rewrite(self, descriptor: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
        if !self.occur_in(descriptor) {
            return Cow::Borrowed(descriptor);
        }
        let mut usual = descriptor.clone();
        self.rewrite_in_place(&mut usual);
        Cow::Owned(usual)
    }

    fn rewrite_in_place(self, descriptor: &mut Map<String, Value>) {
        if self.is_reference(descriptor)
            && let Some(id) = descriptor.remove(REFERENCE)
        {
            descriptor.insert("type".to_owned(), id);
        } else if let Some(name) = descriptor.get_mut("type") {
            self.rewrite_name(name);
        }
        for part in PARTS {
            match descriptor.get_mut(part) {
                Some(Value::Object(inner)) => self.rewrite_in_place(inner),
                Some(name) => self.rewrite_name(name),
                None => {}
            }
        }
    }

    fn rewrite_name(self, name: &mut Value) {
        if let Some(usual) = name.as_str().and_then(|name| self.usual_name(name)) {
            *name = usual.into();
        }
    }

    /// Whether this names a type after `ref`. What cannot be a type's id is left to the reader to
    /// refuse.
    fn is_reference(self, descriptor: &Map<String, Value>) -> bool {
        let is_ref = descriptor.get("type").and_then(Value::as_str) == Some(REFERENCE);
        let target = descriptor
            .get(REFERENCE)
            .and_then(Value::as_str)
            .unwrap_or_default();
        let may_be_id =
            (1..=ID_BYTES_MAX).contains(&target.len()) && !matches!(target, "array" | "map");
        is_ref && may_be_id && self.count(REFERENCE)
    }
}
