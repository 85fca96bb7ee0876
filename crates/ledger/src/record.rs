//! Facts as the store keeps them: one turn each, of a type `turnkeep.ledger.*`, a msgpack map by
//! tag.
//!
//! The types are published once as a bundle, so that `turnkeep log` and every client read a world's
//! turns by name. A tag is never used for anything else; decoding ignores tags that it does not
//! know and refuses what does not fit together.

mod fields;
mod meaning;
mod sharing;

use bytes::Bytes;
use turnkeep_types::TypeRef;

use crate::fact::{Fact, Family};
use fields::Fields;

/// A bundle that describes records.
#[derive(Debug, Clone, Copy)]
pub struct RecordBundle {
    /// Its id.
    pub id: &'static str,
    /// Its JSON.
    pub json: &'static str,
}

/// The bundles that describe the records, in the order in which they are published. A published
/// bundle never changes, so a record that gains a field has a new version in a new bundle.
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
/// The version of an entry that answers another one.
const REPLY_VERSION: u32 = 2;

/// A record that is not what its type says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A type that is not the ledger's.
    #[error("a turn of type {0} is not a record of a world")]
    UnknownType(TypeRef),
    /// Bytes that are no record.
    #[error("a record of type {kind} is damaged: {what}")]
    Malformed {
        /// The type.
        kind: String,
        /// What is wrong.
        what: &'static str,
    },
}

/// A fact as a turn: its type and its payload.
pub fn encode(fact: &Fact) -> (TypeRef, Bytes) {
    let (kind, fields) = meaning::write(fact);
    let is_reply = matches!(fact, Fact::Entry(entry) if entry.reply_to.is_some());
    let version = if is_reply { REPLY_VERSION } else { VERSION };
    (
        TypeRef::new(format!("turnkeep.ledger.{kind}"), version),
        fields.encode(),
    )
}

/// The fact that a turn holds.
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
    let fields = Fields::decode(payload).ok_or_else(|| malformed("it is no map by tag"))?;
    match meaning::read(kind, &fields) {
        None => Err(RecordError::UnknownType(declared.clone())),
        Some(Err(what)) => Err(malformed(what)),
        Some(Ok(fact)) => Ok(fact),
    }
}

/// Whether a kind of record has this version.
fn has_version(kind: &str, version: u32) -> bool {
    version == VERSION || (kind == "WriteEntry" && version == REPLY_VERSION)
}

/// Whether a turn of this type holds such a record, by its short name.
pub(crate) fn is_of(declared: &TypeRef, kinds: &[&str]) -> bool {
    declared
        .id
        .strip_prefix("turnkeep.ledger.")
        .is_some_and(|kind| kinds.contains(&kind))
}

/// Whether a payload can be read as a record of a world, of whatever type.
pub fn is_record(payload: &[u8]) -> bool {
    let fields = Fields::decode(payload);
    fields.is_some_and(|fields| {
        meaning::KINDS
            .iter()
            .any(|kind| matches!(meaning::read(kind, &fields), Some(Ok(_))))
    })
}

/// Facts by family, each in its order: what one append holds.
pub fn by_family(facts: &[Fact]) -> [(Family, Vec<&Fact>); 3] {
    let of = |family| {
        (
            family,
            facts
                .iter()
                .filter(|fact| fact.family() == family)
                .collect(),
        )
    };
    [of(Family::Reality), of(Family::Audit), of(Family::Derived)]
}

#[cfg(test)]
mod tests;
