//! Runs the git program.
//!
//! Every command has a time limit, bounded output and an environment of its own: nothing of the
//! caller's `GIT_*` variables, no prompt, no hook, no network, messages in English. A command that
//! takes too long is killed with its whole process group. Errors carry the command and the last lines
//! of its error output.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use crate::error::WorkspaceError;
use crate::settings::Settings;

/// The most that one command may print.
const OUTPUT_BYTES_MAX: usize = 256 << 20;
/// The most of the error output that is read.
const ERRORS_BYTES_MAX: usize = 1 << 20;
/// How many lines of the error output an error shows.
const ERROR_LINES_MAX: usize = 5;
/// How long to wait between two looks at a process that closed its output and has not exited.
const EXIT_POLL: Duration = Duration::from_millis(2);

/// Variables that git needs from the caller's environment.
const INHERITED: [&str; 4] = ["PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR"];

/// Variables of every command.
const ENVIRONMENT: [(&str, &str); 9] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    // A partial clone would otherwise fetch missing objects.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C"),
];

/// Settings that stop git from running other programs, whatever the repository's own file says.
const OVERRIDES: [&str; 4] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.logAllRefUpdates=false",
    "gc.auto=0",
];

/// One command of git.
pub(crate) struct GitCall {
    command: Command,
    /// The arguments, for messages.
    label: String,
    input: Vec<u8>,
    also_accepted: Option<i32>,
    output_max: usize,
    time_limit: Duration,
}

/// What a command printed, and its exit code.
pub(crate) struct GitOutput {
    pub(crate) stdout: Vec<u8>,
    pub(crate) code: i32,
}

impl GitCall {
    /// A command that runs in a directory.
    pub(crate) fn new(settings: &Settings, directory: &Path) -> Self {
        let mut command = Command::new(&settings.git_program);
        // Cleared, because `GIT_DIR` and its like would lead git to another repository.
        command.current_dir(directory).env_clear();
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(ENVIRONMENT);
        for setting in OVERRIDES {
            command.args(["-c", setting]);
        }
        Self {
            command,
            label: "git".to_owned(),
            input: Vec::new(),
            also_accepted: None,
            output_max: OUTPUT_BYTES_MAX,
            time_limit: settings.git_time_limit,
        }
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        let argument = argument.as_ref();
        self.label.push(' ');
        self.label.push_str(&argument.to_string_lossy());
        self.command.arg(argument);
        self
    }

    pub(crate) fn args<'a>(self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        arguments.into_iter().fold(self, GitCall::arg)
    }

    /// The bytes for the standard input.
    pub(crate) fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = bytes;
        self
    }

    /// Accepts one more exit code than zero.
    pub(crate) fn accept_code(mut self, code: i32) -> Self {
        self.also_accepted = Some(code);
        self
    }

    /// Accepts less output than usual.
    pub(crate) fn limit_output(mut self, bytes: usize) -> Self {
        self.output_max = bytes;
        self
    }

    /// Runs the command and returns one line of its output.
    pub(crate) fn run_for_line(self) -> Result<String, WorkspaceError> {
        let command = self.label.clone();
        let stdout = self.run()?.stdout;
        let line = String::from_utf8(stdout).ok();
        line.map(|line| line.trim_end_matches('\n').to_owned())
            .ok_or(WorkspaceError::GitOutputUnexpected {
                command,
                what: "text that is not UTF-8",
            })
    }

    /// Runs the command to its end.
    pub(crate) fn run(mut self) -> Result<GitOutput, WorkspaceError> {
        let deadline = Instant::now() + self.time_limit;
        let mut child = self.start()?;
        let ended = self.exchange_bytes(&mut child, deadline);
        // Always, so that no process stays behind as a zombie.
        let waited = child.wait();
        let Some(streams) = ended else {
            return Err(WorkspaceError::GitTimedOut {
                command: self.label,
                limit: self.time_limit,
            });
        };
        // Too much output ends git by a signal, which is not the error to report. See `judge`.
        let status = waited.map_err(WorkspaceError::file("wait for", Path::new("git")))?;
        self.judge(status, streams)
    }

    fn start(&mut self) -> Result<Child, WorkspaceError> {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // In a group of its own, so that a time-out also ends what git started.
            .process_group(0);
        self.command
            .spawn()
            .map_err(|source| WorkspaceError::GitMissing {
                program: self.command.get_program().to_string_lossy().into_owned(),
                source,
            })
    }

    /// Writes the input and reads both outputs. Returns `None` if the deadline passed before all of
    /// them were closed and the process had exited.
    fn exchange_bytes(&self, child: &mut Child, deadline: Instant) -> Option<Streams> {
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut streams = Streams::default();
        let is_in_time = std::thread::scope(|scope| {
            let (done, finished) = sync_channel(3);
            let input = &self.input;
            let feed = move || {
                // A command that fails early closes its input; its exit code says why.
                stdin.is_none_or(|mut pipe| pipe.write_all(input).is_ok())
            };
            spawn_and_report(scope, &done, feed);
            let (output_max, out, errors) =
                (self.output_max, &mut streams.stdout, &mut streams.stderr);
            spawn_and_report(scope, &done, move || read_bounded(stdout, output_max, out));
            spawn_and_report(scope, &done, move || {
                read_bounded(stderr, ERRORS_BYTES_MAX, errors)
            });
            let is_in_time = wait_for_three(&finished, deadline) && has_exited(child, deadline);
            if !is_in_time {
                // Closes the pipes, so that the threads of this scope end.
                kill_group(child);
            }
            is_in_time
        });
        is_in_time.then_some(streams)
    }

    fn judge(self, status: ExitStatus, streams: Streams) -> Result<GitOutput, WorkspaceError> {
        if streams.stdout.len() > self.output_max {
            return Err(WorkspaceError::GitOutputTooLarge {
                command: self.label,
                max: self.output_max,
            });
        }
        match status.code() {
            Some(code) if code == 0 || Some(code) == self.also_accepted => Ok(GitOutput {
                stdout: streams.stdout,
                code,
            }),
            _ => Err(WorkspaceError::GitFailed {
                command: self.label,
                status: status.to_string(),
                stderr: last_lines(&streams.stderr),
            }),
        }
    }
}

