//! Runs a program in a pseudo-terminal of its own, between the user's terminal and the program.
//!
//! ```text
//!  user's terminal ◄──────── byte path (one thread, poll) ────────► pseudo-terminal ─ child
//!                               │ tap: bounded copy      ▲ injected bytes
//!                               ▼                        │
//!                            observer thread        anybody
//! ```
//!
//! Every byte passes unchanged, in order and at once; standard error stays apart where output goes
//! to a file or a pipe ([`errors`]). The program sees the user's size, settings, signals and
//! environment, and the wrapper ends as the program ended. The user's terminal gets its settings
//! back on every way out. Nothing that looks at the bytes can delay or lose one.

mod capture;
mod end_of_input;
mod errors;
mod hooks;
mod inbox;
mod inject;
mod job;
mod keep;
mod line_ends;
mod mode;
mod observer;
mod outbox;
mod patience;
mod process;
mod pump;
mod record;
mod relay;
mod share;
mod signals;
mod tally;
mod tap;
mod terminal;
mod typed;
mod watch;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, OptionalActions, OutputModes};

pub use capture::{Capture, Captured, Outlet};
pub use hooks::{HookSetup, Hooks};
pub use inject::{Framing, InjectError, Injected, Injector, WAITING_BYTES_MAX, inject_queue};
pub use keep::{Keep, Label, Troubles};
pub use mode::TtyMode;
pub use observer::{Blind, Observer};
pub use process::die_of;
pub use relay::{RING_TURNS_MAX, Relay, Session, StoreAnswers};
pub use share::Share;
pub use tally::Tally;
pub use tap::{LAG_BYTES_KEPT, LAG_BYTES_MAX, Sight};

use errors::{Errors, ErrorsTo};
use line_ends::LineEnds;
use observer::{Observed, Observing, Started};
use patience::Patience;
use process::Running;
use pump::{Pump, State};
use record::Recorder;
use signals::Signals;
use tap::Tap;
use terminal::UserTerminal;

/// What to run and how.
#[derive(Debug, Default)]
pub struct Options {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Variables that the program gets beside its own environment.
    pub environment: Vec<(String, String)>,
    /// Where to write a recording.
    pub record: Option<PathBuf>,
    /// Whether queries of the status protocol (OSC 7501) are answered in the terminal's place.
    pub answers_status: bool,
    /// A fault to inject, for tests.
    pub fault: Option<Fault>,
}

/// A fault that a test asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The byte path panics at the first output.
    BytePath,
    /// The byte path calls itself at the first output until its stack has run over.
    Stack,
    /// The observer's thread panics at once.
    Observer,
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// What there is to say after the program has ended.
#[derive(Debug)]
pub struct Report {
    /// How it ended.
    pub ending: Ending,
    /// What went wrong beside the byte path.
    pub notes: Vec<String>,
}

