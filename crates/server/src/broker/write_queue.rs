//! The frames that wait to be written to one connection of the broker.
//!
//! Every kind of frame has a bound. Responses: the connection reads its next request only after
//! they are written. Injections: [`INJECT_BYTES_MAX`]. Pieces of a watched screen: one at a time.
//! Watch notices: only the newest. No caller waits here except the one that sends screen pieces.
//!
//! A peer that fails, or does not read in time, ends [`WriteQueue::write_all`], and the connection
//! ends with it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use turnkeep_types::broker::{INJECT_BYTES_MAX, Reason};

use crate::memory::MemoryPermit;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    Response,
    Injection,
    /// Tells a wrapper whether anybody watches its terminal.
    WatchNotice,
    /// A piece of the terminal that the connection watches.
    ScreenPiece,
}

struct QueuedFrame {
    frame: Bytes,
    kind: FrameKind,
    /// The permit of a large frame, held until the frame is written.
    _permit: Option<MemoryPermit>,
}

impl QueuedFrame {
    fn small(kind: FrameKind, frame: Bytes) -> Self {
        Self {
            frame,
            kind,
            _permit: None,
        }
    }
}

/// The frames from the front on. The frame in front may be partly written, so it never moves.
#[derive(Default)]
struct Frames {
    queue: VecDeque<QueuedFrame>,
    unwritten_responses: usize,
    injection_bytes: usize,
    has_screen_piece: bool,
    is_closed: bool,
}

/// The frames that wait for one connection.
#[derive(Default)]
pub(super) struct WriteQueue {
    frames: Mutex<Frames>,
    /// Signals a new frame, or the closing of the queue.
    changed: Notify,
    response_written: Notify,
    screen_piece_written: Notify,
    /// Whether the peer may take any time to read.
    has_no_deadline: AtomicBool,
}

impl WriteQueue {
    /// Adds a response. It goes before all frames of other kinds: a wrapper that reports a turn must
    /// not have to read all its injections first.
    pub(super) fn push_response(&self, frame: Bytes, permit: Option<MemoryPermit>) {
        let mut frames = self.lock_frames();
        // The first frame may be half written by now, so nothing goes before it.
        let mut index = frames.queue.len().min(1);
        while let Some(FrameKind::Response) = frames.queue.get(index).map(|queued| queued.kind) {
            index += 1;
        }
        let queued = QueuedFrame {
            frame,
            kind: FrameKind::Response,
            _permit: permit,
        };
        frames.queue.insert(index, queued);
        frames.unwritten_responses += 1;
        self.changed.notify_one();
    }

    /// Adds an injection if the limit allows. A large one brings its permit.
    pub(super) fn push_injection(
        &self,
        frame: Bytes,
        permit: Option<MemoryPermit>,
    ) -> Result<(), Reason> {
        let mut frames = self.lock_frames();
        if frames.is_closed {
            return Err(Reason::SessionDisconnected);
        }
        if frames.injection_bytes + frame.len() > INJECT_BYTES_MAX {
            return Err(Reason::Busy);
        }
        frames.injection_bytes += frame.len();
        frames.queue.push_back(QueuedFrame {
            frame,
            kind: FrameKind::Injection,
            _permit: permit,
        });
        self.changed.notify_one();
        Ok(())
    }

    /// Adds a watch notice, in place of an older one that waits. It has no limit, because a watcher
    /// would wait forever for a screen that the wrapper was never asked for.
    pub(super) fn push_watch_notice(&self, frame: Bytes) {
        let mut frames = self.lock_frames();
        let mut behind_front = frames.queue.iter().skip(1);
        if let Some(index) = behind_front.position(|queued| queued.kind == FrameKind::WatchNotice) {
            frames.queue.remove(index + 1);
        }
        let notice = QueuedFrame::small(FrameKind::WatchNotice, frame);
        frames.queue.push_back(notice);
        self.changed.notify_one();
    }

    /// Adds a piece of the watched screen, and waits until it is written.
    pub(super) async fn send_screen_piece(&self, frame: Bytes) {
        {
            let mut frames = self.lock_frames();
            frames.has_screen_piece = true;
            let piece = QueuedFrame::small(FrameKind::ScreenPiece, frame);
            frames.queue.push_back(piece);
        }
        self.changed.notify_one();
        while self.lock_frames().has_screen_piece {
            self.screen_piece_written.notified().await;
        }
    }

