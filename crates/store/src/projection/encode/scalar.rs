//! Scalars and map keys from JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use super::super::render::name;
use super::super::time;
use super::msgpack::Writer;
use super::{EncodeError, Encoded, Encoder};
use crate::registry::{IntKind, Kind, Semantic, Shape, canonical_number};

/// A map's key, ordered as it is written: numbers by value, texts and bytes bytewise.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MapKey {
    Bool(bool),
    Int(i128),
    Str(String),
    Bin(Vec<u8>),
}

impl MapKey {
    pub(super) fn write(&self, out: &mut Writer) {
        match self {
            Self::Bool(flag) => out.bool(*flag),
            Self::Int(number) => out.int(*number),
            Self::Str(text) => out.str(text),
            Self::Bin(bytes) => out.bin(bytes),
        }
    }
}

/// The number as a whole one, if it was written as one.
pub(super) fn whole(number: &Number) -> Option<i128> {
    number
        .as_u64()
        .map(i128::from)
        .or_else(|| number.as_i64().map(i128::from))
}

/// A whole number in decimal digits, without leading zeros or a plus.
fn decimal(text: &str) -> Option<i128> {
    match text.strip_prefix('-') {
        None => canonical_number(text).map(i128::from),
        Some(magnitude) => canonical_number(magnitude)
            .filter(|m| *m > 0)
            .map(|m| -i128::from(m)),
    }
}

impl<'r> Encoder<'r> {
    pub(super) fn scalar(&mut self, out: &mut Writer, shape: &'r Shape, value: &Value) -> Encoded {
        match (&shape.kind, value) {
            (Kind::Bool, Value::Bool(flag)) => out.bool(*flag),
            (Kind::Int(kind), value) => out.int(self.int(*kind, shape, value)?),
            (Kind::F64, value) => out.f64(self.float(value, "f64")?),
            (Kind::F32, value) => out.f32(self.single(value)?),
            (Kind::String, Value::String(text)) => out.str(text),
            (Kind::Bytes, value) => out.bin(&self.bytes(value)?),
            (kind, value) => return Err(self.wrong(name(kind), value)),
        }
        Ok(())
    }

    fn int(&mut self, kind: IntKind, shape: &'r Shape, value: &Value) -> Result<i128, EncodeError> {
        let number = match value {
            Value::Number(number) => whole(number),
            Value::String(text) => self.int_text(kind, shape, text),
            _ => None,
        };
        if let Some(fits) = number.filter(|number| kind.range().contains(number)) {
            return Ok(fits);
        }
        let expected = self.int_expected(shape);
        Err(self.wrong(expected, value))
    }

    /// What an integer may be, with the labels of its enum.
    fn int_expected(&mut self, shape: &'r Shape) -> String {
        let kind = name(&shape.kind);
        match (&shape.enum_id, shape.semantic) {
            (Some(id), _) => match self.names.enum_table(id) {
                Some(table) => format!("{kind} or a label of {id} ({})", some_of(table.texts())),
                None => format!("{kind} or a label of {id}"),
            },
            (None, Some(Semantic::UnixMs | Semantic::UnixS)) => {
                format!("{kind} or a time in RFC 3339")
            }
            (None, _) => kind.to_owned(),
        }
    }

    /// A number that is spelt as a label, a time or, for 64 bits, in digits.
    fn int_text(&mut self, kind: IntKind, shape: &'r Shape, text: &str) -> Option<i128> {
        let table = shape
            .enum_id
            .as_ref()
            .and_then(|id| self.names.enum_table(id));
        let label = table.and_then(|table| table.number(text));
        let time = || match shape.semantic {
            Some(Semantic::UnixMs) => time::parse(text).map(i128::from),
            Some(Semantic::UnixS) => time::parse(text)
                .filter(|ms| ms % 1000 == 0)
                .map(|ms| i128::from(ms / 1000)),
            _ => None,
        };
        label
            .or_else(time)
            .or_else(|| if kind.is_wide() { decimal(text) } else { None })
    }

    fn float(&self, value: &Value, expected: &str) -> Result<f64, EncodeError> {
        match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) if text == "NaN" => Some(f64::NAN),
            Value::String(text) if text == "Infinity" => Some(f64::INFINITY),
            Value::String(text) if text == "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        }
        .ok_or_else(|| self.wrong(expected, value))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a single is the nearest one to the number given"
    )]
    fn single(&self, value: &Value) -> Result<f32, EncodeError> {
        let wide = self.float(value, "f32")?;
        let single = wide as f32;
        if single.is_infinite() && wide.is_finite() {
            return Err(self.wrong("f32", value));
        }
        Ok(single)
    }

    pub(super) fn bytes(&self, value: &Value) -> Result<Vec<u8>, EncodeError> {
        let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok());
        bytes.ok_or_else(|| self.wrong("bytes in base64", value))
    }

    pub(super) fn map_key(&self, kind: &Kind, key: &str) -> Result<MapKey, EncodeError> {
        let parsed = match kind {
            Kind::Bool => key.parse().ok().map(MapKey::Bool),
            Kind::Int(kind) => decimal(key)
                .filter(|number| kind.range().contains(number))
                .map(MapKey::Int),
            Kind::Bytes => STANDARD.decode(key).ok().map(MapKey::Bin),
            _ => Some(MapKey::Str(key.to_owned())),
        };
        parsed.ok_or_else(|| self.wrong(format!("a key of type {}", name(kind)), &key.into()))
    }
}

/// Labels in one line, of bounded length however many there are and however long they are.
fn some_of<'t>(labels: impl ExactSizeIterator<Item = &'t str>) -> String {
    const LISTED_BYTES_MAX: usize = 512;
    let count = labels.len();
    let (mut text, mut listed) = (String::new(), 0);
    for label in labels {
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
