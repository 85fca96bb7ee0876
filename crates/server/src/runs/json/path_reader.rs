//! Reads a type from parsed JSON, and says where a value does not fit.
//!
//! The path is put together on the way back: the reader of a field or an item adds its step to the
//! error that it passes on. Worked example: in `{"limits":{"fanInMs":"x"}}` the number fails with
//! an empty path, the field adds `fanInMs`, and the field around it makes `limits.fanInMs`.

use serde::Deserializer;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use super::BodyError;

/// A value that a type is read from.
pub(super) struct PathReader<'a>(pub(super) &'a Value);

impl<'de> Deserializer<'de> for PathReader<'de> {
    type Error = BodyError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        match self.0 {
            Value::Object(fields) => visitor.visit_map(Fields::new(fields)),
            Value::Array(items) => visitor.visit_seq(Items { items, place: 0 }),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Null => visitor.visit_unit(),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (None, Some(value)) => visitor.visit_i64(value),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        // Otherwise a list of the right length would pass, and an error would name the Rust type.
        match self.0 {
            Value::Object(fields) => visitor.visit_map(Fields::new(fields)),
            _ => Err(BodyError::here("must be an object")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        match self.0 {
            Value::String(text) => {
                let word: StrDeserializer<'_, BodyError> = text.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            _ => Err(BodyError::here(format!(
                "must be one of: {}",
                words.join(", ")
            ))),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The fields of an object, with the one whose value is read next.
struct Fields<'a> {
    rest: serde_json::map::Iter<'a>,
    next: Option<(&'a str, &'a Value)>,
}

impl<'a> Fields<'a> {
    fn new(fields: &'a Map<String, Value>) -> Self {
        Self {
            rest: fields.iter(),
            next: None,
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = BodyError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, BodyError> {
        let Some((name, value)) = self.rest.next() else {
            return Ok(None);
        };
        self.next = Some((name, value));
        let name: StrDeserializer<'_, BodyError> = name.as_str().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, BodyError> {
        let missing = || BodyError::here("a value is read before its name");
        let (name, value) = self.next.take().ok_or_else(missing)?;
        let read = seed.deserialize(PathReader(value));
        read.map_err(|error| error.in_field(name))
    }
}

struct Items<'a> {
    items: &'a [Value],
    place: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = BodyError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, BodyError> {
        let Some(item) = self.items.get(self.place) else {
            return Ok(None);
        };
        let place = self.place;
        self.place += 1;
        let read = seed.deserialize(PathReader(item));
        read.map(Some).map_err(|error| error.in_item(place))
    }
}

impl Error for BodyError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::here(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::here(format!("must be {}, not {found}", plain_name(expected)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(word: &str, expected: &'static [&'static str]) -> Self {
        let expected = expected.join(", ");
        Self::here(format!("is `{word}`, which is not one of: {expected}"))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::here("is missing").in_field(name)
    }
}

/// What is expected, without the names of Rust types.
fn plain_name(expected: &dyn Expected) -> String {
    let name = expected.to_string();
    match name.as_str() {
        "u32" | "u64" => "a whole number from 0 on".to_owned(),
        "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        _ => name,
    }
}
