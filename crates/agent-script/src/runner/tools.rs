//! What tools really do: commands, files, calls, and what a broken program does to itself.

use std::fs::File;
use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal as UnixSignal, getpid, kill_process};
use serde_json::{Value, json};

use super::files::{append_file, delete_file, write_file};
use super::{Event, Exit, Flow, Runner, Signal, ToolDone, Wake};
use crate::mcp::{McpError, McpServer, McpSession};
use crate::player::Play;
use crate::tool::{ToolAction, ToolOutcome, ToolStatus, ToolUse};

/// The rest of a command's output is cut off.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
const SLEEPER_SECONDS: &str = "600";

impl Runner {
    /// Uses a tool and reports its outcome to the play.
    pub(super) fn perform(&mut self, play: &mut Play, tool: &ToolUse) -> Result<Flow, Exit> {
        let outcome = match &tool.action {
            ToolAction::Run { command } => return self.run_command(play, command),
            ToolAction::Call { name, args } => return self.call_tool(play, name, args),
            ToolAction::Write { path, content } => {
                let written = write_file(&self.resolve(path), content.as_bytes());
                file_outcome(written, &format!("File created successfully at: {path}"))
            }
            ToolAction::Append { path, content } => {
                let written = append_file(&self.resolve(path), content.as_bytes());
                file_outcome(written, &format!("The file {path} has been updated."))
            }
            ToolAction::Delete { path } => {
                file_outcome(delete_file(&self.resolve(path)), &format!("Deleted {path}"))
            }
            ToolAction::Show {
                result, ok: true, ..
            } => ToolOutcome::completed(result),
            ToolAction::Show {
                result, ok: false, ..
            } => ToolOutcome::failed(result),
        };
        play.finish_tool(outcome);
        Ok(Flow::GoOn)
    }

    fn run_command(&mut self, play: &mut Play, command: &str) -> Result<Flow, Exit> {
        let directory = self.resolve("");
        let mut shell = Command::new("/bin/sh");
        // One pipe for both streams keeps their order.
        shell.arg("-c").arg(format!("exec 2>&1\n{command}"));
        if !directory.as_os_str().is_empty() {
            shell.current_dir(&directory);
        }
        // A command that reads its input must not eat the conversation.
        let spawned = shell.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let child = match spawned {
            Ok(child) => child,
            Err(error) => {
                play.finish_tool(ToolOutcome::failed(format!(
                    "cannot start a shell: {error}"
                )));
                return Ok(Flow::GoOn);
            }
        };
        let pid = Pid::from_child(&child);
        let job = self.start_job(move || (collect_output(child), None))?;
        let flow = self.await_tool(play, job)?;
        if matches!(flow, Flow::Interrupted) {
            stop_command(pid);
        }
        Ok(flow)
    }

    fn call_tool(&mut self, play: &mut Play, name: &str, args: &Value) -> Result<Flow, Exit> {
        if self.protocol.carries_calls() {
            self.speak(|protocol, out| protocol.send_call(name, args, out))?;
            return self.await_call_answer(play);
        }
        let Some(server) = self.protocol.mcp_server().cloned() else {
            play.finish_tool(ToolOutcome::failed("there is no MCP server"));
            return Ok(Flow::GoOn);
        };
        // The thread owns the session for the call, and hands it back with the outcome.
        let session = self.session.take();
        let (name, args) = (name.to_owned(), args.clone());
        let job = self.start_job(move || match continue_session(server, session) {
            Ok(mut session) => {
                let called = session.call_tool(&name, &args);
                let outcome = called.unwrap_or_else(|error| ToolOutcome::failed(error.to_string()));
                (outcome, Some(session))
            }
            Err(error) => (ToolOutcome::failed(error.to_string()), None),
        })?;
        self.await_tool(play, job)
    }

    fn await_call_answer(&mut self, play: &mut Play) -> Result<Flow, Exit> {
        let waited = self.wait(play, None, |runner, signal| match signal {
            Some(Signal::CallAnswer(outcome)) => Some(outcome),
            _ if runner.input_ended => Some(ToolOutcome::failed("the other side left")),
            _ => None,
        })?;
        match waited {
            Wake::Found(outcome) => {
                play.finish_tool(outcome);
                Ok(Flow::GoOn)
            }
            Wake::Interrupted | Wake::TimedOut => Ok(Flow::Interrupted),
        }
    }

    /// Runs `work` in a thread, which reports back as an event.
    fn start_job(
        &mut self,
        work: impl FnOnce() -> (ToolOutcome, Option<McpSession>) + Send + 'static,
    ) -> Result<u64, Exit> {
        self.jobs_started += 1;
        let job = self.jobs_started;
        let sender = self.sender.clone();
        let run = move || {
            let (outcome, session) = work();
            // After an interrupt the runner no longer waits for this.
            drop(sender.send(Event::ToolDone(Box::new(ToolDone {
                job,
                outcome,
                session,
            }))));
        };
        let started = std::thread::Builder::new()
            .name("tool".to_owned())
            .spawn(run);
        match started {
            Ok(_) => Ok(job),
            Err(error) => Err(super::fail(format!("cannot start a thread: {error}"))),
        }
    }

