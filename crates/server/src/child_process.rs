//! A child process that reads and writes lines, and that never outlives this server.
//!
//! The process runs in a process group of its own. In the same group, a guard process waits at a
//! pipe that only this server holds open. The pipe closes when the server drops the
//! [`ChildProcess`] or ends, however it ends. Then the guard kills the group, and with it everything
//! that the process started.
//!
//! The module moves bytes and does not interpret them. It sets no time limits: callers put one
//! around [`ChildProcess::send_line`] and [`ChildProcess::receive_line`]. A caller that reads and
//! writes at the same time takes the parts instead ([`ChildProcess::into_parts`]).

use std::io::{ErrorKind, PipeReader, PipeWriter};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How long to wait for the exit status of a process that has closed a pipe.
const EXIT_WAIT: Duration = Duration::from_millis(200);

/// A shell script that starts the guard and then becomes the command. The guard kills its process
/// group when the pipe that it got as standard error closes. It holds none of the command's own
/// pipes and is not a child of the command.
///
/// `$1` is the path of the command's error output. A pipe has the path `/dev/fd/N`: a shell can
/// open it there, but cannot name a descriptor with two digits.
const GUARD_SCRIPT: &str = r#"exec 3<&2 2>/dev/null
( { read -r end <&3; kill -s KILL 0; } </dev/null >/dev/null & )
exec 3<&-
turnkeep_errors=$1
shift
exec "$@" 2>"$turnkeep_errors""#;

/// What to start.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChildCommand {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    /// Added to the server's own environment.
    pub(crate) env: Vec<(String, String)>,
    /// The working directory; absent for the server's own.
    pub(crate) cwd: Option<PathBuf>,
    /// Whether the error output can be read. It is discarded otherwise.
    pub(crate) keeps_errors: bool,
    /// The longest line that the process may write, in bytes.
    pub(crate) line_bytes_max: u64,
}

impl ChildCommand {
    /// A line for `sh`.
    pub(crate) fn shell(line: &str, line_bytes_max: u64) -> Self {
        Self {
            program: "sh".to_owned(),
            args: vec!["-c".to_owned(), line.to_owned()],
            line_bytes_max,
            ..Self::default()
        }
    }
}

/// A running child process. Dropping it kills the process and everything that it started.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line_bytes_max: u64,
    /// Where the process writes its errors, if the caller wants them.
    errors: Option<PipeReader>,
    /// Closes when this struct is dropped or the server ends. Then the guard kills the group.
    lifeline: PipeWriter,
}

/// A child process in parts, so that its pipes can be used at the same time.
#[derive(Debug)]
pub(crate) struct ChildParts {
    pub(crate) input: ChildStdin,
    pub(crate) output: BufReader<ChildStdout>,
    pub(crate) errors: Option<PipeReader>,
    pub(crate) group: ChildGroup,
}

/// A process and everything that it started. Dropping it kills all of them.
#[derive(Debug)]
pub(crate) struct ChildGroup {
    child: Child,
    _lifeline: PipeWriter,
}

impl ChildGroup {
    /// The process id, which is also the id of the group.
    pub(crate) fn id(&self) -> Option<Pid> {
        let id = i32::try_from(self.child.id()?).ok()?;
        Pid::from_raw(id)
    }

    /// Asks the process to stop what it does, as Ctrl-C would.
    pub(crate) fn interrupt(&self) {
        if let Some(id) = self.id() {
            // An error means that the process has ended.
            rustix::process::kill_process(id, Signal::INT).ok();
        }
    }

    /// Kills the process and everything that it started.
    pub(crate) fn kill(&self) {
        if let Some(id) = self.id() {
            rustix::process::kill_process_group(id, Signal::KILL).ok();
        }
    }

    /// Waits for the end of the process.
    pub(crate) async fn wait(&mut self) -> Option<ExitStatus> {
        self.child.wait().await.ok()
    }
}

