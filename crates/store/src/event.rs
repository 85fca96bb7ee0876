//! The store's feed: one numbered event for every fact that a reader can follow.
//!
//! Positions count up from 1 without gaps, in the order of the log. A reader that resumes after a
//! position misses nothing and repeats nothing.

use std::sync::Arc;

use turnkeep_types::{ContextId, TurnId};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its place in the feed, from 1.
    pub position: u64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A turn was appended.
    TurnAppended(TurnId),
    /// A context was created.
    ContextCreated(ContextId),
    /// A turn got its filesystem root after it was appended.
    FsAttached(TurnId),
    /// A bundle was published.
    RegistryPut(Arc<str>),
}
