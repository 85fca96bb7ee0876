//! Records: structs and enums that are stored as maps by tag, each by one table.
//!
//! The table is the only place that names the tags of a type. Writing, reading and the published
//! description all come from it, so they cannot drift apart. Worked example:
//!
//! ```
//! use turnkeep_types::record::{DamagedRecord, Flag, Optional, Text, decode, encode};
//! use turnkeep_types::{record_enum, record_struct};
//!
//! #[derive(Debug, PartialEq)]
//! struct Parcel { sender: String, receiver: Option<String>, fragile: bool }
//! record_struct! {
//!     Parcel {
//!         1 sender: Text,
//!         2 receiver: Optional<Text>,
//!         3 fragile: Flag,
//!     }
//! }
//!
//! #[derive(Debug, PartialEq)]
//! enum Step { Sent(String), Lost { reason: String }, Opened }
//! record_enum! {
//!     Step, kind 1 {
//!         "sent" Sent(2 by: Text)
//!         "lost" Lost { 3 reason: Text }
//!         "opened" Opened()
//!     }
//! }
//!
//! let parcel = Parcel { sender: "Ada".to_owned(), receiver: None, fragile: true };
//! let encoded = encode(&parcel);
//! assert_eq!(&encoded.payload[..], b"\x82\x01\xa3Ada\x03\xc3");
//! assert_eq!(decode(&encoded.payload, &|_| None), Ok(parcel));
//!
//! let lost = Step::Lost { reason: "rain".to_owned() };
//! assert_eq!(&encode(&lost).payload[..], b"\x82\x01\xa4lost\x03\xa4rain");
//! let unknown = decode::<Step>(b"\x81\x01\xa6stolen", &|_| None);
//! assert!(matches!(unknown, Err(DamagedRecord::UnknownKind { .. })));
//! ```
//!
//! Tags ascend in a table, and a tag keeps its meaning for ever. Variants of an enum share one map,
//! so the same tag in two of them has the same name and shape. Reading ignores unknown tags, which a
//! newer version wrote. It fails for a kind that it does not know, and for a field that is missing
//! or has another form.

#[cfg(any(test, feature = "dev"))]
pub mod describe;
#[cfg(any(test, feature = "dev"))]
pub mod sample;
mod shape;
mod table;

use bytes::Bytes;

use crate::BlobHash;
use crate::tagged_map::{TaggedMap, TaggedValue};
pub use shape::{
    Binary, Bool, DurationMs, F64, Flag, Flat, List, LongText, Map, Markdown, Optional, Shape,
    Text, U32, U64, UnixMs, read_long_text, write_long_text,
};

/// A published bundle that describes records.
#[derive(Debug, Clone, Copy)]
pub struct RecordBundle {
    /// The bundle id.
    pub id: &'static str,
    /// The bundle as JSON.
    pub json: &'static str,
}

/// Longer texts are blobs of their own. A record then stays small, and a text that is stored
/// elsewhere as well takes no more space.
pub const INLINE_BYTES_MAX: usize = 4096;

/// A kind that is quoted in an error.
const KIND_CHARS_MAX: usize = 64;

/// A struct or enum that is stored as a map by tag. `record_struct!` and `record_enum!` implement
/// it.
pub trait Record: Sized {
    /// Its name in errors and in the bundle.
    const NAME: &'static str;

    /// Adds its fields.
    fn write_fields<'a>(&'a self, out: &mut RecordWriter<'a>);

    /// Reads its fields.
    fn read_fields(from: &RecordReader<'_, '_>) -> Result<Self, DamagedRecord>;
}

/// An encoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRecord {
    /// The record itself.
    pub payload: Bytes,
    /// The blobs that it names by hash. They must be stored before it.
    pub blobs: Vec<Bytes>,
}

/// Finds a blob by its hash.
pub type FindBlob<'a> = dyn Fn(&BlobHash) -> Option<Bytes> + 'a;

/// Encodes a record. Equal records have equal bytes.
pub fn encode<R: Record>(record: &R) -> EncodedRecord {
    let mut out = RecordWriter::default();
    record.write_fields(&mut out);
    EncodedRecord {
        payload: out.map.encode(),
        blobs: out.blobs,
    }
}

/// Decodes a record.
pub fn decode<R: Record>(payload: &[u8], find_blob: &FindBlob<'_>) -> Result<R, DamagedRecord> {
    let map = TaggedMap::decode(payload).ok_or(DamagedRecord::NotATaggedMap)?;
    let reader = RecordReader {
        map: &map,
        find_blob,
    };
    R::read_fields(&reader)
}

