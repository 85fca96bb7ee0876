//! Ids and times in the JSON of runs, and fields that null clears.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use turnkeep_types::Timestamp;
use turnkeep_types::rfc3339::parse_rfc3339;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::json::Time;

/// A UUID as text, in lower case. The server parses the ids that it reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UuidText(pub String);

impl UuidText {
    /// The text of an id.
    pub fn of(id: impl fmt::Display) -> Self {
        Self(id.to_string())
    }
}

impl Serialize for UuidText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for UuidText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

impl PartialSchema for UuidText {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(
                "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
            ))
            .description(Some("A UUID in lower case."))
            .into()
    }
}

impl ToSchema for UuidText {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Uuid")
    }
}

/// Clients read back the times that the server wrote.
impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let unix_ms = parse_rfc3339(&text).and_then(|ms| u64::try_from(ms).ok());
        let time = unix_ms.map(|ms| Self(Timestamp(ms)));
        time.ok_or_else(|| D::Error::custom(format_args!("`{text}` is not a time in RFC 3339")))
    }
}

/// Reads a field that is given. `None`, for a field that is left out, comes from its default, so
/// that null can mean something else.
pub(super) fn read_clearable<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}
