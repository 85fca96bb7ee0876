//! Reads the CLIPBOARD selection from its owner, at once or in pieces (INCR). An owner that does
//! not answer in time, or sends too much, is an error.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt, GetPropertyReply, Property, Window};

use super::connection::XConnection;
use super::{Atoms, connect, hidden_window, wait_readable};
use crate::desktop::error::{ClipboardError, DesktopError};

/// The largest clipboard that is read: more than a relay ever carries.
const READ_BYTES_MAX: usize = 64 << 20;
/// How long an owner may take for each piece.
const PIECE_WAIT_MAX: Duration = Duration::from_secs(5);

/// The clipboard's bytes as text.
pub(super) fn read_clipboard(display: &str) -> Result<Vec<u8>, ClipboardError> {
    let (connection, root) = connect(display)?;
    let window = hidden_window(&connection, root)?;
    let atoms = Atoms::new(&connection)
        .map_err(DesktopError::from)?
        .reply()
        .map_err(DesktopError::from)?;
    let reader = SelectionReader {
        connection,
        window,
        atoms,
    };
    // `STRING` is Latin-1, so it is only the second choice.
    for target in [reader.atoms.UTF8_STRING, AtomEnum::STRING.into()] {
        if let Some(content) = reader.convert(target)? {
            return Ok(content);
        }
    }
    Err(ClipboardError::Empty)
}

struct SelectionReader {
    connection: XConnection,
    window: Window,
    atoms: Atoms,
}

impl SelectionReader {
    /// The selection as a target; `None` when there is no owner or it lacks that conversion.
    fn convert(&self, target: Atom) -> Result<Option<Vec<u8>>, ClipboardError> {
        let (selection, property) = (self.atoms.CLIPBOARD, self.atoms.TURNKEEP_TRANSFER);
        let asked = self.connection.convert_selection(
            self.window,
            selection,
            target,
            property,
            x11rb::CURRENT_TIME,
        );
        asked.map_err(DesktopError::from)?;
        let answered = self.wait_for_event(|event| match event {
            Event::SelectionNotify(event) => Some(event.property),
            _ => None,
        })?;
        if answered == 0 {
            return Ok(None);
        }
        // Deleting the property tells the owner to send the next piece.
        let reply = self.take_property()?;
        if reply.type_ == self.atoms.INCR {
            self.read_pieces().map(Some)
        } else {
            Ok(Some(reply.value))
        }
    }

    fn read_pieces(&self) -> Result<Vec<u8>, ClipboardError> {
        let property = self.atoms.TURNKEEP_TRANSFER;
        let mut content = Vec::new();
        loop {
            self.wait_for_event(|event| match event {
                Event::PropertyNotify(event) => {
                    (event.atom == property && event.state == Property::NEW_VALUE).then_some(())
                }
                _ => None,
            })?;
            // Taking a piece deletes the property, by which the owner knows that it may send the next
            // one. An empty piece ends the content.
            let piece = self.take_property()?.value;
            if piece.is_empty() {
                return Ok(content);
            }
            content.extend(piece);
            check_size(content.len())?;
        }
    }

    /// Reads the property completely and deletes it.
    fn take_property(&self) -> Result<GetPropertyReply, ClipboardError> {
        let words = u32::try_from(READ_BYTES_MAX / 4).unwrap_or(u32::MAX);
        let property = self.atoms.TURNKEEP_TRANSFER;
        let asked =
            self.connection
                .get_property(true, self.window, property, AtomEnum::ANY, 0, words);
        let reply = asked
            .map_err(DesktopError::from)?
            .reply()
            .map_err(DesktopError::from)?;
        // The server deletes the property only if it was read to its end.
        let left = usize::try_from(reply.bytes_after).unwrap_or(usize::MAX);
        check_size(reply.value.len().saturating_add(left))?;
        Ok(reply)
    }

    /// Waits for the event that `pick` accepts.
    fn wait_for_event<T>(&self, pick: impl Fn(&Event) -> Option<T>) -> Result<T, ClipboardError> {
        let deadline = Instant::now() + PIECE_WAIT_MAX;
        self.connection.flush().map_err(DesktopError::from)?;
        loop {
            while let Some(event) = self
                .connection
                .poll_for_event()
                .map_err(DesktopError::from)?
            {
                if let Some(picked) = pick(&event) {
                    return Ok(picked);
                }
            }
            if !wait_readable(&[self.connection.stream().as_fd()], Some(deadline))? {
                return Err(ClipboardError::Stuck {
                    seconds: PIECE_WAIT_MAX.as_secs(),
                });
            }
        }
    }
}

fn check_size(bytes: usize) -> Result<(), ClipboardError> {
    if bytes <= READ_BYTES_MAX {
        Ok(())
    } else {
        Err(ClipboardError::TooLarge {
            bytes,
            max: READ_BYTES_MAX,
        })
    }
}
