//! A map from numeric tags to values: the payload of the records that Turnkeep itself writes.
//!
//! | value | MessagePack |
//! |---|---|
//! | text, binary, flag, number | str, bin, bool, an unsigned integer |
//! | float | float 64 |
//! | list of texts | an array of str |
//! | map | a map by tag, at most [`DEPTH_MAX`] deep |
//!
//! Encoding writes values in the order in which they were added and leaves missing ones out, so
//! equal facts have equal bytes. Decoding returns `None` for damaged bytes, and never allocates by a
//! declared length alone. A newer writer may add tags, but no other kinds of values.

use std::borrow::Cow;

use bytes::Bytes;

use crate::msgpack::{MsgpackReader, MsgpackWriter, Token};

/// A value. A decoded text or binary borrows from the payload.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum TaggedValue<'a> {
    Text(Cow<'a, str>),
    Number(u64),
    Float(f64),
    Flag(bool),
    Binary(Cow<'a, [u8]>),
    Texts(Vec<Cow<'a, str>>),
    Map(TaggedMap<'a>),
}

/// Values by tag.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaggedMap<'a>(Vec<(u64, TaggedValue<'a>)>);

/// The values of one map. No type of record has more fields.
const FIELDS_MAX: u32 = 64;
/// How deep maps may lie in each other: reading them is recursive.
pub const DEPTH_MAX: u32 = 16;

impl<'a> TaggedMap<'a> {
    /// Adds a value. Callers add tags in ascending order.
    pub fn push(&mut self, tag: u64, value: TaggedValue<'a>) {
        self.0.push((tag, value));
    }

    /// Adds a value. Callers add tags in ascending order.
    #[must_use]
    pub fn with(mut self, tag: u64, value: TaggedValue<'a>) -> Self {
        self.push(tag, value);
        self
    }

    /// Adds a text.
    #[must_use]
    pub fn text(self, tag: u64, text: impl Into<Cow<'a, str>>) -> Self {
        self.with(tag, TaggedValue::Text(text.into()))
    }

    /// Adds a number.
    #[must_use]
    pub fn number(self, tag: u64, number: u64) -> Self {
        self.with(tag, TaggedValue::Number(number))
    }

    /// Adds bytes.
    #[must_use]
    pub fn binary(self, tag: u64, bytes: &'a [u8]) -> Self {
        self.with(tag, TaggedValue::Binary(bytes.into()))
    }

    /// Adds a list of texts.
    #[must_use]
    pub fn texts(self, tag: u64, texts: impl IntoIterator<Item = String>) -> Self {
        let texts = texts.into_iter().map(Cow::Owned).collect();
        self.with(tag, TaggedValue::Texts(texts))
    }

    /// Adds a flag if it is set.
    #[must_use]
    pub fn flag(self, tag: u64, set: bool) -> Self {
        if set {
            self.with(tag, TaggedValue::Flag(true))
        } else {
            self
        }
    }

    /// Adds a text if there is one.
    #[must_use]
    pub fn optional_text(self, tag: u64, text: Option<impl Into<Cow<'a, str>>>) -> Self {
        match text {
            Some(text) => self.text(tag, text),
            None => self,
        }
    }

    /// The value with this tag.
    pub fn find(&self, tag: u64) -> Option<&TaggedValue<'a>> {
        self.0
            .iter()
            .find(|(known, _)| *known == tag)
            .map(|(_, value)| value)
    }

    /// The text with this tag.
    pub fn get_text(&self, tag: u64) -> Option<&str> {
        if let TaggedValue::Text(text) = self.find(tag)? {
            Some(text)
        } else {
            None
        }
    }

    /// The number with this tag.
    pub fn get_number(&self, tag: u64) -> Option<u64> {
        if let TaggedValue::Number(number) = self.find(tag)? {
            Some(*number)
        } else {
            None
        }
    }

    /// Whether the flag with this tag is set.
    pub fn get_flag(&self, tag: u64) -> bool {
        matches!(self.find(tag), Some(TaggedValue::Flag(true)))
    }

    /// The bytes with this tag, if there are exactly `N`.
    pub fn get_binary<const N: usize>(&self, tag: u64) -> Option<[u8; N]> {
        if let TaggedValue::Binary(bytes) = self.find(tag)? {
            bytes.as_ref().try_into().ok()
        } else {
            None
        }
    }

    /// The list with this tag.
    pub fn get_texts(&self, tag: u64) -> Option<&[Cow<'a, str>]> {
        if let TaggedValue::Texts(texts) = self.find(tag)? {
            Some(texts)
        } else {
            None
        }
    }

    /// Encodes the payload.
    pub fn encode(&self) -> Bytes {
        let mut out = MsgpackWriter::with_capacity(256);
        write_map(&mut out, self);
        out.into_bytes().into()
    }

    /// Decodes a payload; `None` if it is damaged.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = MsgpackReader::new(bytes);
        let Token::Map(count) = reader.read_token().ok()? else {
            return None;
        };
        let map = read_map(&mut reader, count, DEPTH_MAX)?;
        // Trailing bytes mean damage.
        reader.unread().is_empty().then_some(map)
    }
}

fn write_map(out: &mut MsgpackWriter, map: &TaggedMap<'_>) {
    out.write_map_header(map.0.len());
    for (tag, value) in &map.0 {
        out.write_uint(*tag);
        write_value(out, value);
    }
}

fn write_value(out: &mut MsgpackWriter, value: &TaggedValue<'_>) {
    match value {
        TaggedValue::Text(text) => out.write_str(text),
        TaggedValue::Number(number) => out.write_uint(*number),
        TaggedValue::Float(number) => out.write_f64(*number),
        TaggedValue::Flag(flag) => out.write_bool(*flag),
        TaggedValue::Binary(bytes) => out.write_bin(bytes),
        TaggedValue::Texts(texts) => {
            out.write_array_header(texts.len());
            for text in texts {
                out.write_str(text);
            }
        }
        TaggedValue::Map(map) => write_map(out, map),
    }
}

/// Reads a map whose header was just read. `depth` is how many maps may still lie in each other.
fn read_map<'a>(reader: &mut MsgpackReader<'a>, count: u32, depth: u32) -> Option<TaggedMap<'a>> {
    if count > FIELDS_MAX || depth == 0 {
        return None;
    }
    // The count is small by now, whatever the header declares.
    let mut values = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let Token::Int(tag) = reader.read_token().ok()? else {
            return None;
        };
        values.push((u64::try_from(tag).ok()?, read_value(reader, depth)?));
    }
    Some(TaggedMap(values))
}

