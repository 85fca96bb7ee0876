//! The JSON of HTTP requests and responses.
//!
//! Plain values with `serde` and OpenAPI schemas, without logic. Ids are strings; requests may also
//! write them as integers up to 2^53 - 1. Hashes are lower-case hex, times are RFC 3339 in UTC with
//! milliseconds. A request with an unknown field is rejected. The server writes pages of turns as
//! text; the types here document them, and clients and tests decode them.
//!
//! The doc comments of these types are the descriptions in `docs/openapi.json`.

mod blob;
mod context;
mod demo;
mod error;
mod event;
mod fs;
mod id;
pub mod ledger;
mod registry;
mod scalar;
mod server;
mod session;
mod settings;
mod strict;
mod turn;
mod why;

pub use blob::{BlobNames, BlobPut};
pub use context::{Context, ContextPage, CreateContextBody, ForkContext, PatchContext};
pub use demo::Demo;
pub use error::ErrorReply;
pub use event::{
    AttentionChanged, ContextCreated, ContextLost, FsAttached, RegistryPut, RunChanged,
    SessionChanged, TurnAppended, TurnLost, WorldChanged,
};
pub use fs::{FsEntry, FsFile, FsKind, FsListing, FsNode, FsSymlink};
pub use id::Id;
pub use registry::{TypeList, TypeSummary, TypeVersion};
pub use scalar::{Hash, Time};
pub use server::{Health, Stats};
pub use session::{
    Captured, CapturedTurn, CapturedTurnInfo, CapturedTurnList, ChooseCapturedTurn,
    DeliverCaptured, Delivered, Kept, PasteCaptured, Session, SessionList,
};
pub use settings::{ServerSetting, ServerSettings};
pub use turn::{
    AppendTurnBody, AppendedTurn, PageMeta, Turn, TurnError, TurnPage, TypeName, Warning,
};
pub use why::{Why, WhyKind, WhyLink};
