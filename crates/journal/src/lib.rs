//! The log: segments of checksummed frames, one frame per atomic batch, written by one thread.
//!
//! This is the only crate that writes the log. It knows frames, blobs by hash and opaque command
//! records; it does not know turns. Positions are frame numbers without gaps. Byte offsets never
//! leave this crate, except inside a [`Locator`].
//!
//! A frame is durable when its commands are acknowledged, unless the sync policy is `Os`, which
//! syncs every 100 ms. A bad frame is one of two things. A *torn tail* is an interrupted write at
//! the end of the log that was never acknowledged; opening copies it aside and cuts it. Everything
//! else is *damage*; the log then does not open, and never cuts damage away.

mod batch;
mod committer;
mod frame;
#[cfg(any(test, feature = "dev"))]
mod fuzz;
mod inspect;
mod large_buffer;
mod last_segment;
mod lock;
mod log;
mod preallocate;
mod reader;
mod recovery;
mod scan;
mod segment;
pub mod storage;

pub use batch::{Batch, BlobRecord, Stamp};
pub use committer::{Committer, CommitterError, CommitterLimits, StateMachine, spawn_committer};
pub use frame::{
    BlobEntry, FRAME_BYTES_MAX, Frame, FrameCommand, FrameError, blob_crc, read_frame,
};
#[cfg(any(test, feature = "dev"))]
pub use fuzz::recover_any;
pub use inspect::{Damage, Inspected, Inspection, InspectionProgress, inspect};
pub use large_buffer::{LargeBuffer, MAPPED_FROM_BYTES};
pub use lock::{DataDirLock, LockError};
pub use log::{AppendError, Appended, FileLog, Log, LogOptions, SyncPolicy};
pub use reader::{BlobReadError, LogReader, ReadError};
pub use recovery::{OpenError, Recovered, TornTail};
pub use segment::Locator;
pub use storage::{
    Fault, FaultyStorage, FileBytes, FileStorage, MemoryStorage, ReadOnlyStorage, Storage,
    StorageFile,
};

/// A frame's number, from 1 without gaps. 0 means "before the first frame".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);
