//! Why a request to a world failed.

use turnkeep_ledger::Fault;
use turnkeep_ledger::log::{LoadError, Unrecordable};
use turnkeep_store::Refusal;

use crate::write_rate::OverRate;

/// Why a request to a world failed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum LedgerError {
    /// The ledger rejects the request.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The store rejects the command. Nothing was written.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// The world cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A fact cannot be recorded. Nothing was written.
    #[error(transparent)]
    Unrecordable(#[from] Unrecordable),
    /// The world could not be read when the server started.
    #[error("the world could not be read when the server started: {0}")]
    Unreadable(LoadError),
    /// The caller has written too much in this minute; nothing was written.
    #[error(transparent)]
    OverRate(#[from] OverRate),
    /// A task of the server ended early.
    #[error("the request was abandoned: {0}")]
    Abandoned(String),
}
