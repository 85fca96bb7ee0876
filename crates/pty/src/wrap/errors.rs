//! The child's standard error, apart from its output.
//!
//! While the wrapper's output is a terminal, both streams of the child go to one terminal, as they
//! do without the wrapper. Where it is a file or a pipe, standard error gets a pseudo-terminal of
//! its own, so that it reaches the wrapper's standard error and nothing else; a shell prints its
//! prompt there, which is why the observer sees these bytes too. Where only standard error goes
//! elsewhere, the child writes there itself.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::termios::Winsize;

use super::outbox::{Filled, Outbox};
use super::terminal::{UserTerminal, reopen};

/// Where the child's standard error goes.
#[derive(Debug)]
pub(super) enum ErrorsTo {
    /// To the child's terminal, with its output.
    Terminal,
    /// Where the wrapper's own goes.
    Inherited,
    /// To this terminal of its own.
    Apart(OwnedFd),
}

/// Standard error on its way to the user.
#[derive(Debug)]
pub(super) struct Errors {
    master: OwnedFd,
    /// Held, so that what the child wrote last stays readable.
    _slave: OwnedFd,
    out: Outbox,
    /// The wrapper's standard error, opened anew where the system allows it.
    output: Option<OwnedFd>,
    /// Whether the wrapper's standard error has failed.
    refused: bool,
}

impl Errors {
    /// Decides where the child's standard error goes, and makes a terminal for it where it needs
    /// one.
    pub(super) fn open(user: &UserTerminal) -> io::Result<(ErrorsTo, Option<Self>)> {
        if user.shows_output() {
            let is_terminal = rustix::termios::isatty(rustix::stdio::stderr());
            let to = if is_terminal {
                ErrorsTo::Terminal
            } else {
                ErrorsTo::Inherited
            };
            return Ok((to, None));
        }
        if is_one_file(rustix::stdio::stdout(), rustix::stdio::stderr()) {
            // `2>&1`: two terminals would lose the order in which the program wrote.
            return Ok((ErrorsTo::Terminal, None));
        }
        let (master, slave) = super::open_pty(user)?;
        let errors = Self {
            master,
            _slave: slave.try_clone()?,
            out: Outbox::new(),
            output: reopen(rustix::stdio::stderr(), "/proc/self/fd/2").ok(),
            refused: false,
        };
        Ok((ErrorsTo::Apart(slave), Some(errors)))
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
        self.out.is_full()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// What the last [`Errors::read`] brought.
    pub(super) fn fresh(&self) -> &[u8] {
        self.out.fresh()
    }

    /// Takes what the child wrote, and sends it on.
    pub(super) fn read(&mut self) -> Filled {
        let filled = self.out.fill(self.master.as_fd());
        self.write();
        filled
    }

    /// Writes as much as the wrapper's standard error takes now. After a failure the bytes are
    /// dropped, so that the program and its output go on.
    pub(super) fn write(&mut self) {
        let output = match &self.output {
            Some(output) => output.as_fd(),
            None => rustix::stdio::stderr(),
        };
        if self.refused || self.out.drain(output).is_err() {
            self.refused = true;
            self.out.discard();
        }
    }

    /// Forgets what waits.
    pub(super) fn discard(&mut self) {
        self.out.discard();
    }

    /// Gives its terminal the size of the user's.
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
