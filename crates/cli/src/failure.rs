//! How a command fails: a message, what to do next, and the exit code.

use std::io::ErrorKind;
use std::process::ExitCode;

use serde_json::json;

use crate::http::HttpRefusal;

/// An error with a hint for the person.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    usage: bool,
}

impl Failure {
    /// Something did not work.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            usage: false,
        }
    }

    /// The command was called wrongly.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            usage: true,
        }
    }

    /// Says what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The error of a check that worked, found problems and has already printed them. Only the exit code
/// is left to set.
#[derive(Debug, thiserror::Error)]
#[error("the check found problems")]
pub(crate) struct ProblemsReported;

/// Prints an error, as text or as JSON, and chooses the exit code.
pub(crate) fn report_error(error: &anyhow::Error, is_json: bool) -> ExitCode {
    // `turnkeep log 1 | head -1` has done what the person wanted.
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    if error.is::<ProblemsReported>() {
        return ExitCode::from(1);
    }
    let failure = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Failure>());
    let refused = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<HttpRefusal>());
    let hint = failure.and_then(|failure| failure.hint.clone());
    let hint = hint
        .or_else(|| refused.and_then(HttpRefusal::hint))
        .or_else(|| io_hint(error));
    if is_json {
        eprintln!("{}", json!({ "error": format!("{error:#}"), "hint": hint }));
    } else {
        eprintln!("error: {error:#}");
        hint.inspect(|hint| eprintln!("hint: {hint}"));
    }
    ExitCode::from(if failure.is_some_and(|failure| failure.usage) {
        2
    } else {
        1
    })
}

/// Ends the command because its command line is wrong or asks for help.
pub(crate) fn end_by_usage(error: &clap::Error, is_json: bool) -> ! {
    // Help and version go to standard output as text, also with --json.
    if !is_json || !error.use_stderr() {
        error.exit()
    }
    let said = error.render().to_string();
    // clap separates the error, its tip and the usage by empty lines; only the first two are useful
    // in JSON.
    let mut parts = said
        .trim()
        .split("\n\n")
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    let what = parts.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    eprintln!("{}", json!({ "error": what, "hint": parts.next() }));
    std::process::exit(error.exit_code())
}

/// The hint for an I/O error that has none of its own.
fn io_hint(error: &anyhow::Error) -> Option<String> {
    let io = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<std::io::Error>())?;
    match io.kind() {
        ErrorKind::NotFound => {
            Some("check the name, and in which directory the command runs".to_owned())
        }
        ErrorKind::PermissionDenied => {
            Some("check who owns it, or run the command as that user".to_owned())
        }
        ErrorKind::StorageFull => Some("free some space and try again".to_owned()),
        _ => None,
    }
}

/// Whether the reader of our output has closed the pipe, as `head` does. That is not a failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<OutputError>();
    io.is_some_and(|error| error.0.kind() == ErrorKind::BrokenPipe)
}

/// Writing to standard output failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output")]
pub(crate) struct OutputError(#[from] pub(crate) std::io::Error);
