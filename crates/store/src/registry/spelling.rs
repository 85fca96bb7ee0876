//! Alternative spellings of types, as bundles of similar stores use them.
//!
//! | spelling | means |
//! |---|---|
//! | `int32`, `int64` | `i32`, `i64` |
//! | `{"type": "ref", "ref": ID}` | `{"type": ID}` |
//!
//! A descriptor is rewritten before it is parsed, so both spellings mean the same type in every
//! later check: a new version may use the other spelling. The registry keeps the published bytes
//! unchanged.
//!
//! Invariant: a name that is the id of a published type means that type. Old logs may hold types
//! with such ids, and they keep their meaning.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::ID_BYTES_MAX;

const REFERENCE: &str = "ref";

/// All names with an alternative meaning, unless a type has the name as its id.
pub(super) const OTHER_SPELLINGS: [&str; 3] = ["int32", "int64", REFERENCE];

/// The parts of a descriptor that hold a type's name or another descriptor.
const PARTS: [&str; 3] = ["items", "key_type", "value_type"];

/// The alternative spellings that apply to one bundle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spellings {
    counts: [bool; OTHER_SPELLINGS.len()],
}

impl Spellings {
    /// The spellings that are not type ids.
    pub(super) fn unless_types(is_type: impl Fn(&str) -> bool) -> Self {
        Self {
            counts: OTHER_SPELLINGS.map(|name| !is_type(name)),
        }
    }

    fn apply_to(self, name: &str) -> bool {
        OTHER_SPELLINGS
            .iter()
            .zip(self.counts)
            .any(|(known, counts)| counts && *known == name)
    }

    /// The usual name of a built-in type.
    fn usual_name(self, name: &str) -> Option<&'static str> {
        match name {
            "int32" if self.apply_to(name) => Some("i32"),
            "int64" if self.apply_to(name) => Some("i64"),
            _ => None,
        }
    }

    /// Whether a descriptor contains an alternative spelling.
    pub(super) fn occur_in(self, descriptor: &Map<String, Value>) -> bool {
        let names = |value: &Value| match value {
            Value::String(name) => self.apply_to(name),
            Value::Object(inner) => self.occur_in(inner),
            _ => false,
        };
        descriptor.get("type").is_some_and(names)
            || PARTS
                .iter()
                .filter_map(|part| descriptor.get(*part))
                .any(names)
    }

    /// The descriptor in the usual spelling. A `ref` without an id stays unchanged and resolves to
    /// no type.
    pub(super) fn rewrite(self, descriptor: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
        // Almost every descriptor is in the usual spelling and needs no copy.
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

    /// Whether the descriptor is a valid `ref`. A `ref` to something that cannot be a type id stays
    /// unchanged, so that parsing rejects it.
    fn is_reference(self, descriptor: &Map<String, Value>) -> bool {
        let is_ref = descriptor.get("type").and_then(Value::as_str) == Some(REFERENCE);
        let target = descriptor
            .get(REFERENCE)
            .and_then(Value::as_str)
            .unwrap_or_default();
        let may_be_id =
            (1..=ID_BYTES_MAX).contains(&target.len()) && !matches!(target, "array" | "map");
        is_ref && may_be_id && self.apply_to(REFERENCE)
    }
}
