//! Why a request to a run failed.

use turnkeep_runtime::ids::RunId;
use turnkeep_runtime::record::DamagedRecord;
use turnkeep_runtime::rejection::Rejection;
use turnkeep_store::{ReadError, Refusal};
use turnkeep_types::TurnId;

use super::json::BodyError;
use super::settings::{CannotAsk, UnknownProgram};
use super::world_link::PersonRefused;

/// Why a request to a run failed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum RunError {
    /// The runtime rejects the request. Nothing was written.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The body of the request does not fit the run. Nothing was written.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The program of the node cannot do what its settings want. Nothing was written.
    #[error(transparent)]
    CannotAsk(#[from] CannotAsk),
    /// The program of the node is not configured. Nothing was written.
    #[error(transparent)]
    UnknownProgram(#[from] UnknownProgram),
    /// There is no such run, or it was deleted.
    #[error("no run has the id {0}")]
    UnknownRun(RunId),
    /// The idempotency key was used for another request.
    #[error("this idempotency key was used before for a different request")]
    KeyReused,
    /// The store rejects a command. Nothing was written.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// The store cannot read a record.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record is damaged or of a newer version.
    #[error("the record of turn {turn} cannot be read: {error}")]
    Record {
        /// The turn with the record.
        turn: TurnId,
        /// What is wrong.
        error: DamagedRecord,
    },
    /// The run could not be read when the server started.
    #[error("the run could not be read when the server started: {0}")]
    Unreadable(String),
    /// An event is too large to be recorded. Nothing was written.
    #[error("an event of {bytes} bytes is too large to be recorded")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The run's world cannot have a node as it is named, or there is no such world.
    #[error(transparent)]
    Person(#[from] PersonRefused),
    /// A task of the server ended early.
    #[error("the request was abandoned: {0}")]
    Abandoned(String),
}
