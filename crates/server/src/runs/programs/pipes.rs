//! The pipes of a running agent program, each with a task of its own.
//!
//! A program may write while it is written to. One task that did both could wait for the program
//! while the program waits for it, so reading and writing are apart.

use std::io::Read as _;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use crate::child_process::{ChildGroup, ChildParts};

/// The longest line that a program may print.
pub(super) const LINE_BYTES_MAX: u64 = 16 << 20;
/// How many lines may wait for the task of the program.
const LINES_MAX: usize = 64;
/// How many texts may wait for a program that does not read its input.
const WRITES_MAX: usize = 256;
/// Error output is kept by lines of at most this length.
const ERROR_LINE_BYTES_MAX: usize = 4 << 10;

/// Something that came out of a program.
#[derive(Debug)]
pub(super) enum ProgramLine {
    /// A line of its output, without the line break.
    Output(Vec<u8>),
    /// A line of its error output.
    Error(String),
    /// A line was too long. The program cannot be understood any more.
    TooLong,
    /// Its output is closed.
    Closed,
}

/// Is called whenever a program prints something, also before its line is whole.
pub(super) type HearProgram = Arc<dyn Fn() + Send + Sync>;

/// A running program.
pub(super) struct ProgramPipes {
    /// What to write. Dropping it closes the program's input.
    pub(super) input: Option<mpsc::Sender<String>>,
    pub(super) lines: mpsc::Receiver<ProgramLine>,
    pub(super) group: ChildGroup,
}

impl ProgramPipes {
    /// Starts the tasks for the pipes of a process.
    pub(super) fn new(parts: ChildParts, hear: HearProgram) -> Self {
        let (line_sender, lines) = mpsc::channel(LINES_MAX);
        let (input, to_write) = mpsc::channel(WRITES_MAX);
        if let Some(errors) = parts.errors {
            let sender = line_sender.clone();
            let hear = Arc::clone(&hear);
            // A plain thread: the pipe has no end that a task could wait for.
            std::thread::spawn(move || read_errors(errors, &sender, &hear));
        }
        tokio::spawn(read_output(parts.output, line_sender, hear));
        tokio::spawn(write_input(parts.input, to_write));
        Self {
            input: Some(input),
            lines,
            group: parts.group,
        }
    }
}

async fn write_input(mut input: ChildStdin, mut to_write: mpsc::Receiver<String>) {
    while let Some(text) = to_write.recv().await {
        // An error means that the program has ended; its output says so too.
        if input.write_all(text.as_bytes()).await.is_err() || input.flush().await.is_err() {
            return;
        }
    }
}

async fn read_output(
    mut output: BufReader<ChildStdout>,
    lines: mpsc::Sender<ProgramLine>,
    hear: HearProgram,
) {
    loop {
        let line = match read_line(&mut output, &hear).await {
            Ok(Some(line)) => ProgramLine::Output(line),
            Ok(None) => ProgramLine::Closed,
            Err(TooLong) => ProgramLine::TooLong,
        };
        let is_last = !matches!(line, ProgramLine::Output(_));
        if lines.send(line).await.is_err() || is_last {
            return;
        }
    }
}

/// A line is longer than the limit.
struct TooLong;

/// Reads a line; `None` at the end. A last line without a line break counts.
async fn read_line(
    output: &mut BufReader<ChildStdout>,
    hear: &HearProgram,
) -> Result<Option<Vec<u8>>, TooLong> {
    let mut line = Vec::new();
    loop {
        let part = output.fill_buf().await.unwrap_or_default();
        if part.is_empty() {
            return Ok((!line.is_empty()).then_some(line));
        }
        hear();
        let line_end = part.iter().position(|byte| *byte == b'\n');
        let of_line = part.get(..line_end.unwrap_or(part.len()));
        line.extend_from_slice(of_line.unwrap_or_default());
        let taken = line_end.map_or(part.len(), |end| end + 1);
        output.consume(taken);
        if line_end.is_some() {
            return Ok(Some(line));
        }
        // A program that prints no line breaks must not fill the memory.
        if line.len() as u64 >= LINE_BYTES_MAX {
            return Err(TooLong);
        }
    }
}

/// Reads the error output until the last process that holds it has ended, or the receiver is gone.
fn read_errors(
    mut errors: std::io::PipeReader,
    lines: &mpsc::Sender<ProgramLine>,
    hear: &HearProgram,
) {
    let mut piece = [0; 4096];
    let mut line = Vec::new();
    while let Ok(count @ 1..) = errors.read(&mut piece) {
        hear();
        for byte in piece.iter().take(count) {
            // A longer line becomes several, so that a program without line breaks takes no memory.
            if *byte != b'\n' && line.len() < ERROR_LINE_BYTES_MAX {
                line.push(*byte);
                continue;
            }
            let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
            if lines.blocking_send(ProgramLine::Error(text)).is_err() {
                return;
            }
        }
    }
    if !line.is_empty() {
        let text = String::from_utf8_lossy(&line).into_owned();
        lines.blocking_send(ProgramLine::Error(text)).ok();
    }
}
