//! Starts the child in its own session, and ends this process as the child ended.
//!
//! Between the wrapper and the child is a *monitor*: a bare fork that leads the session, holds the
//! terminal open and reports each change of the child's state through a pipe. Because of it the
//! child's process group has a parent in its session and is not orphaned, so Ctrl-Z stops it as it
//! would without the wrapper. The child's last output stays readable until the monitor ends. When
//! the wrapper dies, the terminal hangs up and the monitor dies with it.
//!
//! ```text
//! changes, 8 bytes each: kind i32, value i32 (native order)
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

use super::error_stream::ErrorTarget;
use super::terminal::restore_at_fault;

const STARTED: i32 = 1;
const EXITED: i32 = 2;
const KILLED: i32 = 3;
const STOPPED: i32 = 4;
const CHANGE_BYTES: usize = 8;
/// How many descriptors the monitor closes one by one where `close_range` is missing.
const MONITOR_FDS_MAX: c_uint = 1 << 16;
/// The number of `close_range`, the same on every architecture.
const CLOSE_RANGE: c_long = 436;
const DEFAULT_DISPOSITION: usize = 0;
/// Flags of `sigaction`: use the thread's signal stack, and run the handler once.
const ON_STACK: c_int = 0x0800_0000;
const RESET_HANDLER: c_int = 0x8000_0000_u32.cast_signed();
/// Signals that must be handled at once: a fault of ours, or one that another process sent.
const FAULTS: [Signal; 7] = [
    Signal::ILL,
    Signal::FPE,
    Signal::SEGV,
    Signal::BUS,
    Signal::ABORT,
    Signal::TRAP,
    Signal::SYS,
];

/// The child's process group, for the fault handler.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// `struct sigaction` of the C library (glibc and musl on Linux).
#[repr(C)]
struct SignalAction {
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
    fn sigaction(number: c_int, new: *const SignalAction, old: *mut SignalAction) -> c_int;
    fn raise(number: c_int) -> c_int;
}

/// A change of the child's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildChange {
    /// It ended by itself.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// A signal stopped it.
    Stopped(i32),
}

/// A change as it crosses the pipe.
#[derive(Debug, Clone, Copy)]
struct ChangeRecord {
    kind: i32,
    value: i32,
}

/// A running child and its monitor.
#[derive(Debug)]
pub(super) struct ChildProcess {
    monitor: Child,
    /// The child, which leads its process group.
    pub(super) child: Pid,
    changes: PipeReader,
}

impl ChildProcess {
    /// Starts a program with `slave` as its controlling terminal and its standard streams; standard
    /// error may go elsewhere.
    pub(super) fn start(
        argv: &[OsString],
        environment: &[(String, String)],
        slave: OwnedFd,
        errors: ErrorTarget,
    ) -> io::Result<Self> {
        let (program, args) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let (mut changes, changes_out) = io::pipe()?;
        let changes_out = OwnedFd::from(changes_out);
        let mut command = Command::new(program);
        command.args(args).envs(environment.iter().cloned());
        command.stdin(slave.try_clone()?).stdout(slave.try_clone()?);
        command.stderr(match errors {
            ErrorTarget::Terminal => Stdio::from(slave),
            ErrorTarget::Inherited => Stdio::inherit(),
            ErrorTarget::Apart(apart) => Stdio::from(apart),
        });
        // SAFETY: the closure makes system calls only; it neither allocates nor takes a lock.
        unsafe { command.pre_exec(move || enter_session(changes_out.as_fd())) };
        let monitor = command.spawn()?;
        // The command holds copies of the slave and of the pipe's end, which must close now:
        // otherwise their ends would never be seen.
        drop(command);
        let started = read_change(&mut changes)?;
        let child = Pid::from_raw(started.value).filter(|_| started.kind == STARTED);
        let child = child.ok_or_else(|| io::Error::other("the child's monitor did not start"))?;
        CHILD.store(started.value, Ordering::Relaxed);
        Ok(Self {
            monitor,
            child,
            changes,
        })
    }

    /// The descriptor that becomes readable at a change.
    pub(super) fn changes_fd(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }

    /// Waits for the next change of the child's state.
    pub(super) fn next_change(&mut self) -> ChildChange {
        // If the monitor was killed, the child's state can no longer be known.
        let lost = ChildChange::Killed(Signal::HUP.as_raw());
        let Ok(ChangeRecord { kind, value }) = read_change(&mut self.changes) else {
            return lost;
        };
        match kind {
            EXITED => ChildChange::Exited(value),
            STOPPED => ChildChange::Stopped(value),
            KILLED => ChildChange::Killed(value),
            _ => lost,
        }
    }

