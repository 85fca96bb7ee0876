//! The byte path: one thread, one `poll`, and nothing in it that can wait for anything else.
//!
//! Output goes to the user's terminal first and to the tap after that. Input goes to the child in
//! the order in which it came; what others inject goes in between two keys of the user, and a key
//! that sends a signal drops it. While the user's terminal does not take output, the child is not
//! read; while the child does not take keys, the user is not read; neither stops the other, and an
//! injection stops neither.

mod wait;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::Signal;

use super::end_of_input::EndOfInput;
use super::errors::Errors;
use super::inbox::{Held, Inbox, Source};
use super::inject::Injected;
use super::line_ends::LineEnds;
use super::mode::{ModeWatch, interrupts, unread};
use super::outbox::{Filled, Outbox};
use super::process::{News, Running};
use super::record::{From, Recorder};
use super::signals::{Signals, ends};
use super::tap::{Sight, Tap};
use super::terminal::UserTerminal;
use super::typed::Typed;
use super::watch::{STATUS_ANSWER, Watch};
use super::{Ending, Fault, TtyMode};
use wait::Wake;

/// Output that is read after the child's end, in case somebody else keeps writing: far more than
/// the kernel holds for a terminal.
const DRAIN_BYTES_MAX: usize = 1 << 20;
const TYPED_BYTES_MAX: usize = 4096;
/// Answers that wait for a child that does not read.
const ANSWERS_MAX: usize = 64;

/// Everything that the byte path works with.
pub(super) struct Pump {
    pub(super) user: UserTerminal,
    /// Gone when the user's terminal is: then the child's terminal hangs up.
    pub(super) master: Option<Arc<OwnedFd>>,
    /// Set where bytes pass as the program writes them, and no terminal completes its lines.
    pub(super) line_ends: Option<LineEnds>,
    /// The child's standard error, where that goes a way of its own.
    pub(super) errors: Option<Errors>,
    pub(super) running: Running,
    pub(super) signals: Signals,
    pub(super) injected: Injected,
    pub(super) tap: Tap,
    pub(super) recording: Option<Recorder>,
    /// Whether queries of the status protocol are answered.
    pub(super) answers_status: bool,
    pub(super) fault: Option<Fault>,
    pub(super) state: State,
}

/// What the byte path remembers.
pub(super) struct State {
    pub(super) out: Outbox,
    inbox: Inbox,
    typed: Typed,
    mode: ModeWatch,
    watch: Watch,
    /// Answers that wait for a gap between two keys.
    answers: usize,
    input_ended: bool,
    last_typed: Option<u8>,
    /// Set when a pipe has ended and the child is to hear of it.
    end_of_input: Option<EndOfInput>,
    /// When to suspend ourselves even if the child has not stopped.
    pub(super) suspend_at: Option<Instant>,
    pub(super) suspended: bool,
    /// Why the user's side takes no more output.
    pub(super) refused: Option<Errno>,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            out: Outbox::new(),
            inbox: Inbox::new(),
            typed: Typed::new(),
            mode: ModeWatch::new(),
            watch: Watch::default(),
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

impl Pump {
    /// Takes the user's terminal. Its size may have changed since the child's was made.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.user.enter_raw()?;
        self.resize();
        Ok(())
    }

    /// Moves bytes until the child has ended and everything that it wrote is with the user.
    pub(super) fn run(&mut self) -> io::Result<Ending> {
        loop {
            self.queue_injections();
            for (wake, flags) in self.wait()? {
                if self.state.suspended && wake != Wake::Signals {
                    // What was readable before we were suspended may be gone.
                    break;
                }
                if let Some(ending) = self.on_wake(wake, flags) {
                    self.drain();
                    self.running.reap()?;
                    return Ok(ending);
                }
            }
            self.suspend_if_due();
            self.tell_end_of_input();
            self.look_at_mode(ModeWatch::rested);
        }
    }

    fn on_wake(&mut self, wake: Wake, flags: PollFlags) -> Option<Ending> {
        match wake {
            Wake::Signals => self.take_signals(),
            Wake::News => return self.take_news(),
            Wake::Bell => self.injected.hear(),
            Wake::User => self.read_user(),
            Wake::UserOut => self.write_user(),
            Wake::Errors => {
                self.read_errors();
            }
            Wake::ErrorsOut => self.errors.iter_mut().for_each(Errors::write),
            Wake::Child => self.on_child(flags),
        }
        None
    }

