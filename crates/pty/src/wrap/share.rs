//! The shared terminal: a mirror of the child's screen, and the bytes that the watchers have not
//! seen.
//!
//! The observer's thread feeds it, and the broker outlet takes pieces from it. Bytes are kept only
//! while a client watches, at most [`UNSEEN_BYTES_MAX`]; a slower reader gets the whole screen
//! instead. The byte path is not involved.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnkeep_session::screen::{Mirror, Size};
use turnkeep_types::broker::{Paint, Shown};

/// How many bytes may wait to be sent.
const UNSEEN_BYTES_MAX: usize = 1 << 20;

/// What must be sent next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingPaint {
    /// The bytes, and the size if it has changed.
    Bytes,
    /// The bytes, then the whole screen for clients that have seen nothing.
    Repaint,
    /// The whole screen for every client, because bytes are missing.
    Lost,
}

struct SharedState {
    mirror: Mirror,
    is_watched: bool,
    unseen: Vec<u8>,
    due: Option<PendingPaint>,
}

/// A shared terminal; cheap to clone.
#[derive(Clone)]
pub struct SharedTerminal(Arc<Mutex<SharedState>>);

impl SharedTerminal {
    /// Creates a terminal of the user's size that no client watches yet.
    pub fn new() -> Self {
        let size = super::terminal::UserTerminal::screen_size();
        Self::with_size(Size {
            cols: size.ws_col,
            rows: size.ws_row,
        })
    }

    fn with_size(size: Size) -> Self {
        let state = SharedState {
            mirror: Mirror::new(size),
            is_watched: false,
            unseen: Vec::new(),
            due: None,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    fn lock_state(&self) -> MutexGuard<'_, SharedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds output of the child. Returns whether there is something to send.
    pub(super) fn add_output(&self, bytes: &[u8]) -> bool {
        let mut state = self.lock_state();
        state.mirror.feed(bytes);
        if state.is_watched {
            state.unseen.extend_from_slice(bytes);
            // A repaint is smaller than a long backlog.
            let is_too_much = state.unseen.len() > UNSEEN_BYTES_MAX;
            state.request_paint(if is_too_much {
                PendingPaint::Lost
            } else {
                PendingPaint::Bytes
            });
        }
        state.is_watched
    }

    /// Notes that output is missing.
    pub(super) fn note_gap(&self) -> bool {
        let mut state = self.lock_state();
        state.mirror.forget();
        state.request_paint(PendingPaint::Lost);
        state.is_watched
    }

    /// Applies a new size.
    pub(super) fn resize(&self, cols: u16, rows: u16) -> bool {
        let mut state = self.lock_state();
        state.mirror.resize(Size { cols, rows });
        state.request_paint(PendingPaint::Bytes);
        state.is_watched
    }

    /// Starts watching, which needs the whole screen, or stops it.
    pub(super) fn set_watched(&self, on: bool) {
        let mut state = self.lock_state();
        state.is_watched = on;
        if on {
            state.request_paint(PendingPaint::Repaint);
        } else {
            (state.unseen, state.due) = (Vec::new(), None);
        }
    }

    /// The pieces to send now, in order.
    pub(super) fn take_pieces(&self, session: &str) -> Vec<Shown> {
        let mut state = self.lock_state();
        let Some(due) = state.due.take() else {
            return Vec::new();
        };
        let Size { cols, rows } = state.mirror.size();
        let piece = |paint, content: Vec<u8>| Shown {
            session: session.to_owned(),
            content: content.into(),
            cols,
            rows,
            paint,
        };
        let unseen = std::mem::take(&mut state.unseen);
        match due {
            PendingPaint::Bytes => vec![piece(Paint::Bytes, unseen)],
            // Clients that watched before need the bytes; the repaint is for the new ones.
            PendingPaint::Repaint => {
                vec![
                    piece(Paint::Bytes, unseen),
                    piece(Paint::Repaint, state.mirror.repaint()),
                ]
            }
            PendingPaint::Lost => vec![piece(Paint::Lost, state.mirror.repaint())],
        }
    }
}

impl Default for SharedTerminal {
    fn default() -> Self {
        Self::new()
    }
}

impl SharedState {
    /// Notes what must be sent; the more thorough request wins. Without a watcher nothing is due.
    fn request_paint(&mut self, due: PendingPaint) {
        if !self.is_watched {
            return;
        }
        self.due = match (self.due, due) {
            (Some(PendingPaint::Lost), _) | (_, PendingPaint::Lost) => Some(PendingPaint::Lost),
            (Some(PendingPaint::Repaint), _) | (_, PendingPaint::Repaint) => {
                Some(PendingPaint::Repaint)
            }
            (Some(PendingPaint::Bytes) | None, PendingPaint::Bytes) => Some(PendingPaint::Bytes),
        };
        // The repaint replaces these bytes.
        if self.due == Some(PendingPaint::Lost) {
            self.unseen = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(share: &SharedTerminal) -> Vec<(&'static str, usize)> {
        let text = |shown: &Shown| String::from_utf8_lossy(&shown.content).matches('x').count();
        share
            .take_pieces("s")
            .iter()
            .map(|shown| (shown.paint.word(), text(shown)))
            .collect()
    }

    #[test]
    fn nothing_is_kept_while_nobody_watches_and_the_whole_screen_comes_first() {
        let share = SharedTerminal::with_size(Size { cols: 80, rows: 24 });
        assert!(!share.add_output(b"xx"));
        assert_eq!(pieces(&share), []);
        share.set_watched(true);
        assert_eq!(pieces(&share), [("bytes", 0), ("repaint", 2)]);
        assert!(share.add_output(b"x"));
        assert_eq!(pieces(&share), [("bytes", 1)]);
        share.add_output(b"x");
        share.set_watched(true);
        share.add_output(b"x");
        assert_eq!(
            pieces(&share),
            [("bytes", 2), ("repaint", 5)],
            "a newcomer costs nobody a byte"
        );
        share.add_output(b"x");
        share.set_watched(false);
        assert_eq!(pieces(&share), []);
    }

    #[test]
    fn who_takes_too_slowly_or_missed_something_gets_the_whole_screen() {
        let share = SharedTerminal::with_size(Size { cols: 10, rows: 2 });
        share.set_watched(true);
        share.take_pieces("s");
        share.add_output(&vec![b'x'; UNSEEN_BYTES_MAX + 1]);
        share.add_output(b"\x1b[2J");
        share.set_watched(true);
        assert_eq!(pieces(&share), [("lost", 0)]);
        share.add_output(b"x");
        share.note_gap();
        assert_eq!(pieces(&share), [("lost", 0)]);
        share.resize(30, 9);
        let shown = share.take_pieces("s");
        assert_eq!((shown.len(), shown[0].cols, shown[0].rows), (1, 30, 9));
    }
}