/// Why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DamagedRecord {
    /// The bytes are something else.
    #[error("the bytes are not a map by tag")]
    NotATaggedMap,
    /// A field cannot be read.
    #[error("the field `{field}` of {record} {problem}")]
    Field {
        /// The struct or enum.
        record: &'static str,
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: FieldProblem,
    },
    /// This version does not know the kind.
    #[error("{record} is of the unknown kind `{kind}`: a newer version of Turnkeep can read it")]
    UnknownKind {
        /// The enum.
        record: &'static str,
        /// The kind, or its beginning.
        kind: String,
    },
}

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FieldProblem {
    /// The record does not have it.
    #[error("is missing")]
    Missing,
    /// It has another form.
    #[error("has another form than expected")]
    Malformed,
    /// Its text is in a blob that is not stored.
    #[error("is in the blob {0}, which is missing")]
    MissingBlob(BlobHash),
}

/// Why a shape cannot read its field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShapeError {
    /// The field itself is wrong.
    Field(FieldProblem),
    /// The field is a record, which is damaged.
    Inside(DamagedRecord),
}

impl From<FieldProblem> for ShapeError {
    fn from(problem: FieldProblem) -> Self {
        Self::Field(problem)
    }
}

impl From<DamagedRecord> for ShapeError {
    fn from(damage: DamagedRecord) -> Self {
        Self::Inside(damage)
    }
}

/// A record under construction.
#[derive(Debug, Default)]
pub struct RecordWriter<'a> {
    map: TaggedMap<'a>,
    blobs: Vec<Bytes>,
}

impl<'a> RecordWriter<'a> {
    /// Adds a value.
    pub fn push(&mut self, tag: u64, value: TaggedValue<'a>) {
        self.map.push(tag, value);
    }

    /// Adds the kind of an enum.
    pub fn push_kind(&mut self, tag: u64, kind: &'static str) {
        self.push(tag, TaggedValue::Text(kind.into()));
    }

    /// Adds a record inside this one.
    fn push_record<R: Record>(&mut self, tag: u64, record: &'a R) {
        // All records inside share one list of blobs, so only the map is exchanged.
        let outer = std::mem::take(&mut self.map);
        record.write_fields(self);
        let inner = std::mem::replace(&mut self.map, outer);
        self.push(tag, TaggedValue::Map(inner));
    }

    /// Keeps a text as a blob and returns its hash.
    fn keep_blob(&mut self, text: &str) -> BlobHash {
        self.blobs.push(Bytes::copy_from_slice(text.as_bytes()));
        BlobHash::of(text.as_bytes())
    }
}

/// A record that is being read.
pub struct RecordReader<'r, 'a> {
    map: &'r TaggedMap<'a>,
    find_blob: &'r FindBlob<'r>,
}

impl<'r, 'a> RecordReader<'r, 'a> {
    /// The value with this tag.
    pub fn find(&self, tag: u64) -> Option<&'r TaggedValue<'a>> {
        self.map.find(tag)
    }

    /// The value with this tag, which must be there.
    pub fn require(&self, tag: u64) -> Result<&'r TaggedValue<'a>, FieldProblem> {
        self.find(tag).ok_or(FieldProblem::Missing)
    }

    /// Reads a field of `R`.
    pub fn read_field<R: Record, S: Shape<T>, T>(
        &self,
        tag: u64,
        field: &'static str,
    ) -> Result<T, DamagedRecord> {
        S::read(tag, self).map_err(|error| match error {
            ShapeError::Inside(damage) => damage,
            ShapeError::Field(problem) => DamagedRecord::Field {
                record: R::NAME,
                field,
                problem,
            },
        })
    }

    /// Reads the kind of the enum `R`.
    pub fn read_kind<R: Record>(&self, tag: u64) -> Result<&'r str, DamagedRecord> {
        self.map.get_text(tag).ok_or(DamagedRecord::Field {
            record: R::NAME,
            field: "kind",
            problem: FieldProblem::Missing,
        })
    }

    /// Reads a record inside this one.
    fn read_record<R: Record>(&self, tag: u64) -> Result<R, ShapeError> {
        let TaggedValue::Map(map) = self.require(tag)? else {
            return Err(FieldProblem::Malformed.into());
        };
        let reader = RecordReader {
            map,
            find_blob: self.find_blob,
        };
        Ok(R::read_fields(&reader)?)
    }
}

impl DamagedRecord {
    /// The error for a kind that `R` does not have.
    pub fn unknown_kind<R: Record>(kind: &str) -> Self {
        Self::UnknownKind {
            record: R::NAME,
            kind: kind.chars().take(KIND_CHARS_MAX).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
