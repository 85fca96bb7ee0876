//! Whoever looks at the bytes, on a thread of its own beside the byte path.
//!
//! The thread takes what the byte path saw and wakes the observer when its deadline comes. Where
//! the cores do not suffice it stands back for the byte path and the child. A slow observer loses
//! output (see
//! [`super::tap`]), a panicking one ends alone; the byte path notices neither.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use super::Fault;
use super::patience::Patience;
use super::tap::{Look, Sight, Tap};

/// Looks at a session. Times count from the session's start and never go back.
pub trait Observer: Send {
    /// The child runs; this is its process id.
    fn start(&mut self, child: u32);
    /// Something happened.
    fn see(&mut self, at: Duration, sight: Sight);
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
    fn tick(&mut self, _at: Duration) {}
    fn deadline(&self) -> Option<Duration> {
        None
    }
    fn end(&mut self, _at: Duration) {}
}

/// How much the thread stands back, in the steps of `nice`.
const STAND_BACK: i32 = 5;

/// The thread's state.
struct Watcher {
    tap: Tap,
    observer: Box<dyn Observer>,
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
    pub(super) fn start(tap: Tap, started: Started) -> io::Result<Self> {
        let Started {
            mut observer,
            child,
            fault,
        } = started;
        let (tell, done) = sync_channel(1);
        let body = move || {
            assert!(fault != Some(Fault::Observer), "a fault was asked for");
            // For this thread alone. Where it is not allowed, the kernel shares the cores out.
            rustix::process::setpriority_process(None, STAND_BACK).ok();
            observer.start(child);
            Watcher {
                tap,
                observer,
                told: Duration::ZERO,
            }
            .run();
            // The wrapper may have stopped waiting.
            tell.send(()).ok();
        };
        std::thread::Builder::new()
            .name("observer".to_owned())
            .spawn(body)?;
        Ok(Self { done })
    }

    /// Waits for the thread, but not for long: the user wants the prompt back.
    pub(super) fn finish(self, patience: &mut Patience) -> Observed {
        match patience.wait_for(&self.done) {
            Ok(()) => Observed::All,
            Err(RecvTimeoutError::Disconnected) => Observed::Panicked,
            Err(RecvTimeoutError::Timeout) => Observed::Late,
        }
    }
}

impl Watcher {
    fn run(mut self) {
        loop {
            match self.tap.look(self.observer.deadline()) {
                Look::Sights(sights) => {
                    for (at, sight) in sights {
                        self.see(at, sight);
                    }
                }
                Look::Nothing => self.tick_until(self.tap.now()),
                Look::Ended => break,
            }
        }
        let now = self.time(self.tap.now());
        self.observer.end(now);
    }

    fn see(&mut self, at: Duration, sight: Sight) {
        self.tick_until(at);
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

    /// Keeps times from going back.
    fn time(&mut self, at: Duration) -> Duration {
        self.told = self.told.max(at);
        self.told
    }
}
