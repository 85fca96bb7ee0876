//! A child process that reads and writes lines, and that never outlives this server.
//!
//! The process runs a shell command in a process group of its own. In the same group, a guard
//! process waits at a pipe that only this server holds open. The pipe closes when the server drops
//! the [`ChildProcess`] or ends, however it ends. Then the guard kills the group, and with it
//! everything that the command started.
//!
//! The module moves bytes and does not interpret them. It sets no time limits: callers put
//! one around [`ChildProcess::send_line`] and [`ChildProcess::receive_line`].

use std::io::{ErrorKind, PipeWriter};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How long to wait for the exit status of a process that has closed a pipe.
const EXIT_WAIT: Duration = Duration::from_millis(200);

/// A shell script that starts the guard and then becomes the command. The guard kills its process
/// group when the pipe that it got as standard error closes. It holds none of the command's own
/// pipes and is not a child of the command.
const GUARD_SCRIPT: &str = r#"exec 3<&2 2>/dev/null
( { read -r end <&3; kill -s KILL 0; } </dev/null >/dev/null & )
exec 3<&-
exec sh -c "$0""#;

/// What to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChildCommand<'a> {
    /// The command, as a line for `sh`.
    pub(crate) shell_line: &'a str,
    /// The longest line that the process may write, in bytes.
    pub(crate) line_bytes_max: u64,
}

/// A running child process. Dropping it kills the process and everything that it started.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line_bytes_max: u64,
    /// Closes when this struct is dropped or the server ends. Then the guard kills the group.
    _lifeline: PipeWriter,
}

/// Why a child process cannot be used any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildProcessError {
    #[error("it cannot be started: {0}")]
    Start(std::io::Error),
    #[error("it cannot be written to or read from: {0}")]
    Io(#[from] std::io::Error),
    #[error("{}", describe_exit(*.0))]
    Ended(Option<ExitStatus>),
    #[error("a line is longer than {0} bytes")]
    LineTooLong(u64),
}

