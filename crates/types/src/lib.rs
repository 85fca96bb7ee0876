//! The types that all crates of Turnkeep share: ids, hashes, type references, time and limits.
//!
//! This crate does no I/O and reads no clock. Ids, hashes and session ids are valid by
//! construction, so the code behind the edge does not check them again. `varint` has the number
//! format of the log, `msgpack` the format of payloads and of the broker's messages, `record` and
//! `tagged_map` the form of the records that Turnkeep itself stores, and `rfc3339` the text form of
//! times.

mod blob;
pub mod broker;
mod id;
mod limits;
pub mod msgpack;
mod object_ref;
pub mod record;
pub mod rfc3339;
pub mod tagged_map;
mod time;
mod turn_type;
pub mod varint;

pub use blob::{BlobHash, BlobPrefix, Compression, ParsePrefixError};
pub use id::{ContextId, ParseIdError, TurnId};
pub use limits::Limits;
pub use object_ref::{ObjectRef, ParseRefError};
pub use time::{Clock, ManualClock, Timestamp};
pub use turn_type::TypeRef;
