//! The byte path: one thread, one `poll`, and nothing in it that can wait for anything else.
//!
//! Output goes to the user's terminal first and to the tap after that. Input goes to the child in
//! the order in which it came. Pastes of others go between two keys of the user, and a key that
//! sends a signal drops them. While the user's terminal accepts no output, the child is not read;
//! while the child accepts no keys, the user is not read. Neither stops the other, and a paste
//! stops neither. It fails only when the poll itself fails.

mod wait;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::Signal;

use super::child_input::{ChildInput, HeldInput, InputSource, WrittenInput};
use super::end_of_input::EndOfInput;
use super::error_stream::ErrorStream;
use super::inject::InjectReceiver;
use super::key_boundary::KeyBoundary;
use super::line_ends::LineEnds;
use super::mode::{ModeWatch, find_signal_key, sends_signal, unread_bytes};
use super::output_buffer::{OutputBuffer, ReadOutcome};
use super::output_scanner::{OutputScanner, STATUS_ANSWER};
use super::process::{ChildChange, ChildProcess};
use super::record::{InputOrigin, Recorder};
use super::signals::{Signals, requests_end};
use super::tap::{Tap, TapEvent};
use super::terminal::UserTerminal;
use super::{ChildEnding, Fault, TtyMode};
use wait::Wake;

/// How much output is read after the child's end, in case another process keeps writing: far more
/// than the kernel holds for a terminal.
const DRAIN_BYTES_MAX: usize = 1 << 20;
const TYPED_BYTES_MAX: usize = 4096;
/// How many answers may wait for a child that does not read.
const ANSWERS_MAX: usize = 64;

/// Everything that the byte path works with.
pub(super) struct BytePump {
    pub(super) user: UserTerminal,
    /// The child's terminal; `None` after the user's terminal is gone, so that the child's hangs
    /// up.
    pub(super) master: Option<Arc<OwnedFd>>,
    /// Set where bytes pass as the program writes them, and no terminal completes its lines.
    pub(super) line_ends: Option<LineEnds>,
    /// The child's standard error, where it is separate.
    pub(super) errors: Option<ErrorStream>,
    pub(super) running: ChildProcess,
    pub(super) signals: Signals,
    pub(super) injected: InjectReceiver,
    pub(super) tap: Tap,
    pub(super) recording: Option<Recorder>,
    /// Whether the pump answers queries of the status protocol.
    pub(super) answers_status: bool,
    pub(super) fault: Option<Fault>,
    pub(super) state: PumpState,
}

/// The state of the byte path.
pub(super) struct PumpState {
    pub(super) output: OutputBuffer,
    input: ChildInput,
    keys: KeyBoundary,
    mode: ModeWatch,
    scanner: OutputScanner,
    /// How many answers wait for a gap between two keys.
    answers: usize,
    input_ended: bool,
    last_typed: Option<u8>,
    /// Set when the input pipe has ended and the child must learn of it.
    end_of_input: Option<EndOfInput>,
    /// When to suspend ourselves even if the child has not stopped.
    pub(super) suspend_at: Option<Instant>,
    pub(super) suspended: bool,
    /// The error with which the user's side rejected output.
    pub(super) refused: Option<Errno>,
}

impl PumpState {
    pub(super) fn new() -> Self {
        Self {
            output: OutputBuffer::new(),
            input: ChildInput::new(),
            keys: KeyBoundary::new(),
            mode: ModeWatch::new(),
            scanner: OutputScanner::default(),
            answers: 0,
            input_ended: false,
            last_typed: None,
            end_of_input: None,
            suspend_at: None,
            suspended: false,
            refused: None,
        }
    }
}

impl BytePump {
    /// Makes the user's terminal raw. Its size may have changed since the child's terminal was
    /// made.
    pub(super) fn take_terminal(&mut self) -> io::Result<()> {
        self.user.enter_raw()?;
        // The window may have been resized between the two calls.
        self.resize();
        Ok(())
    }

    /// Moves bytes until the child has ended and the user has everything that it wrote.
    pub(super) fn run(&mut self) -> io::Result<ChildEnding> {
        loop {
            self.queue_injections();
            for (wake, flags) in self.wait_for_wakes()? {
                // Input that was readable before the suspension may be gone.
                if self.state.suspended && wake != Wake::Signals {
                    break;
                }
                if let Some(ending) = self.handle_wake(wake, flags) {
                    // The child's last output may still be in its terminal.
                    self.drain_child();
                    self.running.reap()?;
                    return Ok(ending);
                }
            }
            self.suspend_if_due();
            self.send_end_of_input();
            self.check_mode(ModeWatch::read_after_pause);
        }
    }

