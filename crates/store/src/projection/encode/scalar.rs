//! Encodes scalars and map keys from JSON.
//!
//! A value that does not fit its kind is an error with its path. Floats take the nearest value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};
use turnkeep_types::msgpack::MsgpackWriter;
use turnkeep_types::rfc3339::parse_rfc3339;

use super::super::render::kind_name;
use super::{EncodeError, Encoded, Encoder};
use crate::registry::{IntKind, Kind, Semantic, Shape, canonical_number};

/// A map's key. The order is the order of writing: numbers by value, strings and bytes bytewise.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MapKey {
    Bool(bool),
    Int(i128),
    Str(String),
    Bin(Vec<u8>),
}

impl MapKey {
    pub(super) fn write(&self, out: &mut MsgpackWriter) {
        match self {
            Self::Bool(flag) => out.write_bool(*flag),
            Self::Int(number) => out.write_int(*number),
            Self::Str(text) => out.write_str(text),
            Self::Bin(bytes) => out.write_bin(bytes),
        }
    }
}

/// The number as an integer, if the JSON has it without fraction and exponent.
pub(super) fn as_whole_number(number: &Number) -> Option<i128> {
    number
        .as_u64()
        .map(i128::from)
        .or_else(|| number.as_i64().map(i128::from))
}

/// Parses an integer in decimal digits, without leading zeros or a plus.
fn parse_decimal(text: &str) -> Option<i128> {
    match text.strip_prefix('-') {
        None => canonical_number(text).map(i128::from),
        Some(magnitude) => canonical_number(magnitude)
            .filter(|m| *m > 0)
            .map(|m| -i128::from(m)),
    }
}

impl<'r> Encoder<'r> {
    pub(super) fn encode_scalar(
        &mut self,
        out: &mut MsgpackWriter,
        shape: &'r Shape,
        value: &Value,
    ) -> Encoded {
        match (&shape.kind, value) {
            (Kind::Bool, Value::Bool(flag)) => out.write_bool(*flag),
            (Kind::Int(kind), value) => out.write_int(self.parse_int(*kind, shape, value)?),
            (Kind::F64, value) => out.write_f64(self.parse_float(value, "f64")?),
            (Kind::F32, value) => out.write_f32(self.parse_single(value)?),
            (Kind::String, Value::String(text)) => out.write_str(text),
            (Kind::Bytes, value) => out.write_bin(&self.parse_bytes(value)?),
            (kind, value) => return Err(self.wrong_value(kind_name(kind), value)),
        }
        Ok(())
    }

    fn parse_int(
        &mut self,
        kind: IntKind,
        shape: &'r Shape,
        value: &Value,
    ) -> Result<i128, EncodeError> {
        let number = match value {
            Value::Number(number) => as_whole_number(number),
            Value::String(text) => self.parse_int_text(kind, shape, text),
            _ => None,
        };
        if let Some(fits) = number.filter(|number| kind.range().contains(number)) {
            return Ok(fits);
        }
        let expected = self.describe_expected_int(shape);
        Err(self.wrong_value(expected, value))
    }

    /// Describes the values that an integer field accepts, with the labels of its enum.
    fn describe_expected_int(&mut self, shape: &'r Shape) -> String {
        let kind = kind_name(&shape.kind);
        match (&shape.enum_id, shape.semantic) {
            (Some(id), _) => match self.names.enum_table(id) {
                Some(table) => {
                    format!("{kind} or a label of {id} ({})", list_labels(table.texts()))
                }
                None => format!("{kind} or a label of {id}"),
            },
            (None, Some(Semantic::UnixMs | Semantic::UnixS)) => {
                format!("{kind} or a time in RFC 3339")
            }
            (None, _) => kind.to_owned(),
        }
    }

    /// Parses a number that is written as a label, as a time or, for 64 bits, in digits.
    fn parse_int_text(&mut self, kind: IntKind, shape: &'r Shape, text: &str) -> Option<i128> {
        let table = shape
            .enum_id
            .as_ref()
            .and_then(|id| self.names.enum_table(id));
        let label = table.and_then(|table| table.number(text));
        let time = || match shape.semantic {
            Some(Semantic::UnixMs) => parse_rfc3339(text).map(i128::from),
            Some(Semantic::UnixS) => parse_rfc3339(text)
                // A time between two seconds would be rounded silently.
                .filter(|ms| ms % 1000 == 0)
                .map(|ms| i128::from(ms / 1000)),
            _ => None,
        };
        label.or_else(time).or_else(|| {
            // Projection prints 64-bit numbers as strings, so the same form is accepted here.
            if kind.is_wide() {
                parse_decimal(text)
            } else {
                None
            }
        })
    }

    fn parse_float(&self, value: &Value, expected: &str) -> Result<f64, EncodeError> {
        match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) if text == "NaN" => Some(f64::NAN),
            Value::String(text) if text == "Infinity" => Some(f64::INFINITY),
            Value::String(text) if text == "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        }
        .ok_or_else(|| self.wrong_value(expected, value))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a single is the nearest one to the number given"
    )]
    fn parse_single(&self, value: &Value) -> Result<f32, EncodeError> {
        let wide = self.parse_float(value, "f32")?;
        let single = wide as f32;
        // The conversion turns numbers beyond the range into infinity, which would hide the
        // mistake.
        if single.is_infinite() && wide.is_finite() {
            return Err(self.wrong_value("f32", value));
        }
        Ok(single)
    }

    pub(super) fn parse_bytes(&self, value: &Value) -> Result<Vec<u8>, EncodeError> {
        let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok());
        bytes.ok_or_else(|| self.wrong_value("bytes in base64", value))
    }

    pub(super) fn parse_map_key(&self, kind: &Kind, key: &str) -> Result<MapKey, EncodeError> {
        let parsed = match kind {
            Kind::Bool => key.parse().ok().map(MapKey::Bool),
            Kind::Int(kind) => parse_decimal(key)
                .filter(|number| kind.range().contains(number))
                .map(MapKey::Int),
            Kind::Bytes => STANDARD.decode(key).ok().map(MapKey::Bin),
            _ => Some(MapKey::Str(key.to_owned())),
        };
        parsed.ok_or_else(|| {
            self.wrong_value(format!("a key of type {}", kind_name(kind)), &key.into())
        })
    }
}

/// Lists labels in one line of bounded length.
fn list_labels<'t>(labels: impl ExactSizeIterator<Item = &'t str>) -> String {
    const LISTED_BYTES_MAX: usize = 512;
    let count = labels.len();
    let (mut text, mut listed) = (String::new(), 0);
    for label in labels {
        // The first label is always listed, however long it is.
        if listed > 0 && text.len() + label.len() > LISTED_BYTES_MAX {
            break;
        }
        text.push_str(if listed > 0 { ", " } else { "" });
        text.push_str(label);
        listed += 1;
    }
    match count - listed {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
