//! Ids in JSON. They are strings, because JavaScript cannot represent every `u64` as a number.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use turnkeep_types::{ContextId, TurnId};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The largest integer that every JSON reader holds exactly.
const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// A number that names something, or 0 for none. Written as a string; read also from a safe
/// integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Id(pub u64);

impl Id {
    /// The turn that it names; `None` for 0.
    pub fn turn(self) -> Option<TurnId> {
        TurnId::new(self.0)
    }

    /// The context that it names; `None` for 0.
    pub fn context(self) -> Option<ContextId> {
        ContextId::new(self.0)
    }
}

impl From<TurnId> for Id {
    fn from(id: TurnId) -> Self {
        Self(id.get())
    }
}

impl From<Option<TurnId>> for Id {
    fn from(id: Option<TurnId>) -> Self {
        Self(TurnId::to_wire(id))
    }
}

impl From<ContextId> for Id {
    fn from(id: ContextId) -> Self {
        Self(id.get())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Any kind of value: the visitor takes texts and integers.
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id: a string of digits, or an integer from 0 to 2^53 - 1")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Id, E> {
        // One text per id: clients compare ids as texts and use them as keys.
        let canonical =
            text == "0" || (!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()));
        let number = if canonical { text.parse().ok() } else { None };
        number
            .map(Id)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Id, E> {
        // A JavaScript client has rounded a larger number already, so it may name another object.
        if number > SAFE_INTEGER_MAX {
            return Err(E::invalid_value(
                serde::de::Unexpected::Unsigned(number),
                &self,
            ));
        }
        Ok(Id(number))
    }
}

impl PartialSchema for Id {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^(0|[1-9][0-9]{0,19})$"))
            .description(Some("An id as decimal text; \"0\" is none."))
            .into()
    }
}

impl ToSchema for Id {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Id")
    }
}

/// How the document describes an id in a request's body, where an integer is taken as well.
pub(super) struct SentId;

impl PartialSchema for SentId {
    fn schema() -> RefOr<Schema> {
        let integer = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            // SAFE_INTEGER_MAX. The builder wants a double, which holds it exactly.
            .maximum(Some(9_007_199_254_740_991.0));
        OneOfBuilder::new()
            .item(Ref::from_schema_name("Id"))
            .item(integer)
            .description(Some(
                "An id as decimal text, or as an integer up to 2^53 - 1; 0 is none.",
            ))
            .into()
    }
}

impl ToSchema for SentId {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("SentId")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_from_canonical_text_and_safe_integers_only() {
        fn check(json: &str, expect: Option<u64>) {
            assert_eq!(
                serde_json::from_str::<Id>(json).ok().map(|id| id.0),
                expect,
                "{json}"
            );
        }
        check("\"0\"", Some(0));
        check("\"12\"", Some(12));
        check("\"18446744073709551615\"", Some(u64::MAX));
        check("12", Some(12));
        check("9007199254740991", Some(SAFE_INTEGER_MAX));
        for bad in [
            "9007199254740992",
            "-1",
            "1.0",
            "\"\"",
            "\"01\"",
            "\"+1\"",
            "\"x\"",
            "null",
            "true",
            "[]",
        ] {
            check(bad, None);
        }
        check("\"18446744073709551616\"", None);
    }

    #[test]
    fn an_id_is_written_as_text() {
        assert_eq!(
            serde_json::to_string(&Id(u64::MAX)).unwrap(),
            "\"18446744073709551615\""
        );
    }
}
