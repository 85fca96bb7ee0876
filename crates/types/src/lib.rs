//! The vocabulary that every room of Turnkeep shares: ids, hashes, type references, time and
//! limits.
//!
//! Nothing here does I/O, reads a clock or knows a wire format. A value of one of these types is
//! valid by construction, so the rooms behind the edge never check it again.

mod blob;
pub mod broker;
mod id;
mod limits;
mod object_ref;
mod time;
mod turn_type;
pub mod varint;

pub use blob::{BlobHash, BlobPrefix, Compression, ParsePrefixError};
pub use id::{ContextId, ParseIdError, TurnId};
pub use limits::Limits;
pub use object_ref::{ObjectRef, ParseRefError};
pub use time::{Clock, ManualClock, Timestamp};
pub use turn_type::TypeRef;
