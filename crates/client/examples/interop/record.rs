//! `interop.Record` as msgpack: `{1: text, 2: count, 3: change, 4: bytes}`, empty fields left out.
//!
//! Unknown tags are kept as bytes and are written again among the others.

use std::collections::BTreeMap;
use std::error::Error;

use serde_json::{Value, json};
use turnkeep_types::msgpack::{MsgpackReader, MsgpackWriter, Token};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// A decoded record.
#[derive(Debug, Default)]
pub(crate) struct Record {
    text: String,
    count: u64,
    change: i64,
    bytes: Vec<u8>,
    unknown: BTreeMap<u64, Vec<u8>>,
}

impl Record {
    /// A record as the case file has it.
    pub(crate) fn from_json(value: &Value) -> Fallible<Self> {
        let text = |key: &str| {
            value[key]
                .as_str()
                .ok_or_else(|| format!("a record has no {key}"))
        };
        Ok(Self {
            text: text("text")?.to_owned(),
            count: text("count")?.parse()?,
            change: text("change")?.parse()?,
            bytes: hex::decode(text("bytes")?)?,
            unknown: BTreeMap::new(),
        })
    }

    /// The record as the driver compares it.
    pub(crate) fn to_json(&self) -> Value {
        let bytes = hex::encode(&self.bytes);
        json!({"text": self.text, "count": self.count.to_string(), "change": self.change.to_string(), "bytes": bytes})
    }

    /// Reads a whole payload.
    pub(crate) fn decode(payload: &[u8]) -> Fallible<Self> {
        let mut reader = MsgpackReader::new(payload);
        let Token::Map(count) = reader.read_token()? else {
            return Err("a record is a map".into());
        };
        let mut record = Self::default();
        for _ in 0..count {
            let Token::Int(tag) = reader.read_token()? else {
                return Err("a tag is a number".into());
            };
            let tag = u64::try_from(tag)?;
            let value = reader.skip_value()?;
            match (tag, MsgpackReader::new(value).read_token()?) {
                (1, Token::Str(text)) => record.text = String::from_utf8(text.to_vec())?,
                (2, Token::Int(count)) => record.count = u64::try_from(count)?,
                (3, Token::Int(change)) => record.change = i64::try_from(change)?,
                (4, Token::Bin(bytes)) => record.bytes = bytes.to_vec(),
                (1..=4, _) => return Err("a field has another type than the record's".into()),
                _ => drop(record.unknown.insert(tag, value.to_vec())),
            }
        }
        if reader.unread().is_empty() {
            Ok(record)
        } else {
            Err("bytes follow the record".into())
        }
    }

    /// Writes it, tags ascending.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut fields = self.unknown.clone();
        if !self.text.is_empty() {
            fields.insert(1, written(|out| out.write_str(&self.text)));
        }
        if self.count != 0 {
            fields.insert(2, written(|out| out.write_uint(self.count)));
        }
        if self.change != 0 {
            fields.insert(3, written(|out| out.write_int(self.change.into())));
        }
        if !self.bytes.is_empty() {
            fields.insert(4, written(|out| out.write_bin(&self.bytes)));
        }
        let mut payload = written(|out| out.write_map_header(fields.len()));
        for (tag, field) in fields {
            payload.extend(written(|out| out.write_uint(tag)));
            payload.extend(field);
        }
        payload
    }
}

/// The bytes that something writes.
fn written(write: impl FnOnce(&mut MsgpackWriter)) -> Vec<u8> {
    let mut out = MsgpackWriter::default();
    write(&mut out);
    out.into_bytes()
}
