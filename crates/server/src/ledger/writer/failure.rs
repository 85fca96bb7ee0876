//! Why an attached writer failed, for the audit and for the operator.

use crate::child_process::ChildProcessError;

/// Why a writer failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriterFailure {
    #[error(transparent)]
    Process(#[from] ChildProcessError),
    #[error("it did not finish within {0} s")]
    TimeOut(u64),
    #[error("it printed a line that is no tool request, proposal or no_write: {0}")]
    Garbage(String),
    #[error("it asked more than a beat may ask")]
    LoopLimit,
    #[error("it proposed a bundle for another request: it is out of step")]
    OutOfStep,
    #[error("its question could not be answered: {0}")]
    Tool(String),
    #[error("the server stops")]
    Stopping,
}

impl WriterFailure {
    /// The process has ended.
    pub(super) fn ended() -> Self {
        Self::Process(ChildProcessError::Ended(None))
    }

    /// Whether the process must end. At the loop limit the writer got an error and finished;
    /// every other failure leaves it in an unknown state.
    pub(super) fn ends_process(&self) -> bool {
        !matches!(self, Self::LoopLimit)
    }

    /// The message for the operator. The writer's own words may come from private entries, so only
    /// the audit gets them.
    pub(super) fn public_message(&self) -> String {
        let message = match self {
            Self::Garbage(_) => {
                "it printed a line that is no tool request, proposal or no_write".to_owned()
            }
            Self::Tool(_) => "its question could not be answered".to_owned(),
            Self::Process(_)
            | Self::TimeOut(_)
            | Self::LoopLimit
            | Self::OutOfStep
            | Self::Stopping => self.to_string(),
        };
        // The message goes into an HTTP header, which allows printable ASCII only.
        message.replace(|c: char| !(' '..='~').contains(&c), "?")
    }
}
