//! Lets a program of the server talk to an interactive program: JSON lines on one side, a terminal
//! on the other.
//!
//! ```text
//!  server ── JSON lines ──► conversation ── keys ─────► pseudo-terminal ─ program
//!         ◄─ JSON lines ──  (detector)   ◄─ output ──
//! ```
//!
//! The lines are those of the protocol `jsonl` ([`conversation`] lists the ones that it uses). One
//! thread decides; three others only move bytes, so that a program that does not read cannot keep
//! its own output from being read. The program ends when the lines end, and the bridge ends as the
//! program ended. If the bridge is killed, the terminal hangs up and the program gets SIGHUP.

mod conversation;
mod last_words;
mod queries;

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use turnkeep_session::detector::{Detector, Event, Profile, ProfileSpec, Size, TtyMode};

use super::error_stream::ErrorTarget;
use super::mode::ModeWatch;
use super::process::{ChildChange, ChildProcess};
use super::{ChildEnding, WrapError};
use conversation::{Conversation, Reaction};
use last_words::LastWords;

/// Wide, so that few lines of an answer are wrapped.
const SIZE: Size = Size {
    cols: 200,
    rows: 50,
};
const LINE_BYTES_MAX: u64 = 16 << 20;
const READ_BYTES_MAX: usize = 16 << 10;
/// How many pieces may wait on each way.
const PIECES_MAX: usize = 256;
/// How long a program may take to end after its terminal has hung up.
const END_WITHIN: Duration = Duration::from_secs(2);

/// What to run in the terminal.
#[derive(Debug)]
pub struct AgentTerminalOptions {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Finds the turns of the program.
    pub profile: Profile,
    /// How many presses of Esc interrupt a turn; without one Ctrl-C does.
    pub escapes: Option<u8>,
}

impl AgentTerminalOptions {
    /// How a profile says that turns are interrupted.
    pub fn escapes_of(spec: Option<&ProfileSpec>) -> Option<u8> {
        let interrupt = spec?.interrupt.as_ref()?;
        Some(interrupt.escapes)
    }
}

/// Something that happened around the conversation.
enum Happening {
    /// A line of the server.
    Line(Vec<u8>),
    /// The server says no more.
    LinesEnded,
    /// Output of the program.
    Output(Vec<u8>),
    /// The program has ended or is about to.
    OutputEnded,
}

/// Runs the program until it ends or the lines on standard input end.
pub fn run_agent_terminal(options: AgentTerminalOptions) -> Result<ChildEnding, WrapError> {
    let program = options.command.first().cloned().unwrap_or_default();
    let (master, slave) = open_terminal()?;
    let environment = [("TERM".to_owned(), "xterm-256color".to_owned())];
    let started = ChildProcess::start(&options.command, &environment, slave, ErrorTarget::Terminal);
    let mut running = started.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => WrapError::NotFound(program),
        _ => WrapError::NotStarted { program, source },
    })?;
    let master = Arc::new(master);
    let (sender, happenings) = sync_channel(PIECES_MAX);
    let keys = start_threads(&master, sender);
    let mut bridge = Bridge {
        conversation: Conversation::new(Detector::new(options.profile, SIZE), options.escapes),
        keys,
        mode: ModeWatch::new(),
        last_words: LastWords::default(),
        master,
        began: Instant::now(),
    };
    let first_end = bridge.run(&happenings)?;
    let ending = end_program(&mut running)?;
    if first_end == FirstEnd::Server {
        return Ok(ChildEnding::Exited(0));
    }
    // A program that fails says why on its terminal, and only this process sees that terminal.
    if ending != ChildEnding::Exited(0) {
        eprintln!("{}", bridge.last_words.read());
    }
    Ok(ending)
}

/// The side that ended the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstEnd {
    Server,
    Program,
}

fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    let size = Winsize {
        ws_row: SIZE.rows,
        ws_col: SIZE.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&master, size)?;
    Ok((master, slave))
}

/// Starts the threads that move bytes, and returns the way to the program's keyboard.
fn start_threads(master: &Arc<OwnedFd>, happenings: SyncSender<Happening>) -> SyncSender<Vec<u8>> {
    let (keys, to_type) = sync_channel(PIECES_MAX);
    let output = happenings.clone();
    let terminal = Arc::clone(master);
    thread::spawn(move || read_output(&terminal, &output));
    thread::spawn(move || read_lines(&happenings));
    let terminal = Arc::clone(master);
    thread::spawn(move || type_keys(&terminal, &to_type));
    keys
}

fn read_lines(happenings: &SyncSender<Happening>) {
    let mut input = BufReader::new(io::stdin().lock());
    loop {
        let mut line = Vec::new();
        let read = (&mut input)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line);
        // A line without its end is torn or too long: either way the lines behind it cannot be trusted.
        let ended = !matches!(read, Ok(1..)) || line.last() != Some(&b'\n');
        let happening = if ended {
            Happening::LinesEnded
        } else {
            Happening::Line(line)
        };
        if happenings.send(happening).is_err() || ended {
            return;
        }
    }
}

