//! The payload of a record: a msgpack map from numeric tags to texts, numbers, flags, bytes and
//! lists of texts.
//!
//! Encoding writes tags in ascending order and leaves missing values out, so equal facts have equal
//! bytes. Decoding returns `None` for damaged bytes, and never allocates by a declared length
//! alone.

use std::borrow::Cow;

use bytes::Bytes;
use turnkeep_types::msgpack::{MsgpackReader, MsgpackWriter, Token};

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
        let mut out = MsgpackWriter::with_capacity(256);
        out.write_map_header(self.0.len());
        for (tag, field) in &self.0 {
            out.write_uint(*tag);
            write_field(&mut out, field);
        }
        out.into_bytes().into()
    }

    /// Decodes a payload; `None` if it is damaged.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = MsgpackReader::new(bytes);
        let Token::Map(count) = reader.read_token().ok()? else {
            return None;
        };
        if count > FIELDS_MAX {
            return None;
        }
        let mut fields = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let Token::Int(tag) = reader.read_token().ok()? else {
                return None;
            };
            fields.push((u64::try_from(tag).ok()?, read_field(&mut reader)?));
        }
        // Trailing bytes mean damage.
        reader.unread().is_empty().then_some(Self(fields))
    }
}

fn write_field(out: &mut MsgpackWriter, field: &Field<'_>) {
    match field {
        Field::Text(text) => out.write_str(text),
        Field::Number(number) => out.write_uint(*number),
        Field::Flag(flag) => out.write_bool(*flag),
        Field::Binary(bytes) => out.write_bin(bytes),
        Field::Texts(texts) => {
            out.write_array_header(texts.len());
            for text in texts {
                out.write_str(text);
            }
        }
    }
}

fn read_field<'a>(reader: &mut MsgpackReader<'a>) -> Option<Field<'a>> {
    Some(match reader.read_token().ok()? {
        Token::Bool(flag) => Field::Flag(flag),
        Token::Int(number) => Field::Number(u64::try_from(number).ok()?),
        Token::Str(text) => Field::Text(std::str::from_utf8(text).ok()?.into()),
        Token::Bin(bytes) => Field::Binary(bytes.into()),
        Token::Array(count) if count <= LIST_MAX => Field::Texts(read_texts(reader, count)?),
        _ => return None,
    })
}

fn read_texts<'a>(reader: &mut MsgpackReader<'a>, count: u32) -> Option<Vec<Cow<'a, str>>> {
    let mut texts = Vec::new();
    for _ in 0..count {
        let Token::Str(text) = reader.read_token().ok()? else {
            return None;
        };
        texts.push(Cow::Borrowed(std::str::from_utf8(text).ok()?));
    }
    Some(texts)
}