#[derive(Default)]
struct Streams {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

fn spawn_and_report<'scope>(
    scope: &'scope Scope<'scope, '_>,
    done: &SyncSender<bool>,
    work: impl FnOnce() -> bool + Send + 'scope,
) {
    let done = done.clone();
    scope.spawn(move || {
        let ended = work();
        // The receiver is gone after a time-out.
        done.send(ended).unwrap_or_default();
    });
}

/// Reads one byte more than allowed, so that the caller sees that there was more. The pipe is closed
/// then, and git ends by itself.
fn read_bounded(pipe: Option<impl Read>, max: usize, out: &mut Vec<u8>) -> bool {
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    pipe.is_none_or(|pipe| pipe.take(limit).read_to_end(out).is_ok())
}

fn wait_for_three(finished: &Receiver<bool>, deadline: Instant) -> bool {
    for _ in 0..3 {
        let left = deadline.saturating_duration_since(Instant::now());
        match finished.recv_timeout(left) {
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}

fn has_exited(child: &mut Child, deadline: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return true,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(EXIT_POLL),
            Ok(None) | Err(_) => return false,
        }
    }
}

fn kill_group(child: &Child) {
    let group = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // An error means that the group has already exited.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL)
            .unwrap_or_default();
    }
}

fn last_lines(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(ERROR_LINES_MAX);
    lines.get(first..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a shell script as an alias of git.
    fn run_script(script: &str, limit: Duration, output_max: usize) -> Result<GitOutput, String> {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings {
            state_dir: dir.path().to_owned(),
            worktrees_dir: dir.path().to_owned(),
            private_dirs: Vec::new(),
            git_program: "git".into(),
            git_time_limit: limit,
            limits: crate::SnapshotLimits::default(),
        };
        GitCall::new(&settings, dir.path())
            .args(["-c", &format!("alias.frobnicate=!{script}"), "frobnicate"])
            .limit_output(output_max)
            .input(b"in".to_vec())
            .run()
            .map_err(|error| error.to_string())
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn output_and_input_pass_through() {
        let output = run_script("cat; exit 0", LONG, 10).unwrap();
        assert_eq!((output.stdout, output.code), (b"in".to_vec(), 0));
    }

    #[test]
    fn failures_name_the_command_and_its_last_words() {
        let error = run_script(
            "for n in 1 2 3 4 5 6 7; do echo $n >&2; done; exit 3",
            LONG,
            10,
        );
        let error = error.err().unwrap();
        assert!(
            error.contains("frobnicate` failed (exit status: 3)"),
            "{error}"
        );
        assert!(error.ends_with("3\n4\n5\n6\n7"), "{error}");
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        let error = run_script("sleep 3600 & sleep 3600", Duration::ZERO, 10).err();
        assert!(error.unwrap().contains("was stopped"));
    }

    #[test]
    fn endless_output_is_an_error() {
        let error = run_script("while :; do echo xxxxxxxxxxxxxxxx; done", LONG, 10).err();
        assert!(error.unwrap().contains("printed more than 10 bytes"));
    }

    #[test]
    fn no_variable_of_the_callers_repository_is_inherited() {
        let output = run_script("env | grep -c '^GIT_DIR=\\|^GIT_INDEX_FILE='", LONG, 10);
        assert!(output.err().unwrap().contains("exit status: 1"));
    }
}
