//! What the byte path waits for: everything that it could handle now, and no longer than until
//! something is due by itself.
//!
//! A source is polled only while its bytes have somewhere to go, so a full buffer never becomes a
//! busy loop.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::super::end_of_input::END_PAUSE;
use super::super::error_stream::ErrorStream;
use super::super::key_boundary::SEQUENCE_PAUSE;
use super::BytePump;

/// A reason to wake up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    Signals,
    ChildChange,
    Injection,
    User,
    UserOut,
    Child,
    Errors,
    ErrorsOut,
}

impl BytePump {
    /// Waits until something can be done, and returns what.
    pub(super) fn wait_for_wakes(&self) -> io::Result<Vec<(Wake, PollFlags)>> {
        let wakes = self.wanted_wakes();
        let mut fds: Vec<PollFd<'_>> = wakes
            .iter()
            .map(|(wake, flags)| self.poll_fd(*wake, *flags))
            .collect();
        let timeout = self
            .poll_timeout()
            .and_then(|timeout| Timespec::try_from(timeout).ok());
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = wakes
            .into_iter()
            .zip(&fds)
            .map(|((wake, _), fd)| (wake, fd.revents()));
        Ok(ready.filter(|(_, flags)| !flags.is_empty()).collect())
    }

    /// What to wait for now, urgent things first.
    fn wanted_wakes(&self) -> Vec<(Wake, PollFlags)> {
        let mut wakes = vec![(Wake::Signals, PollFlags::IN)];
        // A suspended wrapper must not touch the terminal, so only signals count.
        if self.state.suspended {
            return wakes;
        }
        wakes.extend([
            (Wake::ChildChange, PollFlags::IN),
            (Wake::Injection, PollFlags::IN),
        ]);
        // In the background a read would stop us (SIGTTIN).
        if !self.state.input_ended && !self.state.input.is_full() && self.user.is_foreground() {
            wakes.push((Wake::User, PollFlags::IN));
        }
        if !self.state.output.is_empty() {
            wakes.push((Wake::UserOut, PollFlags::OUT));
        }
        if let Some(errors) = &self.errors {
            if !errors.is_full() {
                wakes.push((Wake::Errors, PollFlags::IN));
            }
            if !errors.is_empty() {
                wakes.push((Wake::ErrorsOut, PollFlags::OUT));
            }
        }
        let mut child = PollFlags::empty();
        child.set(PollFlags::IN, !self.state.output.is_full());
        // Polled for writing only while keys wait, since a terminal is nearly always writable.
        child.set(PollFlags::OUT, self.may_write_keys());
        if self.master.is_some() && !child.is_empty() {
            wakes.push((Wake::Child, child));
        }
        wakes
    }

    fn poll_fd(&self, wake: Wake, flags: PollFlags) -> PollFd<'_> {
        let fd = match wake {
            Wake::Signals => self.signals.fd(),
            Wake::ChildChange => self.running.changes_fd(),
            Wake::Injection => self.injected.fd(),
            Wake::User => rustix::stdio::stdin(),
            Wake::UserOut => self.user.output(),
            // Waited for only where standard error is apart.
            Wake::Errors => self
                .errors
                .as_ref()
                .map_or(self.signals.fd(), ErrorStream::master),
            Wake::ErrorsOut => self
                .errors
                .as_ref()
                .map_or(self.signals.fd(), ErrorStream::output),
            // Waited for only while there is a master.
            Wake::Child => self
                .master
                .as_ref()
                .map_or(self.signals.fd(), |master| master.as_fd()),
        };
        PollFd::from_borrowed_fd(fd, flags)
    }

    fn poll_timeout(&self) -> Option<Duration> {
        if self.state.suspended {
            return None;
        }
        let suspend = self
            .state
            .suspend_at
            .map(|at| at.saturating_duration_since(Instant::now()));
        // A half-typed sequence counts as complete after this pause, and then the gap is there.
        let gap = (self.injected.is_waiting() || self.state.answers > 0).then_some(SEQUENCE_PAUSE);
        // The kernel does not report when the child has read, so a paste is checked by time.
        let paste = self.state.input.paste_pause(Instant::now());
        // A change of the mode wakes no poll.
        let mode = self.master.is_some().then(|| self.state.mode.due_in());
        let end = self.state.end_of_input.is_some().then_some(END_PAUSE);
        [suspend, gap, paste, mode, end].into_iter().flatten().min()
    }
}
