//! The two buffers of the byte path: child to user, and user to child. Both are bounded and keep order.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

/// Output that waits for the user's terminal.
pub(super) const OUT_BYTES_MAX: usize = 64 << 10;
/// Input that waits for the child before no more is read from the user.
pub(super) const IN_BYTES_MAX: usize = 64 << 10;

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
        Self { bytes: Vec::with_capacity(OUT_BYTES_MAX), sent: 0, fresh: 0 }
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

/// Where input came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The user's terminal.
    Typed,
    /// A paste.
    Injected,
    /// The wrapper, in the terminal's place.
    Answer,
}

#[derive(Debug)]
struct Chunk {
    source: Source,
    bytes: Vec<u8>,
    sent: usize,
}

/// Bytes on their way to the child.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    chunks: VecDeque<Chunk>,
    bytes: usize,
}

impl Inbox {
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether the child must take some before more is read.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= IN_BYTES_MAX
    }

    /// Adds at the end.
    pub(super) fn push(&mut self, source: Source, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.bytes += bytes.len();
            self.chunks.push_back(Chunk { source, bytes, sent: 0 });
        }
    }

    /// Writes once, as much as the child's terminal takes now, and says what it took.
    pub(super) fn drain(&mut self, master: BorrowedFd<'_>) -> Option<(Source, Vec<u8>)> {
        let chunk = self.chunks.front_mut()?;
        let rest = chunk.bytes.get(chunk.sent..).unwrap_or_default();
        let written = match rustix::io::write(master, rest) {
            Ok(written) => written,
            Err(Errno::AGAIN | Errno::INTR) => return None,
            // Nobody can read it any more.
            Err(_) => rest.len(),
        };
        let taken = rest.get(..written).unwrap_or_default().to_vec();
        let source = chunk.source;
        chunk.sent += written;
        self.bytes -= written;
        if chunk.sent == chunk.bytes.len() {
            self.chunks.pop_front();
        }
        (written > 0).then_some((source, taken))
    }
}
