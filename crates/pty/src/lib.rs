//! The wrapper process and the desktop: the only crate that touches a terminal, a signal or a
//! window.
//!
//! - [`wrap`]: runs a program in a pseudo-terminal, passes every byte on and feeds a copy to the
//!   detector.
//! - [`desktop`]: hotkeys, focus and clipboard on X11, tmux, Wayland and OSC 52.

pub mod desktop;
pub mod wrap;