    /// Waits until all responses are written.
    pub(super) async fn wait_for_responses(&self) {
        while self.lock_frames().unwritten_responses > 0 {
            self.response_written.notified().await;
        }
    }

    /// Rejects further injections. Frames that wait are still written.
    pub(super) fn close(&self) {
        self.lock_frames().is_closed = true;
        self.changed.notify_one();
    }

    /// Removes the write deadline. A wrapper can be suspended for hours, and must keep its session.
    pub(super) fn remove_deadline(&self) {
        self.has_no_deadline.store(true, Ordering::Relaxed);
    }

    /// Writes frames until the queue is closed and empty, the peer fails, or one frame takes longer
    /// than `limit`.
    pub(super) async fn write_all(&self, mut peer: impl AsyncWrite + Unpin, limit: Duration) {
        while let Some(frame) = self.next_frame().await {
            let write = peer.write_all(&frame);
            let is_written = if self.has_no_deadline.load(Ordering::Relaxed) {
                write.await.is_ok()
            } else {
                matches!(tokio::time::timeout(limit, write).await, Ok(Ok(())))
            };
            if !is_written {
                return;
            }
            self.remove_written();
        }
    }

    /// Waits for the next frame and leaves it in front. Returns `None` when the queue is closed and
    /// empty.
    async fn next_frame(&self) -> Option<Bytes> {
        loop {
            {
                let frames = self.lock_frames();
                if let Some(queued) = frames.queue.front() {
                    return Some(queued.frame.clone());
                }
                if frames.is_closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    fn remove_written(&self) {
        let mut frames = self.lock_frames();
        let Some(written) = frames.queue.pop_front() else {
            return;
        };
        match written.kind {
            FrameKind::Injection => frames.injection_bytes -= written.frame.len(),
            FrameKind::WatchNotice => {}
            FrameKind::Response => {
                frames.unwritten_responses -= 1;
                self.response_written.notify_one();
            }
            FrameKind::ScreenPiece => {
                frames.has_screen_piece = false;
                self.screen_piece_written.notify_one();
            }
        }
    }

    fn lock_frames(&self) -> MutexGuard<'_, Frames> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn injections_are_bounded_and_responses_are_not() {
        let queue = WriteQueue::default();
        let half = Bytes::from(vec![0; INJECT_BYTES_MAX / 2]);
        assert_eq!(queue.push_injection(half.clone(), None), Ok(()));
        assert_eq!(queue.push_injection(half.clone(), None), Ok(()));
        assert_eq!(
            queue.push_injection(Bytes::from_static(b"x"), None),
            Err(Reason::Busy)
        );
        queue.push_response(half, None);
        queue.remove_written();
        assert_eq!(
            queue.push_injection(Bytes::from_static(b"x"), None),
            Ok(()),
            "the written injection no longer counts"
        );
        queue.close();
        assert_eq!(
            queue.push_injection(Bytes::from_static(b"x"), None),
            Err(Reason::SessionDisconnected)
        );
    }

    #[tokio::test]
    async fn the_newest_watch_notice_is_written_although_the_injections_are_at_their_limit() {
        let queue = WriteQueue::default();
        queue
            .push_injection(Bytes::from(vec![b'i'; INJECT_BYTES_MAX]), None)
            .unwrap();
        for notice in [&b"on"[..], b"off", b"ON"] {
            queue.push_watch_notice(Bytes::from_static(notice));
        }
        queue.close();
        let mut written = Vec::new();
        queue.write_all(&mut written, Duration::from_secs(5)).await;
        assert_eq!(written.get(INJECT_BYTES_MAX..), Some(&b"ON"[..]));
    }

    #[tokio::test]
    async fn a_closed_queue_still_writes_its_frames_in_order() {
        let queue = WriteQueue::default();
        queue.push_response(Bytes::from_static(b"a"), None);
        queue
            .push_injection(Bytes::from_static(b"b"), None)
            .unwrap();
        queue.close();
        let mut written = Vec::new();
        queue.write_all(&mut written, Duration::from_secs(5)).await;
        assert_eq!(written, b"ab");
        queue.wait_for_responses().await;
    }
}
