//! Runs a program in a pseudo-terminal of its own, between the user's terminal and the program.
//!
//! ```text
//!  user's terminal ◄──────── byte path (one thread, poll) ────────► pseudo-terminal ─ child
//!                               │ tap: limited copy      ▲ injected bytes
//!                               ▼                        │
//!                            observer thread        any thread
//! ```
//!
//! Every byte passes unchanged, in order and at once. Standard error stays apart where output goes
//! to a file or a pipe ([`error_stream`]). The program sees the user's window size, settings,
//! signals and environment, and the wrapper ends as the program ended. The user's terminal gets its
//! settings back on every way out. An observer can neither delay nor lose a byte; its failures
//! become notes in the [`WrapReport`].

mod agent_terminal;
mod broker_outlet;
mod child_input;
mod end_deadline;
mod end_of_input;
mod error_stream;
mod hooks;
mod inject;
mod job;
mod key_boundary;
mod line_ends;
mod mode;
mod observer;
mod output_buffer;
mod output_scanner;
mod process;
mod pump;
mod record;
mod session_counts;
mod share;
mod signals;
mod store_outlet;
mod tap;
mod terminal;
mod turn_finder;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, OptionalActions, OutputModes};
use turnkeep_session::screen::Size;

pub use agent_terminal::{AgentTerminalOptions, run_agent_terminal};
pub use broker_outlet::{BrokerOutlet, BrokerSession, RING_TURNS_MAX, StoreAnswers};
pub use hooks::{HookSetup, Hooks};
pub use inject::{
    InjectError, InjectReceiver, Injector, PasteFraming, WAITING_BYTES_MAX, inject_queue,
};
pub use mode::TtyMode;
pub use observer::{NoObserver, Observer};
pub use process::die_of_signal;
pub use session_counts::SessionCounts;
pub use share::SharedTerminal;
pub use store_outlet::{SessionLabel, StoreOutlet, StoreProblems};
pub use tap::{LAG_BYTES_KEPT, LAG_BYTES_MAX, TapEvent};
pub use turn_finder::{TurnFinder, TurnFinderOptions, TurnOutlet};

use end_deadline::EndDeadline;
use error_stream::{ErrorStream, ErrorTarget};
use line_ends::LineEnds;
use observer::{ObserverEnd, ObserverStart, ObserverThread};
use process::ChildProcess;
use pump::{BytePump, PumpState};
use record::Recorder;
use signals::Signals;
use tap::Tap;
use terminal::UserTerminal;

/// What to run, and how.
#[derive(Debug, Default)]
pub struct Options {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Variables that are added to the program's environment.
    pub environment: Vec<(String, String)>,
    /// The file to which a recording is written.
    pub record: Option<PathBuf>,
    /// Whether the wrapper answers queries of the status protocol (OSC 7501) in the terminal's
    /// place.
    pub answers_status: bool,
    /// A fault to inject, for tests.
    pub fault: Option<Fault>,
}

