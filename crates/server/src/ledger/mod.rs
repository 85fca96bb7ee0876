//! The ledger's shell: keeps worlds in memory and makes their facts durable in the store.
//!
//! The ledger crate decides what a beat does. This module appends the decided facts with one
//! command, and applies them to the world only after they are durable. Commits of one world are
//! serial; different worlds do not wait for each other and share the log's group commit. A request
//! is carried out even if its caller disconnects.

mod beats;
mod error;
mod in_flight;
mod making;
mod news;
mod pages;
mod rehydrations;
#[cfg(test)]
mod tests;
mod world_handle;
mod worlds;
mod writer;

pub(crate) use error::LedgerError;
pub(crate) use news::WorldChanges;
pub(crate) use pages::{HeldPage, PageKey, SharedPage};
pub(crate) use rehydrations::Rehydrations;
pub(crate) use world_handle::WorldHandle;
pub(crate) use worlds::{DEFAULT_WORLD, Worlds, token_text};

use bytes::Bytes;

/// The answer to a request to a world.
#[derive(Debug)]
pub(crate) struct LedgerAnswer {
    /// Whether the caller's bundle was rejected.
    pub(crate) rejected: bool,
    /// The answer as JSON.
    pub(crate) body: Bytes,
    /// Whether this repeats the answer of an earlier request.
    pub(crate) replayed: bool,
    /// Whether the request only reads but has text of the operator, which is ignored.
    pub(crate) input_ignored: bool,
    /// Why the attached writer failed, if it was asked and did.
    pub(crate) writer_failed: Option<String>,
}

impl LedgerAnswer {
    /// An answer with this body and no flags.
    fn new(body: Bytes) -> Self {
        Self {
            rejected: false,
            body,
            replayed: false,
            input_ignored: false,
            writer_failed: None,
        }
    }
}
