//! Programs that the tests run: each ends with its owner, and a missing one is named with its
//! package.

use std::io::{ErrorKind, Write};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A program under way, killed when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command, package: &str) -> Self {
        match command.spawn() {
            Ok(child) => Self(child),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                panic!(
                    "{} is missing: install the Debian package {package}",
                    command.get_program().display()
                )
            }
            Err(error) => panic!("{command:?}: {error}"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Runs a program to its end with some input.
pub(crate) fn output(command: &mut Command, package: &str, input: &[u8]) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = Running::start(command, package);
    let (mut stdin, input) = (running.0.stdin.take().unwrap(), input.to_vec());
    let feeder = thread::spawn(move || drop(stdin.write_all(&input)));
    let readers = [
        drain(running.0.stdout.take().unwrap()),
        drain(running.0.stderr.take().unwrap()),
    ];
    let status = eventually("the program ends", || running.0.try_wait().unwrap());
    feeder.join().unwrap();
    let [stdout, stderr] = readers.map(|reader| reader.join().unwrap());
    Output {
        status,
        stdout,
        stderr,
    }
}

fn drain(mut pipe: impl std::io::Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// Asks until there is an answer.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "it never happened that {what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Bytes that are neither UTF-8 nor repeat with the size of a piece.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    let states = std::iter::successors(Some(1_u32), next);
    states
        .map(|state| state.to_le_bytes()[3])
        .take(length)
        .collect()
}