impl Drop for ChildGroup {
    fn drop(&mut self) {
        // At once, not when the guard notices it. The guard serves a server that was killed, and
        // processes that outlived the one that started them.
        self.kill();
    }
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
    pub(crate) fn start(command: ChildCommand) -> Result<Self, ChildProcessError> {
        // The guard holds the read end. It reads end-of-file when this process drops or loses the
        // write end.
        let (guard_end, lifeline) = std::io::pipe().map_err(ChildProcessError::Start)?;
        let errors = ErrorPipe::open(command.keeps_errors).map_err(ChildProcessError::Start)?;
        let mut starter = Command::new("sh");
        if let Some(cwd) = &command.cwd {
            starter.current_dir(cwd);
        }
        let mut child = starter
            .args(["-c", GUARD_SCRIPT, "sh", &errors.path, &command.program])
            .args(&command.args)
            .envs(command.env)
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
            errors: errors.reader,
            lifeline,
        })
    }

    /// Takes the process apart. The caller bounds the lines that it reads.
    pub(crate) fn into_parts(self) -> ChildParts {
        ChildParts {
            input: self.input,
            output: self.output,
            errors: self.errors,
            group: ChildGroup {
                child: self.child,
                _lifeline: self.lifeline,
            },
        }
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

/// Where a process writes its errors.
struct ErrorPipe {
    path: String,
    reader: Option<PipeReader>,
    /// Open until the process has opened the path itself.
    _writer: Option<PipeWriter>,
}

impl ErrorPipe {
    fn open(is_kept: bool) -> std::io::Result<Self> {
        if !is_kept {
            return Ok(Self {
                path: "/dev/null".to_owned(),
                reader: None,
                _writer: None,
            });
        }
        let (reader, writer) = std::io::pipe()?;
        // The shell must inherit the writing end, so it is not close-on-exec. Another process that
        // starts at this moment may inherit it too and keep it open. Readers of this pipe must
        // therefore not wait for its end.
        rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty())?;
        Ok(Self {
            path: format!("/dev/fd/{}", writer.as_raw_fd()),
            reader: Some(reader),
            _writer: Some(writer),
        })
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
        ChildProcess::start(ChildCommand::shell(shell_line, 16)).unwrap()
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

    #[tokio::test]
    async fn errors_are_read_apart_and_arguments_stay_whole() {
        let command = ChildCommand {
            program: "printf".to_owned(),
            args: vec!["%s|".to_owned(), "a b".to_owned(), "$(c)\"'".to_owned()],
            keeps_errors: true,
            line_bytes_max: 64,
            ..ChildCommand::default()
        };
        let mut parts = ChildProcess::start(command).unwrap().into_parts();
        let mut output = String::new();
        parts.output.read_to_string(&mut output).await.unwrap();
        assert_eq!(output, "a b|$(c)\"'|");
        let command = ChildCommand {
            keeps_errors: true,
            ..ChildCommand::shell("echo oops >&2; echo done; pwd", 64)
        };
        let command = ChildCommand {
            cwd: Some("/".into()),
            ..command
        };
        let mut parts = ChildProcess::start(command).unwrap().into_parts();
        let mut output = String::new();
        parts.output.read_to_string(&mut output).await.unwrap();
        assert_eq!(output, "done\n/\n");
        let mut errors = parts.errors.take().unwrap();
        let mut line = [0; 5];
        std::io::Read::read_exact(&mut errors, &mut line).unwrap();
        assert_eq!(&line, b"oops\n");
    }

    #[tokio::test]
    async fn a_group_is_killed_with_everything_that_it_started() {
        let line = "sleep 1000 & echo $!; wait";
        let mut parts = ChildProcess::start(ChildCommand::shell(line, 64))
            .unwrap()
            .into_parts();
        let mut grandchild = String::new();
        parts.output.read_line(&mut grandchild).await.unwrap();
        let grandchild = Pid::from_raw(grandchild.trim().parse().unwrap()).unwrap();
        assert!(rustix::process::test_kill_process(grandchild).is_ok());
        parts.group.kill();
        assert_eq!(parts.group.wait().await.unwrap().signal(), Some(9));
        // The output closes when the last process that holds it is gone.
        let mut rest = String::new();
        parts.output.read_to_string(&mut rest).await.unwrap();
    }
}
