//! tmux as a desktop: panes have focus, `bind-key` is the hotkey, paste buffers are the clipboard.
//!
//! Everything goes through the `tmux` program and the server's socket, named explicitly, so that it
//! works over SSH and from outside the server. Every call ends within [`RUN_TIME_MAX`] or is killed.

mod buffers;
mod focus;
mod hotkeys;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

pub use buffers::TmuxBuffers;
pub use focus::TmuxFocus;
pub use hotkeys::TmuxHotkeys;

use super::error::DesktopError;

/// A tmux server that is alive answers within milliseconds.
const RUN_TIME_MAX: Duration = Duration::from_secs(10);

/// A tmux server.
#[derive(Debug, Clone)]
pub struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// The server at a socket.
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into() }
    }

    /// The server's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether it answers.
    pub(super) fn probe(&self) -> Result<(), DesktopError> {
        self.run(&["display-message", "-p", "#{version}"], b"").map(drop)
    }

    /// Shows a line to whoever looks at the server's most recent client.
    pub fn show(&self, message: &str) -> Result<(), DesktopError> {
        // A message is a format: a `#` would start one.
        self.run(&["display-message", "--", &message.replace('#', "##")], b"").map(drop)
    }

    /// Runs a tmux command with some standard input; what it prints.
    fn run(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, DesktopError> {
        let shown = || format!("tmux {}", args.first().copied().unwrap_or_default());
        let mut command = Command::new("tmux");
        // Inside a pane these would make the pane the target of everything.
        command.env_remove("TMUX").env_remove("TMUX_PANE");
        command.arg("-S").arg(&self.socket).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(DesktopError::io("cannot run tmux (Debian package tmux)"))?;
        let output = finish(&mut child, input);
        let Some((stdout, stderr)) = output else {
            // Killed or not, it is waited for; that it may have ended meanwhile is no error.
            drop(child.kill());
            drop(child.wait());
            return Err(DesktopError::ProgramStuck { command: shown(), seconds: RUN_TIME_MAX.as_secs() });
        };
        let status = child.wait().map_err(DesktopError::io("cannot wait for tmux"))?;
        if status.success() {
            return Ok(stdout);
        }
        let message = String::from_utf8_lossy(&stderr).trim().to_owned();
        Err(DesktopError::Program { command: shown(), message })
    }
}

/// Feeds the input and gathers both outputs until they end; none when that takes too long.
fn finish(child: &mut Child, input: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let deadline = Instant::now() + RUN_TIME_MAX;
    let mut stdin = child.stdin.take()?;
    let input = input.to_vec();
    // A command that fails does not read its input: that is said by its exit code.
    let feeder = thread::spawn(move || drop(stdin.write_all(&input)));
    let stdout = gather(child.stdout.take()?);
    let stderr = gather(child.stderr.take()?);
    let left = || deadline.saturating_duration_since(Instant::now());
    let outputs = (stdout.recv_timeout(left()).ok()?, stderr.recv_timeout(left()).ok()?);
    feeder.join().ok()?;
    Some(outputs)
}

fn gather(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is all there is to say; nobody may be waiting any more.
        drop(pipe.read_to_end(&mut bytes));
        drop(sender.send(bytes));
    });
    receiver
}
