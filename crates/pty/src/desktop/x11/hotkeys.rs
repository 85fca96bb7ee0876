//! Hotkeys by passive grabs on the root window, one for each state of `NumLock` and `CapsLock`.
//!
//! The server refuses a grab that another program holds with `BadAccess`: the whole binding is then
//! refused, and the others work. When the keyboard's mapping changes, the grabs follow it. A held
//! key repeats as release and press with one time; repeats are not presses.

use std::os::fd::{AsFd, BorrowedFd};

use x11rb::connection::Connection;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{ConnectionExt, GrabMode, KeyPressEvent, ModMask, Window};
use x11rb::protocol::{ErrorKind, Event};

use super::connect;
use super::connection::XConnection;
use super::keyboard::{Chord, Keyboard};
use crate::desktop::error::{DesktopError, RefusalReason, RefusedBinding};
use crate::desktop::{Binding, HotkeyProvider, Press};

/// Keys grabbed from an X server.
#[derive(Debug)]
pub struct X11Hotkeys {
    connection: XConnection,
    root: Window,
    keyboard: Keyboard,
    bindings: Vec<Binding>,
    grabbed: Vec<GrabbedChord>,
    /// The last release; a press at the same time is a repeat.
    released: Option<KeyRelease>,
}

/// A chord that was grabbed for a binding.
#[derive(Debug)]
struct GrabbedChord {
    index: usize,
    chord: Chord,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KeyRelease {
    code: u8,
    time: u32,
}

impl X11Hotkeys {
    /// Connects to a display; nothing is grabbed yet.
    pub fn connect(display: &str) -> Result<Self, DesktopError> {
        let (connection, root) = connect(display)?;
        let keyboard = Keyboard::read(&connection)?;
        let (bindings, grabbed) = (Vec::new(), Vec::new());
        Ok(Self {
            connection,
            root,
            keyboard,
            bindings,
            grabbed,
            released: None,
        })
    }

    fn grab_all(&mut self) -> Result<Vec<RefusedBinding>, DesktopError> {
        let mut refused = Vec::new();
        for (index, binding) in self.bindings.clone().into_iter().enumerate() {
            let reason = match self.keyboard.chord_for(&binding) {
                None => Some(RefusalReason::NoSuchKey),
                Some(chord) if self.grab_chord(chord)? => {
                    self.grabbed.push(GrabbedChord { index, chord });
                    None
                }
                Some(_) => Some(RefusalReason::Taken),
            };
            refused.extend(reason.map(|reason| RefusedBinding {
                index,
                binding,
                reason,
            }));
        }
        Ok(refused)
    }

    /// Grabs a chord in every state of the locks, or in none; returns whether it worked.
    fn grab_chord(&self, chord: Chord) -> Result<bool, DesktopError> {
        for locks in self.keyboard.lock_states() {
            let bits = ModMask::from(chord.bits | locks);
            let mode = GrabMode::ASYNC;
            let asked = self
                .connection
                .grab_key(true, self.root, bits, chord.code, mode, mode)?;
            match asked.check() {
                Ok(()) => {}
                Err(ReplyError::X11Error(error)) if error.error_kind == ErrorKind::Access => {
                    // A binding that works only without NumLock would confuse the user.
                    self.release_chord(chord)?;
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    fn release_chord(&self, chord: Chord) -> Result<(), DesktopError> {
        for locks in self.keyboard.lock_states() {
            let bits = ModMask::from(chord.bits | locks);
            self.connection
                .ungrab_key(chord.code, self.root, bits)?
                .check()?;
        }
        Ok(())
    }

    fn handle_event(&mut self, event: &Event) -> Result<Option<Press>, DesktopError> {
        match event {
            Event::KeyPress(event) => Ok(self.handle_press(event)),
            Event::KeyRelease(event) => {
                self.released = Some(KeyRelease {
                    code: event.detail,
                    time: event.time,
                });
                Ok(None)
            }
            Event::MappingNotify(_) => self.follow_mapping().map(|()| None),
            _ => Ok(None),
        }
    }

    fn handle_press(&mut self, event: &KeyPressEvent) -> Option<Press> {
        let release = KeyRelease {
            code: event.detail,
            time: event.time,
        };
        if self.released == Some(release) {
            return None;
        }
        let chord = Chord {
            code: event.detail,
            bits: self.keyboard.without_locks(event.state.into()),
        };
        let found = self.grabbed.iter().find(|grabbed| grabbed.chord == chord);
        found.map(|grabbed| Press {
            index: grabbed.index,
            process: None,
        })
    }

    fn follow_mapping(&mut self) -> Result<(), DesktopError> {
        let keyboard = Keyboard::read(&self.connection)?;
        if keyboard == self.keyboard {
            return Ok(());
        }
        self.release_all()?;
        self.keyboard = keyboard;
        for refused in self.grab_all()? {
            tracing::warn!(binding = %refused.binding, reason = %refused.reason, "a hotkey was lost");
        }
        Ok(())
    }

    fn release_all(&mut self) -> Result<(), DesktopError> {
        while let Some(GrabbedChord { chord, .. }) = self.grabbed.pop() {
            self.release_chord(chord)?;
        }
        Ok(())
    }
}

impl HotkeyProvider for X11Hotkeys {
    fn register(&mut self, bindings: &[Binding]) -> Result<Vec<RefusedBinding>, DesktopError> {
        self.release_all()?;
        self.bindings = bindings.to_vec();
        self.grab_all()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.connection.stream().as_fd()
    }

    fn pressed(&mut self) -> Result<Vec<Press>, DesktopError> {
        let mut presses = Vec::new();
        while let Some(event) = self.connection.poll_for_event()? {
            presses.extend(self.handle_event(&event)?);
        }
        Ok(presses)
    }

    fn unregister(&mut self) -> Result<(), DesktopError> {
        self.bindings.clear();
        self.release_all()
    }
}
