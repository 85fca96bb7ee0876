//! Writes a recording of the session: every byte in both directions with its time, one JSON object
//! per line.
//!
//! ```text
//! {"t":0.0,"dir":"h","cols":120,"rows":40,"argv":["bash"]}   first line
//! {"t":1.2,"dir":"o","b64":"…"}                              output of the program
//! {"t":1.3,"dir":"i","src":"user","b64":"…"}                 input of the program
//! {"t":1.4,"dir":"r","cols":80,"rows":24}                    the window's size changed
//! {"t":1.5,"dir":"s","icanon":true,"echo":true}              the terminal's mode changed
//! ```
//!
//! Only the owner can read the file. A thread of its own writes it, so that a slow disk delays
//! nothing. If a write fails or the thread falls too far behind, the recording ends there, the
//! program goes on, and the user reads about it at the end: a recording has no holes.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use turnkeep_session::screen::Size;

use super::end_deadline::EndDeadline;
use super::mode::TtyMode;

/// How many bytes may wait to be written …
const BEHIND_BYTES_MAX: usize = 64 << 20;
/// … and rows.
const BEHIND_ROWS_MAX: usize = 16 << 10;

/// Which side sent the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputOrigin {
    /// The user, or a paste in the user's place.
    User,
    /// The terminal, in answer to a query of the program.
    Terminal,
}

#[derive(Debug)]
enum RowContent {
    Output(Vec<u8>),
    Input(InputOrigin, Vec<u8>),
    Resize(Size),
    Mode(TtyMode),
}

#[derive(Debug)]
struct Row {
    at: Duration,
    what: RowContent,
}

/// A recording under way.
#[derive(Debug)]
pub(super) struct Recorder {
    rows: Option<SyncSender<Row>>,
    behind: Arc<AtomicUsize>,
    done: Receiver<io::Result<()>>,
    is_too_late: bool,
}

impl Recorder {
    /// Starts a new file; an existing one is an error.
    pub(super) fn create(path: &Path, size: Size, argv: &[String]) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            // A recording may hold secrets, so it never replaces or follows another file.
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let header =
            json!({ "t": 0.0, "dir": "h", "cols": size.cols, "rows": size.rows, "argv": argv });
        Self::start(file, &header)
    }

    fn start(file: impl Write + Send + 'static, header: &Value) -> io::Result<Self> {
        let (rows, taken) = sync_channel(BEHIND_ROWS_MAX);
        let (tell, done) = sync_channel(1);
        let behind = Arc::new(AtomicUsize::new(0));
        let mut writer = RecordWriter {
            file: BufWriter::with_capacity(64 << 10, file),
            behind: behind.clone(),
        };
        writeln!(writer.file, "{header}")?;
        let body = move || {
            // The wrapper may have stopped waiting.
            tell.send(writer.write_all(&taken)).ok();
        };
        std::thread::Builder::new()
            .name("record".to_owned())
            .spawn(body)?;
        Ok(Self {
            rows: Some(rows),
            behind,
            done,
            is_too_late: false,
        })
    }

    /// Records output of the program.
    pub(super) fn record_output(&mut self, at: Duration, bytes: &[u8]) {
        self.send_row(bytes.len(), || Row {
            at,
            what: RowContent::Output(bytes.to_vec()),
        });
    }

    /// Records input of the program.
    pub(super) fn record_input(&mut self, at: Duration, from: InputOrigin, bytes: &[u8]) {
        self.send_row(bytes.len(), || Row {
            at,
            what: RowContent::Input(from, bytes.to_vec()),
        });
    }

    /// Records a new window size.
    pub(super) fn record_resize(&mut self, at: Duration, size: Size) {
        self.send_row(0, || Row {
            at,
            what: RowContent::Resize(size),
        });
    }

    /// Records a new terminal mode.
    pub(super) fn record_mode(&mut self, at: Duration, mode: TtyMode) {
        self.send_row(0, || Row {
            at,
            what: RowContent::Mode(mode),
        });
    }

    fn send_row(&mut self, bytes: usize, row: impl FnOnce() -> Row) {
        let Some(rows) = &self.rows else { return };
        let behind = self.behind.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if behind > BEHIND_BYTES_MAX || rows.try_send(row()).is_err() {
            // Either the thread is too slow, or it has failed and reports why at the end.
            self.is_too_late = true;
            self.rows = None;
        }
    }

    /// Ends the recording; the error says why it is not complete.
    pub(super) fn finish(mut self, deadline: &mut EndDeadline) -> io::Result<()> {
        self.rows = None;
        match deadline.wait_for(&self.done) {
            Ok(Ok(())) if !self.is_too_late => Ok(()),
            Ok(Ok(())) | Err(RecvTimeoutError::Timeout) => {
                Err(io::Error::other("the disk is too slow"))
            }
            Ok(Err(error)) => Err(error),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("its thread panicked")),
        }
    }
}

/// The thread's side of a recording.
struct RecordWriter<W: Write> {
    file: BufWriter<W>,
    behind: Arc<AtomicUsize>,
}

impl<W: Write> RecordWriter<W> {
    /// Writes every row, and flushes whenever no more wait.
    fn write_all(&mut self, rows: &Receiver<Row>) -> io::Result<()> {
        // Readers of the file see its header even before the first row.
        self.file.flush()?;
        while let Ok(row) = rows.recv() {
            self.write(&row)?;
            while let Ok(row) = rows.try_recv() {
                self.write(&row)?;
            }
            self.file.flush()?;
        }
        Ok(())
    }

    fn write(&mut self, row: &Row) -> io::Result<()> {
        if let RowContent::Output(bytes) | RowContent::Input(_, bytes) = &row.what {
            self.behind.fetch_sub(bytes.len(), Ordering::Relaxed);
        }
        writeln!(self.file, "{}", row_json(row))
    }
}

fn row_json(row: &Row) -> Value {
    let t = to_seconds(row.at);
    match &row.what {
        RowContent::Output(bytes) => {
            json!({ "t": t, "dir": "o", "b64": BASE64_STANDARD.encode(bytes) })
        }
        RowContent::Input(from, bytes) => {
            let source = if *from == InputOrigin::User {
                "user"
            } else {
                "term"
            };
            json!({ "t": t, "dir": "i", "src": source, "b64": BASE64_STANDARD.encode(bytes) })
        }
        RowContent::Resize(size) => {
            json!({ "t": t, "dir": "r", "cols": size.cols, "rows": size.rows })
        }
        RowContent::Mode(mode) => {
            json!({ "t": t, "dir": "s", "icanon": mode.canonical, "echo": mode.echo })
        }
    }
}

/// Seconds, to the microsecond.
fn to_seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::SyncSender;

    use super::*;

    /// A disk that takes nothing until it may.
    struct Slow(Receiver<()>, SyncSender<usize>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().ok();
            self.1.send(bytes.len()).ok();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_disk_that_hangs_keeps_nobody_waiting_and_the_recording_ends() {
        let (go, may) = sync_channel(0);
        let (tell, _written) = sync_channel(1 << 20);
        let mut recorder = Recorder::start(Slow(may, tell), &json!({})).unwrap();
        let megabyte = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            recorder.record_output(Duration::ZERO, &megabyte);
        }
        assert!(recorder.rows.is_none() && recorder.is_too_late);
        drop(go);
        assert!(
            recorder.done.recv().unwrap().is_ok(),
            "what waited is written in the end"
        );
    }
}
