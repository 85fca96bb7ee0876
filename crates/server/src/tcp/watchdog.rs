//! The deadlines of a connection. A peer that misses one is disconnected without an answer.
//!
//! Each connection has one timer. It moves only when a deadline comes nearer. When it fires, it
//! compares with the true deadline, so traffic costs no timer work. Deadlines pause while the server
//! is not reading: afterwards they move by the length of the pause.

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

/// The state of a connection that decides which deadline applies.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "five independent facts")]
pub(super) struct Activity {
    /// The server would take bytes if they came.
    pub(super) reading: bool,
    /// The peer still waits for answers.
    pub(super) owing: bool,
    /// The server has bytes that the peer has not taken.
    pub(super) writing: bool,
    /// The peer has a subscription, so it need not send anything.
    pub(super) subscribed: bool,
    /// The untaken bytes hold memory that others may need.
    pub(super) holding: bool,
}

/// A connection's deadlines.
pub(super) struct Watchdog {
    timeouts: Timeouts,
    greeted: bool,
    opened: Instant,
    frame_since: Option<Instant>,
    quiet_since: Instant,
    written: Instant,
    /// When the server stopped reading.
    halted: Option<Instant>,
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
            halted: None,
            timer,
        }
    }

    /// Notes that whole frames were taken. A part of another one may have arrived.
    pub(super) fn note_frames(&mut self, part_left: bool) {
        let now = Instant::now();
        self.greeted = true;
        self.quiet_since = now;
        self.frame_since = part_left.then_some(now);
    }

    /// Notes that a part of a frame has arrived and no whole one.
    pub(super) fn note_partial_frame(&mut self) {
        self.frame_since.get_or_insert_with(Instant::now);
    }

    /// Notes that the peer took bytes, or that there were none to take until now.
    pub(super) fn note_written(&mut self) {
        self.written = Instant::now();
    }

    pub(super) fn poll(&mut self, activity: Activity, context: &mut Context<'_>) -> Poll<Late> {
        self.shift_deadlines(activity.reading);
        loop {
            let due = self.next_deadline(activity);
            let check_at = due.map_or_else(|| Instant::now() + self.timeouts.idle, |(at, _)| at);
            // A deadline that moved away leaves the timer alone: it fires too early and is set again
            // below, which is rarer than a move with every frame.
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

    /// Moves the deadlines when the server reads again after a pause.
    fn shift_deadlines(&mut self, reading: bool) {
        if !reading {
            self.halted.get_or_insert_with(Instant::now);
        } else if let Some(halted) = self.halted.take() {
            let now = Instant::now();
            // Never into the future: the pause may have begun before the peer's last bytes.
            let moved = |since: Instant| (since + (now - halted)).min(now);
            self.opened = moved(self.opened);
            self.quiet_since = moved(self.quiet_since);
            self.frame_since = self.frame_since.map(moved);
        }
    }

    fn next_deadline(&self, activity: Activity) -> Option<(Instant, Late)> {
        let Activity {
            reading,
            owing,
            writing,
            subscribed,
            holding,
        } = activity;
        // Unread answers come first: a peer that does not read is not expected to send.
        if writing {
            // A subscriber reads at its own pace, unless other connections need its memory.
            let may_be_slow = subscribed && !holding;
            let allowed = if may_be_slow {
                self.timeouts.idle
            } else {
                self.timeouts.write_stall
            };
            return Some((self.written + allowed, Late::Reading));
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    const READING: Activity = Activity {
        reading: true,
        owing: false,
        writing: false,
        subscribed: false,
        holding: false,
    };

    /// Lets up to `seconds` pass and says what the peer was late with, and when.
    async fn watch(
        watchdog: &mut Watchdog,
        activity: Activity,
        seconds: u64,
    ) -> Option<(Late, u64)> {
        let began = Instant::now();
        let late = poll_fn(|context| watchdog.poll(activity, context));
        let late = tokio::time::timeout(Duration::from_secs(seconds), late)
            .await
            .ok()?;
        Some((late, began.elapsed().as_secs()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_has_its_time_besides_the_time_that_we_take() {
        let mut watchdog = Watchdog::new(&Timeouts::default());
        watchdog.note_frames(true);
        assert_eq!(watch(&mut watchdog, READING, 20).await, None);
        let halted = Activity {
            reading: false,
            owing: true,
            ..READING
        };
        assert_eq!(
            watch(&mut watchdog, halted, 3600).await,
            None,
            "our disk may take its time"
        );
        assert_eq!(
            watch(&mut watchdog, READING, 3600).await,
            Some((Late::Frame, 10))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_frame_has_its_time_once() {
        let mut watchdog = Watchdog::new(&Timeouts::default());
        assert_eq!(
            watch(&mut watchdog, READING, 3600).await,
            Some((Late::FirstFrame, 10))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_subscriber_has_patience_unless_it_holds_what_others_need() {
        async fn check(subscribed: bool, holding: bool, expect: u64) {
            let mut watchdog = Watchdog::new(&Timeouts::default());
            watchdog.note_frames(false);
            let activity = Activity {
                writing: true,
                subscribed,
                holding,
                ..READING
            };
            assert_eq!(
                watch(&mut watchdog, activity, 7200).await,
                Some((Late::Reading, expect))
            );
        }
        check(false, false, 30).await;
        check(false, true, 30).await;
        check(true, false, 3600).await;
        check(true, true, 30).await;
    }
}