/// Why the program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum WrapError {
    /// There is no such program.
    #[error("{}: command not found", .0.display())]
    NotFound(OsString),
    /// The program is there but cannot be started.
    #[error("{}: cannot be started", program.display())]
    NotStarted {
        /// Its name.
        program: OsString,
        /// Why.
        source: io::Error,
    },
    /// The recording cannot be written.
    #[error("cannot write the recording {}", path.display())]
    Record {
        /// Its name.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system gave no pseudo-terminal, or lost it.
    #[error("the pseudo-terminal does not work")]
    Pty(#[from] io::Error),
}

/// Runs the program to its end. Blocks; takes over standard input and output and the process's
/// signals.
pub fn run(
    options: &Options,
    observer: Box<dyn Observer>,
    injected: Injected,
) -> Result<Report, WrapError> {
    let user = UserTerminal::open();
    let recording = options
        .record
        .as_ref()
        .map(|path| begin(path, options))
        .transpose()?;
    let (master, slave) = open_pty(&user)?;
    let (errors_to, errors) = Errors::open(&user)?;
    let running = start(options, slave, errors_to).inspect_err(|_| unrecord(options))?;
    let signals = Signals::listen()?;
    terminal::guard_against_panic();
    let tap = Tap::new();
    let child = running.child.as_raw_nonzero().get().unsigned_abs();
    let observing = Observing::start(
        tap.clone(),
        Started {
            observer,
            child,
            fault: options.fault,
        },
    )?;
    let line_ends = (!user.shows_output()).then(LineEnds::default);
    let mut pump = Pump {
        user,
        line_ends,
        master: Some(Arc::new(master)),
        errors,
        running,
        signals,
        injected,
        tap: tap.clone(),
        recording,
        answers_status: options.answers_status,
        fault: options.fault,
        state: State::new(),
    };
    let ending = pump.begin().and_then(|()| pump.run());
    tap.end();
    let Pump {
        user,
        master,
        injected,
        signals,
        recording,
        state,
        ..
    } = pump;
    // Puts the terminal back.
    drop((user, master, injected));
    let mut patience = Patience::new(signals);
    let recorded = recording.map_or(Ok(()), |recording| recording.finish(&mut patience));
    let observed = observing.finish(&mut patience);
    let refused = state
        .refused
        .filter(|error| *error != Errno::PIPE)
        .map(io::Error::from);
    Ok(Report {
        notes: notes(refused, recorded, observed),
        ending: ending?,
    })
}

fn notes(refused: Option<io::Error>, recorded: io::Result<()>, observed: Observed) -> Vec<String> {
    let refused = refused.map(|error| format!("the output could not be written: {error}"));
    let recorded = recorded
        .err()
        .map(|error| format!("the recording is not complete: {error}"));
    let observed = match observed {
        Observed::All => None,
        Observed::Panicked => {
            let said = terminal::take_panic().unwrap_or_default();
            Some(format!(
                "detection stopped early, no turns were found after that: {said}"
            ))
        }
        Observed::Late => {
            Some("detection was not finished, the last turns may be missing".to_owned())
        }
    };
    refused
        .into_iter()
        .chain(recorded)
        .chain(observed)
        .collect()
}

fn begin(path: &Path, options: &Options) -> Result<Recorder, WrapError> {
    let size = UserTerminal::screen_size();
    let argv: Vec<String> = options
        .command
        .iter()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let created = Recorder::create(path, (size.ws_col, size.ws_row), &argv);
    created.map_err(|source| WrapError::Record {
        path: path.to_owned(),
        source,
    })
}

/// Of a program that was not started there is nothing to record: the corrected command may have the
/// name.
fn unrecord(options: &Options) {
    if let Some(path) = &options.record
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::debug!(%error, "an empty recording stays");
    }
}

fn start(options: &Options, slave: OwnedFd, errors: ErrorsTo) -> Result<Running, WrapError> {
    let program = options.command.first().cloned().unwrap_or_default();
    Running::start(&options.command, &options.environment, slave, errors).map_err(|source| {
        match source.kind() {
            io::ErrorKind::NotFound => WrapError::NotFound(program),
            _ => WrapError::NotStarted { program, source },
        }
    })
}

/// A pseudo-terminal with the size and the settings of the user's. Its master side does not block.
/// For a file or a pipe bytes pass as the program writes them: no carriage returns are added.
fn open_pty(user: &UserTerminal) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    let mut unechoed = rustix::termios::tcgetattr(&slave)?;
    // What comes through a pipe was not typed: nobody wants to see it twice.
    unechoed.local_modes.remove(LocalModes::ECHO);
    let mut settings = user.settings().unwrap_or(unechoed);
    if !user.shows_output() {
        settings.output_modes.remove(OutputModes::OPOST);
    }
    rustix::termios::tcsetattr(slave.as_fd(), OptionalActions::Now, &settings)?;
    rustix::termios::tcsetwinsize(&master, UserTerminal::size())?;
    rustix::io::ioctl_fionbio(&master, true)?;
    Ok((master, slave))
}
