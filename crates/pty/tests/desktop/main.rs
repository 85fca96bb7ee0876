//! The adapters against real servers: an X server without a screen, and tmux.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod program;
mod tmux;
mod tmux_server;
mod wayland;
mod x11_clipboard;
mod x11_focus;
mod x11_hotkeys;
mod x11_requests;
mod x_server;
