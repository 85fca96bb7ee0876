//! The pieces of a shared terminal that wait for one watcher.
//!
//! The queue is bounded, and adding to it never waits. A watcher that reads too slowly loses all
//! waiting pieces and continues with a new repaint. So a watcher always sees the whole screen of
//! some moment and then every byte since, without a gap.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use turnkeep_types::broker::{Paint, Shown};

/// Bytes that may wait for one watcher. A single piece may be longer.
const QUEUE_BYTES_MAX: usize = 2 << 20;
/// Pieces that may wait for one watcher.
const QUEUE_PIECES_MAX: usize = 4096;

/// What a watcher has to handle next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScreenEvent {
    /// Show this piece.
    Piece(Arc<Shown>),
    /// Pieces were dropped: ask the wrapper for the whole screen.
    Behind,
    /// The session with this id has ended.
    Ended(String),
}

/// Which pieces the queue accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    /// Any piece: the watcher has the whole screen.
    Pieces,
    /// A repaint that was requested.
    Repaint,
    /// A repaint that has yet to be requested.
    RepaintRequest,
}

#[derive(Debug)]
struct Pieces {
    queue: VecDeque<Arc<Shown>>,
    bytes: usize,
    expects: Expects,
    /// The session that has ended, until the watcher learns it.
    ended: Option<String>,
}

impl Pieces {
    fn is_full_for(&self, piece: &Shown) -> bool {
        let bytes = self.bytes + piece.content.len();
        !self.queue.is_empty() && (bytes > QUEUE_BYTES_MAX || self.queue.len() >= QUEUE_PIECES_MAX)
    }
}

/// The queue of one watcher, or of a connection that may become one.
#[derive(Debug)]
pub(super) struct ScreenQueue {
    pieces: Mutex<Pieces>,
    changed: Notify,
}

impl Default for ScreenQueue {
    fn default() -> Self {
        let pieces = Pieces {
            queue: VecDeque::new(),
            bytes: 0,
            // The broker requests the first repaint itself when the watch begins.
            expects: Expects::Repaint,
            ended: None,
        };
        Self {
            pieces: Mutex::new(pieces),
            changed: Notify::new(),
        }
    }
}

impl ScreenQueue {
    /// Adds a piece, unless the watcher cannot use it.
    pub(super) fn push(&self, piece: &Arc<Shown>) {
        let mut pieces = self.lock_pieces();
        let has_screen = pieces.expects == Expects::Pieces;
        let is_useful = match piece.paint {
            Paint::Bytes => has_screen,
            // Another watcher may have requested this repaint.
            Paint::Repaint => !has_screen,
            Paint::Lost => true,
        };
        if !is_useful {
            return;
        }
        pieces.expects = Expects::Pieces;
        if pieces.is_full_for(piece) {
            pieces.queue.clear();
            pieces.bytes = 0;
            // Bytes make no sense without the dropped ones before them. The other kinds draw the
            // whole screen.
            if piece.paint == Paint::Bytes {
                pieces.expects = Expects::RepaintRequest;
            }
        }
        if pieces.expects == Expects::Pieces {
            pieces.bytes += piece.content.len();
            pieces.queue.push_back(Arc::clone(piece));
        }
        self.changed.notify_one();
    }

    /// Notes that the session has ended. The watcher may watch another one afterwards.
    pub(super) fn end(&self, session: &str) {
        let mut pieces = self.lock_pieces();
        pieces.ended = Some(session.to_owned());
        pieces.expects = Expects::Repaint;
        self.changed.notify_one();
    }

    /// Waits for the next event.
    pub(super) async fn next_event(&self) -> ScreenEvent {
        loop {
            if let Some(event) = self.take_event() {
                return event;
            }
            self.changed.notified().await;
        }
    }

    fn take_event(&self) -> Option<ScreenEvent> {
        let mut pieces = self.lock_pieces();
        if let Some(piece) = pieces.queue.pop_front() {
            pieces.bytes -= piece.content.len();
            return Some(ScreenEvent::Piece(piece));
        }
        // After the pieces, so that the watcher sees the last words before the end.
        if let Some(session) = pieces.ended.take() {
            return Some(ScreenEvent::Ended(session));
        }
        if pieces.expects != Expects::RepaintRequest {
            return None;
        }
        pieces.expects = Expects::Repaint;
        Some(ScreenEvent::Behind)
    }

    fn lock_pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(paint: Paint, bytes: usize) -> Arc<Shown> {
        Arc::new(Shown {
            content: vec![b'x'; bytes].into(),
            paint,
            ..Shown::default()
        })
    }

    fn events(queue: &ScreenQueue) -> Vec<String> {
        std::iter::from_fn(|| queue.take_event())
            .map(|event| match event {
                ScreenEvent::Piece(shown) => {
                    format!("{} {}", shown.paint.word(), shown.content.len())
                }
                ScreenEvent::Behind => "behind".to_owned(),
                ScreenEvent::Ended(session) => format!("ended {session}"),
            })
            .collect()
    }

    #[test]
    fn a_watcher_gets_the_whole_screen_first_and_once() {
        let queue = ScreenQueue::default();
        for (paint, bytes) in [
            (Paint::Bytes, 1),
            (Paint::Repaint, 2),
            (Paint::Bytes, 3),
            (Paint::Repaint, 4),
            (Paint::Lost, 5),
        ] {
            queue.push(&piece(paint, bytes));
        }
        queue.end("s");
        assert_eq!(
            events(&queue),
            ["repaint 2", "bytes 3", "lost 5", "ended s"]
        );
    }

    #[test]
    fn a_slow_watcher_continues_with_a_new_repaint() {
        let queue = ScreenQueue::default();
        queue.push(&piece(Paint::Repaint, 1));
        queue.push(&piece(Paint::Bytes, QUEUE_BYTES_MAX - 1));
        queue.push(&piece(Paint::Bytes, 1));
        queue.push(&piece(Paint::Bytes, 1));
        assert_eq!(events(&queue), ["behind"]);
        queue.push(&piece(Paint::Bytes, 1));
        assert_eq!(
            events(&queue),
            [""; 0],
            "one request for a repaint, and nothing before it comes"
        );
        queue.push(&piece(Paint::Repaint, QUEUE_BYTES_MAX * 2));
        queue.push(&piece(Paint::Lost, 7));
        assert_eq!(
            events(&queue),
            ["lost 7"],
            "a newer whole screen replaces the pieces that wait"
        );
        for _ in 0..=QUEUE_PIECES_MAX {
            queue.push(&piece(Paint::Bytes, 0));
        }
        assert_eq!(events(&queue), ["behind"]);
    }
}