    fn handle_wake(&mut self, wake: Wake, flags: PollFlags) -> Option<ChildEnding> {
        match wake {
            Wake::Signals => self.handle_signals(),
            Wake::ChildChange => return self.handle_child_change(),
            Wake::Injection => self.injected.clear_wake(),
            Wake::User => self.read_user(),
            Wake::UserOut => self.write_user(),
            Wake::Errors => {
                self.read_errors();
            }
            Wake::ErrorsOut => self.errors.iter_mut().for_each(ErrorStream::write),
            Wake::Child => self.handle_child_ready(flags),
        }
        None
    }

    fn handle_child_ready(&mut self, flags: PollFlags) {
        if flags.contains(PollFlags::OUT) {
            self.write_child();
        }
        if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.read_child();
        }
    }

    fn handle_child_change(&mut self) -> Option<ChildEnding> {
        match self.running.next_change() {
            ChildChange::Exited(code) => Some(ChildEnding::Exited(code)),
            ChildChange::Killed(signal) => Some(ChildEnding::Killed(signal)),
            ChildChange::Stopped(signal) => {
                self.handle_child_stop(signal);
                None
            }
        }
    }

    /// Reads what the user typed.
    fn read_user(&mut self) {
        let mut bytes = Vec::with_capacity(TYPED_BYTES_MAX);
        match rustix::io::read(
            rustix::stdio::stdin(),
            rustix::buffer::spare_capacity(&mut bytes),
        ) {
            Ok(0) => self.end_input(),
            Ok(_) => self.handle_keys(bytes),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.end_input(),
        }
    }

    fn handle_keys(&mut self, bytes: Vec<u8>) {
        self.check_mode(ModeWatch::read_after_activity);
        self.drop_interrupted_pastes(&bytes);
        self.state.keys.feed(Instant::now(), &bytes);
        // Needed at the end of a pipe, which must end an unfinished line first.
        self.state.last_typed = bytes.last().copied();
        self.state.input.push(InputSource::Typed, bytes);
        self.write_child();
    }

    /// Drops the pastes of others if the user sends a signal instead. While the end mark of a
    /// dropped paste is unread, the terminal must not discard its input once more: the key waits,
    /// and so does this.
    fn drop_interrupted_pastes(&mut self, keys: &[u8]) {
        let input = &self.state.input;
        let is_due = !input.awaits_end_mark() && (input.is_pasting() || self.injected.is_waiting());
        let Some(master) = self.master.as_ref().filter(|_| is_due) else {
            return;
        };
        if sends_signal(master, keys) {
            self.state.input.drop_paste();
            self.injected.drop_all();
        }
    }

    /// Handles the end of the user's input. A terminal has hung up, and so does the child's; a pipe
    /// has ended, which the child learns as from a terminal.
    fn end_input(&mut self) {
        self.state.input_ended = true;
        if self.user.is_terminal() {
            self.forward_signal(Signal::HUP);
            self.master = None;
        } else {
            self.state.end_of_input = Some(EndOfInput::new(self.state.last_typed));
        }
    }

    /// Sends the child the end of a pipe, as often as it takes.
    fn send_end_of_input(&mut self) {
        let (Some(end), Some(master)) = (&mut self.state.end_of_input, &self.master) else {
            return;
        };
        if self.state.input.is_empty()
            && let Some(bytes) = end.next_bytes(Instant::now(), master)
        {
            self.state.input.push(InputSource::Typed, bytes);
            self.write_child();
        }
    }

    /// Puts answers and pastes into the child's input while the user is between two keys.
    fn queue_injections(&mut self) {
        // Answers first: the program waits for them, and a paste may take long.
        if self.state.answers > 0 && self.is_between_keys_now() {
            for _ in 0..std::mem::take(&mut self.state.answers) {
                self.state.input.push(InputSource::Answer, STATUS_ANSWER);
            }
            self.write_child();
        }
        if self.state.input.is_pasting() {
            self.write_child();
        }
        while self.is_between_keys_now()
            && let Some(content) = self.injected.next_paste(self.state.scanner.is_bracketed())
        {
            self.state.input.begin_paste(content);
            self.write_child();
        }
    }

    /// Whether other input may be put before the next key.
    fn is_between_keys_now(&self) -> bool {
        self.state.input.is_empty() && self.state.keys.is_between_keys(Instant::now())
    }

    fn may_write_keys(&self) -> bool {
        self.state
            .input
            .may_write_keys(Instant::now(), self.state.mode.is_canonical())
    }

    fn write_child(&mut self) {
        let Some(master) = self.master.clone() else {
            return;
        };
        while let Some(WrittenInput { source, bytes }) = self.write_next(&master) {
            let now = self.tap.now();
            // Space in the paste queue is freed only when the terminal has the bytes.
            if source == InputSource::Injected {
                self.injected.note_written(bytes.len());
            }
            if let Some(recorder) = &mut self.recording {
                // An answer of the wrapper is recorded like one of the terminal, so that a replay
                // is the same.
                let from = if source == InputSource::Answer {
                    InputOrigin::Terminal
                } else {
                    InputOrigin::User
                };
                recorder.record_input(now, from, &bytes);
            }
            self.tap.add(now, TapEvent::Input(bytes.into()));
        }
    }

    /// Writes the next input, and returns what the child's terminal accepted.
    fn write_next(&mut self, master: &OwnedFd) -> Option<WrittenInput> {
        let now = Instant::now();
        let by_lines = self.state.mode.is_canonical();
        let held = || HeldInput {
            bytes: unread_bytes(master),
            by_lines,
        };
        let find_signal = |keys: &[u8]| find_signal_key(master, keys);
        self.state.input.check_end_mark(now, held, find_signal);
        if self.may_write_keys() {
            return self.state.input.write_keys(master.as_fd(), now);
        }
        // A paste must not cut a key that is half written; keys that wait behind the paste are not
        // begun yet.
        let may_go_on = self.state.input.has_keys() || self.state.keys.is_between_keys(now);
        let input = &mut self.state.input;
        may_go_on
            .then(|| input.write_paste(master.as_fd(), held, now))
            .flatten()
    }

    /// Moves output from the child to the user, then to the tap.
    fn read_child(&mut self) -> ReadOutcome {
        let Some(master) = &self.master else {
            return ReadOutcome::Closed;
        };
        let filled = self.state.output.read_from(master.as_fd());
        if !matches!(filled, ReadOutcome::Bytes(_)) {
            return filled;
        }
        // The user comes first: the copy for the observer must not delay the byte.
        self.write_user();
        self.publish_output(OutputStream::Child);
        filled
    }

    /// Moves standard error on, where it is separate, then to the tap.
    fn read_errors(&mut self) -> ReadOutcome {
        let Some(errors) = &mut self.errors else {
            return ReadOutcome::Closed;
        };
        let filled = errors.read();
        if !matches!(filled, ReadOutcome::Bytes(_)) {
            return filled;
        }
        self.publish_output(OutputStream::Errors);
        filled
    }

    /// Hands the bytes that a stream has just brought to the tap, the scanner and the recording.
    fn publish_output(&mut self, stream: OutputStream) {
        let now = self.tap.now();
        let fresh = match stream {
            OutputStream::Child => self.state.output.last_read(),
            OutputStream::Errors => self
                .errors
                .as_ref()
                .map(ErrorStream::last_read)
                .unwrap_or_default(),
        };
        let completed = self.line_ends.as_mut().map(|ends| ends.add_returns(fresh));
        let shown = completed.as_deref().unwrap_or(fresh);
        self.tap.add_output(now, shown);
        self.state.scanner.feed(shown);
        if let Some(recorder) = &mut self.recording {
            recorder.record_output(now, shown);
        }
        self.after_output();
    }

    /// Handles what follows every output: the mode may have changed, and the child may have asked a
    /// query.
    fn after_output(&mut self) {
        self.check_mode(ModeWatch::read_after_activity);
        let queries = self.state.scanner.take_queries();
        self.state.answers =
            (self.state.answers + if self.answers_status { queries } else { 0 }).min(ANSWERS_MAX);
        self.inject_fault();
    }

    /// Injects the fault of a test.
    fn inject_fault(&self) {
        match self.fault {
            Some(Fault::BytePath) => panic!("a fault was asked for"),
            Some(Fault::Stack) => drop(overflow_stack(0)),
            Some(Fault::Observer) | None => {}
        }
    }

    fn write_user(&mut self) {
        if let Err(error) = self.state.output.write_to(self.user.output()) {
            // The reader of our output is gone: the child learns it as if it had written itself.
            let signal = if error == Errno::PIPE {
                Signal::PIPE
            } else {
                Signal::HUP
            };
            // Kept for the report: the user should learn why the output ended.
            self.state.refused = Some(error);
            self.state.output.discard();
            self.forward_signal(signal);
            self.master = None;
        }
    }

    /// Sends a signal to the child's process group.
    pub(super) fn forward_signal(&self, signal: Signal) {
        // A group that is gone needs no signal.
        rustix::process::kill_process_group(self.running.child, signal).ok();
    }

    /// Reads the rest when the child has ended or stopped. Stops early at a signal that requests
    /// our end.
    pub(super) fn drain_child(&mut self) {
        self.drain_stream(Self::read_child);
        self.drain_stream(Self::read_errors);
        self.wait_for_user();
    }

    fn drain_stream(&mut self, read: fn(&mut Self) -> ReadOutcome) {
        let mut drained = 0;
        // A background process may keep writing to the terminal forever.
        while drained < DRAIN_BYTES_MAX {
            match read(self) {
                ReadOutcome::Bytes(bytes) => drained += bytes,
                ReadOutcome::Full => {}
                ReadOutcome::Dry | ReadOutcome::Closed => break,
            }
            self.wait_for_user();
        }
    }

    /// Waits until the user has everything. Stops early at a signal that requests our end.
    fn wait_for_user(&mut self) {
        while !self.state.output.is_empty() || self.waiting_errors().is_some() {
            let polled = self.poll_outputs();
            let received = if polled.is_signalled {
                self.signals.take_received()
            } else {
                Vec::new()
            };
            let must_end = received.iter().copied().any(requests_end);
            for signal in received {
                self.handle_signal(signal);
            }
            if must_end || polled.has_failed {
                self.errors.iter_mut().for_each(ErrorStream::discard);
                return self.state.output.discard();
            }
            self.errors.iter_mut().for_each(ErrorStream::write);
            self.write_user();
        }
    }

    /// The separate standard error, while bytes of it wait.
    fn waiting_errors(&self) -> Option<&ErrorStream> {
        self.errors.as_ref().filter(|errors| !errors.is_empty())
    }

    /// Waits until waiting output can be written or a signal comes.
    fn poll_outputs(&self) -> PolledOutputs {
        let mut fds = vec![PollFd::from_borrowed_fd(self.signals.fd(), PollFlags::IN)];
        if !self.state.output.is_empty() {
            fds.push(PollFd::from_borrowed_fd(self.user.output(), PollFlags::OUT));
        }
        if let Some(errors) = self.waiting_errors() {
            fds.push(PollFd::from_borrowed_fd(errors.output(), PollFlags::OUT));
        }
        let polled = rustix::event::poll(&mut fds, None);
        PolledOutputs {
            is_signalled: fds
                .first()
                .is_some_and(|signals| !signals.revents().is_empty()),
            has_failed: polled.is_err_and(|error| error != Errno::INTR),
        }
    }

    /// Reports the mode of the child's terminal to the tap and the recording, if it has changed.
    fn check_mode(&mut self, look: fn(&mut ModeWatch, &OwnedFd) -> Option<TtyMode>) {
        let Some(master) = &self.master else { return };
        let Some(mode) = look(&mut self.state.mode, master) else {
            return;
        };
        let now = self.tap.now();
        self.tap.add(now, TapEvent::Mode(mode));
        if let Some(recorder) = &mut self.recording {
            recorder.record_mode(now, mode);
        }
    }
}

/// A stream of the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputStream {
    Child,
    Errors,
}

/// The result of [`BytePump::poll_outputs`].
struct PolledOutputs {
    is_signalled: bool,
    has_failed: bool,
}

/// Calls itself until the stack overflows.
fn overflow_stack(depth: u64) -> u64 {
    let page = std::hint::black_box([depth; 64]);
    let deeper = if depth == u64::MAX {
        0
    } else {
        overflow_stack(depth + 1)
    };
    std::hint::black_box(page)
        .iter()
        .fold(deeper, |sum, it| sum ^ it)
}
