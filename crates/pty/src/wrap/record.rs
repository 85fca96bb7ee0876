//! Writes a recording of the session: every byte in both directions with its time, one JSON object a line.
//!
//! ```text
//! {"t":0.0,"dir":"h","cols":120,"rows":40,"argv":["bash"]}   first line
//! {"t":1.2,"dir":"o","b64":"…"}                              the program wrote
//! {"t":1.3,"dir":"i","src":"user","b64":"…"}                 the program was sent
//! {"t":1.4,"dir":"r","cols":80,"rows":24}                    the window's size changed
//! {"t":1.5,"dir":"s","icanon":true,"echo":true}              the terminal's mode changed
//! ```
//!
//! The file is readable by its owner only. When it cannot be written any more, the recording ends, the
//! program goes on, and the error is told at the end.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::TtyMode;

/// Who sent the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The user, or somebody in the user's place.
    User,
    /// The terminal, asked by the program.
    Terminal,
}

/// A recording under way.
#[derive(Debug)]
pub(super) struct Recorder {
    file: Option<BufWriter<File>>,
    failed: Option<io::Error>,
    mode: Option<TtyMode>,
}

impl Recorder {
    /// Starts a new file; one that is there already is not touched.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self { file: Some(BufWriter::with_capacity(64 << 10, file)), failed: None, mode: None })
    }

    /// The first line.
    pub(super) fn header(&mut self, (cols, rows): (u16, u16), argv: &[String]) {
        let row = json!({ "t": 0.0, "dir": "h", "cols": cols, "rows": rows, "argv": argv });
        self.write(&row);
    }

    /// The program wrote.
    pub(super) fn output(&mut self, now: Duration, bytes: &[u8]) {
        let row = json!({ "t": seconds(now), "dir": "o", "b64": BASE64_STANDARD.encode(bytes) });
        self.write(&row);
    }

    /// The program was sent.
    pub(super) fn input(&mut self, now: Duration, from: From, bytes: &[u8]) {
        let source = if from == From::User { "user" } else { "term" };
        let text = BASE64_STANDARD.encode(bytes);
        self.write(&json!({ "t": seconds(now), "dir": "i", "src": source, "b64": text }));
    }

    /// The window has another size.
    pub(super) fn resize(&mut self, now: Duration, (cols, rows): (u16, u16)) {
        self.write(&json!({ "t": seconds(now), "dir": "r", "cols": cols, "rows": rows }));
    }

    /// The terminal's mode is this; written only when it is another than before.
    pub(super) fn mode(&mut self, now: Duration, mode: TtyMode) {
        if self.mode.replace(mode) != Some(mode) {
            let row = json!({ "t": seconds(now), "dir": "s", "icanon": mode.canonical, "echo": mode.echo });
            self.write(&row);
        }
    }

    /// Hands what was written to the system.
    pub(super) fn flush(&mut self) {
        let flushed = self.file.as_mut().map_or(Ok(()), Write::flush);
        self.note(flushed);
    }

    /// Ends the recording.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush();
        self.failed.map_or(Ok(()), Err)
    }

    fn write(&mut self, row: &Value) {
        let written = self.file.as_mut().map_or(Ok(()), |file| writeln!(file, "{row}"));
        self.note(written);
    }

    fn note(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.file = None;
            self.failed = Some(error);
        }
    }
}

/// Seconds with four decimals, as recordings have them.
fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 1e4
}
