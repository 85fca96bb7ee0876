//! tmux as a desktop: panes have focus, `bind-key` makes hotkeys, paste buffers are the clipboard.
//!
//! Everything goes through the `tmux` program and the server's socket, named explicitly, so that it
//! works over SSH and from outside the server. Every call ends within [`RUN_TIME_MAX`] or is
//! killed.

mod buffers;
mod focus;
mod hotkeys;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub use buffers::TmuxBuffers;
pub use focus::TmuxFocus;
pub use hotkeys::TmuxHotkeys;

use super::error::DesktopError;
use super::program;

/// How long a call may take; a running tmux server answers within milliseconds.
const RUN_TIME_MAX: Duration = Duration::from_secs(10);

/// A tmux server.
#[derive(Debug, Clone)]
pub struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// The server at a socket.
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
        }
    }

    /// The server's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Checks that the server answers.
    pub(super) fn probe(&self) -> Result<(), DesktopError> {
        self.run_command(&["display-message", "-p", "#{version}"], b"")
            .map(drop)
    }

    /// Shows a line on the server's most recent client.
    pub fn show_message(&self, message: &str) -> Result<(), DesktopError> {
        // A message is a format: a `#` would start one.
        self.run_command(&["display-message", "--", &message.replace('#', "##")], b"")
            .map(drop)
    }

    /// Runs a tmux command with some standard input, and returns what it prints.
    fn run_command(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, DesktopError> {
        let mut command = Command::new("tmux");
        // Inside a pane these would make the pane the target of everything.
        command.env_remove("TMUX").env_remove("TMUX_PANE");
        command
            .arg("-S")
            .arg(&self.socket)
            .args(args.iter().map(escape_argument));
        let name = format!("tmux {}", args.first().copied().unwrap_or_default());
        program::run_program(&mut command, &name, input, RUN_TIME_MAX)
    }
}

/// An argument as tmux reads it: a semicolon at its end would end the command.
fn escape_argument(text: &&str) -> String {
    text.strip_suffix(';')
        .map_or_else(|| (*text).to_owned(), |head| format!("{head}\\;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_at_the_end_is_part_of_the_argument() {
        for (text, expect) in [
            ("M-;", "M-\\;"),
            (";", "\\;"),
            ("a;b", "a;b"),
            ("", ""),
            ("a\\;", "a\\\\;"),
        ] {
            assert_eq!(escape_argument(&text), expect);
        }
    }
}
