//! Hotkeys, focus and clipboard, whatever the desktop is.
//!
//! Three small interfaces and their implementations: X11 (the reference), tmux (works over SSH),
//! and for the clipboard also Wayland and OSC 52. [`open`] chooses by the configuration or by which
//! one answers. This module reads no environment variables: the caller passes a
//! [`DesktopEnvironment`]. Every wait has a limit, except that a hotkey provider waits for its
//! user. Every failure is a value that names what failed.

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
pub use error::{ClipboardError, DesktopError, FocusError, RefusalReason, RefusedBinding};
pub use notice::Notifier;
pub use open::{Adapter, DesktopEnvironment};
pub use osc52::{Osc52, Osc52Framing};
pub use process_tree::SessionProcess;
pub use tmux::{Tmux, TmuxBuffers, TmuxFocus, TmuxHotkeys};
pub use wayland::WaylandClipboard;
pub use x11::{X11Clipboard, X11Focus, X11Hotkeys};

/// Finds the session that has focus.
pub trait SessionResolver: Send {
    /// The process of the focused window or pane: a terminal's, or the first one in a pane.
    fn focused_process(&mut self) -> Result<u32, FocusError>;

    /// The session that has focus: the one whose process descends from the focused one.
    fn focused(&mut self, sessions: &[SessionProcess]) -> Result<String, FocusError> {
        session_below(self.focused_process()?, sessions)
    }
}

/// The one session whose process descends from `process`, according to the kernel.
pub fn session_below(process: u32, sessions: &[SessionProcess]) -> Result<String, FocusError> {
    process_tree::session_below(process, sessions, process_tree::parent_of)
}

/// Reports presses of a few key combinations, wherever the focus is.
///
/// Any call may already have read events from the descriptor: call [`HotkeyProvider::pressed`]
/// before waiting for it to become readable.
pub trait HotkeyProvider: Send {
    /// Registers the combinations in place of those before; returns the ones that were refused.
    fn register(&mut self, bindings: &[Binding]) -> Result<Vec<RefusedBinding>, DesktopError>;

    /// Becomes readable when a combination may have been pressed.
    fn fd(&self) -> BorrowedFd<'_>;

    /// The presses since the last call; never waits.
    fn pressed(&mut self) -> Result<Vec<Press>, DesktopError>;

    /// Fails when the desktop is gone. Call it now and then where [`HotkeyProvider::fd`] does not
    /// show it.
    fn check_alive(&mut self) -> Result<(), DesktopError> {
        Ok(())
    }

    /// Releases all combinations.
    fn unregister(&mut self) -> Result<(), DesktopError>;
}

/// A press of a registered combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Press {
    /// Its index in the bindings given to [`HotkeyProvider::register`].
    pub index: usize,
    /// The process that had focus at that moment, where the provider knows it.
    pub process: Option<u32>,
}

/// A clipboard.
pub trait ClipboardProvider: Send {
    /// Puts bytes into the clipboard, unchanged.
    fn write(&mut self, content: &[u8]) -> Result<(), ClipboardError>;

    /// Reads the clipboard.
    fn read(&mut self) -> Result<Vec<u8>, ClipboardError>;
}
