//! Why a run cannot be copied, exported or imported.

use std::io;

use turnkeep_runtime::ids::RunId;
use turnkeep_store::{ReadError, Refusal};

use super::layout::LayoutError;
use super::zip::ZipError;
use crate::runs::RunError;

/// Why a run cannot be copied, exported or imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run has no event of this number.
    #[error("`seq` is {seq}, but the last event is {last}")]
    SeqBeyondEnd {
        /// The number that was asked for.
        seq: u64,
        /// The last event.
        last: u64,
    },
    /// No decision of the run ends at this number or before it.
    #[error("`seq` is {seq}, but the first step of the run ends later")]
    SeqBeforeStart {
        /// The number that was asked for.
        seq: u64,
    },
    /// The file is no archive of a run, or a damaged one. Nothing was written.
    #[error("the file cannot be imported: {0}")]
    BadArchive(String),
    /// The directory for the run cannot be used.
    #[error("cwd {0}")]
    BadDirectory(String),
    /// The server has or had a run of this id.
    #[error("this server already has the run {0}")]
    RunExists(RunId),
    /// The upload or the archive is too large.
    #[error("the archive has more than {max} bytes")]
    TooLarge {
        /// The limit.
        max: u64,
    },
    #[error("a file of the server failed: {0}")]
    Io(#[from] io::Error),
}

impl From<ReadError> for ArchiveError {
    fn from(error: ReadError) -> Self {
        Self::Run(error.into())
    }
}

impl From<Refusal> for ArchiveError {
    fn from(error: Refusal) -> Self {
        Self::Run(error.into())
    }
}

impl From<ZipError> for ArchiveError {
    fn from(error: ZipError) -> Self {
        match error {
            ZipError::Io(error) => Self::Io(error),
            other => Self::BadArchive(other.to_string()),
        }
    }
}

impl From<LayoutError> for ArchiveError {
    fn from(error: LayoutError) -> Self {
        match error {
            LayoutError::Zip(error) => error.into(),
            damaged @ LayoutError::Damaged { .. } => Self::BadArchive(damaged.to_string()),
        }
    }
}
