//! A terminal for tests: a pseudo-terminal in which a program runs as it would in a window.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, OutputModes, Termios, Winsize};

/// The longest that anything here may take.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) const TURNKEEP: &str = env!("CARGO_BIN_EXE_turnkeep");

pub(crate) struct Terminal {
    master: OwnedFd,
    slave: OwnedFd,
    child: Child,
    seen: Vec<u8>,
    home: tempfile::TempDir,
    is_left: bool,
    /// The settings before the program started.
    pub(crate) first_settings: Termios,
}

impl Terminal {
    /// Runs `turnkeep wrap ARGS` in a terminal of 100 by 30.
    pub(crate) fn wrap(args: &[&str]) -> Self {
        Self::wrap_with(args, &[])
    }

    /// The same with more in the environment.
    pub(crate) fn wrap_with(args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::run([TURNKEEP, "wrap"].iter().chain(args), env)
    }

    /// Runs any program in a terminal. It leads its session, as a shell in a window does.
    pub(crate) fn run<S: AsRef<OsStr>>(
        argv: impl IntoIterator<Item = S>,
        env: &[(&str, &str)],
    ) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags).unwrap();
        rustix::termios::tcsetwinsize(&master, size(100, 30)).unwrap();
        let first_settings = rustix::termios::tcgetattr(&slave).unwrap();
        let home = tempfile::tempdir().unwrap();
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .args(argv)
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio());
        command
            .env("HOME", home.path())
            .env("PS1", "$ ")
            .env_remove("XDG_RUNTIME_DIR");
        command
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .env("TERM", "xterm")
            .env("PATH", path());
        command.envs(env.iter().copied());
        let child = command
            .spawn()
            .expect("setsid is missing: install the package util-linux");
        Self {
            master,
            slave,
            child,
            seen: Vec::new(),
            home,
            is_left: false,
            first_settings,
        }
    }

    pub(crate) fn home(&self) -> &std::path::Path {
        self.home.path()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn settings(&self) -> Termios {
        rustix::termios::tcgetattr(&self.slave).unwrap()
    }

    /// Whether the terminal is as the wrapper sets it; a shell that edits a line leaves its output
    /// cooked.
    pub(crate) fn is_raw(&self) -> bool {
        let settings = self.settings();
        !settings.local_modes.contains(LocalModes::ICANON)
            && !settings.output_modes.contains(OutputModes::OPOST)
    }

    /// Whether keys reach a program one by one and are not echoed; a shell that edits a line sets
    /// the same.
    pub(crate) fn is_uncooked(&self) -> bool {
        !self
            .settings()
            .local_modes
            .intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    pub(crate) fn resize(&self, cols: u16, rows: u16) {
        rustix::termios::tcsetwinsize(&self.master, size(cols, rows)).unwrap();
    }

    pub(crate) fn type_bytes(&mut self, mut bytes: &[u8]) {
        let deadline = Instant::now() + PATIENCE;
        while !bytes.is_empty() {
            assert!(Instant::now() < deadline, "the program does not read");
            if self
                .poll(PollFlags::OUT | PollFlags::IN)
                .contains(PollFlags::IN)
            {
                self.read();
                continue;
            }
            // A little at a time: what does not fit would block us while the program blocks on its
            // output.
            let piece = &bytes[..bytes.len().min(1024)];
            let written = rustix::io::write(&self.master, piece).unwrap();
            bytes = &bytes[written..];
        }
    }

    /// Reads until this was printed after everything that was waited for before; gives what came up
    /// to it.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self
                .seen
                .windows(text.len())
                .position(|window| window == text.as_bytes());
            if let Some(at) = found {
                let before: Vec<u8> = self.seen.drain(..at + text.len()).collect();
                return String::from_utf8_lossy(&before).into_owned();
            }
            assert!(
                Instant::now() < deadline,
                "{text:?} was never printed, only: {}",
                self.shown()
            );
            assert!(
                self.poll(PollFlags::IN).is_empty() || self.read(),
                "ended without {text:?}"
            );
        }
    }

    /// Reads until this was printed; counts the bytes before it instead of keeping them.
    pub(crate) fn count_until(&mut self, text: &str) -> usize {
        let mut deadline = Instant::now() + PATIENCE;
        let mut passed = 0;
        loop {
            if let Some(at) = self
                .seen
                .windows(text.len())
                .position(|window| window == text.as_bytes())
            {
                self.seen.drain(..at + text.len());
                return passed + at;
            }
            assert!(Instant::now() < deadline, "{text:?} was never printed");
            let old = self.seen.len().saturating_sub(text.len());
            passed += self.seen.drain(..old).count();
            if !self.poll(PollFlags::IN).is_empty() {
                assert!(self.read(), "ended without {text:?}");
                // Only silence counts: a busy machine may take minutes for much output.
                deadline = Instant::now() + PATIENCE;
            }
        }
    }

    /// The end of the output, for messages.
    fn shown(&self) -> String {
        let start = self.seen.len().saturating_sub(2000);
        self.seen[start..].escape_ascii().to_string()
    }

    /// Reads everything until the program has ended; gives what was not waited for, and how it
    /// ended.
    pub(crate) fn finish(&mut self) -> (Vec<u8>, ExitStatus) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ended = self.child.try_wait().unwrap();
            while self.poll(PollFlags::IN).contains(PollFlags::IN) && self.read() {}
            if let Some(status) = ended {
                return (std::mem::take(&mut self.seen), status);
            }
            assert!(
                Instant::now() < deadline,
                "does not end; printed {}",
                self.shown()
            );
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Sends a signal that has no name.
    pub(crate) fn signal_number(&self, number: i32) {
        let pid = self.pid().as_raw_nonzero().to_string();
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{number} {pid}")])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Reads and waits until something about the program holds.
    pub(crate) fn wait_for(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(
                Instant::now() < deadline,
                "never: {what}; printed {}",
                self.shown()
            );
            if self.poll(PollFlags::IN).contains(PollFlags::IN) {
                self.read();
            }
        }
    }

    /// Reads for a second; gives the processor time that the program uses in it, in hundredths of
    /// a second.
    pub(crate) fn cpu_ticks_of_a_second(&mut self) -> u64 {
        let (since, before) = (Instant::now(), self.cpu_ticks());
        self.wait_for("time passes", |_| since.elapsed() > Duration::from_secs(1));
        self.cpu_ticks() - before
    }

    /// Takes the terminal away, as closing its window does. Gives the home directory, which stays.
    pub(crate) fn hang_up(self) -> tempfile::TempDir {
        let mut this = self;
        let home = std::mem::replace(&mut this.home, tempfile::tempdir().unwrap());
        let null = std::fs::File::open("/dev/null").unwrap();
        this.slave = null.try_clone().unwrap().into();
        this.master = null.into();
        // The program ends by itself. The caller waits for that before it reads what is left.
        this.is_left = true;
        home
    }

    /// Processor time that the program has used, in hundredths of a second.
    fn cpu_ticks(&self) -> u64 {
        let path = format!("/proc/{}/stat", self.pid().as_raw_nonzero());
        let stat = std::fs::read_to_string(path).unwrap();
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// A line of `/proc/PID/status` of the program.
    pub(crate) fn status_line(&self, name: &str) -> String {
        let path = format!("/proc/{}/status", self.pid().as_raw_nonzero());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_default();
        line.trim_start_matches(':').trim().to_owned()
    }

    fn poll(&self, flags: PollFlags) -> PollFlags {
        let mut fds = [PollFd::from_borrowed_fd(self.master.as_fd(), flags)];
        let pause = Timespec {
            tv_sec: 0,
            tv_nsec: 10_000_000,
        };
        rustix::event::poll(&mut fds, Some(&pause)).unwrap();
        fds[0].revents()
    }

    fn read(&mut self) -> bool {
        self.seen.reserve(1 << 16);
        rustix::io::read(&self.master, rustix::buffer::spare_capacity(&mut self.seen))
            .is_ok_and(|read| read > 0)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !self.is_left {
            self.child.kill().ok();
        }
        self.child.wait().ok();
    }
}

fn size(cols: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn path() -> String {
    std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned())
}