/// A fault that a test injects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The byte path panics at the first output.
    BytePath,
    /// The byte path overflows its stack at the first output.
    Stack,
    /// The observer's thread panics at once.
    Observer,
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEnding {
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

/// The result of a wrapped program that has ended.
#[derive(Debug)]
pub struct WrapReport {
    /// How the program ended.
    pub ending: ChildEnding,
    /// Problems beside the byte path, for the user to read.
    pub notes: Vec<String>,
}

/// The reason why the program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum WrapError {
    /// There is no such program.
    #[error("{}: command not found", .0.display())]
    NotFound(OsString),
    /// The program exists but cannot be started.
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
    /// The system provides no pseudo-terminal, or lost it.
    #[error("the pseudo-terminal does not work")]
    Pty(#[from] io::Error),
}

/// Runs the program to its end. Blocks, and takes over standard input and output and the process's
/// signals.
pub fn run(
    options: &Options,
    observer: Box<dyn Observer>,
    injected: InjectReceiver,
) -> Result<WrapReport, WrapError> {
    let user = UserTerminal::open();
    let recording = options
        .record
        .as_ref()
        .map(|path| begin_recording(path, options))
        .transpose()?;
    let (master, slave) = open_pty(&user)?;
    let (errors_to, errors) = ErrorStream::open(&user)?;
    let running =
        start_child(options, slave, errors_to).inspect_err(|_| remove_recording(options))?;
    let signals = Signals::listen()?;
    terminal::guard_against_panic();
    let tap = Tap::new();
    let child = running.child.as_raw_nonzero().get().unsigned_abs();
    let observing = ObserverThread::start(
        tap.clone(),
        ObserverStart {
            observer,
            child,
            fault: options.fault,
        },
    )?;
    let line_ends = (!user.shows_output()).then(LineEnds::default);
    let mut pump = BytePump {
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
        state: PumpState::new(),
    };
    let ending = pump.take_terminal().and_then(|()| pump.run());
    tap.end();
    let notes = finish(pump, observing);
    Ok(WrapReport {
        notes,
        ending: ending?,
    })
}

/// Gives the terminal back, and waits a limited time for the recording and the observer. Returns what
/// went wrong.
fn finish(pump: BytePump, observing: ObserverThread) -> Vec<String> {
    let BytePump {
        user,
        master,
        injected,
        signals,
        recording,
        state,
        ..
    } = pump;
    // Restores the terminal before anything below can wait.
    drop((user, master, injected));
    let mut deadline = EndDeadline::new(signals);
    let recorded = recording.map_or(Ok(()), |recording| recording.finish(&mut deadline));
    let observed = observing.finish(&mut deadline);
    let refused = state
        .refused
        // A reader that has enough (`head`) is no problem to report.
        .filter(|error| *error != Errno::PIPE)
        .map(io::Error::from);
    collect_notes(refused, recorded, observed)
}

fn collect_notes(
    refused: Option<io::Error>,
    recorded: io::Result<()>,
    observed: ObserverEnd,
) -> Vec<String> {
    let refused = refused.map(|error| format!("the output could not be written: {error}"));
    let recorded = recorded
        .err()
        .map(|error| format!("the recording is not complete: {error}"));
    let observed = match observed {
        ObserverEnd::All => None,
        ObserverEnd::Panicked => {
            let message = terminal::take_panic().unwrap_or_default();
            Some(format!(
                "detection stopped early, no turns were found after that: {message}"
            ))
        }
        ObserverEnd::Late => {
            Some("detection was not finished, the last turns may be missing".to_owned())
        }
    };
    refused
        .into_iter()
        .chain(recorded)
        .chain(observed)
        .collect()
}

fn begin_recording(path: &Path, options: &Options) -> Result<Recorder, WrapError> {
    let size = UserTerminal::screen_size();
    let argv: Vec<String> = options
        .command
        .iter()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let created = Recorder::create(
        path,
        Size {
            cols: size.ws_col,
            rows: size.ws_row,
        },
        &argv,
    );
    created.map_err(|source| WrapError::Record {
        path: path.to_owned(),
        source,
    })
}

/// Removes the recording of a program that was not started, so that a corrected command can use the
/// name.
fn remove_recording(options: &Options) {
    if let Some(path) = &options.record
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::debug!(%error, "an empty recording stays");
    }
}

fn start_child(
    options: &Options,
    slave: OwnedFd,
    errors: ErrorTarget,
) -> Result<ChildProcess, WrapError> {
    let program = options.command.first().cloned().unwrap_or_default();
    ChildProcess::start(&options.command, &options.environment, slave, errors).map_err(|source| {
        match source.kind() {
            io::ErrorKind::NotFound => WrapError::NotFound(program),
            _ => WrapError::NotStarted { program, source },
        }
    })
}

/// Opens a pseudo-terminal with the size and the settings of the user's. Its master side does not
/// block. For a file or a pipe, bytes pass as the program writes them, without added carriage
/// returns.
fn open_pty(user: &UserTerminal) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    let mut unechoed = rustix::termios::tcgetattr(&slave)?;
    // Input from a pipe was not typed, so echoing it would show it twice.
    unechoed.local_modes.remove(LocalModes::ECHO);
    let mut settings = user.initial_settings().unwrap_or(unechoed);
    if !user.shows_output() {
        settings.output_modes.remove(OutputModes::OPOST);
    }
    rustix::termios::tcsetattr(slave.as_fd(), OptionalActions::Now, &settings)?;
    rustix::termios::tcsetwinsize(&master, UserTerminal::size())?;
    rustix::io::ioctl_fionbio(&master, true)?;
    Ok((master, slave))
}
