//! The Wayland clipboard, by the data-control protocol that wlroots, KDE and COSMIC offer.
//!
//! The client library speaks the protocol itself; no system library is linked. It serves the
//! written content from memory on a thread of its own, until another program owns the clipboard. It
//! finds the compositor by `WAYLAND_DISPLAY`. GNOME offers no data control to programs without a
//! window: there opening fails, and the other adapters remain.

use std::io::Read;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use wl_clipboard_rs::{copy, paste};

use super::ClipboardProvider;
use super::error::{ClipboardError, DesktopError};

/// The largest clipboard that is read, as on X11: more than a relay ever carries.
const READ_BYTES_MAX: usize = 64 << 20;
const READ_WAIT_MAX: Duration = Duration::from_secs(5);

/// The clipboard of the Wayland compositor.
#[derive(Debug, Default)]
pub struct WaylandClipboard(());

impl WaylandClipboard {
    /// Opens the compositor's clipboard, if it offers one.
    pub fn open() -> Result<Self, ClipboardError> {
        match paste::get_mime_types(paste::ClipboardType::Regular, paste::Seat::Unspecified) {
            Ok(_) | Err(paste::Error::ClipboardEmpty) => Ok(Self(())),
            Err(error) => Err(ClipboardError::Wayland(with_cause(&error))),
        }
    }
}

impl ClipboardProvider for WaylandClipboard {
    fn write(&mut self, content: &[u8]) -> Result<(), ClipboardError> {
        let source = copy::Source::Bytes(content.into());
        let copied = copy::Options::new().copy(source, copy::MimeType::Text);
        copied.map_err(|error| ClipboardError::Wayland(with_cause(&error)))
    }

    fn read(&mut self) -> Result<Vec<u8>, ClipboardError> {
        let regular = paste::ClipboardType::Regular;
        match paste::get_contents(regular, paste::Seat::Unspecified, paste::MimeType::Text) {
            Ok((pipe, _)) => read_to_end_within_limits(pipe),
            Err(
                paste::Error::NoSeats | paste::Error::ClipboardEmpty | paste::Error::NoMimeType,
            ) => Err(ClipboardError::Empty),
            Err(error) => Err(ClipboardError::Wayland(with_cause(&error))),
        }
    }
}

/// Reads everything from the owner's pipe, within the limits.
fn read_to_end_within_limits(
    mut pipe: impl Read + std::os::fd::AsFd,
) -> Result<Vec<u8>, ClipboardError> {
    let io = |error| DesktopError::io("cannot read from the owner of the clipboard")(error);
    let mut content = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    let deadline = Instant::now() + READ_WAIT_MAX;
    // The owner decides how much it writes, so both bytes and time have a limit.
    while content.len() <= READ_BYTES_MAX {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = left.try_into().map_err(|_| ClipboardError::Stuck {
            seconds: READ_WAIT_MAX.as_secs(),
        })?;
        let ready = poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&left));
        if ready.map_err(|error| io(error.into()))? == 0 {
            return Err(ClipboardError::Stuck {
                seconds: READ_WAIT_MAX.as_secs(),
            });
        }
        match pipe.read(&mut chunk).map_err(io)? {
            0 => return Ok(content),
            count => content.extend_from_slice(chunk.get(..count).unwrap_or_default()),
        }
    }
    Err(ClipboardError::TooLarge {
        bytes: content.len(),
        max: READ_BYTES_MAX,
    })
}

/// The error with its causes, which the library's messages leave out.
fn with_cause(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_owner_writes_is_read_to_its_end() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let content = vec![7; 300_000];
        let expect = content.clone();
        let owner = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &content));
        assert_eq!(read_to_end_within_limits(reader).unwrap(), expect);
        owner.join().unwrap().unwrap();
    }
}
