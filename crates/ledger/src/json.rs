//! JSON from outside: no key twice, no NUL, a bounded depth; and its canonical form (RFC 8785), by which
//! two requests are compared.
//!
//! [`Node`] is a value with its path, so that every complaint says where.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::fault::{Code, Fault};

/// Parses one JSON document, strictly.
pub fn parse(bytes: &[u8]) -> Result<Value, Fault> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| Fault::new(Code::TextInvalid, "", format!("the body is not UTF-8: {e}")))?;
    let mut source = serde_json::Deserializer::from_str(text);
    let invalid = |e: serde_json::Error| {
        let code = if e.to_string().starts_with(NUL) { Code::TextInvalid } else { Code::JsonInvalid };
        Fault::new(code, "", e.to_string())
    };
    let value = Strict.deserialize(&mut source).map_err(invalid)?;
    source.end().map_err(invalid)?;
    Ok(value)
}

const NUL: &str = "a text holds the character NUL";

/// Builds a value and refuses what `serde_json` would let pass.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        if value.contains('\0') { Err(E::custom(NUL)) } else { Ok(Value::String(value.to_owned())) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if key.contains('\0') {
                return Err(A::Error::custom(NUL));
            }
            let value = fields.next_value_seed(Strict)?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key `{key}` is there twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    /// The value.
    pub value: &'a Value,
    /// Its path, such as `operator.input_text`; empty for the whole.
    pub path: String,
    /// The word of complaints about its shape.
    pub code: Code,
}

impl<'a> Node<'a> {
    /// The whole document; faults of shape get `code`.
    pub fn root(value: &'a Value, code: Code) -> Self {
        Self { value, path: String::new(), code }
    }

    /// A complaint about this value.
    pub fn fault(&self, message: impl Into<std::borrow::Cow<'static, str>>) -> Fault {
        Fault::new(self.code, self.path.clone(), message)
    }

    fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The fields of an object.
    pub fn fields(&self) -> Result<&'a Map<String, Value>, Fault> {
        self.value.as_object().ok_or_else(|| self.fault("must be an object"))
    }

    /// A field that must be there; null counts as there.
    pub fn field(&self, key: &str) -> Result<Node<'a>, Fault> {
        let missing = || Fault::new(self.code, self.at(key), "is missing");
        let value = self.fields()?.get(key).ok_or_else(missing)?;
        Ok(Node { value, path: self.at(key), code: self.code })
    }

    /// A field that may be absent or null.
    pub fn optional(&self, key: &str) -> Result<Option<Node<'a>>, Fault> {
        let value = self.fields()?.get(key).filter(|value| !value.is_null());
        Ok(value.map(|value| Node { value, path: self.at(key), code: self.code }))
    }

    /// The items of a list.
    pub fn items(&self) -> Result<Vec<Node<'a>>, Fault> {
        let list = self.value.as_array().ok_or_else(|| self.fault("must be a list"))?;
        let item = |(index, value)| Node { value, path: format!("{}[{index}]", self.path), code: self.code };
        Ok(list.iter().enumerate().map(item).collect())
    }

    /// The text of a string.
    pub fn text(&self) -> Result<&'a str, Fault> {
        self.value.as_str().ok_or_else(|| self.fault("must be a string"))
    }

    /// The value of a boolean.
    pub fn boolean(&self) -> Result<bool, Fault> {
        self.value.as_bool().ok_or_else(|| self.fault("must be true or false"))
    }

    /// A whole number from 0 on.
    pub fn count(&self) -> Result<u64, Fault> {
        self.value.as_u64().ok_or_else(|| self.fault("must be a whole number"))
    }

    /// The first field that is none of these.
    pub fn unknown_field(&self, known: &[&str]) -> Result<Option<String>, Fault> {
        let unknown = self.fields()?.keys().find(|key| !known.contains(&key.as_str()));
        Ok(unknown.map(|key| self.at(key)))
    }
}

/// The canonical form of a value: keys sorted by UTF-16, no space, numbers as ECMAScript prints them.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

/// The BLAKE3 of the canonical form.
pub fn fingerprint(value: &Value) -> [u8; 32] {
    *blake3::hash(canonical(value).as_bytes()).as_bytes()
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => write_number(number, out),
        Value::Array(items) => write_list(out, ('[', ']'), items, |out, item| write_canonical(item, out)),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            write_list(out, ('{', '}'), &fields, |out, (key, value)| {
                write_text(key, out);
                out.push(':');
                write_canonical(value, out);
            });
        }
        Value::String(text) => write_text(text, out),
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
    }
}

