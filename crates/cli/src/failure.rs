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

    /// This failure as the result of a function that has a value otherwise.
    pub(crate) fn fail<T>(self) -> anyhow::Result<T> {
        Err(self.into())
    }

    fn exit_code(&self) -> u8 {
        if self.usage { USAGE_CODE } else { FAILURE_CODE }
    }
}

/// Exit codes. The code of wrong usage is clap's own, so a script sees one code whoever finds the
/// mistake.
const FAILURE_CODE: u8 = 1;
const USAGE_CODE: u8 = 2;

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
        return ExitCode::from(FAILURE_CODE);
    }
    let hint = find_hint(error);
    if is_json {
        eprintln!("{}", json!({ "error": format!("{error:#}"), "hint": hint }));
    } else {
        eprintln!("error: {error:#}");
        hint.inspect(|hint| eprintln!("hint: {hint}"));
    }
    let failure = find_cause::<Failure>(error);
    ExitCode::from(failure.map_or(FAILURE_CODE, Failure::exit_code))
}

/// The first cause of an error that has this type. Context may have been added around it.
fn find_cause<E: std::error::Error + 'static>(error: &anyhow::Error) -> Option<&E> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

/// What the person can do. A command's own hint wins, because it knows what the person wanted.
fn find_hint(error: &anyhow::Error) -> Option<String> {
    let own = find_cause::<Failure>(error).and_then(|failure| failure.hint.clone());
    own.or_else(|| find_cause::<HttpRefusal>(error)?.hint())
        .or_else(|| io_hint(error))
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
    let mut parts = said.trim().split("\n\n").map(join_lines);
    let what = parts.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    eprintln!("{}", json!({ "error": what, "hint": parts.next() }));
    std::process::exit(error.exit_code())
}

fn join_lines(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The hint for an I/O error that has none of its own.
fn io_hint(error: &anyhow::Error) -> Option<String> {
    let hint = match find_cause::<std::io::Error>(error)?.kind() {
        ErrorKind::NotFound => "check the name, and in which directory the command runs",
        ErrorKind::PermissionDenied => "check who owns it, or run the command as that user",
        ErrorKind::StorageFull => "free some space and try again",
        _ => return None,
    };
    Some(hint.to_owned())
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
