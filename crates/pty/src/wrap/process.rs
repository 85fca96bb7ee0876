//! Starts the child in its own session, and ends this process as the child ended.
//!
//! Between the wrapper and the child stands a *monitor*: a bare fork that leads the session, holds
//! the terminal open and reports each change of the child's state through a pipe. Because of it the
//! child's process group has a parent in its session and is not orphaned, so that the kernel lets
//! Ctrl-Z stop it as it would without the wrapper; and what the child wrote last stays readable
//! until the monitor ends. When the wrapper dies the terminal hangs up, and the monitor dies with
//! it.
//!
//! ```text
//! news, 8 bytes each: kind i32, value i32 (native order)
//!   1 started: pid    2 exited: code    3 killed: signal    4 stopped: signal
//! ```
#![expect(
    unsafe_code,
    reason = "fork, exec hooks and signal dispositions have no safe face; all of it is in this file"
)]

use std::ffi::{OsString, c_int, c_long, c_uint};
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus};

use super::errors::ErrorsTo;
use super::terminal::restore_at_fault;

const STARTED: i32 = 1;
const EXITED: i32 = 2;
const KILLED: i32 = 3;
const STOPPED: i32 = 4;
const NEWS_BYTES: usize = 8;
/// Descriptors that the monitor closes one by one where the kernel does not close them at once.
const MONITOR_FDS_MAX: c_uint = 1 << 16;
/// The number of `close_range`, the same on every architecture.
const CLOSE_RANGE: c_long = 436;
const DEFAULT_DISPOSITION: usize = 0;
/// Flags of `sigaction`: the thread's stack for signals is used, and the handler serves once.
const ON_STACK: c_int = 0x0800_0000;
const RESET_HANDLER: c_int = 0x8000_0000_u32.cast_signed();
/// Signals that can only be heard on the spot: a fault of ours, or somebody who plays one.
const FAULTS: [Signal; 7] = [
    Signal::ILL,
    Signal::FPE,
    Signal::SEGV,
    Signal::BUS,
    Signal::ABORT,
    Signal::TRAP,
    Signal::SYS,
];

/// The child's process group, for a signal that is heard on the spot.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// `struct sigaction` of the C library (glibc and musl on Linux).
#[repr(C)]
struct Action {
    handler: extern "C" fn(c_int),
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

unsafe extern "C" {
    fn fork() -> c_int;
    fn _exit(code: c_int) -> !;
    fn close(fd: c_int) -> c_int;
    fn kill(pid: c_int, number: c_int) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn signal(number: c_int, handler: usize) -> usize;
    fn sigaction(number: c_int, new: *const Action, old: *mut Action) -> c_int;
    fn raise(number: c_int) -> c_int;
}

/// What became of the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// It ended by itself.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// A signal stopped it.
    Stopped(i32),
}

/// A child that runs.
#[derive(Debug)]
pub(super) struct Running {
    monitor: Child,
    /// The child, which leads its process group.
    pub(super) child: Pid,
    news: PipeReader,
}

impl Running {
    /// Starts a program with `slave` as its controlling terminal and its standard streams; standard
    /// error may go elsewhere.
    pub(super) fn start(
        argv: &[OsString],
        environment: &[(String, String)],
        slave: OwnedFd,
        errors: ErrorsTo,
    ) -> io::Result<Self> {
        let (program, args) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let (mut news, teller) = io::pipe()?;
        let teller = OwnedFd::from(teller);
        let mut command = Command::new(program);
        command.args(args).envs(environment.iter().cloned());
        command.stdin(slave.try_clone()?).stdout(slave.try_clone()?);
        command.stderr(match errors {
            ErrorsTo::Terminal => Stdio::from(slave),
            ErrorsTo::Inherited => Stdio::inherit(),
            ErrorsTo::Apart(apart) => Stdio::from(apart),
        });
        // SAFETY: the closure makes system calls only; it neither allocates nor takes a lock.
        unsafe { command.pre_exec(move || enter_session(teller.as_fd())) };
        let monitor = command.spawn()?;
        // Our copies of the slave and of the pipe's end go with the command.
        drop(command);
        let (kind, pid) = read_news(&mut news)?;
        let child = Pid::from_raw(pid).filter(|_| kind == STARTED);
        let child = child.ok_or_else(|| io::Error::other("the child's monitor did not start"))?;
        CHILD.store(pid, Ordering::Relaxed);
        Ok(Self {
            monitor,
            child,
            news,
        })
    }

    /// Where news can be waited for.
    pub(super) fn news_fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// The next change of the child's state; waits for it.
    pub(super) fn news(&mut self) -> News {
        match read_news(&mut self.news) {
            Ok((EXITED, code)) => News::Exited(code),
            Ok((STOPPED, signal)) => News::Stopped(signal),
            Ok((KILLED, signal)) => News::Killed(signal),
            // Somebody killed the monitor; the child is out of sight.
            Ok(_) | Err(_) => News::Killed(rustix::process::Signal::HUP.as_raw()),
        }
    }

    /// Waits for the monitor, which ends right after the child.
    pub(super) fn reap(&mut self) -> io::Result<()> {
        self.monitor.wait().map(|_| ())
    }
}

