//! Strict JSON from outside: no duplicate keys, no NUL, bounded depth and size. [`canonical`] is
//! the form of RFC 8785, by which two requests are compared.
//!
//! A [`Node`] is a value with its path, so that every fault says where it is.

use serde_json::{Map, Value};
use turnkeep_store::registry::{JsonFault, parse_json};

pub use turnkeep_store::registry::canonical;

use crate::fault::{Code, Fault};

/// The maximal nesting; no shape needs more than six levels.
const NESTING_MAX: usize = 32;
/// The maximal number of values. A parsed value takes many times its bytes; the largest bundle has
/// half as many values.
const VALUES_MAX: usize = 200_000;

/// Parses one JSON document, strictly.
pub fn parse(bytes: &[u8]) -> Result<Value, Fault> {
    if let Err(error) = std::str::from_utf8(bytes) {
        return Err(Fault::new(
            Code::TextInvalid,
            "",
            format!("the body is not UTF-8: {error}"),
        ));
    }
    // Counted before parsing, so that a hostile document never becomes memory.
    if count_values_at_most(bytes) > VALUES_MAX {
        return Err(Fault::new(
            Code::JsonInvalid,
            "",
            "the document holds more than 200000 values",
        ));
    }
    let invalid = |fault: JsonFault| Fault::new(Code::JsonInvalid, "", fault.to_string());
    let value = parse_json(bytes, NESTING_MAX).map_err(invalid)?;
    match find_nul(&value) {
        Some(steps) => Err(Fault::new(
            Code::TextInvalid,
            join_path(&steps),
            "holds the character NUL",
        )),
        None => Ok(value),
    }
}

/// One step of a path into a value.
enum PathStep<'a> {
    Key(&'a str),
    Item(usize),
}

/// The path to the first value with a NUL character, the last step first. For a key with NUL it is
/// the path of its object. Steps are only collected on the way back, so a document without NUL
/// costs no memory.
fn find_nul(value: &Value) -> Option<Vec<PathStep<'_>>> {
    let behind = |step, value| {
        let mut steps = find_nul(value)?;
        steps.push(step);
        Some(steps)
    };
    match value {
        Value::String(text) => text.contains('\0').then(Vec::new),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| behind(PathStep::Item(at), item)),
        Value::Object(fields) if fields.keys().any(|key| key.contains('\0')) => Some(Vec::new()),
        Value::Object(fields) => fields
            .iter()
            .find_map(|(key, value)| behind(PathStep::Key(key), value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn join_path(steps: &[PathStep<'_>]) -> String {
    steps
        .iter()
        .rev()
        .fold(String::new(), |path, step| match step {
            PathStep::Key(key) if path.is_empty() => (*key).to_owned(),
            PathStep::Key(key) => format!("{path}.{key}"),
            PathStep::Item(at) => format!("{path}[{at}]"),
        })
}

/// An upper bound of the number of values: one, plus one for each comma and opening bracket. It is
/// computed before parsing, which would already allocate them.
fn count_values_at_most(bytes: &[u8]) -> usize {
    let (mut values, mut in_text, mut escaped) = (1, false, false);
    for byte in bytes {
        match (in_text, byte) {
            // A quote behind a backslash does not end the string.
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b',' | b'[' | b'{') => values += 1,
            _ => {}
        }
    }
    values
}

/// A value and its path.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    /// The value.
    pub value: &'a Value,
    /// The path, such as `operator.input_text`; empty for the whole document.
    pub path: String,
    /// The code of faults about its shape.
    pub code: Code,
}

impl<'a> Node<'a> {
    /// The whole document. Faults of its shape get `code`.
    pub fn root(value: &'a Value, code: Code) -> Self {
        Self {
            value,
            path: String::new(),
            code,
        }
    }

    /// A fault about this value.
    pub fn fault(&self, message: impl Into<std::borrow::Cow<'static, str>>) -> Fault {
        Fault::new(self.code, self.path.clone(), message)
    }

    fn field_path(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// The fields of an object.
    pub fn fields(&self) -> Result<&'a Map<String, Value>, Fault> {
        self.value
            .as_object()
            .ok_or_else(|| self.fault("must be an object"))
    }

    /// A required field. Null counts as present.
    pub fn field(&self, key: &str) -> Result<Node<'a>, Fault> {
        let missing = || Fault::new(self.code, self.field_path(key), "is missing");
        let value = self.fields()?.get(key).ok_or_else(missing)?;
        Ok(Node {
            value,
            path: self.field_path(key),
            code: self.code,
        })
    }

    /// An optional field. Null counts as missing.
    pub fn optional(&self, key: &str) -> Result<Option<Node<'a>>, Fault> {
        let value = self.fields()?.get(key).filter(|value| !value.is_null());
        Ok(value.map(|value| Node {
            value,
            path: self.field_path(key),
            code: self.code,
        }))
    }

    /// Reads an optional field, if it is present.
    pub fn read_optional<T>(
        &self,
        key: &str,
        read: impl FnOnce(Node<'a>) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        self.optional(key)?.map(read).transpose()
    }

    /// The text of an optional field.
    pub fn optional_text(&self, key: &str) -> Result<Option<&'a str>, Fault> {
        self.read_optional(key, |node| node.text())
    }

    /// The items of an optional list. A missing list is empty.
    pub fn optional_items(&self, key: &str) -> Result<Vec<Node<'a>>, Fault> {
        let items = self.read_optional(key, |node| node.items())?;
        Ok(items.unwrap_or_default())
    }

    /// The items of a list.
    pub fn items(&self) -> Result<Vec<Node<'a>>, Fault> {
        let list = self
            .value
            .as_array()
            .ok_or_else(|| self.fault("must be a list"))?;
        let item = |(index, value)| Node {
            value,
            path: format!("{}[{index}]", self.path),
            code: self.code,
        };
        Ok(list.iter().enumerate().map(item).collect())
    }

    /// The text of a string.
    pub fn text(&self) -> Result<&'a str, Fault> {
        self.value
            .as_str()
            .ok_or_else(|| self.fault("must be a string"))
    }

    /// The value of a boolean.
    pub fn boolean(&self) -> Result<bool, Fault> {
        self.value
            .as_bool()
            .ok_or_else(|| self.fault("must be true or false"))
    }

    /// A whole number from 0 on, in any notation: 10.0 and 1e1 are 10.
    pub fn count(&self) -> Result<u64, Fault> {
        let count = self
            .value
            .as_u64()
            .or_else(|| self.value.as_f64().and_then(exact_integer));
        count.ok_or_else(|| self.fault("must be a whole number"))
    }

    /// The path of the first field that is not in the list.
    pub fn unknown_field(&self, known: &[&str]) -> Result<Option<String>, Fault> {
        let unknown = self
            .fields()?
            .keys()
            .find(|key| !known.contains(&key.as_str()));
        Ok(unknown.map(|key| self.field_path(key)))
    }

    /// Rejects a field that is not in the list, so that a misspelt one is not silently ignored.
    pub fn reject_unknown_fields(&self, known: &[&str]) -> Result<(), Fault> {
        match self.unknown_field(known)? {
            Some(path) => {
                let message = format!("is not one of {}", known.join(", "));
                Err(Fault::new(Code::UnknownField, path, message))
            }
            None => Ok(()),
        }
    }
}

