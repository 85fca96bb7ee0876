//! A tmux server of its own, and one whose client runs in a pane of another: keys typed there are
//! real.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use turnkeep_pty::desktop::Tmux;

use crate::program::output;

/// A server, killed when dropped.
pub(crate) struct TmuxServer {
    pub(crate) folder: TempDir,
}

impl TmuxServer {
    /// Starts one with a program in its first pane.
    pub(crate) fn start(program: &str) -> Self {
        let server = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        server.run(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "30",
            program,
        ]);
        server
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub(crate) fn tmux(&self) -> Tmux {
        Tmux::at(self.socket())
    }

    /// A server with one client, which runs in a pane of the server that is returned second.
    pub(crate) fn attached(program: &str) -> (Self, Self) {
        let inner = Self::start(program);
        let attach = format!("exec tmux -S '{}' attach", inner.socket().display());
        let outer = Self::start(&attach);
        crate::program::eventually("the client attaches", || {
            (!inner.run(&["list-clients"]).is_empty()).then_some(())
        });
        (inner, outer)
    }

    /// Runs a command of tmux; what it prints.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        String::from_utf8(self.bytes(args))
            .unwrap()
            .trim_end()
            .to_owned()
    }

    pub(crate) fn bytes(&self, args: &[&str]) -> Vec<u8> {
        let mut command = Command::new("tmux");
        // A terminal that every machine describes, and UTF-8 whatever the locale is.
        command
            .env_remove("TMUX")
            .env_remove("TMUX_PANE")
            .env("TERM", "xterm")
            .env("LC_ALL", "C.UTF-8");
        command.arg("-S").arg(self.socket()).args(args);
        let done = output(&mut command, "tmux", b"");
        assert!(
            done.status.success(),
            "tmux {args:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        done.stdout
    }

    /// A number that tmux knows about a pane.
    pub(crate) fn number(&self, format: &str, target: &str) -> u32 {
        self.run(&["display-message", "-p", "-t", target, format])
            .parse()
            .unwrap()
    }
}

impl Drop for TmuxServer {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.socket()).arg("kill-server");
        drop(command.output());
    }
}