fn read_value<'a>(reader: &mut MsgpackReader<'a>, depth: u32) -> Option<TaggedValue<'a>> {
    // A value of another kind cannot be skipped: the writers of records write no other kinds, so the
    // bytes are damaged.
    Some(match reader.read_token().ok()? {
        Token::Bool(flag) => TaggedValue::Flag(flag),
        Token::Int(number) => TaggedValue::Number(u64::try_from(number).ok()?),
        Token::F64(number) => TaggedValue::Float(number),
        Token::Str(text) => TaggedValue::Text(std::str::from_utf8(text).ok()?.into()),
        Token::Bin(bytes) => TaggedValue::Binary(bytes.into()),
        Token::Array(count) => TaggedValue::Texts(read_texts(reader, count)?),
        Token::Map(count) => TaggedValue::Map(read_map(reader, count, depth - 1)?),
        _ => return None,
    })
}

fn read_texts<'a>(reader: &mut MsgpackReader<'a>, count: u32) -> Option<Vec<Cow<'a, str>>> {
    // Each text takes at least one byte, so this bounds the list by the payload.
    if count as usize > reader.unread().len() {
        return None;
    }
    let mut texts = Vec::new();
    for _ in 0..count {
        let Token::Str(text) = reader.read_token().ok()? else {
            return None;
        };
        texts.push(Cow::Borrowed(std::str::from_utf8(text).ok()?));
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: u32) -> TaggedMap<'static> {
        (1..depth).fold(TaggedMap::default().number(1, 7), |inner, _| {
            TaggedMap::default().with(1, TaggedValue::Map(inner))
        })
    }

    #[test]
    fn every_kind_of_value_reads_back_as_it_was_written() {
        let map = TaggedMap::default()
            .text(1, "text")
            .number(2, u64::MAX)
            .with(3, TaggedValue::Float(-0.5))
            .flag(4, true)
            .flag(5, false)
            .binary(6, b"\xff")
            .texts(7, ["a".to_owned(), String::new()])
            .with(8, TaggedValue::Map(nested(3)));
        let bytes = map.encode();
        assert_eq!(TaggedMap::decode(&bytes), Some(map));
        assert_eq!(bytes[0], 0x87, "a flag that is not set takes no space");
        for cut in 0..bytes.len() {
            assert_eq!(TaggedMap::decode(&bytes[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn maps_lie_in_each_other_up_to_the_limit() {
        let deepest = nested(DEPTH_MAX).encode();
        assert!(TaggedMap::decode(&deepest).is_some());
        assert_eq!(TaggedMap::decode(&nested(DEPTH_MAX + 1).encode()), None);
        let hostile = [0x81, 0x01].repeat(1 << 20);
        assert_eq!(TaggedMap::decode(&hostile), None);
    }

    #[test]
    fn a_declared_length_beyond_the_bytes_is_rejected() {
        for hex in [
            "df ffffffff",
            "de 0041",
            "81 01 dd ffffffff a0",
            "81 01 df ffffffff 01 01",
            "81 01 db ffffffff 61",
            "81 01 c6 ffffffff 61",
        ] {
            let bytes = hex::decode(hex.replace(' ', "")).unwrap();
            assert_eq!(TaggedMap::decode(&bytes), None, "{hex}");
        }
    }

    #[test]
    fn other_kinds_of_values_are_rejected() {
        for hex in [
            "80 80",
            "81 01 c0",
            "81 01 ff",
            "81 a1 61 01",
            "81 01 91 01",
            "01",
        ] {
            let bytes = hex::decode(hex.replace(' ', "")).unwrap();
            assert_eq!(TaggedMap::decode(&bytes), None, "{hex}");
        }
    }
}
