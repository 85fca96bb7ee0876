//! Bytes on their way from the child to the user: bounded, in order, and shown to who looks after
//! they are out.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

/// Output that waits for the user's terminal.
pub(super) const OUT_BYTES_MAX: usize = 64 << 10;

/// What reading from the child gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    /// So many bytes, and there may be more.
    Bytes(usize),
    /// Nothing for now.
    Dry,
    /// The user's terminal must take some first.
    Full,
    /// Nothing any more.
    Closed,
}

/// Bytes on their way to the user.
#[derive(Debug)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
    fresh: usize,
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(OUT_BYTES_MAX),
            sent: 0,
            fresh: 0,
        }
    }

    /// Whether something waits for the user's terminal.
    pub(super) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// Whether nothing more fits.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() - self.sent == self.bytes.capacity()
    }

    /// What the last [`Outbox::fill`] brought, sent or not.
    pub(super) fn fresh(&self) -> &[u8] {
        self.bytes.get(self.fresh..).unwrap_or_default()
    }

    /// Reads what the child has written, as far as there is room.
    pub(super) fn fill(&mut self, master: BorrowedFd<'_>) -> Filled {
        self.bytes.drain(..self.sent);
        (self.sent, self.fresh) = (0, self.bytes.len());
        if self.is_full() {
            return Filled::Full;
        }
        let end = loop {
            if self.is_full() {
                break Filled::Full;
            }
            // The kernel gives 4 KiB at a time.
            match rustix::io::read(master, rustix::buffer::spare_capacity(&mut self.bytes)) {
                Ok(0) => break Filled::Closed,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break Filled::Dry,
                Err(_) => break Filled::Closed,
            }
        };
        let read = self.bytes.len() - self.fresh;
        if read > 0 { Filled::Bytes(read) } else { end }
    }

    /// Writes as much as the user's terminal takes now.
    pub(super) fn drain(&mut self, output: BorrowedFd<'_>) -> rustix::io::Result<()> {
        while let Some(rest) = self.bytes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match rustix::io::write(output, rest) {
                Ok(written) => self.sent += written,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Forgets what waits: nobody will read it.
    pub(super) fn discard(&mut self) {
        self.sent = self.bytes.len();
    }
}
