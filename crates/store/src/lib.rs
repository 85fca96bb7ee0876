//! The turn store: an immutable turn DAG, a blob CAS, branch heads, labels and a type registry,
//! all of them views of one log.
//!
//! Commands go in through one writer thread, are made durable as frames of the journal and are then
//! applied, deterministically, in log order. Readers never wait for the writer: what they read is
//! append-only tables and a few atomics. Everything but the log can be deleted and is rebuilt.

mod acknowledged;
mod apply;
pub mod archive;
pub mod blob;
mod checkpoint;
pub mod command;
mod decide;
pub mod event;
mod fs_roots;
mod hash_index;
mod keys;
mod overlay;
pub mod projection;
pub mod read;
mod record;
mod recovery;
pub mod registry;
mod runs;
pub mod salvage;
mod state;
mod store;
mod table;
mod unfinished;
mod walk;
mod writer;

pub use blob::{BlobError, NewBlob};
pub use command::{
    Append, AppendPart, Appended, Command, CreateContext, Created, Key, Labels, NewTurn, Outcome,
    Refusal,
};
pub use event::{Event, EventKind};
pub use fs_roots::FsRoot;
pub use read::{Context, LostTurn, Payload, ReadError, Turn};
pub use recovery::WentBack;
pub use registry::Registry;
pub use store::{Durability, OpenError, Options, Stats, Store, SubmitError};
pub use turnkeep_journal::{LargeBuffer, MAPPED_FROM_BYTES};
