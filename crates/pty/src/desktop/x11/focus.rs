//! The focused window and its process: `_NET_ACTIVE_WINDOW` of the root, then `_NET_WM_PID` of that
//! window. A window without these properties is an error that names it.

use x11rb::protocol::xproto::{AtomEnum, ConnectionExt, Window};

use super::connection::XConnection;
use super::{Atoms, connect};
use crate::desktop::{DesktopError, FocusError, SessionResolver};

/// The window that has focus, according to the window manager.
#[derive(Debug)]
pub struct X11Focus {
    connection: XConnection,
    root: Window,
    atoms: Atoms,
}

impl X11Focus {
    /// Connects to a display.
    pub fn connect(display: &str) -> Result<Self, DesktopError> {
        let (connection, root) = connect(display)?;
        let atoms = Atoms::new(&connection)?.reply()?;
        Ok(Self {
            connection,
            root,
            atoms,
        })
    }

    /// The first number of a property, if the window has it.
    fn read_number(
        &self,
        window: Window,
        property: u32,
        kind: AtomEnum,
    ) -> Result<Option<u32>, DesktopError> {
        let asked = self
            .connection
            .get_property(false, window, property, kind, 0, 1)?;
        match asked.reply() {
            Ok(reply) => Ok(reply.value32().and_then(|mut values| values.next())),
            // The window was closed meanwhile.
            Err(x11rb::errors::ReplyError::X11Error(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl SessionResolver for X11Focus {
    fn focused_process(&mut self) -> Result<u32, FocusError> {
        let active =
            self.read_number(self.root, self.atoms._NET_ACTIVE_WINDOW, AtomEnum::WINDOW)?;
        let window = active
            .filter(|window| *window != 0)
            .ok_or(FocusError::Nothing)?;
        let process = self.read_number(window, self.atoms._NET_WM_PID, AtomEnum::CARDINAL)?;
        process
            .filter(|process| *process != 0)
            .ok_or(FocusError::NoProcess { window })
    }
}
