//! Signals and job control of the wrapper: what comes to us goes to the child, and we stop when it
//! stops.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::termios::Winsize;

use super::pump::Pump;
use super::tap::Sight;
use super::terminal::{UserTerminal, restore};

/// How long a child may tidy up after SIGTSTP before we are suspended without it.
const SUSPEND_PAUSE: Duration = Duration::from_millis(500);

impl Pump {
    /// Handles the signals that came.
    pub(super) fn take_signals(&mut self) {
        for signal in self.signals.take() {
            self.on_signal(signal);
        }
    }

    pub(super) fn on_signal(&mut self, signal: Signal) {
        match signal {
            Signal::WINCH => self.resize(),
            Signal::CONT => self.resume(),
            Signal::TSTP => self.state.suspend_at = Some(Instant::now() + SUSPEND_PAUSE),
            Signal::INT => self.tap.add(self.tap.now(), Sight::Interrupt),
            _ => {}
        }
        if signal != Signal::WINCH {
            self.pass_on(signal);
        }
    }

    /// Gives the child's terminal the size of the user's. The kernel tells the child.
    pub(super) fn resize(&mut self) {
        let size = UserTerminal::size();
        let Some(master) = &self.master else { return };
        let before = rustix::termios::tcgetwinsize(master);
        if before.is_ok_and(|before| same_size(before, size)) {
            return;
        }
        // A terminal that hangs up has no size.
        rustix::termios::tcsetwinsize(master, size).ok();
        self.errors.iter().for_each(|errors| errors.resize(size));
        let now = self.tap.now();
        let Winsize {
            ws_col: cols,
            ws_row: rows,
            ..
        } = UserTerminal::screen_size();
        self.tap.add(now, Sight::Resize { cols, rows });
        if let Some(recorder) = &mut self.recording {
            recorder.resize(now, (cols, rows));
        }
    }

    /// The child was stopped: so are we and everybody else in our job, unless there is no terminal
    /// at which that would mean something, or nobody could ever resume us. There the kernel would
    /// not have let the keyboard stop the child either.
    pub(super) fn child_stopped(&mut self, signal: i32) {
        if self.state.suspend_at.is_some() {
            self.suspend(Scope::Process);
        } else if self.user.is_terminal() && !is_orphaned() {
            self.suspend(Scope::Job);
        } else if [Signal::TSTP, Signal::TTIN, Signal::TTOU]
            .iter()
            .any(|stop| stop.as_raw() == signal)
        {
            self.pass_on(Signal::CONT);
        }
    }

    /// Suspends us when the child has had its time to stop.
    pub(super) fn suspend_if_due(&mut self) {
        if self.state.suspend_at.is_some_and(|at| at <= Instant::now()) {
            self.suspend(Scope::Process);
        }
    }

    fn suspend(&mut self, scope: Scope) {
        self.state.suspend_at = None;
        self.drain();
        restore();
        self.state.suspended = true;
        // Our own process always takes a signal from itself.
        match scope {
            Scope::Process => {
                rustix::process::kill_process(rustix::process::getpid(), Signal::STOP).ok()
            }
            Scope::Job => rustix::process::kill_current_process_group(Signal::STOP).ok(),
        };
    }

    /// Takes up where we stopped: the window may have another size now, and the terminal other
    /// settings.
    fn resume(&mut self) {
        self.state.suspended = false;
        self.state.suspend_at = None;
        // Without raw mode the child still gets its bytes, line by line.
        drop(self.user.enter_raw_again());
        self.resize();
    }
}

/// Who is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// We alone, because we alone were asked to.
    Process,
    /// The whole job, as the keyboard would: a script or a pipe around us must not wait for us.
    Job,
}

/// Whether no process of our session outside our group is a parent of one inside: then nobody
/// watches us as a job.
fn is_orphaned() -> bool {
    let group = rustix::process::getpgrp().as_raw_nonzero().get();
    let Ok(session) = rustix::process::getsid(None) else {
        return true;
    };
    let session = session.as_raw_nonzero().get();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return true;
    };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let mut members = numbers.filter_map(kin).filter(|kin| kin.group == group);
    !members.any(|member| {
        kin(member.parent).is_some_and(|it| it.session == session && it.group != group)
    })
}

/// What a process belongs to.
struct Kin {
    parent: i32,
    group: i32,
    session: i32,
}

fn kin(pid: i32) -> Option<Kin> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let mut fields = stat
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .skip(1)
        .map(str::parse);
    let mut next = || fields.next()?.ok();
    Some(Kin {
        parent: next()?,
        group: next()?,
        session: next()?,
    })
}

fn same_size(a: Winsize, b: Winsize) -> bool {
    (a.ws_col, a.ws_row, a.ws_xpixel, a.ws_ypixel) == (b.ws_col, b.ws_row, b.ws_xpixel, b.ws_ypixel)
}
