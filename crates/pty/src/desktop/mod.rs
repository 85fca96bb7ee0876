//! Hotkeys, focus and clipboard, whatever the desktop is.
//!
//! Three small interfaces and what implements them: X11 (the reference), tmux (works over SSH), and
//! for the clipboard also Wayland and OSC 52. [`open`] chooses by the configuration or by what
//! answers. Nothing here reads the environment: the caller hands over [`Surroundings`]. Every wait
//! has a limit, except that a hotkey provider waits for its person; every failure is a value that
//! names what failed.

pub mod binding;
mod error;
mod notice;
pub mod open;
mod osc52;
mod process_tree;
mod program;
mod tmux;
mod wayland;
mod x11;

use std::os::fd::BorrowedFd;

pub use binding::Binding;
pub use error::{ClipboardError, DesktopError, FocusError, RefusalReason, Refused};
pub use notice::Notifier;
pub use open::{Adapter, Surroundings};
pub use osc52::{Framing, Osc52};
pub use process_tree::SessionProcess;
pub use tmux::{Tmux, TmuxBuffers, TmuxFocus, TmuxHotkeys};
pub use wayland::WaylandClipboard;
pub use x11::{X11Clipboard, X11Focus, X11Hotkeys};

/// Says which session has the person's attention.
pub trait SessionResolver: Send {
    /// The process that owns what has focus: a terminal's, or the first one in a pane.
    fn focused_process(&mut self) -> Result<u32, FocusError>;

    /// The session that has focus: the one whose process descends from the focused one.
    fn focused(&mut self, sessions: &[SessionProcess]) -> Result<String, FocusError> {
        session_below(self.focused_process()?, sessions)
    }
}

/// The one session whose process descends from `process`, by what the kernel says now.
pub fn session_below(process: u32, sessions: &[SessionProcess]) -> Result<String, FocusError> {
    process_tree::session_below(process, sessions, process_tree::parent)
}

/// Reports presses of a few key combinations, wherever the focus is.
///
/// Events may already have been read from the descriptor by any call: ask
/// [`HotkeyProvider::pressed`] before waiting for it to become readable.
pub trait HotkeyProvider: Send {
    /// Takes the combinations, in place of those taken before; returns the ones that could not be
    /// had.
    fn register(&mut self, bindings: &[Binding]) -> Result<Vec<Refused>, DesktopError>;

    /// Becomes readable when something may have been pressed.
    fn fd(&self) -> BorrowedFd<'_>;

    /// What was pressed since the last call; never waits.
    fn pressed(&mut self) -> Result<Vec<Press>, DesktopError>;

    /// Fails when the desktop has gone. To be asked now and then where [`HotkeyProvider::fd`]
    /// cannot tell.
    fn look(&mut self) -> Result<(), DesktopError> {
        Ok(())
    }

    /// Gives all combinations back.
    fn unregister(&mut self) -> Result<(), DesktopError>;
}

/// A registered combination was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Press {
    /// Its place in what was given to [`HotkeyProvider::register`].
    pub index: usize,
    /// The process that had focus at that moment, where the provider knows it.
    pub process: Option<u32>,
}

/// Holds what a person can paste elsewhere.
pub trait ClipboardProvider: Send {
    /// Puts bytes into the clipboard, exactly as they are.
    fn write(&mut self, content: &[u8]) -> Result<(), ClipboardError>;

    /// The clipboard's bytes.
    fn read(&mut self) -> Result<Vec<u8>, ClipboardError>;
}