fn read_news(news: &mut PipeReader) -> io::Result<(i32, i32)> {
    let mut bytes = [0; NEWS_BYTES];
    news.read_exact(&mut bytes)?;
    let [k0, k1, k2, k3, v0, v1, v2, v3] = bytes;
    Ok((
        i32::from_ne_bytes([k0, k1, k2, k3]),
        i32::from_ne_bytes([v0, v1, v2, v3]),
    ))
}

/// Runs in the forked process: leads a new session on the terminal, and forks the program's own
/// process.
fn enter_session(teller: BorrowedFd<'_>) -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
    let (wait, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // SAFETY: this process is itself a fresh fork with one thread; both sides make system calls
    // only.
    match unsafe { fork() } {
        0 => {
            drop(go);
            // The end of the pipe says that the process group has the terminal.
            rustix::io::read(&wait, &mut [0])?;
            Ok(())
        }
        pid => match Pid::from_raw(pid).filter(|_| pid > 0) {
            Some(child) => monitor(child, teller, go),
            None => Err(io::Error::last_os_error()),
        },
    }
}

/// The monitor's whole life. It must not return: only the child may go on to the program.
fn monitor(child: Pid, teller: BorrowedFd<'_>, go: OwnedFd) -> ! {
    let terminal = rustix::stdio::stdin();
    let placed = rustix::process::setpgid(Some(child), Some(child))
        .and_then(|()| rustix::termios::tcsetpgrp(terminal, child))
        .and_then(|()| tell(teller, STARTED, child.as_raw_nonzero().get()))
        .and_then(|()| rustix::stdio::dup2_stdout(teller));
    drop(go);
    close_from(2);
    let told = placed.and_then(|()| report(child));
    // SAFETY: ends this fork without running anything that belongs to the parent.
    unsafe { _exit(c_int::from(told.is_err())) }
}

/// Closes this descriptor and all above it: the monitor holds none but the terminal and its pipe.
fn close_from(first: c_uint) {
    // SAFETY: nothing in this process uses these descriptors any more; one of them is the pipe on
    // which the parent waits for the program to start.
    unsafe {
        if syscall(CLOSE_RANGE, first, c_uint::MAX, 0) != 0 {
            for fd in first..MONITOR_FDS_MAX {
                close(fd.cast_signed());
            }
        }
    }
}

fn report(child: Pid) -> rustix::io::Result<()> {
    loop {
        let Some((_, status)) = rustix::process::waitpid(Some(child), WaitOptions::UNTRACED)?
        else {
            continue;
        };
        let (kind, value) = describe(status);
        tell(rustix::stdio::stdout(), kind, value)?;
        if kind != STOPPED {
            return Ok(());
        }
    }
}

fn describe(status: WaitStatus) -> (i32, i32) {
    match (status.stopping_signal(), status.terminating_signal()) {
        (Some(signal), _) => (STOPPED, signal),
        (None, Some(signal)) => (KILLED, signal),
        (None, None) => (EXITED, status.exit_status().unwrap_or_default()),
    }
}

fn tell(teller: BorrowedFd<'_>, kind: i32, value: i32) -> rustix::io::Result<()> {
    let [k0, k1, k2, k3] = kind.to_ne_bytes();
    let [v0, v1, v2, v3] = value.to_ne_bytes();
    rustix::io::write(teller, &[k0, k1, k2, k3, v0, v1, v2, v3]).map(|_| ())
}

/// Ends this process by the signal that ended the child, without a second core file. Returns only
/// if the signal does not end processes.
pub fn die_of(number: i32) {
    let limit = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(Resource::Core, limit).ok();
    // SAFETY: takes the default disposition back for a signal and sends it to this thread; no
    // memory is touched, and the handler that was installed is never called again.
    unsafe {
        signal(number, DEFAULT_DISPOSITION);
        raise(number);
    }
}

/// The signal of this number, named or real-time.
pub(super) fn signal_of(number: i32) -> Option<Signal> {
    // SAFETY: only to be sent on; these numbers came from the kernel, which none that the C library
    // keeps for itself does.
    Signal::from_named_raw(number)
        .or_else(|| (number > 0).then(|| unsafe { Signal::from_raw_unchecked(number) }))
}

/// From now on a fault puts the terminal back before it ends us, and the child gets the same
/// signal. When the stack has run over, the handler runs on the one that std has made for signals.
pub(super) fn watch_faults() {
    let action = Action {
        handler: on_fault,
        mask: [0; 16],
        flags: ON_STACK | RESET_HANDLER,
        restorer: 0,
    };
    for fault in FAULTS {
        // SAFETY: the action is as the C library wants it, and lives longer than the call. The
        // handler makes system calls only, and takes no lock that it would have to wait for.
        unsafe { sigaction(fault.as_raw(), &raw const action, std::ptr::null_mut()) };
    }
}

extern "C" fn on_fault(number: c_int) {
    restore_at_fault();
    let child = CHILD.load(Ordering::Relaxed);
    // SAFETY: system calls that a signal handler may make; the signal ends us when the handler
    // returns.
    unsafe {
        if child > 0 {
            kill(-child, number);
        }
        signal(number, DEFAULT_DISPOSITION);
        raise(number);
    }
}
