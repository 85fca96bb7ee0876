//! The mode of the child's terminal, read by the byte path so that it has its place among the
//! bytes.
//!
//! It is read with every byte that passes. Programs also change it silently, so it is read again
//! after a pause: soon after activity, because programs change it right after they write, then less
//! and less often. The observer and the recording get the same modes in the same places.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, QueueSelector, SpecialCodeIndex, Termios};

const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_LAST: Duration = Duration::from_millis(500);

/// How the child's terminal treats input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtyMode {
    /// The kernel delivers input line by line.
    pub canonical: bool,
    /// The kernel echoes input.
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
    pub(super) fn new() -> Self {
        Self {
            last: None,
            pause: PAUSE_FIRST,
            again_at: Instant::now(),
        }
    }

    /// Whether the terminal collected lines when its mode was last read.
    pub(super) fn is_canonical(&self) -> bool {
        self.last.is_some_and(|mode| mode.canonical)
    }

    /// The time until the mode must be read without any activity.
    pub(super) fn due_in(&self) -> Duration {
        self.again_at.saturating_duration_since(Instant::now())
    }

    /// Reads the mode after activity; returns it if it has changed.
    pub(super) fn read_after_activity(&mut self, master: &OwnedFd) -> Option<TtyMode> {
        self.pause = PAUSE_FIRST;
        self.again_at = Instant::now() + PAUSE_FIRST;
        self.read_if_changed(master)
    }

    /// Reads the mode if the pause is over; returns it if it has changed.
    pub(super) fn read_after_pause(&mut self, master: &OwnedFd) -> Option<TtyMode> {
        if !self.due_in().is_zero() {
            return None;
        }
        // Doubling keeps an idle session cheap.
        self.pause = (self.pause * 2).min(PAUSE_LAST);
        self.again_at = Instant::now() + self.pause;
        self.read_if_changed(master)
    }

    fn read_if_changed(&mut self, master: &OwnedFd) -> Option<TtyMode> {
        let modes = rustix::termios::tcgetattr(master).ok()?.local_modes;
        let (canonical, echo) = (
            modes.contains(LocalModes::ICANON),
            modes.contains(LocalModes::ECHO),
        );
        let mode = TtyMode { canonical, echo };
        (self.last.replace(mode) != Some(mode)).then_some(mode)
    }
}

/// How many bytes the child has not read yet.
pub(super) fn unread_bytes(master: &OwnedFd) -> u64 {
    open_slave(master)
        .and_then(|slave| {
            // The kernel moves written bytes to the child's side in a task of its own, which a busy
            // machine delays; until then the count lacks them. Polling waits for that task.
            let mut input = [PollFd::new(&slave, PollFlags::IN)];
            rustix::event::poll(&mut input, Some(&Timespec::default()))?;
            rustix::io::ioctl_fionread(&slave)
        })
        .unwrap_or_default()
}

/// Whether one of these bytes makes the child's terminal send a signal. If so, the terminal's
/// unread input is discarded, as the kernel does when it receives such a byte itself.
pub(super) fn sends_signal(master: &OwnedFd, bytes: &[u8]) -> bool {
    let Ok(settings) = rustix::termios::tcgetattr(master) else {
        return false;
    };
    if find_signal_byte(&settings, bytes).is_none() {
        return false;
    }
    if !settings.local_modes.contains(LocalModes::NOFLSH) {
        // A terminal that cannot be opened holds nothing.
        open_slave(master)
            .and_then(|slave| rustix::termios::tcflush(slave, QueueSelector::IFlush))
            .ok();
    }
    true
}

/// The index of the first of these bytes for which the child's terminal sends a signal.
pub(super) fn find_signal_key(master: &OwnedFd, bytes: &[u8]) -> Option<usize> {
    find_signal_byte(&rustix::termios::tcgetattr(master).ok()?, bytes)
}

fn find_signal_byte(settings: &Termios, bytes: &[u8]) -> Option<usize> {
    if !settings.local_modes.contains(LocalModes::ISIG) {
        return None;
    }
    let keys = [
        SpecialCodeIndex::VINTR,
        SpecialCodeIndex::VQUIT,
        SpecialCodeIndex::VSUSP,
    ]
    .map(|index| settings.special_codes[index]);
    // A zero in the settings means that no key sends the signal.
    bytes
        .iter()
        .position(|byte| *byte != 0 && keys.contains(byte))
}

/// Opens the child's side for a moment. Kept open for longer, it would keep the terminal from
/// hanging up.
fn open_slave(master: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    rustix::pty::ioctl_tiocgptpeer(master, flags)
}