/// The number as an integer, if it is not negative, has no fraction and is exact as a double.
fn exact_integer(number: f64) -> Option<u64> {
    const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;
    if number.fract() != 0.0 || !(0.0..EXACT_BELOW).contains(&number) {
        return None;
    }
    format!("{:.0}", number.abs()).parse().ok()
}

/// The BLAKE3 hash of the canonical form.
pub fn fingerprint(value: &Value) -> [u8; 32] {
    *blake3::hash(canonical(value).as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_is_told_by_its_place_and_paths_are_made_for_nothing_else() {
        for (text, path) in [
            (r#"{"a":{"b":["x","\u0000"]}}"#, "a.b[1]"),
            (r#"["\u0000"]"#, "[0]"),
            (r#"{"a":{"\u0000":1}}"#, "a"),
            (r#""\u0000""#, ""),
        ] {
            let fault = parse(text.as_bytes()).unwrap_err();
            assert_eq!(
                (fault.code, fault.path.as_str()),
                (Code::TextInvalid, path),
                "{text}"
            );
        }
        // With a path for each item this would take a hundred gigabytes.
        let long = format!(
            r#"{{"{}":[{}0]}}"#,
            "k".repeat(1 << 20),
            "0,".repeat(100_000)
        );
        assert!(parse(long.as_bytes()).is_ok());
    }

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
            assert_eq!(
                parse(bytes).unwrap_err().code,
                code,
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
        let many = [&b"["[..], &b"0,".repeat(VALUES_MAX), b"0]"].concat();
        assert_eq!(parse(&many).unwrap_err().code, Code::JsonInvalid);
        let one_text = [&b"\"\\\""[..], &b"[,{".repeat(VALUES_MAX), b"\""].concat();
        assert!(parse(&one_text).is_ok());
        let deep = [b"[".repeat(2000), b"]".repeat(2000)].concat();
        assert_eq!(parse(&deep).unwrap_err().code, Code::JsonInvalid);
    }

    #[test]
    fn a_number_without_a_fraction_is_whole_however_it_is_written() {
        for (text, expect) in [
            ("10", Some(10)),
            ("10.0", Some(10)),
            ("1e1", Some(10)),
            ("0.0", Some(0)),
            ("-0.0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("10.5", None),
            ("-1", None),
            ("-1.0", None),
            ("1e300", None),
            ("9007199254740992.0", None),
            ("\"10\"", None),
        ] {
            let value = parse(text.as_bytes()).unwrap();
            assert_eq!(
                Node::root(&value, Code::Shape).count().ok(),
                expect,
                "{text}"
            );
        }
    }

    #[test]
    fn a_complaint_says_where() {
        let value = parse(br#"{"operator":{"input_text":7},"entries":[{}]}"#).unwrap();
        let root = Node::root(&value, Code::EnvelopeInvalid);
        let fault = root
            .field("operator")
            .unwrap()
            .field("input_text")
            .unwrap()
            .text()
            .unwrap_err();
        assert_eq!(
            (fault.code, fault.path.as_str()),
            (Code::EnvelopeInvalid, "operator.input_text")
        );
        let entry = &root.field("entries").unwrap().items().unwrap()[0];
        assert_eq!(entry.field("text").unwrap_err().path, "entries[0].text");
    }
}
