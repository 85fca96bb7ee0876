//! The shapes of the HTTP gateway's JSON: what a request may hold and what a response holds.
//!
//! Plain values with `serde` and OpenAPI schemas, no logic. Ids are strings (requests may also
//! write them as integers up to 2^53 - 1), hashes are lower-case hex, times are RFC 3339 UTC with
//! milliseconds. A request with an unknown field does not parse. Pages of turns are written
//! straight into the response by the server; the shapes here are what they read back as.

mod blob;
mod context;
mod error;
mod event;
mod fs;
mod id;
pub mod ledger;
mod registry;
mod scalar;
mod server;
mod strict;
mod turn;

pub use blob::{BlobNames, BlobPut};
pub use context::{Context, ContextPage, CreateContext, ForkContext, PatchContext};
pub use error::ErrorReply;
pub use event::{
    ContextCreated, ContextLost, FsAttached, RegistryPut, TurnAppended, TurnLost, WorldChanged,
};
pub use fs::{FsEntry, FsFile, FsKind, FsListing, FsNode, FsSymlink};
pub use id::Id;
pub use registry::{TypeList, TypeSummary, TypeVersion};
pub use scalar::{Hash, Time};
pub use server::{Health, Stats};
pub use turn::{AppendTurn, PageMeta, Turn, TurnAck, TurnError, TurnPage, TypeName, Warning};
