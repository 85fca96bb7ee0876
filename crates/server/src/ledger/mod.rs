//! The ledger's shell: keeps worlds in memory and makes their facts durable in the store.
//!
//! The ledger crate decides what a beat does. This module appends the decided facts with one
//! command, and applies them to the world only after they are durable. Commits of one world are
//! serial; different worlds do not wait for each other and share the log's group commit. A request
//! is carried out even if its caller disconnects.

mod beats;
mod change_notifier;
mod error;
mod in_flight;
mod pages;
mod rehydrations;
#[cfg(test)]
mod tests;
mod world_creation;
mod world_handle;
mod worlds;
mod writer;

pub(crate) use change_notifier::WorldChanges;
pub(crate) use error::LedgerError;
pub(crate) use pages::{HeldPage, PageKey, SharedPage};
pub(crate) use rehydrations::Rehydrations;
pub(crate) use world_handle::WorldHandle;
pub(crate) use worlds::{DEFAULT_WORLD, Worlds, token_text};

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use turnkeep_ledger::fact::Outcome;

/// The result of checking a bundle that is not committed.
#[derive(Debug)]
pub(crate) struct BundleCheck {
    /// The bundle as it was sent.
    pub(crate) bundle: Value,
    /// Why it would be rejected.
    pub(crate) rejection: Option<String>,
}

/// The answer to a request to a world.
#[derive(Debug)]
pub(crate) struct LedgerAnswer {
    /// Whether the caller's bundle was rejected.
    pub(crate) rejected: bool,
    /// The answer as JSON. The ledger makes it, because the outcome records its hash.
    pub(crate) body: Bytes,
    /// What became of the request; `None` if it only reads.
    pub(crate) outcome: Option<Arc<Outcome>>,
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
            outcome: None,
            replayed: false,
            input_ignored: false,
            writer_failed: None,
        }
    }
}