    /// Waits for the monitor, which ends right after the child.
    pub(super) fn reap(&mut self) -> io::Result<()> {
        self.monitor.wait().map(|_| ())
    }
}

fn read_change(changes: &mut PipeReader) -> io::Result<ChangeRecord> {
    let mut bytes = [0; CHANGE_BYTES];
    changes.read_exact(&mut bytes)?;
    let [k0, k1, k2, k3, v0, v1, v2, v3] = bytes;
    Ok(ChangeRecord {
        kind: i32::from_ne_bytes([k0, k1, k2, k3]),
        value: i32::from_ne_bytes([v0, v1, v2, v3]),
    })
}

/// Runs in the forked process: leads a new session on the terminal, and forks the program's own
/// process.
fn enter_session(changes_out: BorrowedFd<'_>) -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
    let (wait, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // SAFETY: this process is itself a fresh fork with one thread; both sides make system calls
    // only.
    match unsafe { fork() } {
        0 => {
            drop(go);
            // The pipe ends when the process group owns the terminal.
            rustix::io::read(&wait, &mut [0])?;
            Ok(())
        }
        pid => match Pid::from_raw(pid).filter(|_| pid > 0) {
            Some(child) => run_monitor(child, changes_out, go),
            None => Err(io::Error::last_os_error()),
        },
    }
}

/// Runs the monitor. It must not return: only the child may go on to the program.
fn run_monitor(child: Pid, changes_out: BorrowedFd<'_>, go: OwnedFd) -> ! {
    let terminal = rustix::stdio::stdin();
    let started = ChangeRecord {
        kind: STARTED,
        value: child.as_raw_nonzero().get(),
    };
    let placed = rustix::process::setpgid(Some(child), Some(child))
        .and_then(|()| rustix::termios::tcsetpgrp(terminal, child))
        .and_then(|()| write_change(changes_out, started))
        .and_then(|()| rustix::stdio::dup2_stdout(changes_out));
    drop(go);
    close_from(2);
    let reported = placed.and_then(|()| report_changes(child));
    // SAFETY: ends this fork without running anything that belongs to the parent.
    unsafe { _exit(c_int::from(reported.is_err())) }
}

/// Closes this descriptor and all above it: the monitor keeps only the terminal and its pipe.
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

fn report_changes(child: Pid) -> rustix::io::Result<()> {
    loop {
        let Some((_, status)) = rustix::process::waitpid(Some(child), WaitOptions::UNTRACED)?
        else {
            continue;
        };
        let change = describe_status(status);
        write_change(rustix::stdio::stdout(), change)?;
        if change.kind != STOPPED {
            return Ok(());
        }
    }
}

fn describe_status(status: WaitStatus) -> ChangeRecord {
    let (kind, value) = match (status.stopping_signal(), status.terminating_signal()) {
        (Some(signal), _) => (STOPPED, signal),
        (None, Some(signal)) => (KILLED, signal),
        (None, None) => (EXITED, status.exit_status().unwrap_or_default()),
    };
    ChangeRecord { kind, value }
}

fn write_change(changes_out: BorrowedFd<'_>, change: ChangeRecord) -> rustix::io::Result<()> {
    let [k0, k1, k2, k3] = change.kind.to_ne_bytes();
    let [v0, v1, v2, v3] = change.value.to_ne_bytes();
    rustix::io::write(changes_out, &[k0, k1, k2, k3, v0, v1, v2, v3]).map(|_| ())
}

/// Ends this process by the signal that ended the child, without a second core file. Returns only
/// if the signal does not end processes.
pub fn die_of_signal(number: i32) {
    let limit = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // The child has already written its core file.
    rustix::process::setrlimit(Resource::Core, limit).ok();
    // SAFETY: takes the default disposition back for a signal and sends it to this thread; no
    // memory is touched, and the handler that was installed is never called again.
    unsafe {
        signal(number, DEFAULT_DISPOSITION);
        raise(number);
    }
}

/// The signal of this number, named or real-time.
pub(super) fn signal_from_number(number: i32) -> Option<Signal> {
    // SAFETY: only to be sent on; these numbers came from the kernel, which none that the C library
    // keeps for itself does.
    Signal::from_named_raw(number)
        .or_else(|| (number > 0).then(|| unsafe { Signal::from_raw_unchecked(number) }))
}

/// Installs handlers so that a fault restores the terminal before it ends us, and the child gets
/// the same signal. After a stack overflow the handler runs on the signal stack that std has made.
pub(super) fn watch_faults() {
    let action = SignalAction {
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
