//! Runs a small program of the desktop to its end: feeds its input, reads its output, and kills it
//! when it takes too long.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::error::DesktopError;

/// Runs a program with some standard input, and returns what it prints. `name` is its name in
/// errors.
pub(super) fn run_program(
    command: &mut Command,
    name: &str,
    input: &[u8],
    limit: Duration,
) -> Result<Vec<u8>, DesktopError> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(DesktopError::io(format!(
        "cannot run the program {program}"
    )))?;
    let deadline = Instant::now() + limit;
    let outputs = exchange(&mut child, input, deadline);
    // A program may close its outputs and go on running.
    let Some(ProgramOutput { stdout, stderr }) = outputs.filter(|_| wait_for_end(&child, deadline))
    else {
        kill_and_reap(child);
        return Err(DesktopError::ProgramStuck {
            command: name.to_owned(),
            seconds: limit.as_secs(),
        });
    };
    let status = child
        .wait()
        .map_err(DesktopError::io(format!("cannot wait for {program}")))?;
    if status.success() {
        return Ok(stdout);
    }
    let message = String::from_utf8_lossy(&stderr).trim().to_owned();
    Err(DesktopError::Program {
        command: name.to_owned(),
        message,
    })
}

/// The output of a program.
struct ProgramOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Feeds the input and reads both outputs until they end; `None` when that takes too long.
fn exchange(child: &mut Child, input: &[u8], deadline: Instant) -> Option<ProgramOutput> {
    let mut stdin = child.stdin.take()?;
    let input = input.to_vec();
    // A program that fails does not read its input, and its exit code says so. The feeder is not
    // joined: another process may have inherited the input and hold it open.
    thread::spawn(move || drop(stdin.write_all(&input)));
    let stdout = read_in_background(child.stdout.take()?);
    let stderr = read_in_background(child.stderr.take()?);
    let left = || deadline.saturating_duration_since(Instant::now());
    Some(ProgramOutput {
        stdout: stdout.recv_timeout(left()).ok()?,
        stderr: stderr.recv_timeout(left()).ok()?,
    })
}

/// Waits until the program has ended, or the deadline; returns whether it has ended.
fn wait_for_end(child: &Child, deadline: Instant) -> bool {
    // A process descriptor, because `waitpid` has no time limit.
    let Ok(process) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else {
        return false;
    };
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now()));
        let mut fds = [PollFd::new(&process, PollFlags::IN)];
        match poll(&mut fds, left.ok().as_ref()) {
            Ok(ready) => return ready > 0,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Kills a program that takes too long, and leaves it to a thread to reap it: that may take time
/// too, while it hangs in the kernel.
fn kill_and_reap(mut child: Child) {
    // It may have ended meanwhile.
    drop(child.kill());
    thread::spawn(move || drop(child.wait()));
}

fn read_in_background(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // After an error, the bytes before it count. The receiver may be gone.
        drop(pipe.read_to_end(&mut bytes));
        drop(sender.send(bytes));
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &[u8], limit: Duration) -> Result<Vec<u8>, String> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run_program(&mut command, "the script", input, limit).map_err(|error| error.to_string())
    }

    #[test]
    fn a_program_is_fed_and_heard_or_ended() {
        let long = Duration::from_mins(1);
        assert_eq!(shell("cat", &vec![7; 1 << 20], long), Ok(vec![7; 1 << 20]));
        assert_eq!(shell("exit 0", &vec![7; 1 << 20], long), Ok(vec![]));
        let failed = "`the script` failed: no luck".to_owned();
        assert_eq!(shell("echo no luck >&2; exit 3", b"", long), Err(failed));
        let stuck = "`the script` did not end within 0 s".to_owned();
        let short = Duration::from_millis(20);
        for script in ["exec sleep 600", "exec >&- 2>&-; exec sleep 600"] {
            assert_eq!(shell(script, b"", short), Err(stuck.clone()), "{script}");
        }
    }

    #[test]
    fn one_that_leaves_its_input_to_another_is_not_waited_for() {
        // The one behind it never reads: the input does not fit in the pipe.
        let leaves = "exec 3<&0; sleep 2 <&3 >/dev/null 2>&1 & echo done";
        assert_eq!(
            shell(leaves, &vec![7; 1 << 20], Duration::from_mins(1)),
            Ok(b"done\n".to_vec())
        );
    }
}
