//! Shapes: how the values of a field are stored. A table names one for each field.
//!
//! | shape | stored as | when there is nothing to say |
//! |---|---|---|
//! | [`Text`], [`Markdown`] | the text form of the value | always stored |
//! | [`LongText`] | a text, or at the next tag the hash of the blob that has it | always stored |
//! | [`U64`], [`U32`], [`UnixMs`], [`DurationMs`], [`F64`] | a number | always stored |
//! | [`Bool`] | a flag | always stored |
//! | [`Flag`] | a flag | false is left out |
//! | [`Binary`] | bytes | always stored |
//! | [`List`] | a list of the text forms | the empty list is left out |
//! | [`Map`] | a map by tag | always stored |
//! | [`Flat`] | its fields, in the same map from this tag on | its fields decide |
//! | [`Optional`] | as the shape inside | left out |

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

use bytes::Bytes;

use super::{FieldProblem, INLINE_BYTES_MAX, Record, RecordReader, RecordWriter, ShapeError};
use crate::tagged_map::TaggedValue;
use crate::{BlobHash, Timestamp};

/// How values of type `T` are stored.
pub trait Shape<T> {
    /// Adds the value.
    fn write<'a>(value: &'a T, tag: u64, out: &mut RecordWriter<'a>);

    /// Reads the value.
    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<T, ShapeError>;

    /// Whether the record has a value.
    fn is_present(tag: u64, from: &RecordReader<'_, '_>) -> bool {
        from.find(tag).is_some()
    }
}

/// The text form of a value: a text, an id, a hash or a word of a closed set.
#[derive(Debug)]
pub struct Text;

impl<T: Display + FromStr> Shape<T> for Text {
    fn write<'a>(value: &'a T, tag: u64, out: &mut RecordWriter<'a>) {
        out.push(tag, TaggedValue::Text(value.to_string().into()));
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<T, ShapeError> {
        match from.require(tag)? {
            TaggedValue::Text(text) => parse_text(text),
            _ => Err(FieldProblem::Malformed.into()),
        }
    }
}

fn parse_text<T: FromStr>(text: &str) -> Result<T, ShapeError> {
    text.parse().map_err(|_| FieldProblem::Malformed.into())
}

/// A text in Markdown.
#[derive(Debug)]
pub struct Markdown;

impl Shape<String> for Markdown {
    fn write<'a>(value: &'a String, tag: u64, out: &mut RecordWriter<'a>) {
        out.push(tag, TaggedValue::Text(Cow::Borrowed(value)));
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<String, ShapeError> {
        <Text as Shape<String>>::read(tag, from)
    }
}

/// A text that may be long. It takes two tags: the first has the text, or the second the hash of
/// its blob.
#[derive(Debug)]
pub struct LongText;

impl Shape<String> for LongText {
    fn write<'a>(value: &'a String, tag: u64, out: &mut RecordWriter<'a>) {
        write_long_text(value, tag, out);
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<String, ShapeError> {
        Ok(read_long_text(tag, from)?)
    }

    fn is_present(tag: u64, from: &RecordReader<'_, '_>) -> bool {
        from.find(tag).is_some() || from.find(tag + 1).is_some()
    }
}

/// Adds a text, or keeps it as a blob and adds its hash at the next tag.
pub fn write_long_text<'a>(text: impl Into<Cow<'a, str>>, tag: u64, out: &mut RecordWriter<'a>) {
    let text = text.into();
    if text.len() <= INLINE_BYTES_MAX {
        out.push(tag, TaggedValue::Text(text));
    } else {
        let hash = out.keep_blob(&text);
        out.push(tag + 1, TaggedValue::Text(hash.to_string().into()));
    }
}

