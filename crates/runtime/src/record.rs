//! The stored form of events: one turn each, of the type `turnkeep.run.Event`, a msgpack map by tag.
//!
//! All events have one type, with a `kind` and the fields of that kind beside `id`, `seq`, `at`,
//! `node` and `turn`. So `turnkeep log` and every client show a whole run by one description, in the
//! same form from the first event to the last. The same thing has the same name in each kind: `call`
//! is the tool's call when it is proposed and when it starts. The price is that the description
//! calls the fields of all kinds optional; decoding still requires them.
//!
//! The bundle is published once and never changes: a field that is added later gets a new version
//! of the type in a new bundle. Decoding ignores unknown tags and rejects unknown kinds. A caller
//! that meets such an event must stop: without it the state would be another one.
//!
//! Texts of people and programs over 4 KiB are blobs, which must be stored before the event. JSON is
//! stored as text, with its members in their order, since prompts repeat it.

#[cfg(any(test, feature = "dev"))]
pub mod samples;
mod tables;

use serde_json::Value;
use turnkeep_types::TypeRef;
pub use turnkeep_types::record::{DamagedRecord, EncodedRecord, FindBlob, RecordBundle};
use turnkeep_types::record::{
    FieldProblem, RecordReader, RecordWriter, Shape, ShapeError, read_long_text, write_long_text,
};

use crate::fact::Event;

/// The type of an event.
pub const EVENT_TYPE: &str = "turnkeep.run.Event";
const EVENT_VERSION: u32 = 1;

/// The bundles that describe events, in publishing order. A published bundle never changes, so a
/// record that gains a field gets a new version in a new bundle.
pub const BUNDLES: [RecordBundle; 2] = [
    RecordBundle {
        id: "turnkeep.run#1",
        json: include_str!("record/bundle.json"),
    },
    // Resolutions say who gave them.
    RecordBundle {
        id: "turnkeep.run#2",
        json: include_str!("record/bundle-2.json"),
    },
];

/// The declared type of an event.
pub fn event_type() -> TypeRef {
    TypeRef::new(EVENT_TYPE, EVENT_VERSION)
}

/// Encodes an event.
pub fn encode(event: &Event) -> EncodedRecord {
    turnkeep_types::record::encode(event)
}

/// Decodes an event. `find_blob` returns the long texts that it names.
pub fn decode(payload: &[u8], find_blob: &FindBlob<'_>) -> Result<Event, DamagedRecord> {
    turnkeep_types::record::decode(payload, find_blob)
}

/// JSON of a program or of a caller, as a text that may be long.
struct Json;

impl Shape<Value> for Json {
    fn write<'a>(value: &'a Value, tag: u64, out: &mut RecordWriter<'a>) {
        write_long_text(value.to_string(), tag, out);
    }

    fn read(tag: u64, from: &RecordReader<'_, '_>) -> Result<Value, ShapeError> {
        let text = read_long_text(tag, from)?;
        serde_json::from_str(&text).map_err(|_| FieldProblem::Malformed.into())
    }

    fn is_present(tag: u64, from: &RecordReader<'_, '_>) -> bool {
        from.find(tag).is_some() || from.find(tag + 1).is_some()
    }
}

#[cfg(test)]
mod tests;