    fn on_child(&mut self, flags: PollFlags) {
        if flags.contains(PollFlags::OUT) {
            self.write_child();
        }
        if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.read_child();
        }
    }

    fn take_news(&mut self) -> Option<Ending> {
        match self.running.news() {
            News::Exited(code) => Some(Ending::Exited(code)),
            News::Killed(signal) => Some(Ending::Killed(signal)),
            News::Stopped(signal) => {
                self.child_stopped(signal);
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
            Ok(_) => self.take_keys(bytes),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.end_input(),
        }
    }

    fn take_keys(&mut self, bytes: Vec<u8>) {
        self.look_at_mode(ModeWatch::stirred);
        self.interrupt_pastes(&bytes);
        self.state.typed.feed(Instant::now(), &bytes);
        self.state.last_typed = bytes.last().copied();
        self.state.inbox.push(Source::Typed, bytes);
        self.write_child();
    }

    /// Drops what others want to say, if the user sends a signal instead. While the end mark of
    /// what was dropped is unread, the terminal must not forget its input once more: the key waits,
    /// and so does this.
    fn interrupt_pastes(&mut self, keys: &[u8]) {
        let inbox = &self.state.inbox;
        let is_due = !inbox.has_mark() && (inbox.is_pasting() || self.injected.is_waiting());
        let Some(master) = self.master.as_ref().filter(|_| is_due) else {
            return;
        };
        if interrupts(master, keys) {
            self.state.inbox.drop_paste();
            self.injected.forget();
        }
    }

    /// The user's input is over: a terminal has hung up, and so does the child's; a pipe has ended,
    /// which the child learns as from a terminal.
    fn end_input(&mut self) {
        self.state.input_ended = true;
        if self.user.is_terminal() {
            self.pass_on(Signal::HUP);
            self.master = None;
        } else {
            self.state.end_of_input = Some(EndOfInput::new(self.state.last_typed));
        }
    }

    /// Tells the child that a pipe has ended, as often as it takes.
    fn tell_end_of_input(&mut self) {
        let (Some(end), Some(master)) = (&mut self.state.end_of_input, &self.master) else {
            return;
        };
        if self.state.inbox.is_empty()
            && let Some(bytes) = end.due(Instant::now(), master)
        {
            self.state.inbox.push(Source::Typed, bytes);
            self.write_child();
        }
    }

    /// Puts what others want to say into the child's input, while the user is between two keys.
    fn queue_injections(&mut self) {
        if self.state.answers > 0 && self.is_gap() {
            for _ in 0..std::mem::take(&mut self.state.answers) {
                self.state.inbox.push(Source::Answer, STATUS_ANSWER);
            }
            self.write_child();
        }
        if self.state.inbox.is_pasting() {
            self.write_child();
        }
        while self.is_gap()
            && let Some(content) = self.injected.take(self.state.watch.is_bracketed())
        {
            self.state.inbox.paste(content);
            self.write_child();
        }
    }

    /// Whether something else may be put before the next key.
    fn is_gap(&self) -> bool {
        self.state.inbox.is_empty() && self.state.typed.is_between_keys(Instant::now())
    }

    fn is_keys_turn(&self) -> bool {
        self.state
            .inbox
            .is_keys_turn(Instant::now(), self.state.mode.is_canonical())
    }

    fn write_child(&mut self) {
        let Some(master) = self.master.clone() else {
            return;
        };
        while let Some((source, bytes)) = self.write_some(&master) {
            let now = self.tap.now();
            if source == Source::Injected {
                self.injected.written(bytes.len());
            }
            if let Some(recorder) = &mut self.recording {
                let from = if source == Source::Answer {
                    From::Terminal
                } else {
                    From::User
                };
                recorder.input(now, from, &bytes);
            }
            self.tap.add(now, Sight::Input(bytes.into()));
        }
    }

    /// Writes what is next, and says what the child's terminal took.
    fn write_some(&mut self, master: &OwnedFd) -> Option<(Source, Bytes)> {
        let now = Instant::now();
        let by_lines = self.state.mode.is_canonical();
        let held = || Held {
            bytes: unread(master),
            by_lines,
        };
        self.state.inbox.look_for_mark(now, held);
        if self.is_keys_turn() {
            return self.state.inbox.write_keys(master.as_fd(), now);
        }
        // Half a key must not be cut by a paste; keys that wait behind the paste are not begun yet.
        let may_go_on = self.state.inbox.has_keys() || self.state.typed.is_between_keys(now);
        let inbox = &mut self.state.inbox;
        may_go_on
            .then(|| inbox.write_paste(master.as_fd(), held, now))
            .flatten()
    }

    /// Moves output from the child to the user, then shows it to whoever looks.
    fn read_child(&mut self) -> Filled {
        let Some(master) = &self.master else {
            return Filled::Closed;
        };
        let filled = self.state.out.fill(master.as_fd());
        if !matches!(filled, Filled::Bytes(_)) {
            return filled;
        }
        self.write_user();
        let now = self.tap.now();
        let fresh = self.state.out.fresh();
        let completed = self.line_ends.as_mut().map(|ends| ends.complete(fresh));
        let shown = completed.as_deref().unwrap_or(fresh);
        self.tap.output(now, shown);
        self.state.watch.feed(shown);
        if let Some(recorder) = &mut self.recording {
            recorder.output(now, shown);
        }
        self.have_shown();
        filled
    }

    /// Moves standard error on, where it is apart, then shows it to whoever looks.
    fn read_errors(&mut self) -> Filled {
        let Some(errors) = &mut self.errors else {
            return Filled::Closed;
        };
        let filled = errors.read();
        if !matches!(filled, Filled::Bytes(_)) {
            return filled;
        }
        let now = self.tap.now();
        let fresh = errors.fresh();
        let completed = self.line_ends.as_mut().map(|ends| ends.complete(fresh));
        let shown = completed.as_deref().unwrap_or(fresh);
        self.tap.output(now, shown);
        self.state.watch.feed(shown);
        if let Some(recorder) = &mut self.recording {
            recorder.output(now, shown);
        }
        self.have_shown();
        filled
    }

    /// The child has printed something, and whoever looks has been shown it.
    fn have_shown(&mut self) {
        self.look_at_mode(ModeWatch::stirred);
        let queries = self.state.watch.take_queries();
        self.state.answers =
            (self.state.answers + if self.answers_status { queries } else { 0 }).min(ANSWERS_MAX);
        self.commit_fault();
    }

    /// Does what a test asks for.
    fn commit_fault(&self) {
        match self.fault {
            Some(Fault::BytePath) => panic!("a fault was asked for"),
            Some(Fault::Stack) => drop(run_over(0)),
            Some(Fault::Observer) | None => {}
        }
    }

    fn write_user(&mut self) {
        if let Err(error) = self.state.out.drain(self.user.output()) {
            // Whoever read us is gone: the child hears of it as if it had written itself.
            let signal = if error == Errno::PIPE {
                Signal::PIPE
            } else {
                Signal::HUP
            };
            self.state.refused = Some(error);
            self.state.out.discard();
            self.pass_on(signal);
            self.master = None;
        }
    }

    /// Sends a signal to the child's process group.
    pub(super) fn pass_on(&self, signal: Signal) {
        // A group that is gone needs no signal.
        rustix::process::kill_process_group(self.running.child, signal).ok();
    }

    /// Takes what is left when the child has ended or stopped. Stops early when somebody wants us
    /// to end.
    pub(super) fn drain(&mut self) {
        self.drain_stream(Self::read_child);
        self.drain_stream(Self::read_errors);
        self.wait_for_user();
    }

    fn drain_stream(&mut self, read: fn(&mut Self) -> Filled) {
        let mut drained = 0;
        while drained < DRAIN_BYTES_MAX {
            match read(self) {
                Filled::Bytes(bytes) => drained += bytes,
                Filled::Full => {}
                Filled::Dry | Filled::Closed => break,
            }
            self.wait_for_user();
        }
    }

    /// Waits until everything is with the user. Stops early when somebody wants us to end.
    fn wait_for_user(&mut self) {
        loop {
            let errors = self.errors.as_ref().filter(|errors| !errors.is_empty());
            if self.state.out.is_empty() && errors.is_none() {
                return;
            }
            let mut fds = vec![PollFd::from_borrowed_fd(self.signals.fd(), PollFlags::IN)];
            if !self.state.out.is_empty() {
                fds.push(PollFd::from_borrowed_fd(self.user.output(), PollFlags::OUT));
            }
            fds.extend(
                errors.map(|errors| PollFd::from_borrowed_fd(errors.output(), PollFlags::OUT)),
            );
            let polled = rustix::event::poll(&mut fds, None);
            let is_signalled = fds
                .first()
                .is_some_and(|signals| !signals.revents().is_empty());
            drop(fds);
            let came = if is_signalled {
                self.signals.take()
            } else {
                Vec::new()
            };
            let asked_to_end = came.iter().copied().any(ends);
            for signal in came {
                self.on_signal(signal);
            }
            if asked_to_end || polled.is_err_and(|error| error != Errno::INTR) {
                self.errors.iter_mut().for_each(Errors::discard);
                return self.state.out.discard();
            }
            self.errors.iter_mut().for_each(Errors::write);
            self.write_user();
        }
    }

    /// Shows the mode of the child's terminal to whoever looks, if it is another than before.
    fn look_at_mode(&mut self, look: fn(&mut ModeWatch, &OwnedFd) -> Option<TtyMode>) {
        let Some(master) = &self.master else { return };
        let Some(mode) = look(&mut self.state.mode, master) else {
            return;
        };
        let now = self.tap.now();
        self.tap.add(now, Sight::Mode(mode));
        if let Some(recorder) = &mut self.recording {
            recorder.mode(now, mode);
        }
    }
}

/// Calls itself until the stack has run over.
fn run_over(depth: u64) -> u64 {
    let page = std::hint::black_box([depth; 64]);
    let deeper = if depth == u64::MAX {
        0
    } else {
        run_over(depth + 1)
    };
    std::hint::black_box(page)
        .iter()
        .fold(deeper, |sum, it| sum ^ it)
}
