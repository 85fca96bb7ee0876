//! X11, the reference desktop: focus by window properties, hotkeys by passive grabs, the CLIPBOARD
//! selection.
//!
//! The protocol is spoken directly; no system library is linked. Each part has its own connection,
//! because a selection's owner serves other programs while the others wait for the user.

mod clipboard;
mod connection;
mod focus;
mod hotkeys;
mod keyboard;
mod selection_owner;
mod selection_reader;
mod transfer;

use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, CreateWindowAux, EventMask, Window, WindowClass};

pub use clipboard::X11Clipboard;
pub use focus::X11Focus;
pub use hotkeys::X11Hotkeys;

use super::error::DesktopError;
use connection::XConnection;

x11rb::atom_manager! {
    /// The names that the adapters use.
    pub(super) Atoms:
    AtomsCookie {
        CLIPBOARD,
        INCR,
        MULTIPLE,
        TARGETS,
        TEXT,
        TIMESTAMP,
        UTF8_STRING,
        TEXT_PLAIN_UTF8: b"text/plain;charset=utf-8",
        TEXT_PLAIN: b"text/plain",
        OCTETS: b"application/octet-stream",
        TURNKEEP_TRANSFER,
        _NET_ACTIVE_WINDOW,
        _NET_WM_PID,
    }
}

/// Connects; returns the connection and the root window of the display's screen.
fn connect(display: &str) -> Result<(XConnection, Window), DesktopError> {
    let failed = |source| DesktopError::X11Connect {
        display: display.to_owned(),
        source: Box::new(source),
    };
    let (connection, screen) = connection::open(display).map_err(failed)?;
    let root = connection
        .setup()
        .roots
        .get(screen)
        .map(|screen| screen.root);
    let root = root.ok_or_else(|| failed(x11rb::errors::ConnectError::InvalidScreen))?;
    Ok((connection, root))
}

/// Creates a window that is never shown, to own a selection or receive one.
fn hidden_window(connection: &XConnection, root: Window) -> Result<Window, DesktopError> {
    let window = connection.generate_id()?;
    let events = CreateWindowAux::new().event_mask(EventMask::PROPERTY_CHANGE);
    let class = WindowClass::INPUT_ONLY;
    connection
        .create_window(0, window, root, 0, 0, 1, 1, 0, class, 0, &events)?
        .check()?;
    Ok(window)
}

/// Waits until one of the descriptors is readable or until a time; returns whether one is.
fn wait_readable(fds: &[BorrowedFd<'_>], until: Option<Instant>) -> Result<bool, DesktopError> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = left.and_then(|left| left.try_into().ok());
    let mut fds: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    match poll(&mut fds, left.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        // Counts as readable: the caller looks, finds nothing and waits again.
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(DesktopError::io("cannot wait for the X server")(
            error.into(),
        )),
    }
}
