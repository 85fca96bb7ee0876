//! The log: segments of checksummed frames, one frame per atomic batch, written by one thread.
//!
//! This is the only crate that writes the log. It knows frames, blobs by hash and opaque command
//! records; it does not know what a turn is. Positions are dense frame numbers; byte offsets never
//! leave this crate, except wrapped in a [`Locator`].
//!
//! A frame that was acked is on disk. A bad frame is told apart: a *torn tail* is what a crash left
//! of a write that nobody was told about, and is copied aside and cut; anything else is *damage*,
//! which is never cut away silently.

mod batch;
mod committer;
mod ending;
mod frame;
mod fuzz;
mod inspect;
mod large_buffer;
mod lock;
mod log;
mod preallocate;
mod reader;
mod recovery;
mod scan;
mod segment;
pub mod storage;

pub use batch::{Batch, BlobRecord, Stamp};
pub use committer::{Bounds, Committer, CommitterError, Machine, spawn_committer};
pub use frame::{BlobEntry, FRAME_BYTES_MAX, Frame, FrameError, blob_crc, read_frame};
pub use fuzz::recover_any;
pub use inspect::{Damage, Inspected, Inspection, inspect};
pub use large_buffer::{LargeBuffer, MAPPED_FROM_BYTES};
pub use lock::{DataDirLock, LockError};
pub use log::{AppendError, Appended, FileLog, Log, LogOptions, SyncPolicy};
pub use reader::{BlobReadError, LogReader, ReadError};
pub use recovery::{OpenError, Recovered, TornTail};
pub use segment::Locator;
pub use storage::{
    Fault, FaultyStorage, FileStorage, MemoryStorage, ReadOnlyStorage, Storage, StorageFile, View,
};

/// A frame's number: dense from 1, opaque to everyone but the log. 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);
