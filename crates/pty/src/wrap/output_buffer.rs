//! Output on its way from the child to the user: limited, in order, and handed to the tap only
//! after the write.
//!
//! A full buffer stops reading; a failed write is returned to the pump.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

/// How much output may wait for the user's terminal.
pub(super) const OUT_BYTES_MAX: usize = 64 << 10;

/// The result of reading from the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    /// This many bytes, and there may be more.
    Bytes(usize),
    /// Nothing for now.
    Dry,
    /// Nothing, because the user's terminal must accept some output first.
    Full,
    /// Nothing any more.
    Closed,
}

/// Output on its way to the user.
#[derive(Debug)]
pub(super) struct OutputBuffer {
    bytes: Vec<u8>,
    sent: usize,
    fresh: usize,
}

impl OutputBuffer {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(OUT_BYTES_MAX),
            sent: 0,
            fresh: 0,
        }
    }

    /// Whether nothing waits for the user's terminal.
    pub(super) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// Whether nothing more fits.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() - self.sent == self.bytes.capacity()
    }

    /// The bytes of the last [`OutputBuffer::read_from`], sent or not.
    pub(super) fn last_read(&self) -> &[u8] {
        self.bytes.get(self.fresh..).unwrap_or_default()
    }

    /// Reads the child's output up to the limit.
    pub(super) fn read_from(&mut self, master: BorrowedFd<'_>) -> ReadOutcome {
        // Sent bytes go only now, because `fresh` must still see them after the write.
        self.bytes.drain(..self.sent);
        (self.sent, self.fresh) = (0, self.bytes.len());
        if self.is_full() {
            return ReadOutcome::Full;
        }
        let end = loop {
            if self.is_full() {
                break ReadOutcome::Full;
            }
            // The kernel gives 4 KiB at a time.
            match rustix::io::read(master, rustix::buffer::spare_capacity(&mut self.bytes)) {
                Ok(0) => break ReadOutcome::Closed,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break ReadOutcome::Dry,
                Err(_) => break ReadOutcome::Closed,
            }
        };
        let read = self.bytes.len() - self.fresh;
        if read > 0 {
            ReadOutcome::Bytes(read)
        } else {
            end
        }
    }

    /// Writes as much as the user's terminal accepts now.
    pub(super) fn write_to(&mut self, output: BorrowedFd<'_>) -> rustix::io::Result<()> {
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

    /// Drops the waiting output, which has no reader any more.
    pub(super) fn discard(&mut self) {
        self.sent = self.bytes.len();
    }
}