fn write_list<T>(
    out: &mut String,
    (open, close): (char, char),
    items: &[T],
    mut write: impl FnMut(&mut String, &T),
) {
    out.push(open);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(close);
}

fn write_text(text: &str, out: &mut String) {
    // serde_json escapes exactly what RFC 8785 asks for: quote, backslash and control characters.
    out.push_str(&Value::from(text).to_string());
}

/// A number as ECMAScript prints the double nearest to it.
fn write_number(number: &Number, out: &mut String) {
    let value = number.as_f64().unwrap_or_default();
    if value == 0.0 {
        return out.push('0');
    }
    // `{:e}` gives the shortest digits that read back: one digit, a point, the others, and an exponent.
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    if value < 0.0 {
        out.push('-');
    }
    out.push_str(&place_point(&digits, point));
}

/// Lays digits out around a point that stands after `point` of them.
fn place_point(digits: &str, point: i32) -> String {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or_default());
    let cut = usize::try_from(point.clamp(0, count)).unwrap_or_default();
    let (before, after) = digits.split_at(cut);
    match point {
        _ if !(-5..=21).contains(&point) => {
            let (first, rest) = digits.split_at(1);
            let rest = if rest.is_empty() { String::new() } else { format!(".{rest}") };
            format!("{first}{rest}e{:+}", point - 1)
        }
        _ if point >= count => format!("{digits}{}", zeros(point - count)),
        _ if point > 0 => format!("{before}.{after}"),
        _ => format!("0.{}{digits}", zeros(-point)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_twice_a_nul_and_a_tail_are_refused() {
        for (bytes, code) in [
            (&br#"{"a":1,"a":2}"#[..], Code::JsonInvalid),
            (br#"{"b":{"a":1,"a":1}}"#, Code::JsonInvalid),
            (br#"{"a":1} x"#, Code::JsonInvalid),
            (br#"{"a":"\u0000"}"#, Code::TextInvalid),
            (br#"{"\u0000":1}"#, Code::TextInvalid),
            (b"\"\xff\"", Code::TextInvalid),
            (br#""\ud800""#, Code::JsonInvalid),
            (b"", Code::JsonInvalid),
        ] {
            assert_eq!(parse(bytes).unwrap_err().code, code, "{}", String::from_utf8_lossy(bytes));
        }
        let deep = [b"[".repeat(2000), b"]".repeat(2000)].concat();
        assert_eq!(parse(&deep).unwrap_err().code, Code::JsonInvalid);
    }

    #[test]
    fn the_canonical_form_is_that_of_rfc_8785() {
        for (given, wanted) in [
            (r#"{"b":1,"a":[true,null]}"#, r#"{"a":[true,null],"b":1}"#),
            (r#"{"\ud83d\ude00":1,"\ufb33":2,"\u20ac":3}"#, "{\"€\":3,\"😀\":1,\"\u{fb33}\":2}"),
            (
                "[333333333.33333329,1e30,4.50,2e-3,0.000000000000000000000000001]",
                "[333333333.3333333,1e+30,4.5,0.002,1e-27]",
            ),
            (
                "[-0.0,0,100,1e21,123456789012345680000,0.000001,1e-7,-1.5]",
                "[0,0,100,1e+21,123456789012345680000,0.000001,1e-7,-1.5]",
            ),
            (r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#, r#""€$\u000f\nA'B\"\\\\\"/""#),
        ] {
            assert_eq!(canonical(&parse(given.as_bytes()).unwrap()), wanted, "{given}");
        }
    }

    #[test]
    fn a_complaint_says_where() {
        let value = parse(br#"{"operator":{"input_text":7},"entries":[{}]}"#).unwrap();
        let root = Node::root(&value, Code::EnvelopeInvalid);
        let fault = root.field("operator").unwrap().field("input_text").unwrap().text().unwrap_err();
        assert_eq!((fault.code, fault.path.as_str()), (Code::EnvelopeInvalid, "operator.input_text"));
        let entry = &root.field("entries").unwrap().items().unwrap()[0];
        assert_eq!(entry.field("text").unwrap_err().path, "entries[0].text");
    }
}
