//! The payload of a record: a msgpack map from numeric tags to texts, numbers, flags, bytes and
//! lists of texts.
//!
//! Encoding writes tags in ascending order and leaves missing values out, so equal facts have equal
//! bytes. Decoding returns `None` for damaged bytes, and never allocates by a declared length
//! alone.

use std::borrow::Cow;

use bytes::Bytes;
use rmp::decode::{read_array_len, read_map_len, read_marker};
use rmp::{Marker, encode};

/// A value of a payload. A decoded text or binary borrows from the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Text(Cow<'a, str>),
    Number(u64),
    Flag(bool),
    Binary(Cow<'a, [u8]>),
    Texts(Vec<Cow<'a, str>>),
}

/// The values of a payload by tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields<'a>(Vec<(u64, Field<'a>)>);

/// The limit of a list; a bundle has fewer items.
const LIST_MAX: u32 = 65_536;
const FIELDS_MAX: u32 = 64;

impl<'a> Fields<'a> {
    /// Adds a value. Callers add tags in ascending order.
    pub(super) fn with(mut self, tag: u64, field: Field<'a>) -> Self {
        self.0.push((tag, field));
        self
    }

    pub(super) fn text(self, tag: u64, text: impl Into<Cow<'a, str>>) -> Self {
        self.with(tag, Field::Text(text.into()))
    }

    pub(super) fn number(self, tag: u64, number: u64) -> Self {
        self.with(tag, Field::Number(number))
    }

    pub(super) fn binary(self, tag: u64, bytes: &'a [u8]) -> Self {
        self.with(tag, Field::Binary(bytes.into()))
    }

    pub(super) fn texts(self, tag: u64, texts: impl IntoIterator<Item = String>) -> Self {
        self.with(
            tag,
            Field::Texts(texts.into_iter().map(Cow::Owned).collect()),
        )
    }

    /// Adds a flag if it is set.
    pub(super) fn flag(self, tag: u64, set: bool) -> Self {
        if set {
            self.with(tag, Field::Flag(true))
        } else {
            self
        }
    }

    /// Adds a text if there is one.
    pub(super) fn optional_text(self, tag: u64, text: Option<impl Into<Cow<'a, str>>>) -> Self {
        match text {
            Some(text) => self.text(tag, text),
            None => self,
        }
    }

    fn find(&self, tag: u64) -> Option<&Field<'a>> {
        self.0
            .iter()
            .find(|(known, _)| *known == tag)
            .map(|(_, field)| field)
    }

    pub(super) fn get_text(&self, tag: u64) -> Option<&str> {
        if let Field::Text(text) = self.find(tag)? {
            Some(text)
        } else {
            None
        }
    }

    pub(super) fn get_number(&self, tag: u64) -> Option<u64> {
        if let Field::Number(number) = self.find(tag)? {
            Some(*number)
        } else {
            None
        }
    }

    pub(super) fn get_flag(&self, tag: u64) -> bool {
        matches!(self.find(tag), Some(Field::Flag(true)))
    }

    pub(super) fn get_binary<const N: usize>(&self, tag: u64) -> Option<[u8; N]> {
        if let Field::Binary(bytes) = self.find(tag)? {
            bytes.as_ref().try_into().ok()
        } else {
            None
        }
    }

    pub(super) fn get_texts(&self, tag: u64) -> Option<&[Cow<'a, str>]> {
        if let Field::Texts(texts) = self.find(tag)? {
            Some(texts)
        } else {
            None
        }
    }

    /// Encodes the payload.
    pub(super) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(256);
        self.write(&mut out)
            .unwrap_or_else(|error| unreachable!("memory takes every byte: {error}"));
        out.into()
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), encode::ValueWriteError> {
        encode::write_map_len(out, u32::try_from(self.0.len()).unwrap_or(u32::MAX))?;
        for (tag, field) in &self.0 {
            encode::write_uint(out, *tag)?;
            match field {
                Field::Text(text) => encode::write_str(out, text)?,
                Field::Number(number) => drop(encode::write_uint(out, *number)?),
                Field::Flag(flag) => {
                    encode::write_bool(out, *flag)
                        .map_err(encode::ValueWriteError::InvalidMarkerWrite)?;
                }
                Field::Binary(bytes) => encode::write_bin(out, bytes)?,
                Field::Texts(texts) => {
                    encode::write_array_len(out, u32::try_from(texts.len()).unwrap_or(u32::MAX))?;
                    texts
                        .iter()
                        .try_for_each(|text| encode::write_str(out, text))?;
                }
            }
        }
        Ok(())
    }

    /// Decodes a payload; `None` if it is damaged.
    pub(super) fn decode(mut bytes: &'a [u8]) -> Option<Self> {
        let count = read_map_len(&mut bytes)
            .ok()
            .filter(|&count| count <= FIELDS_MAX)?;
        let mut fields = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let tag = rmp::decode::read_int(&mut bytes).ok()?;
            fields.push((tag, read_field(&mut bytes)?));
        }
        // Trailing bytes mean damage.
        bytes.is_empty().then_some(Self(fields))
    }
}

fn read_field<'a>(bytes: &mut &'a [u8]) -> Option<Field<'a>> {
    let mut rest = *bytes;
    Some(match read_marker(&mut rest).ok()? {
        Marker::True | Marker::False => Field::Flag(rmp::decode::read_bool(bytes).ok()?),
        Marker::FixPos(_) | Marker::U8 | Marker::U16 | Marker::U32 | Marker::U64 => {
            Field::Number(rmp::decode::read_int(bytes).ok()?)
        }
        Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
            Field::Text(read_text(bytes)?.into())
        }
        Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => {
            let len = rmp::decode::read_bin_len(bytes).ok()?;
            Field::Binary(split_bytes(bytes, len)?.into())
        }
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
            let count = read_array_len(bytes)
                .ok()
                .filter(|&count| count <= LIST_MAX)?;
            Field::Texts(
                (0..count)
                    .map(|_| read_text(bytes).map(Cow::Borrowed))
                    .collect::<Option<_>>()?,
            )
        }
        _ => return None,
    })
}

fn read_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let len = rmp::decode::read_str_len(bytes).ok()?;
    std::str::from_utf8(split_bytes(bytes, len)?).ok()
}

fn split_bytes<'a>(bytes: &mut &'a [u8], len: u32) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(len as usize)?;
    *bytes = rest;
    Some(taken)
}
