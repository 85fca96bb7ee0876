//! Hashes and times in JSON: lower-case hex, and RFC 3339 in UTC with milliseconds.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use turnkeep_types::rfc3339::{LAST_MS, write_rfc3339};
use turnkeep_types::{BlobHash, Timestamp};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A blob's hash as 64 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hash(pub BlobHash);

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

impl PartialSchema for Hash {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[0-9a-f]{64}$"))
            .description(Some("The BLAKE3-256 of a blob's uncompressed bytes."))
            .into()
    }
}

impl ToSchema for Hash {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Hash")
    }
}

/// A time as `2026-01-31T12:00:00.000Z`. Times beyond the year 9999 are written as its last
/// millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Timestamp);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Beyond i64 as well as beyond the year 9999: RFC 3339 has four digits for the year.
        let unix_ms = i64::try_from(self.0.0).unwrap_or(LAST_MS);
        write_rfc3339(f, unix_ms)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339 in UTC with milliseconds."))
            .into()
    }
}

impl ToSchema for Time {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Time")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_prints_as_rfc_3339() {
        fn check(ms: u64, expect: &str) {
            assert_eq!(Time(Timestamp(ms)).to_string(), expect);
        }
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_399_999, "2000-02-28T23:59:59.999Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(951_868_800_000, "2000-03-01T00:00:00.000Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
        check(1_766_174_400_123, "2025-12-19T20:00:00.123Z");
        check(LAST_MS.cast_unsigned(), "9999-12-31T23:59:59.999Z");
        check(u64::MAX, "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn a_hash_is_lower_case_hex() {
        let hash = BlobHash::of(b"");
        let json = serde_json::to_string(&Hash(hash)).unwrap();
        assert_eq!(json, format!("\"{hash}\""));
        assert_eq!(serde_json::from_str::<Hash>(&json).unwrap(), Hash(hash));
        for bad in [json.to_uppercase(), "\"00\"".into(), "0".into()] {
            assert!(serde_json::from_str::<Hash>(&bad).is_err(), "{bad}");
        }
    }
}
