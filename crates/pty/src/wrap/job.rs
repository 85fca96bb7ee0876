//! Signals and job control of the wrapper: signals are forwarded to the child, and the wrapper
//! stops when the child stops.
//!
//! A wrapper that no shell could resume never stops; it continues the child instead.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::termios::Winsize;
use turnkeep_session::screen::Size;

use super::pump::BytePump;
use super::tap::TapEvent;
use super::terminal::{UserTerminal, restore};

/// How long a child may clean up after SIGTSTP before we stop without it.
const SUSPEND_PAUSE: Duration = Duration::from_millis(500);

impl BytePump {
    /// Handles the received signals.
    pub(super) fn handle_signals(&mut self) {
        for signal in self.signals.take_received() {
            self.handle_signal(signal);
        }
    }

    pub(super) fn handle_signal(&mut self, signal: Signal) {
        match signal {
            Signal::WINCH => self.resize(),
            Signal::CONT => self.resume(),
            Signal::TSTP => self.state.suspend_at = Some(Instant::now() + SUSPEND_PAUSE),
            Signal::INT => self.tap.add(self.tap.now(), TapEvent::Interrupt),
            _ => {}
        }
        // The kernel sends WINCH to the child itself when its terminal is resized.
        if signal != Signal::WINCH {
            self.forward_signal(signal);
        }
    }

    /// Gives the child's terminal the size of the user's. The kernel notifies the child.
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
        self.tap.add(now, TapEvent::Resize { cols, rows });
        if let Some(recorder) = &mut self.recording {
            recorder.record_resize(now, Size { cols, rows });
        }
    }

    /// Stops us and our whole job with the child, unless there is no terminal or no process could
    /// ever resume us. There the kernel would not have let the keyboard stop the child either.
    pub(super) fn handle_child_stop(&mut self, signal: i32) {
        // We were asked to stop, and only waited for the child.
        if self.state.suspend_at.is_some() {
            self.suspend(SuspendScope::Process);
        } else if self.user.is_terminal() && !is_orphaned() {
            self.suspend(SuspendScope::Job);
        } else if [Signal::TSTP, Signal::TTIN, Signal::TTOU]
            .iter()
            .any(|stop| stop.as_raw() == signal)
        {
            self.forward_signal(Signal::CONT);
        }
    }

    /// Suspends us when the child has had its time to stop.
    pub(super) fn suspend_if_due(&mut self) {
        if self.state.suspend_at.is_some_and(|at| at <= Instant::now()) {
            self.suspend(SuspendScope::Process);
        }
    }

    fn suspend(&mut self, scope: SuspendScope) {
        self.state.suspend_at = None;
        // The child's last output must be visible before the shell writes its prompt.
        self.drain_child();
        restore();
        self.state.suspended = true;
        // A process can always signal itself.
        match scope {
            SuspendScope::Process => {
                rustix::process::kill_process(rustix::process::getpid(), Signal::STOP).ok()
            }
            SuspendScope::Job => rustix::process::kill_current_process_group(Signal::STOP).ok(),
        };
    }

    /// Continues after a suspension: the window may have a new size now, and the terminal other
    /// settings.
    fn resume(&mut self) {
        self.state.suspended = false;
        self.state.suspend_at = None;
        // Without raw mode the child still gets its bytes, line by line.
        drop(self.user.enter_raw_again());
        self.resize();
    }
}

/// Which processes are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SuspendScope {
    /// Only us, because only we received the signal.
    Process,
    /// The whole job, as the keyboard would do: a script or a pipe around us must not wait for us.
    Job,
}

/// Whether no process of our session outside our group is the parent of one inside, so that no
/// shell controls us as a job.
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
    let mut members = numbers
        .filter_map(read_relations)
        .filter(|process| process.group == group);
    // The kernel has the same rule for an orphaned process group, but no call that asks for it.
    !members.any(|member| {
        read_relations(member.parent).is_some_and(|it| it.session == session && it.group != group)
    })
}

/// The parent, group and session of a process.
struct ProcessRelations {
    parent: i32,
    group: i32,
    session: i32,
}

fn read_relations(pid: i32) -> Option<ProcessRelations> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold any character.
    let mut fields = stat
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .skip(1)
        .map(str::parse);
    let mut next = || fields.next()?.ok();
    Some(ProcessRelations {
        parent: next()?,
        group: next()?,
        session: next()?,
    })
}

fn same_size(a: Winsize, b: Winsize) -> bool {
    (a.ws_col, a.ws_row, a.ws_xpixel, a.ws_ypixel) == (b.ws_col, b.ws_row, b.ws_xpixel, b.ws_ypixel)
}
