//! Rejects JSON objects that have the same key twice. Readers disagree about which value counts.
//!
//! `serde` rejects a duplicate field of a struct by itself. This module does the same for labels and
//! for values of any shape, while the rest of the body is read. The reader of bundles in the store
//! cannot take its place: it reads whole documents and keeps `-0` as an integer, so the same body
//! could become another payload.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

type Labels = BTreeMap<String, String>;

/// Reads labels.
pub(super) fn read_labels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
    deserializer.deserialize_map(LabelsVisitor)
}

/// Reads labels that may be null.
pub(super) fn read_optional_labels<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Labels>, D::Error> {
    // `Option` reads the null, and this type the labels with their own check.
    struct Distinct(Labels);
    impl<'de> Deserialize<'de> for Distinct {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            read_labels(deserializer).map(Self)
        }
    }
    Ok(Option::<Distinct>::deserialize(deserializer)?.map(|labels| labels.0))
}

struct LabelsVisitor;

impl<'de> Visitor<'de> for LabelsVisitor {
    type Value = Labels;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
        let mut labels = Labels::new();
        while let Some((key, value)) = map.next_entry()? {
            match labels.entry(key) {
                Entry::Vacant(free) => _ = free.insert(value),
                Entry::Occupied(taken) => return Err(duplicate_key(taken.key())),
            }
        }
        Ok(labels)
    }
}

fn duplicate_key<E: Error>(key: &str) -> E {
    E::custom(format_args!("the name `{key}` comes twice"))
}

/// Reads a value of any shape; null counts as absent.
pub(super) fn read_optional_value<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    let value = AnyValue.deserialize(deserializer)?;
    Ok(if value.is_null() { None } else { Some(value) })
}

/// Reads a value of any shape.
struct AnyValue;

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        // JSON has no infinity and no NaN, so the parser never passes one.
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        // serde's seed carries this visitor into each element. A plain `Value` would accept duplicate
        // keys inside them.
        while let Some(value) = seq.next_element_seed(AnyValue)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            // Before the value is read, so that a large duplicate costs nothing.
            if members.contains_key(&key) {
                return Err(duplicate_key(&key));
            }
            members.insert(key, map.next_value_seed(AnyValue)?);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use crate::json::{AppendTurnBody, CreateContextBody, PatchContext};

    fn check<T: serde::de::DeserializeOwned>(json: &str, expect: Result<(), &str>) {
        let read = serde_json::from_str::<T>(json)
            .map(drop)
            .map_err(|error| error.to_string());
        match (&read, expect) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(expect)) => assert!(error.contains(expect), "{json}: {error}"),
            _ => panic!("{json}: {read:?}"),
        }
    }

    #[test]
    fn a_name_comes_once_at_every_level() {
        check::<CreateContextBody>(r#"{"labels":{"a":"1","b":"1"}}"#, Ok(()));
        check::<CreateContextBody>(r#"{"labels":null}"#, Ok(()));
        check::<CreateContextBody>("{}", Ok(()));
        check::<CreateContextBody>(r#"{"labels":{"a":"1","a":"1"}}"#, Err("`a` comes twice"));
        check::<CreateContextBody>(
            r#"{"labels":{},"labels":{}}"#,
            Err("duplicate field `labels`"),
        );
        check::<PatchContext>(r#"{"labels":{"a":"1","a":"2"}}"#, Err("`a` comes twice"));
        check::<PatchContext>("{}", Err("missing field `labels`"));
        check::<PatchContext>(r#"{"labels":null}"#, Err("an object of texts"));
        check::<AppendTurnBody>(r#"{"data":{"a":1,"b":{"a":1}}}"#, Ok(()));
        check::<AppendTurnBody>(r#"{"data":{"a":1,"a":1}}"#, Err("`a` comes twice"));
        check::<AppendTurnBody>(r#"{"data":[{"b":{"a":1,"a":2}}]}"#, Err("`a` comes twice"));
    }

    #[test]
    fn a_value_is_read_as_it_is_written() {
        let data = r#"{"b":[1,-1,1.5,18446744073709551615,"x",true,null],"a":{}}"#;
        let turn: AppendTurnBody = serde_json::from_str(&format!("{{\"data\":{data}}}")).unwrap();
        assert_eq!(turn.data.unwrap().to_string(), data);
        let turn: AppendTurnBody = serde_json::from_str(r#"{"data":null}"#).unwrap();
        assert_eq!(turn.data, None);
    }
}
