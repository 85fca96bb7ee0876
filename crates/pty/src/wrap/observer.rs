//! Whoever looks at the bytes, on a thread of its own beside the byte path.
//!
//! The thread takes what the byte path saw, reads the terminal's mode before each look, and wakes the
//! observer when its deadline comes. A slow observer loses output (see [`super::tap`]), a panicking one
//! ends alone; the byte path notices neither.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::termios::LocalModes;

use super::Fault;
use super::tap::{Look, Sight, Tap};

/// How the child's terminal treats input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtyMode {
    /// Input comes by lines.
    pub canonical: bool,
    /// Input is echoed.
    pub echo: bool,
}

/// Looks at a session. Times count from the session's start and never go back.
pub trait Observer: Send {
    /// The child runs; this is its process id.
    fn start(&mut self, child: u32);
    /// Something happened.
    fn see(&mut self, at: Duration, sight: Sight);
    /// The child's terminal has this mode now.
    fn mode(&mut self, at: Duration, mode: TtyMode);
    /// Nothing happened until the deadline.
    fn tick(&mut self, at: Duration);
    /// When [`Observer::tick`] is due.
    fn deadline(&self) -> Option<Duration>;
    /// The child has ended, nothing more will be seen.
    fn end(&mut self, at: Duration);
}

/// Looks at nothing.
#[derive(Debug, Default)]
pub struct Blind;

impl Observer for Blind {
    fn start(&mut self, _child: u32) {}
    fn see(&mut self, _at: Duration, _sight: Sight) {}
    fn mode(&mut self, _at: Duration, _mode: TtyMode) {}
    fn tick(&mut self, _at: Duration) {}
    fn deadline(&self) -> Option<Duration> {
        None
    }
    fn end(&mut self, _at: Duration) {}
}

/// Reads the mode of the child's terminal. It does not keep that terminal from hanging up.
#[derive(Debug)]
pub(super) struct ModeProbe {
    master: Weak<OwnedFd>,
}

impl ModeProbe {
    pub(super) fn new(master: &Arc<OwnedFd>) -> Self {
        Self { master: Arc::downgrade(master) }
    }

    /// The mode, while there is a terminal.
    pub(super) fn read(&self) -> Option<TtyMode> {
        let modes = rustix::termios::tcgetattr(self.master.upgrade()?).ok()?.local_modes;
        let (canonical, echo) = (modes.contains(LocalModes::ICANON), modes.contains(LocalModes::ECHO));
        Some(TtyMode { canonical, echo })
    }
}

/// The pause before the mode is read again while nothing happens: short after something happened,
/// because programs change it right after they write, then longer and longer.
const MODE_PAUSE_FIRST: Duration = Duration::from_millis(10);
const MODE_PAUSE_LAST: Duration = Duration::from_millis(500);

/// How long the wrapper's end waits for what is still to be looked at and told.
const FINISH_PAUSE: Duration = Duration::from_secs(14);

/// The thread's state.
struct Watcher {
    tap: Tap,
    probe: ModeProbe,
    observer: Box<dyn Observer>,
    mode: Option<TtyMode>,
    /// The newest time that the observer was given.
    told: Duration,
}

/// What the thread begins with.
pub(super) struct Started {
    pub(super) observer: Box<dyn Observer>,
    pub(super) child: u32,
    pub(super) fault: Option<Fault>,
}

/// How the thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Observed {
    /// It saw everything.
    All,
    /// It panicked.
    Panicked,
    /// It is still busy; nobody waits for it any longer.
    Late,
}

/// A thread that observes.
#[derive(Debug)]
pub(super) struct Observing {
    done: Receiver<()>,
}

impl Observing {
    /// Starts the thread. It ends soon after [`Tap::end`].
    pub(super) fn start(tap: Tap, probe: ModeProbe, started: Started) -> io::Result<Self> {
        let Started { mut observer, child, fault } = started;
        let (tell, done) = sync_channel(1);
        let body = move || {
            assert!(fault != Some(Fault::Observer), "a fault was asked for");
            observer.start(child);
            Watcher { tap, probe, observer, mode: None, told: Duration::ZERO }.run();
            // The wrapper may have stopped waiting.
            tell.send(()).ok();
        };
        std::thread::Builder::new().name("observer".to_owned()).spawn(body)?;
        Ok(Self { done })
    }

    /// Waits for the thread, but not for long: the user wants the prompt back.
    pub(super) fn finish(self) -> Observed {
        match self.done.recv_timeout(FINISH_PAUSE) {
            Ok(()) => Observed::All,
            Err(RecvTimeoutError::Disconnected) => Observed::Panicked,
            Err(RecvTimeoutError::Timeout) => Observed::Late,
        }
    }
}

impl Watcher {
    fn run(mut self) {
        let mut pause = MODE_PAUSE_FIRST;
        loop {
            let again = self.tap.now() + pause;
            let until = self.observer.deadline().map_or(again, |deadline| deadline.min(again));
            match self.tap.look(Some(until)) {
                Look::Sights(sights) => {
                    pause = MODE_PAUSE_FIRST;
                    for (at, sight) in sights {
                        self.see(at, sight);
                    }
                }
                Look::Nothing => {
                    pause = (pause * 2).min(MODE_PAUSE_LAST);
                    let now = self.tap.now();
                    self.read_mode(now);
                    self.tick_until(now);
                }
                Look::Ended => break,
            }
        }
        let now = self.time(self.tap.now());
        self.observer.end(now);
    }

    fn see(&mut self, at: Duration, sight: Sight) {
        self.tick_until(at);
        self.read_mode(at);
        let at = self.time(at);
        self.observer.see(at, sight);
    }

    /// Gives the observer every tick that was due before `now`.
    fn tick_until(&mut self, now: Duration) {
        if let Some(due) = self.observer.deadline().filter(|due| *due <= now) {
            // A tick that is due in the past is one tick: the observer may ask for the next.
            let at = self.time(due);
            self.observer.tick(at);
        }
    }

    fn read_mode(&mut self, at: Duration) {
        let mode = self.probe.read();
        if let Some(mode) = mode.filter(|mode| self.mode != Some(*mode)) {
            self.mode = Some(mode);
            let at = self.time(at);
            self.observer.mode(at, mode);
        }
    }

    /// Keeps times from going back.
    fn time(&mut self, at: Duration) -> Duration {
        self.told = self.told.max(at);
        self.told
    }
}
