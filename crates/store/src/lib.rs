//! The turn store: an immutable DAG of turns, content-addressed blobs, contexts with heads and
//! labels, and a type registry. All of it is derived from one log.
//!
//! One writer thread takes commands, makes them durable as frames of the journal and applies them
//! in log order. The same log always gives the same state. Readers never wait for the writer: they
//! read append-only tables and a few atomics. The log is the only file that cannot be rebuilt.

mod acknowledged;
mod apply;
pub mod archive;
pub mod blob;
mod checkpoint;
pub mod command;
mod decide;
pub mod event;
mod feed_cursor;
mod feed_index;
mod fs_roots;
mod hash_index;
mod keys;
mod overlay;
pub mod projection;
pub mod read;
mod record;
mod recovery;
pub mod registry;
mod run_list;
pub mod salvage;
mod state;
mod store;
mod table;
mod unfinished;
mod walk;
mod writer;

pub use blob::{BlobError, NewBlob};
pub use command::{
    Append, AppendPart, Appended, AppendedTurn, Command, CreateContext, Created, Key, Labels,
    NewTurn, Outcome, Refusal,
};
pub use event::{Event, EventKind};
pub use feed_cursor::FeedCursor;
pub use fs_roots::FsRoot;
pub use read::{Context, LostTurn, Payload, ReadError, Turn};
pub use recovery::LostIds;
pub use registry::Registry;
pub use store::{Durability, OpenError, Options, Stats, Store, SubmitError};
pub use turnkeep_journal::{LargeBuffer, MAPPED_FROM_BYTES};
