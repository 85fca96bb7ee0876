//! What waits to be written to one connection: its answers first, then what others inject and what
//! it watches.
//!
//! Answers are bounded because a connection reads its next request only when they are gone;
//! injections are bounded here; of what it watches one piece at a time is in, and of who watches it
//! only the newest word. Whoever else puts something in never waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use turnkeep_types::broker::{INJECT_BYTES_MAX, Reason};

use crate::memory::MemoryPermit;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Answer,
    Inject,
    Show,
    View,
}

/// One frame, and the permit of a large one until it is written.
struct Entry {
    frame: Bytes,
    kind: Kind,
    _permit: Option<MemoryPermit>,
}

#[derive(Default)]
struct Queue {
    entries: VecDeque<Entry>,
    /// Answers that are not yet written.
    answers: usize,
    /// Bytes of injections that are not yet written.
    inject_bytes: usize,
    /// Whether a piece of what is watched is not yet written.
    has_view: bool,
    closed: bool,
}

/// What waits to be written.
#[derive(Default)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    /// Something was put in, or it was closed.
    filled: Notify,
    /// An answer was written.
    written: Notify,
    /// A piece of what is watched was written.
    viewed: Notify,
    /// Whether the peer may take its time.
    patient: AtomicBool,
}

impl Outbox {
    /// Puts an answer in, before everything that is not an answer and not begun: a wrapper that
    /// tells a turn need not take all injections first.
    pub(super) fn answer(&self, frame: Bytes, permit: Option<MemoryPermit>) {
        let mut queue = self.queue();
        queue.answers += 1;
        let begun = queue.entries.len().min(1);
        let before = queue
            .entries
            .iter()
            .skip(begun)
            .take_while(|entry| entry.kind == Kind::Answer)
            .count();
        queue.entries.insert(
            begun + before,
            Entry {
                frame,
                kind: Kind::Answer,
                _permit: permit,
            },
        );
        self.filled.notify_one();
    }

    /// Puts an injection in, if there is room for it. A large one comes with its part of the budget
    /// that all injections share.
    pub(super) fn inject(&self, frame: Bytes, permit: Option<MemoryPermit>) -> Result<(), Reason> {
        let mut queue = self.queue();
        if queue.closed {
            return Err(Reason::SessionDisconnected);
        }
        if queue.inject_bytes + frame.len() > INJECT_BYTES_MAX {
            return Err(Reason::Busy);
        }
        queue.inject_bytes += frame.len();
        queue.entries.push_back(Entry {
            frame,
            kind: Kind::Inject,
            _permit: permit,
        });
        self.filled.notify_one();
        Ok(())
    }

    /// Says whether somebody watches, in the place of what was said about that before and is not
    /// written yet. There is always room: a watcher waits for what comes of it.
    pub(super) fn show(&self, frame: Bytes) {
        let mut queue = self.queue();
        // The one in front may be half written.
        if let Some(at) = queue
            .entries
            .iter()
            .skip(1)
            .position(|entry| entry.kind == Kind::Show)
        {
            queue.entries.remove(at + 1);
        }
        queue.entries.push_back(Entry {
            frame,
            kind: Kind::Show,
            _permit: None,
        });
        self.filled.notify_one();
    }

    /// Puts a piece of what is watched in, and waits until it is written.
    pub(super) async fn view(&self, frame: Bytes) {
        {
            let mut queue = self.queue();
            queue.has_view = true;
            queue.entries.push_back(Entry {
                frame,
                kind: Kind::View,
                _permit: None,
            });
        }
        self.filled.notify_one();
        while self.queue().has_view {
            self.viewed.notified().await;
        }
    }

    /// Waits until all answers are written.
    pub(super) async fn answered(&self) {
        while self.queue().answers > 0 {
            self.written.notified().await;
        }
    }

    /// Takes nothing more; what is in it is still written.
    pub(super) fn close(&self) {
        self.queue().closed = true;
        self.filled.notify_one();
    }

    /// From now on the peer may take its time: a wrapper can be suspended.
    pub(super) fn be_patient(&self) {
        self.patient.store(true, Ordering::Relaxed);
    }

    /// Writes what is put in until it is closed and empty, or the peer fails or takes too long.
    pub(super) async fn drain(&self, mut peer: impl AsyncWrite + Unpin, limit: Duration) {
        while let Some(frame) = self.front().await {
            let write = peer.write_all(&frame);
            let is_written = if self.patient.load(Ordering::Relaxed) {
                write.await.is_ok()
            } else {
                matches!(tokio::time::timeout(limit, write).await, Ok(Ok(())))
            };
            if !is_written {
                return;
            }
            self.pop();
        }
    }

    /// The next frame, which stays in front until it is written; none when there will be none.
    async fn front(&self) -> Option<Bytes> {
        loop {
            {
                let queue = self.queue();
                if let Some(entry) = queue.entries.front() {
                    return Some(entry.frame.clone());
                }
                if queue.closed {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    fn pop(&self) {
        let mut queue = self.queue();
        let Some(entry) = queue.entries.pop_front() else {
            return;
        };
        match entry.kind {
            Kind::Inject => queue.inject_bytes -= entry.frame.len(),
            Kind::Show => {}
            Kind::Answer => {
                queue.answers -= 1;
                self.written.notify_one();
            }
            Kind::View => {
                queue.has_view = false;
                self.viewed.notify_one();
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn injections_are_bounded_and_answers_are_not() {
        let outbox = Outbox::default();
        let half = Bytes::from(vec![0; INJECT_BYTES_MAX / 2]);
        assert_eq!(outbox.inject(half.clone(), None), Ok(()));
        assert_eq!(outbox.inject(half.clone(), None), Ok(()));
        assert_eq!(
            outbox.inject(Bytes::from_static(b"x"), None),
            Err(Reason::Busy)
        );
        outbox.answer(half, None);
        outbox.pop();
        assert_eq!(
            outbox.inject(Bytes::from_static(b"x"), None),
            Ok(()),
            "there is room again"
        );
        outbox.close();
        assert_eq!(
            outbox.inject(Bytes::from_static(b"x"), None),
            Err(Reason::SessionDisconnected)
        );
    }

    #[tokio::test]
    async fn who_watches_is_told_by_the_newest_word_however_full_it_is() {
        let outbox = Outbox::default();
        outbox
            .inject(Bytes::from(vec![b'i'; INJECT_BYTES_MAX]), None)
            .unwrap();
        for word in [&b"on"[..], b"off", b"ON"] {
            outbox.show(Bytes::from_static(word));
        }
        outbox.close();
        let mut written = Vec::new();
        outbox.drain(&mut written, Duration::from_secs(5)).await;
        assert_eq!(written.get(INJECT_BYTES_MAX..), Some(&b"ON"[..]));
    }

    #[tokio::test]
    async fn what_is_in_when_it_is_closed_is_still_written_in_order() {
        let outbox = Outbox::default();
        outbox.answer(Bytes::from_static(b"a"), None);
        outbox.inject(Bytes::from_static(b"b"), None).unwrap();
        outbox.close();
        let mut written = Vec::new();
        outbox.drain(&mut written, Duration::from_secs(5)).await;
        assert_eq!(written, b"ab");
        outbox.answered().await;
    }
}
