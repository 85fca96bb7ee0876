//! `interop.Record` as msgpack: `{1: text, 2: count, 3: change, 4: bytes}`, empty fields left out.
//!
//! Tags that are none of these are kept as the bytes that they came in and go out among the others.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;

use rmp::Marker;
use rmp::decode::{read_bin_len, read_int, read_map_len, read_str_len};
use rmp::encode::buffer::ByteBuf;
use rmp::encode::{ValueWriteError, write_bin, write_map_len, write_sint, write_str, write_uint};
use serde_json::{Value, json};

/// The deepest nesting that is read.
const NESTING_MAX: usize = 128;

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
        let mut rest = payload;
        let mut record = Self::default();
        for _ in 0..read_map_len(&mut rest)? {
            match read_int(&mut rest)? {
                1 => {
                    let count = read_str_len(&mut rest)?;
                    record.text = String::from_utf8(take(&mut rest, count)?.to_vec())?;
                }
                2 => record.count = read_int(&mut rest)?,
                3 => record.change = read_int(&mut rest)?,
                4 => {
                    let count = read_bin_len(&mut rest)?;
                    record.bytes = take(&mut rest, count)?.to_vec();
                }
                tag => drop(record.unknown.insert(tag, value(&mut rest)?.to_vec())),
            }
        }
        if rest.is_empty() {
            Ok(record)
        } else {
            Err("bytes follow the record".into())
        }
    }

    /// Writes it, tags ascending.
    pub(crate) fn encode(&self) -> Fallible<Vec<u8>> {
        let mut fields = self.unknown.clone();
        if !self.text.is_empty() {
            fields.insert(1, written(|out| write_str(out, &self.text))?);
        }
        if self.count != 0 {
            fields.insert(2, written(|out| write_uint(out, self.count))?);
        }
        if self.change != 0 {
            fields.insert(3, written(|out| write_sint(out, self.change))?);
        }
        if !self.bytes.is_empty() {
            fields.insert(4, written(|out| write_bin(out, &self.bytes))?);
        }
        let mut out = ByteBuf::new();
        write_map_len(&mut out, u32::try_from(fields.len())?)?;
        for (tag, field) in fields {
            write_uint(&mut out, tag)?;
            out.as_mut_vec().extend_from_slice(&field);
        }
        Ok(out.into_vec())
    }
}

/// The bytes that something writes.
fn written<T>(
    write: impl FnOnce(&mut ByteBuf) -> Result<T, ValueWriteError<Infallible>>,
) -> Fallible<Vec<u8>> {
    let mut out = ByteBuf::new();
    write(&mut out)?;
    Ok(out.into_vec())
}

fn take<'a>(rest: &mut &'a [u8], count: u32) -> Fallible<&'a [u8]> {
    let (taken, after) = rest
        .split_at_checked(count as usize)
        .ok_or("the record is cut off")?;
    *rest = after;
    Ok(taken)
}

/// The bytes of the next value.
fn value<'a>(rest: &mut &'a [u8]) -> Fallible<&'a [u8]> {
    let whole = *rest;
    skip(rest, 0)?;
    Ok(&whole[..whole.len() - rest.len()])
}

fn skip(rest: &mut &[u8], depth: usize) -> Fallible<()> {
    if depth > NESTING_MAX {
        return Err("the record nests too deep".into());
    }
    let marker = Marker::from_u8(take(rest, 1)?[0]);
    let (bytes, values) = extent(marker, rest)?;
    take(rest, bytes)?;
    (0..values).try_for_each(|_| skip(rest, depth + 1))
}

/// How many bytes and then how many values follow a marker, whose length is read.
fn extent(marker: Marker, rest: &mut &[u8]) -> Fallible<(u32, u64)> {
    use Marker as M;
    Ok(match marker {
        M::FixPos(_) | M::FixNeg(_) | M::Null | M::True | M::False => (0, 0),
        M::U8 | M::I8 => (1, 0),
        M::U16 | M::I16 | M::FixExt1 => (2, 0),
        M::FixExt2 => (3, 0),
        M::U32 | M::I32 | M::F32 => (4, 0),
        M::FixExt4 => (5, 0),
        M::U64 | M::I64 | M::F64 => (8, 0),
        M::FixExt8 => (9, 0),
        M::FixExt16 => (17, 0),
        M::FixStr(count) => (count.into(), 0),
        M::Str8 | M::Bin8 => (length(rest, 1)?, 0),
        M::Str16 | M::Bin16 => (length(rest, 2)?, 0),
        M::Str32 | M::Bin32 => (length(rest, 4)?, 0),
        M::Ext8 => (length(rest, 1)?.saturating_add(1), 0),
        M::Ext16 => (length(rest, 2)?.saturating_add(1), 0),
        M::Ext32 => (length(rest, 4)?.saturating_add(1), 0),
        M::FixArray(count) => (0, count.into()),
        M::Array16 => (0, length(rest, 2)?.into()),
        M::Array32 => (0, length(rest, 4)?.into()),
        M::FixMap(count) => (0, 2 * u64::from(count)),
        M::Map16 => (0, 2 * u64::from(length(rest, 2)?)),
        M::Map32 => (0, 2 * u64::from(length(rest, 4)?)),
        M::Reserved => return Err("0xc1 is no value".into()),
    })
}

/// A big-endian length of so many bytes.
fn length(rest: &mut &[u8], bytes: u32) -> Fallible<u32> {
    Ok(take(rest, bytes)?
        .iter()
        .fold(0, |length, byte| length << 8 | u32::from(*byte)))
}