/// Describes how a program ended. A shell exits with 127 or 126 if it cannot start a program.
fn describe_exit(status: Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return "it closed its pipes".to_owned();
    };
    match (status.code(), status.signal()) {
        (Some(127), _) => "it ended with exit status 127: there is no such program".to_owned(),
        (Some(126), _) => {
            "it ended with exit status 126: it is no program that may be run".to_owned()
        }
        (Some(code), _) => format!("it ended with exit status {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

impl ChildProcess {
    /// Starts a command.
    pub(crate) fn start(command: ChildCommand<'_>) -> Result<Self, ChildProcessError> {
        // The guard holds the read end. It reads end-of-file when this process drops or loses the
        // write end.
        let (guard_end, lifeline) = std::io::pipe().map_err(ChildProcessError::Start)?;
        let mut child = Command::new("sh")
            .args(["-c", GUARD_SCRIPT, command.shell_line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(guard_end)
            // A group of its own, so that the guard kills the command and its children, but not
            // the server.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(ChildProcessError::Start)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(ChildProcessError::Ended(None));
        };
        Ok(Self {
            child,
            input,
            output: BufReader::new(output),
            line_bytes_max: command.line_bytes_max,
            _lifeline: lifeline,
        })
    }

    /// Whether the process runs and has written nothing that was not received yet.
    pub(crate) async fn is_idle(&mut self) -> bool {
        let runs = matches!(self.child.try_wait(), Ok(None));
        // A zero timeout only polls. Both data and end-of-file make `fill_buf` return.
        runs && tokio::time::timeout(Duration::ZERO, self.output.fill_buf())
            .await
            .is_err()
    }

    /// Sends a line. It also waits for the process to end, because another process may hold the
    /// pipe open after that, and a full pipe would block for ever.
    pub(crate) async fn send_line(&mut self, mut line: String) -> Result<(), ChildProcessError> {
        line.push('\n');
        let Self { input, child, .. } = self;
        let send = async {
            input.write_all(line.as_bytes()).await?;
            input.flush().await
        };
        let sent = tokio::select! {
            // The process may end right after it has read the line. Then the line was sent.
            biased;
            sent = send => sent,
            status = child.wait() => return Err(ChildProcessError::Ended(status.ok())),
        };
        match sent {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                Err(ChildProcessError::Ended(self.exit_status().await))
            }
            sent => Ok(sent?),
        }
    }

    /// Receives a line, without its line end. A last line without a line end is not a line.
    pub(crate) async fn receive_line(&mut self) -> Result<Vec<u8>, ChildProcessError> {
        let mut line = Vec::new();
        let max = self.line_bytes_max;
        let Self { output, child, .. } = self;
        // The limit keeps a process that writes no line ends from filling the memory.
        let mut bounded = output.take(max);
        tokio::select! {
            // What the process wrote before it ended still counts, so output comes first.
            biased;
            read = bounded.read_until(b'\n', &mut line) => drop(read?),
            _ = child.wait() => read_remaining(self.output.get_ref(), &mut line, max)?,
        }
        if line.len() as u64 >= max {
            return Err(ChildProcessError::LineTooLong(max));
        }
        match line.pop() {
            Some(b'\n') => Ok(line),
            Some(_) | None => Err(ChildProcessError::Ended(self.exit_status().await)),
        }
    }

    /// The exit status of a process that has closed a pipe, usually by ending.
    async fn exit_status(&mut self) -> Option<ExitStatus> {
        tokio::time::timeout(EXIT_WAIT, self.child.wait())
            .await
            .ok()
            .and_then(Result::ok)
    }
}

/// Reads the rest of a line that an ended process left in the pipe. It does not wait for another
/// process that may hold the pipe open.
fn read_remaining(
    output: &ChildStdout,
    line: &mut Vec<u8>,
    line_bytes_max: u64,
) -> std::io::Result<()> {
    let mut piece = [0; 4096];
    while line.last() != Some(&b'\n') && (line.len() as u64) < line_bytes_max {
        match rustix::io::read(output, &mut piece) {
            Ok(0) | Err(rustix::io::Errno::AGAIN) => return Ok(()),
            Ok(read) => {
                let piece = piece.get(..read).unwrap_or_default();
                let end = piece
                    .iter()
                    .position(|byte| *byte == b'\n')
                    .map_or(read, |end| end + 1);
                line.extend_from_slice(piece.get(..end).unwrap_or_default());
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stopped_time::StoppedTime;

    fn start(shell_line: &str) -> ChildProcess {
        ChildProcess::start(ChildCommand {
            shell_line,
            line_bytes_max: 16,
        })
        .unwrap()
    }

    #[tokio::test]
    async fn lines_go_to_the_process_and_come_back() {
        let mut process = start("cat");
        assert!(process.is_idle().await);
        for line in ["one", "", "two \u{fc}"] {
            process.send_line(line.to_owned()).await.unwrap();
            assert_eq!(process.receive_line().await.unwrap(), line.as_bytes());
        }
        assert!(process.is_idle().await);
    }

    #[tokio::test]
    async fn the_error_says_how_the_process_ended() {
        // On a stopped clock, an exit status is waited for however long it takes.
        let time = StoppedTime::begin();
        for (shell_line, expect) in [
            (
                "/nonexistent/program",
                "it ended with exit status 127: there is no such program",
            ),
            ("exit 3", "it ended with exit status 3"),
            ("printf unfinished; exit 4", "it ended with exit status 4"),
            ("kill -s TERM $$", "it was ended by signal 15"),
            (
                "echo 0123456789abcdef; cat",
                "a line is longer than 16 bytes",
            ),
        ] {
            let error = start(shell_line).receive_line().await.unwrap_err();
            assert_eq!(error.to_string(), expect, "{shell_line}");
        }
        let mut process = start("exec 1>&-; read -r line");
        let received = time.advance_until(EXIT_WAIT, process.receive_line());
        assert_eq!(
            received.await.unwrap_err().to_string(),
            "it closed its pipes"
        );
    }

    #[tokio::test]
    async fn lines_that_an_ended_process_wrote_are_received() {
        let _time = StoppedTime::begin();
        let mut process = start("echo one; echo two; exit 3");
        assert_eq!(process.receive_line().await.unwrap(), b"one");
        assert_eq!(process.receive_line().await.unwrap(), b"two");
        let error = process.receive_line().await.unwrap_err();
        assert_eq!(error.to_string(), "it ended with exit status 3");
    }

    #[tokio::test]
    async fn output_that_was_not_received_is_not_idle() {
        let mut process = start("read -r line; echo more; echo done; cat");
        process.send_line(String::new()).await.unwrap();
        assert_eq!(process.receive_line().await.unwrap(), b"more");
        // The second line may still be on its way.
        while process.is_idle().await {
            tokio::task::yield_now().await;
        }
        assert_eq!(process.receive_line().await.unwrap(), b"done");
    }
}
