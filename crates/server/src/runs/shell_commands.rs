//! Runs the commands of a run's settings: those that verify it, and those that set a worktree up.
//!
//! A command is supervised like an agent program: it leads a process group of its own with a guard,
//! it is recorded, and it is killed with everything that it started. That happens when it takes too
//! long, and when the future is dropped: by an interrupt, by the deletion of the run, or by the end
//! of the server. Of its output only the end is kept.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::process_records::ProcessRecord;
use super::services::RunServices;
use crate::child_process::{ChildCommand, ChildParts, ChildProcess};

/// How much of a command's output is kept, in bytes.
const OUTPUT_BYTES_MAX: usize = 256 << 10;
/// How long to wait for the last output of a command that has ended. Another process may hold the
/// pipe open.
const LAST_OUTPUT_WITHIN: Duration = Duration::from_millis(200);

/// A command to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShellCommand<'a> {
    /// A line for `sh`.
    pub(super) line: &'a str,
    pub(super) directory: &'a Path,
    pub(super) time_limit: Duration,
}

/// A command that was run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandResult {
    pub(super) line: String,
    pub(super) exit: CommandExit,
    /// The last bytes that it printed: output and errors in the order in which they came.
    pub(super) output: String,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandExit {
    /// With this status.
    Status(i32),
    /// By a signal.
    Killed,
    /// It took longer than this and was killed.
    TimedOut(Duration),
    /// It could not be started.
    NotStarted(String),
}

impl CommandResult {
    pub(super) fn is_success(&self) -> bool {
        self.exit == CommandExit::Status(0)
    }

    /// What went wrong, with the last `bytes_max` bytes of the output.
    pub(super) fn describe_failure(&self, bytes_max: usize) -> String {
        let start = self.output.len().saturating_sub(bytes_max);
        let start = self.output.ceil_char_boundary(start);
        let tail = self.output.get(start..).unwrap_or_default();
        let how = self.exit.describe();
        format!("`{}` {how}:\n{}", self.line, tail.trim_end())
    }
}

impl CommandExit {
    /// The exit status, if there is one.
    pub(super) fn code(&self) -> Option<i32> {
        match self {
            Self::Status(code) => Some(*code),
            Self::Killed | Self::TimedOut(_) | Self::NotStarted(_) => None,
        }
    }

    /// What went wrong, in words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Status(code) => format!("failed with exit status {code}"),
            Self::Killed => "was killed".to_owned(),
            Self::TimedOut(limit) => {
                let limit = limit.as_secs_f64();
                format!("took longer than {limit} s and was ended")
            }
            Self::NotStarted(error) => format!("cannot run: {error}"),
        }
    }
}

/// A running command.
struct RunningCommand {
    parts: ChildParts,
    _record: ProcessRecord,
}

/// Runs a command to its end. Dropping the future kills it.
pub(super) async fn run_command(
    services: &Arc<RunServices>,
    command: ShellCommand<'_>,
) -> CommandResult {
    let mut output = OutputTail::default();
    let exit = match start(services, command).await {
        Ok(running) => {
            let ended = tokio::time::timeout(command.time_limit, read_to_end(running, &mut output));
            ended
                .await
                .unwrap_or(CommandExit::TimedOut(command.time_limit))
        }
        Err(error) => CommandExit::NotStarted(error),
    };
    CommandResult {
        line: command.line.to_owned(),
        exit,
        output: output.into_text(),
    }
}

async fn start(
    services: &Arc<RunServices>,
    command: ShellCommand<'_>,
) -> Result<RunningCommand, String> {
    // Errors and output in the order in which they were printed, as a person would see them.
    let line = format!("exec 2>&1\n{}", command.line);
    let child = ChildCommand {
        cwd: Some(command.directory.to_owned()),
        ..ChildCommand::shell(&line, 0)
    };
    let records = Arc::clone(services);
    let start = move || {
        let parts = ChildProcess::start(child)?.into_parts();
        let record = records.process_records.add(parts.group.id());
        Ok::<_, crate::child_process::ChildProcessError>(RunningCommand {
            parts,
            _record: record,
        })
    };
    let started = services.run_file_work(start).await;
    let started = started.map_err(|error| error.to_string())?;
    started.map_err(|error| error.to_string())
}

/// Reads the output until the command has ended. The group is killed when `running` is dropped.
async fn read_to_end(running: RunningCommand, output: &mut OutputTail) -> CommandExit {
    let ChildParts {
        input,
        output: mut pipe,
        mut group,
        ..
    } = running.parts;
    // A command that reads its input finds the end at once.
    drop(input);
    let status = tokio::select! {
        biased;
        status = group.wait() => status,
        () = output.fill_from(&mut pipe) => group.wait().await,
    };
    // What is in the pipe still counts.
    let rest = tokio::time::timeout(LAST_OUTPUT_WITHIN, output.fill_from(&mut pipe));
    rest.await.unwrap_or_default();
    match status.and_then(|status| status.code()) {
        Some(code) => CommandExit::Status(code),
        None => CommandExit::Killed,
    }
}

/// The last bytes of an output.
#[derive(Debug, Default)]
struct OutputTail {
    bytes: Vec<u8>,
    was_cut: bool,
}

impl OutputTail {
    /// Reads to the end of a pipe. If the future is dropped, the bytes read so far are kept.
    async fn fill_from(&mut self, pipe: &mut (impl AsyncRead + Unpin)) {
        let mut piece = vec![0; 16 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut piece).await {
            self.add(piece.get(..count).unwrap_or_default());
        }
    }

    fn add(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        // Twice the limit, so that most pieces move no bytes.
        if self.bytes.len() > 2 * OUTPUT_BYTES_MAX {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let excess = self.bytes.len().saturating_sub(OUTPUT_BYTES_MAX);
        if excess > 0 {
            self.bytes.drain(..excess);
            self.was_cut = true;
        }
    }

    fn into_text(mut self) -> String {
        self.cut();
        let text = String::from_utf8_lossy(&self.bytes);
        if self.was_cut {
            format!("[…]\n{text}")
        } else {
            text.into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_an_output_is_kept() {
        let mut tail = OutputTail::default();
        for _ in 0..5 {
            tail.add(&vec![b'x'; OUTPUT_BYTES_MAX]);
            assert!(tail.bytes.len() <= 2 * OUTPUT_BYTES_MAX);
        }
        tail.add(b"the end");
        let text = tail.into_text();
        assert!(text.starts_with("[…]\nx") && text.ends_with("the end"));
        assert_eq!(text.len(), OUTPUT_BYTES_MAX + "[…]\n".len());
        let mut short = OutputTail::default();
        short.add(b"all\xff");
        assert_eq!(short.into_text(), "all\u{fffd}");
    }

    #[test]
    fn a_failure_says_how_the_command_ended_and_quotes_its_end() {
        let limit = Duration::from_millis(1500);
        for (exit, expect) in [
            (
                CommandExit::Status(3),
                "`make` failed with exit status 3:\nüber",
            ),
            (CommandExit::Killed, "`make` was killed:\nüber"),
            (
                CommandExit::TimedOut(limit),
                "`make` took longer than 1.5 s and was ended:\nüber",
            ),
            (
                CommandExit::NotStarted("no shell".to_owned()),
                "`make` cannot run: no shell:\nüber",
            ),
        ] {
            let result = CommandResult {
                line: "make".to_owned(),
                exit,
                output: "lines above\nüber\n".to_owned(),
            };
            assert!(!result.is_success());
            assert_eq!(result.describe_failure(6), expect);
        }
    }
}
