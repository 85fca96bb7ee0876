//! The child's standard error, separate from its output.
//!
//! While the wrapper's output is a terminal, both streams of the child go to one terminal, as they
//! do without the wrapper. Where it is a file or a pipe, standard error gets a pseudo-terminal of
//! its own, so that it reaches only the wrapper's standard error. The observer sees these bytes
//! too, because a shell prints its prompt there. Where only standard error goes elsewhere, the
//! child writes there itself. After a failed write the bytes are dropped and the program goes on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::termios::Winsize;

use super::output_buffer::{OutputBuffer, ReadOutcome};
use super::terminal::{UserTerminal, reopen};

/// Where the child's standard error goes.
#[derive(Debug)]
pub(super) enum ErrorTarget {
    /// To the child's terminal, with its output.
    Terminal,
    /// To the wrapper's own standard error.
    Inherited,
    /// To this separate terminal.
    Apart(OwnedFd),
}

/// Standard error on its way to the user.
#[derive(Debug)]
pub(super) struct ErrorStream {
    master: OwnedFd,
    /// Kept open, so that the child's last output stays readable.
    _slave: OwnedFd,
    buffer: OutputBuffer,
    /// The wrapper's standard error, opened anew where the system allows it.
    output: Option<OwnedFd>,
    /// Whether a write to the wrapper's standard error has failed.
    refused: bool,
}

impl ErrorStream {
    /// Decides where the child's standard error goes, and opens a terminal for it where it needs
    /// one.
    pub(super) fn open(user: &UserTerminal) -> io::Result<(ErrorTarget, Option<Self>)> {
        // At a terminal both streams share it, so that their order stays visible.
        if user.shows_output() {
            let is_terminal = rustix::termios::isatty(rustix::stdio::stderr());
            let to = if is_terminal {
                ErrorTarget::Terminal
            } else {
                ErrorTarget::Inherited
            };
            return Ok((to, None));
        }
        if is_one_file(rustix::stdio::stdout(), rustix::stdio::stderr()) {
            // `2>&1`: two terminals would lose the order in which the program wrote.
            return Ok((ErrorTarget::Terminal, None));
        }
        let (master, slave) = super::open_pty(user)?;
        let errors = Self {
            master,
            _slave: slave.try_clone()?,
            buffer: OutputBuffer::new(),
            output: reopen(rustix::stdio::stderr(), "/proc/self/fd/2").ok(),
            refused: false,
        };
        Ok((ErrorTarget::Apart(slave), Some(errors)))
    }

    pub(super) fn master(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }

    pub(super) fn output(&self) -> BorrowedFd<'_> {
        match &self.output {
            Some(output) => output.as_fd(),
            None => rustix::stdio::stderr(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.buffer.is_full()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The bytes of the last [`ErrorStream::read`].
    pub(super) fn last_read(&self) -> &[u8] {
        self.buffer.last_read()
    }

    /// Reads what the child wrote, and sends it on.
    pub(super) fn read(&mut self) -> ReadOutcome {
        let filled = self.buffer.read_from(self.master.as_fd());
        self.write();
        filled
    }

    /// Writes as much as the wrapper's standard error accepts now. After a failure the bytes are
    /// dropped.
    pub(super) fn write(&mut self) {
        let output = match &self.output {
            Some(output) => output.as_fd(),
            None => rustix::stdio::stderr(),
        };
        if self.refused || self.buffer.write_to(output).is_err() {
            self.refused = true;
            self.buffer.discard();
        }
    }

    /// Drops the waiting bytes.
    pub(super) fn discard(&mut self) {
        self.buffer.discard();
    }

    /// Gives this terminal the size of the user's.
    pub(super) fn resize(&self, size: Winsize) {
        // A size that cannot be set is no reason to lose a message.
        rustix::termios::tcsetwinsize(&self.master, size).ok();
    }
}

fn is_one_file(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}
