//! Runs a small program of the desktop to its end: fed, listened to, and killed when it takes too
//! long.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::error::DesktopError;

/// Runs it with some standard input; what it prints. `name` is how errors call it.
pub(super) fn run(
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
    let outputs = finish(&mut child, input, deadline);
    let Some((stdout, stderr)) = outputs.filter(|_| has_ended(&child, deadline)) else {
        give_up(child);
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

/// Feeds the input and gathers both outputs until they end; none when that takes too long.
fn finish(child: &mut Child, input: &[u8], deadline: Instant) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut stdin = child.stdin.take()?;
    let input = input.to_vec();
    // A command that fails does not read its input: that is said by its exit code. Nobody waits for
    // the feeder: whoever inherited the input may hold it open for as long as it likes.
    thread::spawn(move || drop(stdin.write_all(&input)));
    let stdout = gather(child.stdout.take()?);
    let stderr = gather(child.stderr.take()?);
    let left = || deadline.saturating_duration_since(Instant::now());
    Some((
        stdout.recv_timeout(left()).ok()?,
        stderr.recv_timeout(left()).ok()?,
    ))
}

/// Waits until the program has ended, or the time has come; whether it has.
fn has_ended(child: &Child, deadline: Instant) -> bool {
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

/// Kills a program that takes too long, and leaves it to a thread to see its end: that may take its
/// time too, while it hangs in the kernel.
fn give_up(mut child: Child) {
    // That it may have ended meanwhile is no error.
    drop(child.kill());
    thread::spawn(move || drop(child.wait()));
}

fn gather(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is all there is to say; nobody may be waiting any more.
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
        run(&mut command, "the script", input, limit).map_err(|error| error.to_string())
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