    fn await_tool(&mut self, play: &mut Play, job: u64) -> Result<Flow, Exit> {
        let waited = self.wait(play, None, |_, signal| match signal {
            Some(Signal::ToolDone(done)) if done.job == job => Some(done),
            _ => None,
        })?;
        match waited {
            Wake::Found(done) => {
                self.session = done.session;
                play.finish_tool(done.outcome);
                Ok(Flow::GoOn)
            }
            Wake::Interrupted | Wake::TimedOut => Ok(Flow::Interrupted),
        }
    }
}

fn file_outcome(written: Result<(), String>, success: &str) -> ToolOutcome {
    match written {
        Ok(()) => ToolOutcome::completed(success),
        Err(problem) => ToolOutcome::failed(problem),
    }
}

/// The session of the last call, unless the server has changed since.
fn continue_session(server: McpServer, last: Option<McpSession>) -> Result<McpSession, McpError> {
    match last {
        Some(session) if session.is_with(&server) => Ok(session),
        _ => McpSession::open(server),
    }
}

fn collect_output(mut child: Child) -> ToolOutcome {
    let mut bytes = Vec::new();
    if let Some(output) = child.stdout.take() {
        let read = output.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        if let Err(error) = read {
            bytes.extend_from_slice(format!("\n[{error}]").as_bytes());
        }
    }
    // A command that was killed has no code.
    let code = child.wait().ok().and_then(|status| status.code());
    let output = String::from_utf8_lossy(&bytes).into_owned();
    let is_ok = code == Some(0);
    ToolOutcome {
        status: if is_ok {
            ToolStatus::Completed
        } else {
            ToolStatus::Failed
        },
        value: json!({"output": output, "exit": code}),
        output,
        exit_code: code,
    }
}

/// Kills a command and what it started. The command is in the agent's own process group, so that
/// whoever kills the agent's group kills it too; its descendants are therefore found one by one.
fn stop_command(pid: Pid) {
    let list = format!("/proc/{0}/task/{0}/children", pid.as_raw_nonzero());
    // Where the system has no such list, the shell is all that can be stopped.
    let children = std::fs::read_to_string(list).unwrap_or_default();
    for child in children.split_whitespace() {
        if let Some(child) = child.parse().ok().and_then(Pid::from_raw) {
            stop_command(child);
        }
    }
    match kill_process(pid, UnixSignal::KILL) {
        // It may have ended by itself.
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => eprintln!("turnkeep-agent-script: cannot stop a command: {error}"),
    }
}

/// Changes the files of a directory as a patch says, or none of them.
pub(super) fn apply_patch(directory: &Path, patch: &str) -> Result<(), String> {
    let here = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let cannot = |error: std::io::Error| format!("cannot run git apply: {error}");
    let here = here.canonicalize().map_err(cannot)?;
    let mut command = Command::new("git");
    command
        .args(["apply", "--whitespace=nowarn", "-"])
        .current_dir(&here)
        // Paths are relative to this directory, also if it is only a part of a repository.
        .env("GIT_CEILING_DIRECTORIES", here.parent().unwrap_or(&here))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot)?;
    let written = child
        .stdin
        .take()
        .map(|mut input| input.write_all(patch.as_bytes()));
    let ended = child.wait_with_output().map_err(cannot)?;
    if !ended.status.success() {
        let errors = String::from_utf8_lossy(&ended.stderr);
        return Err(format!("the patch does not fit: {}", errors.trim()));
    }
    written.transpose().map(drop).map_err(cannot)
}

/// Starts a child that sleeps in the agent's process group, and notes its id.
pub(super) fn spawn_sleeper(pid_file: &Path, holds_output: bool) -> Result<Child, String> {
    let mut command = Command::new("sleep");
    command
        .arg(SLEEPER_SECONDS)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    if !holds_output {
        command.stdout(Stdio::null());
    }
    let child = command
        .spawn()
        .map_err(|error| format!("cannot start sleep: {error}"))?;
    write_file(pid_file, child.id().to_string().as_bytes())?;
    Ok(child)
}

/// Ends this process as `kill -9` does.
pub(super) fn kill_self() {
    if let Err(error) = kill_process(getpid(), UnixSignal::KILL) {
        eprintln!("turnkeep-agent-script: cannot kill itself: {error}");
    }
}

/// Closes the other side's view of standard output. The descriptor itself stays valid, so that a
/// file opened later cannot take its number.
pub(super) fn close_output() -> Result<(), String> {
    let null = File::options().write(true).open("/dev/null");
    let null = null.map_err(|error| format!("/dev/null: {error}"))?;
    rustix::stdio::dup2_stdout(&null).map_err(|error| format!("cannot close output: {error}"))
}