/// Reads a text, or the blob whose hash is at the next tag.
pub fn read_long_text(tag: u64, from: &RecordReader<'_, '_>) -> Result<String, FieldProblem> {
    // The text wins over the hash. No writer stores both.
    let Some(inline) = from.find(tag) else {
        return read_blob_text(tag + 1, from);
    };
    match inline {
        TaggedValue::Text(text) => Ok(text.clone().into_owned()),
        _ => Err(FieldProblem::Malformed),
    }
}

fn read_blob_text(tag: u64, from: &RecordReader<'_, '_>) -> Result<String, FieldProblem> {
    let TaggedValue::Text(hash) = from.require(tag)? else {
        return Err(FieldProblem::Malformed);
    };
    let hash: BlobHash = hash.parse().map_err(|_| FieldProblem::Malformed)?;
    let blob = (from.find_blob)(&hash).ok_or(FieldProblem::MissingBlob(hash))?;
    String::from_utf8(blob.into()).map_err(|_| FieldProblem::Malformed)
}

/// A number of up to 64 bits.
#[derive(Debug)]
pub struct U64;

impl Shape<u64> for U64 {
    fn write<'a>(value: &'a u64, tag: u64, out: &mut RecordWriter<'a>) {
        out.push(tag, TaggedValue::Number(*value));
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<u64, ShapeError> {
        match from.require(tag)? {
            TaggedValue::Number(number) => Ok(*number),
            _ => Err(FieldProblem::Malformed.into()),
        }
    }
}

/// A number of up to 32 bits.
#[derive(Debug)]
pub struct U32;

impl Shape<u32> for U32 {
    fn write<'a>(value: &'a u32, tag: u64, out: &mut RecordWriter<'a>) {
        out.push(tag, TaggedValue::Number((*value).into()));
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<u32, ShapeError> {
        let number = U64::read(tag, from)?;
        u32::try_from(number).map_err(|_| FieldProblem::Malformed.into())
    }
}

/// A point in time, in milliseconds since the Unix epoch.
#[derive(Debug)]
pub struct UnixMs;

impl Shape<Timestamp> for UnixMs {
    fn write<'a>(value: &'a Timestamp, tag: u64, out: &mut RecordWriter<'a>) {
        U64::write(&value.0, tag, out);
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<Timestamp, ShapeError> {
        U64::read(tag, from).map(Timestamp)
    }
}

/// A length of time in milliseconds.
#[derive(Debug)]
pub struct DurationMs;

impl Shape<u64> for DurationMs {
    fn write<'a>(value: &'a u64, tag: u64, out: &mut RecordWriter<'a>) {
        U64::write(value, tag, out);
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<u64, ShapeError> {
        U64::read(tag, from)
    }
}

/// A number with a fraction.
#[derive(Debug)]
pub struct F64;

impl Shape<f64> for F64 {
    fn write<'a>(value: &'a f64, tag: u64, out: &mut RecordWriter<'a>) {
        out.push(tag, TaggedValue::Float(*value));
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<f64, ShapeError> {
        match from.require(tag)? {
            TaggedValue::Float(number) => Ok(*number),
            _ => Err(FieldProblem::Malformed.into()),
        }
    }
}

/// A flag of which "no" and "not said" differ.
#[derive(Debug)]
pub struct Bool;

impl Shape<bool> for Bool {
    fn write<'a>(value: &'a bool, tag: u64, out: &mut RecordWriter<'a>) {
        out.push(tag, TaggedValue::Flag(*value));
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<bool, ShapeError> {
        match from.require(tag)? {
            TaggedValue::Flag(flag) => Ok(*flag),
            _ => Err(FieldProblem::Malformed.into()),
        }
    }
}

/// A flag that is left out unless it is set.
#[derive(Debug)]
pub struct Flag;

impl Shape<bool> for Flag {
    fn write<'a>(value: &'a bool, tag: u64, out: &mut RecordWriter<'a>) {
        if *value {
            Bool::write(value, tag, out);
        }
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<bool, ShapeError> {
        // A value that is no flag is damage, and not the same as a missing one.
        if from.find(tag).is_none() {
            return Ok(false);
        }
        Bool::read(tag, from)
    }
}

