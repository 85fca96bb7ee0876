//! Runs the observer of the bytes on a thread of its own, beside the byte path.
//!
//! The thread reads the events of the tap and wakes the observer at its deadline. It has a lower
//! priority than the byte path and the child. A slow observer loses output (see [`super::tap`]) and
//! a panicking one ends alone; the byte path notices neither.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use super::Fault;
use super::end_deadline::EndDeadline;
use super::tap::{Tap, TapEvent, TapRead};

/// Observes a session. Times count from the session's start and never go back.
pub trait Observer: Send {
    /// The child runs; this is its process id.
    fn start(&mut self, child: u32);
    /// Handles an event.
    fn observe(&mut self, at: Duration, event: TapEvent);
    /// Handles the deadline: nothing happened until then.
    fn tick(&mut self, at: Duration);
    /// When [`Observer::tick`] is due.
    fn deadline(&self) -> Option<Duration>;
    /// Handles the end of the child; no more events will come.
    fn end(&mut self, at: Duration);
}

/// An observer that ignores everything.
#[derive(Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn start(&mut self, _child: u32) {}
    fn observe(&mut self, _at: Duration, _event: TapEvent) {}
    fn tick(&mut self, _at: Duration) {}
    fn deadline(&self) -> Option<Duration> {
        None
    }
    fn end(&mut self, _at: Duration) {}
}

/// The nice value of the thread, so that the byte path and the child come first.
const NICENESS: i32 = 5;

/// The state of the thread.
struct ObserverLoop {
    tap: Tap,
    observer: Box<dyn Observer>,
    /// The newest time that the observer was given.
    last_time: Duration,
}

/// What the thread starts with.
pub(super) struct ObserverStart {
    pub(super) observer: Box<dyn Observer>,
    pub(super) child: u32,
    pub(super) fault: Option<Fault>,
}

/// How the thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObserverEnd {
    /// It saw everything.
    All,
    /// It panicked.
    Panicked,
    /// It is still busy, and the wrapper no longer waits.
    Late,
}

/// A thread that runs an observer.
#[derive(Debug)]
pub(super) struct ObserverThread {
    done: Receiver<()>,
}

impl ObserverThread {
    /// Starts the thread. It ends soon after [`Tap::end`].
    pub(super) fn start(tap: Tap, started: ObserverStart) -> io::Result<Self> {
        let ObserverStart {
            mut observer,
            child,
            fault,
        } = started;
        let (tell, done) = sync_channel(1);
        let body = move || {
            // Only for the test that the byte path survives a panic here.
            assert!(fault != Some(Fault::Observer), "a fault was asked for");
            // For this thread alone. Where it is not permitted, the kernel shares the cores
            // equally.
            rustix::process::setpriority_process(None, NICENESS).ok();
            observer.start(child);
            ObserverLoop {
                tap,
                observer,
                last_time: Duration::ZERO,
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

    /// Waits for the thread, but only until the deadline: the user wants the prompt back.
    pub(super) fn finish(self, deadline: &mut EndDeadline) -> ObserverEnd {
        match deadline.wait_for(&self.done) {
            Ok(()) => ObserverEnd::All,
            Err(RecvTimeoutError::Disconnected) => ObserverEnd::Panicked,
            Err(RecvTimeoutError::Timeout) => ObserverEnd::Late,
        }
    }
}

impl ObserverLoop {
    fn run(mut self) {
        loop {
            match self.tap.read_events(self.observer.deadline()) {
                TapRead::Events(events) => {
                    for (at, event) in events {
                        self.observe(at, event);
                    }
                }
                TapRead::TimedOut => self.tick_until(self.tap.now()),
                TapRead::Ended => break,
            }
        }
        let now = self.never_back(self.tap.now());
        self.observer.end(now);
    }

    fn observe(&mut self, at: Duration, event: TapEvent) {
        self.tick_until(at);
        let at = self.never_back(at);
        self.observer.observe(at, event);
    }

    /// Gives the observer the tick that was due before `now`.
    fn tick_until(&mut self, now: Duration) {
        if let Some(due) = self.observer.deadline().filter(|due| *due <= now) {
            // A tick that is long overdue is one tick; the observer may then ask for the next.
            let at = self.never_back(due);
            self.observer.tick(at);
        }
    }

    /// The time, or the last one given where it would go back.
    fn never_back(&mut self, at: Duration) -> Duration {
        self.last_time = self.last_time.max(at);
        self.last_time
    }
}