fn read_output(master: &OwnedFd, happenings: &SyncSender<Happening>) {
    loop {
        let mut piece = Vec::with_capacity(READ_BYTES_MAX);
        let read = rustix::io::read(master, rustix::buffer::spare_capacity(&mut piece));
        let happening = match read {
            Ok(1..) => Happening::Output(piece),
            Err(Errno::INTR) => continue,
            // Linux reports the end of a terminal's other side as an error.
            Ok(_) | Err(_) => Happening::OutputEnded,
        };
        let ended = matches!(happening, Happening::OutputEnded);
        if happenings.send(happening).is_err() || ended {
            return;
        }
    }
}

fn type_keys(master: &OwnedFd, to_type: &Receiver<Vec<u8>>) {
    while let Ok(keys) = to_type.recv() {
        let mut rest = keys.as_slice();
        while !rest.is_empty() {
            match rustix::io::write(master, rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                // The program has ended; its output says so.
                Err(_) => return,
            }
        }
    }
}

/// The conversation with its way to the program.
struct Bridge {
    conversation: Conversation,
    keys: SyncSender<Vec<u8>>,
    mode: ModeWatch,
    last_words: LastWords,
    master: Arc<OwnedFd>,
    began: Instant,
}

impl Bridge {
    /// Passes everything on until one of the two sides has ended.
    fn run(&mut self, happenings: &Receiver<Happening>) -> io::Result<FirstEnd> {
        loop {
            let happening = happenings.recv_timeout(self.pause());
            let now = self.began.elapsed();
            // The mode first: it says what the output that comes with it means, such as a prompt that
            // now reads whole lines.
            let mode = match happening {
                Err(RecvTimeoutError::Timeout) => self.mode.read_after_pause(&self.master),
                _ => self.mode.read_after_activity(&self.master),
            };
            if let Some(mode) = mode {
                let mode = TtyMode {
                    canonical: mode.canonical,
                    echo: mode.echo,
                };
                let reaction = self.conversation.observe(now, Event::TtyMode(mode));
                self.react(now, reaction)?;
            }
            let reaction = match happening {
                Ok(Happening::Line(line)) => self.conversation.receive_line(now, &line),
                Ok(Happening::Output(output)) => {
                    self.last_words.add(&output);
                    self.conversation.receive_output(now, &output)
                }
                Err(RecvTimeoutError::Timeout) => self.conversation.observe(now, Event::Tick),
                Ok(Happening::LinesEnded) => return Ok(FirstEnd::Server),
                Ok(Happening::OutputEnded) | Err(RecvTimeoutError::Disconnected) => {
                    return Ok(FirstEnd::Program);
                }
            };
            self.react(now, reaction)?;
        }
    }

    /// How long nothing is due.
    fn pause(&self) -> Duration {
        let now = self.began.elapsed();
        let deadline = self.conversation.deadline();
        let due_in = deadline.map(|at| at.saturating_sub(now));
        due_in.map_or(self.mode.due_in(), |due| due.min(self.mode.due_in()))
    }

    fn react(&mut self, now: Duration, mut reaction: Reaction) -> io::Result<()> {
        if !reaction.keys.is_empty() {
            let keys = std::mem::take(&mut reaction.keys);
            let seen = self.conversation.observe(now, Event::Input(&keys));
            // A program that has not read so many pieces will not read this one either.
            let typed = self.keys.try_send(keys);
            typed.map_err(|_| io::Error::other("the program does not read its terminal"))?;
            reaction.lines.extend(seen.lines);
        }
        let mut output = io::stdout().lock();
        for line in reaction.lines {
            writeln!(output, "{line}")?;
        }
        output.flush()
    }
}

/// Hangs the terminal up and waits for the end of the program.
fn end_program(running: &mut ChildProcess) -> io::Result<ChildEnding> {
    let child = running.child;
    // It may have ended already. The monitor's report is read below in either case.
    rustix::process::kill_process_group(child, Signal::HUP).ok();
    let mut changes = [PollFd::from_borrowed_fd(
        running.changes_fd(),
        PollFlags::IN,
    )];
    let within = Timespec::try_from(END_WITHIN).ok();
    if rustix::event::poll(&mut changes, within.as_ref())? == 0 {
        rustix::process::kill_process_group(child, Signal::KILL).ok();
    }
    loop {
        match running.next_change() {
            ChildChange::Exited(code) => return Ok(ChildEnding::Exited(code)),
            ChildChange::Killed(signal) => return Ok(ChildEnding::Killed(signal)),
            ChildChange::Stopped(_) => {}
        }
    }
}
