//! A `turnkeep up` or `turnkeep broker` under way: started until it says that it is ready, and
//! killed when it is dropped.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The arguments of a server on free ports that prints its addresses as JSON.
pub(crate) const UP: [&str; 6] = [
    "up",
    "--listen",
    "127.0.0.1:0",
    "--http",
    "127.0.0.1:0",
    "--json",
];

/// Far longer than a start takes on a busy machine.
const START_MAX: Duration = Duration::from_mins(1);

pub(crate) struct ServerProcess {
    child: KilledOnDrop,
    stdout: BufReader<ChildStdout>,
    /// The first line that it printed.
    pub(crate) first_line: String,
    /// The same line as JSON, if it is JSON.
    pub(crate) said: Value,
}

impl ServerProcess {
    /// Starts the command and waits for its first line, which it prints when it listens.
    pub(crate) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self::wait_for_first_line(command.stderr(Stdio::inherit()).spawn().unwrap())
    }

    /// The same for a child that was started with a pipe as its standard output.
    pub(crate) fn wait_for_first_line(mut child: Child) -> Self {
        let stdout = BufReader::new(child.stdout.take().unwrap());
        // Made before the wait, so that a test that fails here leaves no process behind.
        let killed_on_drop = KilledOnDrop(child);
        let (first_line, stdout) = read_first_line(stdout);
        Self {
            said: serde_json::from_str(&first_line).unwrap_or_default(),
            first_line,
            stdout,
            child: killed_on_drop,
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child.0)
    }

    /// The address of the binary protocol.
    pub(crate) fn tcp(&self) -> &str {
        self.said["tcp"].as_str().unwrap()
    }

    pub(crate) fn http(&self) -> &str {
        self.said["http"].as_str().unwrap()
    }

    /// The owner's token, from the link that it printed.
    pub(crate) fn token(&self) -> &str {
        let link = self.said["link"].as_str().unwrap();
        link.split_once("token=").unwrap().1
    }

    /// Sends a signal and waits for the end. Returns everything that was printed after the first
    /// line.
    pub(crate) fn end_by(&mut self, signal: Signal) -> (ExitStatus, String) {
        kill_process(self.pid(), signal).unwrap();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.0.wait().unwrap(), rest)
    }

    /// Asks it to end and waits.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        kill_process(self.pid(), Signal::TERM).unwrap();
        self.child.0.wait().unwrap()
    }

    /// Kills it at once.
    pub(crate) fn kill(self) {
        drop(self.child);
    }
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Both fail only when it has ended.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Reads a line in a thread of its own, because a pipe has no deadline.
fn read_first_line(mut stdout: BufReader<ChildStdout>) -> (String, BufReader<ChildStdout>) {
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || {
        let mut line = String::new();
        let read = stdout.read_line(&mut line);
        // The receiver is gone when the deadline has passed.
        sender.send(read.map(|_| (line, stdout))).ok();
    });
    let read = receiver.recv_timeout(START_MAX);
    let (line, stdout) = read.expect("it does not say that it is ready").unwrap();
    assert!(!line.is_empty(), "it ended without a word");
    (line, stdout)
}
