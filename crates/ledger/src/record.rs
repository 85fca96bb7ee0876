//! The stored form of facts: one turn each, of a type `turnkeep.ledger.*`, a msgpack map by tag.
//!
//! The types are published once as a bundle, so that `turnkeep log` and every client can read a
//! world's turns by name. A tag keeps its meaning for ever. Decoding ignores unknown tags and
//! rejects fields that do not fit together.

mod sharing;
mod tags;

use bytes::Bytes;
use turnkeep_types::TypeRef;
pub use turnkeep_types::record::RecordBundle;
use turnkeep_types::tagged_map::TaggedMap;

use crate::fact::Fact;

/// The bundles that describe the records, in publishing order. A published bundle never changes, so
/// a record that gains a field gets a new version in a new bundle.
pub const BUNDLES: [RecordBundle; 2] = [
    RecordBundle {
        id: "turnkeep.ledger#1",
        json: include_str!("record/bundle.json"),
    },
    RecordBundle {
        id: "turnkeep.ledger#2",
        json: include_str!("record/bundle-2.json"),
    },
];

const VERSION: u32 = 1;
/// The version of an entry that replies to another one.
const REPLY_VERSION: u32 = 2;

/// Why a turn is not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The type is not one of the ledger's.
    #[error("a turn of type {0} is not a record of a world")]
    UnknownType(TypeRef),
    /// The bytes do not fit the type.
    #[error("a record of type {kind} is damaged: {what}")]
    Malformed {
        /// The record's kind.
        kind: String,
        /// What is wrong.
        what: &'static str,
    },
}

/// Encodes a fact as the type and payload of a turn.
pub fn encode(fact: &Fact) -> (TypeRef, Bytes) {
    let (kind, fields) = tags::encode_fields(fact);
    // Entries without a reply keep version 1, so that older readers can read them.
    let is_reply = matches!(fact, Fact::Entry(entry) if entry.reply_to.is_some());
    let version = if is_reply { REPLY_VERSION } else { VERSION };
    (
        TypeRef::new(format!("turnkeep.ledger.{kind}"), version),
        fields.encode(),
    )
}

/// Decodes the fact of a turn.
pub fn decode(declared: &TypeRef, payload: &[u8]) -> Result<Fact, RecordError> {
    let kind = declared
        .id
        .strip_prefix("turnkeep.ledger.")
        .filter(|kind| has_version(kind, declared.version));
    let kind = kind.ok_or_else(|| RecordError::UnknownType(declared.clone()))?;
    let malformed = |what| RecordError::Malformed {
        kind: kind.to_owned(),
        what,
    };
    let fields = TaggedMap::decode(payload).ok_or_else(|| malformed("it is no map by tag"))?;
    match tags::decode_fact(kind, &fields) {
        None => Err(RecordError::UnknownType(declared.clone())),
        Some(Err(what)) => Err(malformed(what)),
        Some(Ok(fact)) => Ok(fact),
    }
}

/// Whether a kind of record has this version.
fn has_version(kind: &str, version: u32) -> bool {
    version == VERSION || (kind == "WriteEntry" && version == REPLY_VERSION)
}

/// Whether a turn of this type holds one of these kinds of record.
pub(crate) fn has_kind(declared: &TypeRef, kinds: &[&str]) -> bool {
    declared
        .id
        .strip_prefix("turnkeep.ledger.")
        .is_some_and(|kind| kinds.contains(&kind))
}

/// Whether a payload decodes as a record of any kind.
pub fn is_record(payload: &[u8]) -> bool {
    let fields = TaggedMap::decode(payload);
    fields.is_some_and(|fields| {
        tags::KINDS
            .iter()
            .any(|kind| matches!(tags::decode_fact(kind, &fields), Some(Ok(_))))
    })
}

#[cfg(test)]
mod tests;
