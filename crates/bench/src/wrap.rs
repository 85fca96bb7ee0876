//! What `turnkeep wrap` costs: output against `script`, and the echo of a key against no wrapper at
//! all.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use super::figures::{Measured, Round, Rounds, count_f64};
use super::scratch::ScratchDir;
use super::table::Row;
use super::{Effort, report_progress};

/// Output that goes through in one round.
const OUTPUT_BYTES: usize = 256 << 20;
const OUTPUT_BYTES_QUICK: usize = 1 << 20;
const KEYS: usize = 5000;
const KEYS_QUICK: usize = 20;
/// The least rate of output, as a share of the rate of `script`.
const OUTPUT_RATIO_LEAST: f64 = 0.5;
/// What a key may cost more than without the wrapper, 99 times of 100.
const KEY_ADDED_MOST_MS: f64 = 1.0;
const PATIENCE_SECONDS: i64 = 60;
/// A program that sends back each byte that it is sent.
const ECHO: &str = "stty raw -echo; printf r; exec cat";

/// The two ends of a new terminal.
struct Terminal {
    master: OwnedFd,
    slave: OwnedFd,
}

impl Terminal {
    fn open() -> Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
        // A new terminal has no size, and programs would print for one column.
        let size = Winsize {
            ws_row: 40,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&master, size)?;
        Ok(Self { master, slave })
    }
}

/// A program in a terminal of its own, which ends with this value.
pub(super) struct TerminalProgram {
    master: OwnedFd,
    child: Child,
}

impl TerminalProgram {
    pub(super) fn start(argv: &[&str], home: &Path) -> Result<Self> {
        let Terminal { master, slave } = Terminal::open()?;
        // A session of its own, so that the terminal becomes its controlling terminal.
        let mut command = Command::new("setsid");
        command.arg("--ctty").args(argv).env("HOME", home);
        // Without a runtime directory there is no broker, whose work would be measured too.
        command.env_remove("XDG_RUNTIME_DIR");
        command
            .stdin(Stdio::from(slave.try_clone()?))
            .stdout(Stdio::from(slave.try_clone()?))
            .stderr(Stdio::from(slave));
        let child = command.spawn();
        Ok(Self {
            master,
            child: child.context("cannot run setsid: install the package util-linux")?,
        })
    }

    pub(super) fn type_keys(&self, keys: &[u8]) -> Result<()> {
        // A few bytes: the terminal takes them at once or not at all.
        let written = rustix::io::write(&self.master, keys)?;
        ensure!(written == keys.len(), "the terminal takes no keys");
        Ok(())
    }

    /// Reads once; 0 when the program has ended.
    pub(super) fn read_output(&self, buffer: &mut [u8]) -> Result<usize> {
        let mut fds = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
        let patience = Timespec {
            tv_sec: PATIENCE_SECONDS,
            tv_nsec: 0,
        };
        ensure!(
            rustix::event::poll(&mut fds, Some(&patience))? > 0,
            "the program in the terminal is silent"
        );
        match rustix::io::read(&self.master, buffer) {
            // Linux reports EIO when the last program has closed the terminal.
            Err(rustix::io::Errno::IO) => Ok(0),
            read => Ok(read?),
        }
    }
}

impl Drop for TerminalProgram {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Megabytes per second of everything that a program prints.
fn output_rate(argv: &[&str], home: &Path, least: usize) -> Result<f64> {
    let terminal = TerminalProgram::start(argv, home)?;
    let begin = Instant::now();
    let mut came = 0;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match terminal.read_output(&mut buffer)? {
            0 => break,
            read => came += read,
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(
        came >= least,
        "only {came} of {least} bytes came through {argv:?}"
    );
    Ok(count_f64(came) / 1e6 / seconds)
}

/// The time from a key to its echo.
fn time_echoes(argv: &[&str], home: &Path, keys: usize) -> Result<Measured> {
    let terminal = TerminalProgram::start(argv, home)?;
    let mut buffer = [0; 4096];
    // The program prints r when it is in raw mode and ready to echo.
    while !buffer.contains(&b'r') {
        let read = terminal.read_output(&mut buffer)?;
        ensure!(read > 0, "the program in the terminal did not start");
    }
    let begin = Instant::now();
    let mut latencies: Vec<Duration> = Vec::with_capacity(keys);
    for _ in 0..keys {
        let pressed = Instant::now();
        terminal.type_keys(b"k")?;
        let read = terminal.read_output(&mut buffer)?;
        ensure!(read > 0, "the program in the terminal has ended");
        latencies.push(pressed.elapsed());
    }
    Ok(Measured::from_latencies(begin.elapsed(), latencies))
}

/// Measures both.
pub(super) fn measure_wrap(effort: &Effort, scratch: &ScratchDir) -> Result<Vec<Row>> {
    let home = scratch.create_folder("wrap")?;
    let exe = std::env::current_exe()?;
    let exe = exe.to_str().context("the program's path is not UTF-8")?;
    Ok(vec![
        measure_output(effort, &home, exe)?,
        measure_keys(effort, &home, exe)?,
    ])
}

fn measure_output(effort: &Effort, home: &Path, exe: &str) -> Result<Row> {
    report_progress("wrap: output");
    let bytes = effort.quick_or(OUTPUT_BYTES_QUICK, OUTPUT_BYTES);
    let file = home.join("output");
    // Lines of text, as programs print them: the wrapper looks at every byte for escape sequences.
    let line = b"the quick brown fox jumps over the lazy dog 0123456789 0123456789\n";
    let output: Vec<u8> = line.iter().copied().cycle().take(bytes).collect();
    std::fs::write(&file, output)?;
    let name = file
        .to_str()
        .context("the scratch directory is not UTF-8")?;
    let script = format!("cat '{name}'");
    let mut rounds = Rounds::default();
    for _ in 0..effort.rounds {
        rounds.push(Round {
            bare: output_rate(&["script", "-qc", &script, "/dev/null"], home, bytes)?,
            ours: output_rate(&[exe, "wrap", "--", "cat", name], home, bytes)?,
        });
    }
    let name = "wrap: megabytes of output, against script";
    Ok(Row::plain_rate(name, rounds.ours())
        .with_bare_and_ratio(rounds.bare(), rounds.ratio())
        .at_least_ratio(OUTPUT_RATIO_LEAST))
}

fn measure_keys(effort: &Effort, home: &Path, exe: &str) -> Result<Row> {
    report_progress("wrap: keys");
    let keys = effort.quick_or(KEYS_QUICK, KEYS);
    let mut rounds = Rounds::default();
    for _ in 0..effort.rounds {
        let bare = time_echoes(&["sh", "-c", ECHO], home, keys)?;
        let ours = time_echoes(&[exe, "wrap", "--", "sh", "-c", ECHO], home, keys)?;
        rounds.push(Round {
            bare: bare.p99_ms,
            ours: ours.p99_ms,
        });
    }
    let goal = format!("< {KEY_ADDED_MOST_MS:.0} ms above bare");
    let row = Row::millis("wrap: a key and its echo, p99", rounds.ours()).with_bare(rounds.bare());
    // The difference and not the ratio: a person feels milliseconds, however fast the bare echo is.
    Ok(row.goal(&goal, rounds.difference() < KEY_ADDED_MOST_MS))
}
