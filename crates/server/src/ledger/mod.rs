//! The ledger's shell: worlds held in memory, each a view of its contexts in the store.
//!
//! What a world is and what a beat does is decided in the ledger crate; here it is made durable, in
//! one append, and only then taken over. Commits of one world are serial; worlds do not wait for
//! each other and share the log's group commit. A request that its caller gives up is carried out
//! all the same.

mod beats;
mod error;
mod in_flight;
mod making;
mod news;
mod pages;
mod rehydrations;
mod room;
#[cfg(test)]
mod tests;
mod worlds;
mod writer;

pub(crate) use error::LedgerError;
pub(crate) use news::News;
pub(crate) use pages::{HeldPage, PageKey, SharedPage};
pub(crate) use rehydrations::Rehydrations;
pub(crate) use room::Room;
pub(crate) use worlds::{DEFAULT_WORLD, Worlds, token_text};

use bytes::Bytes;

/// What a request of a world is answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Whether a bundle was rejected.
    pub(crate) rejected: bool,
    /// The JSON.
    pub(crate) body: Bytes,
    /// Whether an earlier request did it.
    pub(crate) replayed: bool,
    /// Whether the request said something that was not listened to.
    pub(crate) input_ignored: bool,
    /// Why the attached writer failed, if it was asked and did.
    pub(crate) writer_failed: Option<String>,
}

impl Answer {
    /// An answer of which there is nothing more to say.
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
