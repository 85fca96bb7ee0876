//! Gives up on peers that keep us waiting.
//!
//! One timer per connection, armed lazily: it is moved only when a deadline comes nearer, and looks at
//! the true deadline when it fires, so that traffic costs no timer work.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep};

use crate::config::Timeouts;

/// What the peer did not do in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Late {
    #[error("no first frame came in time")]
    FirstFrame,
    #[error("a frame that had begun did not end in time")]
    Frame,
    #[error("nothing came for too long")]
    Idle,
    #[error("answers were not read for too long")]
    Reading,
}

/// What a connection is doing, as far as it decides who waits for whom.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts")]
pub(super) struct Activity {
    /// We would take bytes if they came.
    pub(super) reading: bool,
    /// The peer still gets answers from us.
    pub(super) owing: bool,
    /// We have bytes that the peer does not take.
    pub(super) writing: bool,
    /// The peer follows something, and need not say anything.
    pub(super) subscribed: bool,
}

/// A connection's deadlines.
pub(super) struct Watchdog {
    timeouts: Timeouts,
    greeted: bool,
    opened: Instant,
    frame_since: Option<Instant>,
    quiet_since: Instant,
    written: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Watchdog {
    pub(super) fn new(timeouts: &Timeouts) -> Self {
        let now = Instant::now();
        let timer = Box::pin(tokio::time::sleep_until(now + timeouts.first_frame));
        Self {
            timeouts: timeouts.clone(),
            greeted: false,
            opened: now,
            frame_since: None,
            quiet_since: now,
            written: now,
            timer,
        }
    }

    /// Whole frames were taken, and perhaps a part of another is there.
    pub(super) fn took_frames(&mut self, part_left: bool) {
        let now = Instant::now();
        self.greeted = true;
        self.quiet_since = now;
        self.frame_since = part_left.then_some(now);
    }

    /// A part of a frame is there and no whole one.
    pub(super) fn has_part(&mut self) {
        self.frame_since.get_or_insert_with(Instant::now);
    }

    /// The peer took bytes, or there were none to take until now.
    pub(super) fn wrote(&mut self) {
        self.written = Instant::now();
    }

    /// Time spent on our side is not the peer's.
    pub(super) fn excuse(&mut self) {
        let now = Instant::now();
        self.quiet_since = now;
        self.frame_since = self.frame_since.map(|_| now);
    }

    pub(super) fn poll(&mut self, activity: Activity, context: &mut Context<'_>) -> Poll<Late> {
        loop {
            let due = self.due(activity);
            let check_at = due.map_or_else(|| Instant::now() + self.timeouts.idle, |(at, _)| at);
            if self.timer.deadline() > check_at {
                self.timer.as_mut().reset(check_at);
            }
            ready!(self.timer.as_mut().poll(context));
            match due {
                Some((at, late)) if at <= Instant::now() => return Poll::Ready(late),
                _ => self.timer.as_mut().reset(check_at),
            }
        }
    }

    fn due(&self, activity: Activity) -> Option<(Instant, Late)> {
        let Activity { reading, owing, writing, subscribed } = activity;
        if writing {
            let patience = if subscribed { self.timeouts.idle } else { self.timeouts.write_stall };
            return Some((self.written + patience, Late::Reading));
        }
        if !reading {
            return None;
        }
        if !self.greeted {
            return Some((self.opened + self.timeouts.first_frame, Late::FirstFrame));
        }
        if let Some(since) = self.frame_since {
            return Some((since + self.timeouts.frame, Late::Frame));
        }
        (!owing && !subscribed).then(|| (self.quiet_since + self.timeouts.idle, Late::Idle))
    }
}
