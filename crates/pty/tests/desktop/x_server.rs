//! An X server without a screen, and the programs that act on it like a person.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::program::{Running, output};

/// A server of its own for each test.
pub(crate) struct XServer {
    _server: Running,
    pub(crate) display: String,
}

impl XServer {
    pub(crate) fn start() -> Self {
        let mut command = Command::new("Xvfb");
        command.args([
            "-displayfd",
            "1",
            "-screen",
            "0",
            "640x480x24",
            "-nolisten",
            "tcp",
            "-noreset",
            "-ac",
        ]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut server = Running::start(&mut command, "xvfb");
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let number: u32 = line.trim().parse().expect("Xvfb names its display");
        Self {
            _server: server,
            display: format!(":{number}"),
        }
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DISPLAY", &self.display);
        command
    }

    /// Presses keys by XTEST, as a keyboard would.
    pub(crate) fn press(&self, keys: &str) {
        let done = output(self.command("xdotool").args(["key", keys]), "xdotool", b"");
        assert!(done.status.success(), "{done:?}");
    }
}