/// Bytes.
#[derive(Debug)]
pub struct Binary;

impl Shape<Bytes> for Binary {
    fn write<'a>(value: &'a Bytes, tag: u64, out: &mut RecordWriter<'a>) {
        out.push(tag, TaggedValue::Binary(Cow::Borrowed(value)));
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<Bytes, ShapeError> {
        match from.require(tag)? {
            TaggedValue::Binary(bytes) => Ok(Bytes::copy_from_slice(bytes)),
            _ => Err(FieldProblem::Malformed.into()),
        }
    }
}

/// A list or set of values that have a text form.
#[derive(Debug)]
pub struct List;

impl<T: Display + FromStr> Shape<Vec<T>> for List {
    fn write<'a>(value: &'a Vec<T>, tag: u64, out: &mut RecordWriter<'a>) {
        write_list(value.iter(), tag, out);
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<Vec<T>, ShapeError> {
        read_list(tag, from)
    }
}

impl<T: Display + FromStr + Ord> Shape<BTreeSet<T>> for List {
    fn write<'a>(value: &'a BTreeSet<T>, tag: u64, out: &mut RecordWriter<'a>) {
        write_list(value.iter(), tag, out);
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<BTreeSet<T>, ShapeError> {
        read_list(tag, from)
    }
}

fn write_list<'a, T: Display + 'a>(
    values: impl ExactSizeIterator<Item = &'a T>,
    tag: u64,
    out: &mut RecordWriter<'a>,
) {
    // A missing list reads as an empty one, so an empty one needs no bytes.
    if values.len() > 0 {
        let texts = values.map(|value| value.to_string().into()).collect();
        out.push(tag, TaggedValue::Texts(texts));
    }
}

fn read_list<T: FromStr, C: FromIterator<T> + Default>(
    tag: u64,
    from: &RecordReader<'_, '_>,
) -> Result<C, ShapeError> {
    match from.find(tag) {
        None => Ok(C::default()),
        Some(TaggedValue::Texts(texts)) => texts.iter().map(|text| parse_text(text)).collect(),
        Some(_) => Err(FieldProblem::Malformed.into()),
    }
}

/// A record inside the record.
#[derive(Debug)]
pub struct Map<R>(PhantomData<R>);

impl<R: Record> Shape<R> for Map<R> {
    fn write<'a>(value: &'a R, tag: u64, out: &mut RecordWriter<'a>) {
        out.push_record(tag, value);
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<R, ShapeError> {
        from.read_record(tag)
    }
}

impl<R: Record> Shape<Box<R>> for Map<R> {
    fn write<'a>(value: &'a Box<R>, tag: u64, out: &mut RecordWriter<'a>) {
        out.push_record(tag, &**value);
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<Box<R>, ShapeError> {
        from.read_record(tag).map(Box::new)
    }
}

/// The fields of another struct or enum, in the same map. The tag in the table is its first one.
#[derive(Debug)]
pub struct Flat<R>(PhantomData<R>);

impl<R: Record> Shape<R> for Flat<R> {
    fn write<'a>(value: &'a R, _tag: u64, out: &mut RecordWriter<'a>) {
        value.write_fields(out);
    }

    fn read(_tag: u64, from: &RecordReader<'_, '_>) -> Result<R, ShapeError> {
        Ok(R::read_fields(from)?)
    }
}

/// A value that may be missing.
#[derive(Debug)]
pub struct Optional<S>(PhantomData<S>);

impl<T, S: Shape<T>> Shape<Option<T>> for Optional<S> {
    fn write<'a>(value: &'a Option<T>, tag: u64, out: &mut RecordWriter<'a>) {
        if let Some(value) = value {
            S::write(value, tag, out);
        }
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<Option<T>, ShapeError> {
        if S::is_present(tag, from) {
            S::read(tag, from).map(Some)
        } else {
            Ok(None)
        }
    }
}
