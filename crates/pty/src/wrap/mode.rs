//! The mode of the child's terminal, read by the byte path, so that it stands in order among the
//! bytes.
//!
//! It is read with every byte that passes; programs also change it in silence, so it is read again
//! after a pause: short after something happened, because programs change it right after they
//! write, then longer and longer. Whoever looks and whoever records are told the same, in the same
//! place.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, QueueSelector, SpecialCodeIndex};

const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_LAST: Duration = Duration::from_millis(500);

/// How the child's terminal treats input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtyMode {
    /// Input comes by lines.
    pub canonical: bool,
    /// Input is echoed.
    pub echo: bool,
}

/// Follows the mode.
#[derive(Debug)]
pub(super) struct ModeWatch {
    last: Option<TtyMode>,
    pause: Duration,
    again_at: Instant,
}

impl ModeWatch {
    /// Nothing read yet.
    pub(super) fn new() -> Self {
        Self {
            last: None,
            pause: PAUSE_FIRST,
            again_at: Instant::now(),
        }
    }

    /// Whether the terminal collected lines when it was looked at last.
    pub(super) fn is_canonical(&self) -> bool {
        self.last.is_some_and(|mode| mode.canonical)
    }

    /// The time until the mode is to be read although nothing happened.
    pub(super) fn due_in(&self) -> Duration {
        self.again_at.saturating_duration_since(Instant::now())
    }

    /// Reads the mode because something happened. Gives one that is new.
    pub(super) fn stirred(&mut self, master: &OwnedFd) -> Option<TtyMode> {
        self.pause = PAUSE_FIRST;
        self.again_at = Instant::now() + PAUSE_FIRST;
        self.read(master)
    }

    /// Reads the mode because nothing happened for a while. Gives one that is new.
    pub(super) fn rested(&mut self, master: &OwnedFd) -> Option<TtyMode> {
        if !self.due_in().is_zero() {
            return None;
        }
        self.pause = (self.pause * 2).min(PAUSE_LAST);
        self.again_at = Instant::now() + self.pause;
        self.read(master)
    }

    fn read(&mut self, master: &OwnedFd) -> Option<TtyMode> {
        let modes = rustix::termios::tcgetattr(master).ok()?.local_modes;
        let (canonical, echo) = (
            modes.contains(LocalModes::ICANON),
            modes.contains(LocalModes::ECHO),
        );
        let mode = TtyMode { canonical, echo };
        (self.last.replace(mode) != Some(mode)).then_some(mode)
    }
}

/// Bytes that the child has not read yet.
pub(super) fn unread(master: &OwnedFd) -> u64 {
    slave(master)
        .and_then(rustix::io::ioctl_fionread)
        .unwrap_or_default()
}

/// Whether one of these bytes makes the child's terminal send a signal. If so, the terminal has
/// forgotten what it held for the child, as it does when it takes such a byte itself.
pub(super) fn interrupts(master: &OwnedFd, bytes: &[u8]) -> bool {
    let Ok(settings) = rustix::termios::tcgetattr(master) else {
        return false;
    };
    let keys = [
        SpecialCodeIndex::VINTR,
        SpecialCodeIndex::VQUIT,
        SpecialCodeIndex::VSUSP,
    ];
    let is_key =
        |byte: &u8| *byte != 0 && keys.iter().any(|key| settings.special_codes[*key] == *byte);
    if !settings.local_modes.contains(LocalModes::ISIG) || !bytes.iter().any(is_key) {
        return false;
    }
    if !settings.local_modes.contains(LocalModes::NOFLSH) {
        // A terminal that cannot be opened holds nothing.
        slave(master)
            .and_then(|slave| rustix::termios::tcflush(slave, QueueSelector::IFlush))
            .ok();
    }
    true
}

/// The child's side, for a moment: held for longer it would keep the terminal from hanging up.
fn slave(master: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    rustix::pty::ioctl_tiocgptpeer(master, flags)
}
