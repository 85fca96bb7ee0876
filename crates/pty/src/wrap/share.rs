//! What is shown of a shared terminal: a mirror of it, and the bytes that those who watch have not
//! seen.
//!
//! The observer's thread feeds it, the thread that speaks with the broker takes from it. Bytes are
//! kept only while somebody watches, and no more than [`UNSEEN_BYTES_MAX`]: who takes them too
//! slowly gets the whole screen instead. The byte path knows nothing of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnkeep_session::screen::{Mirror, Size};
use turnkeep_types::broker::{Paint, Shown};

/// Bytes that may wait to be sent.
const UNSEEN_BYTES_MAX: usize = 1 << 20;

/// What is to be sent as soon as it can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// The bytes, and the size if it has changed.
    Bytes,
    /// The bytes, then the whole screen for those who have seen nothing.
    Repaint,
    /// The whole screen for everybody: bytes are missing.
    Lost,
}

struct Stage {
    mirror: Mirror,
    is_watched: bool,
    unseen: Vec<u8>,
    due: Option<Due>,
}

/// A shared terminal; cheap to clone.
#[derive(Clone)]
pub struct Share(Arc<Mutex<Stage>>);

impl Share {
    /// A terminal of the user's size that nobody watches yet.
    pub fn new() -> Self {
        let size = super::terminal::UserTerminal::screen_size();
        Self::with_size(Size {
            cols: size.ws_col,
            rows: size.ws_row,
        })
    }

    fn with_size(size: Size) -> Self {
        let stage = Stage {
            mirror: Mirror::new(size),
            is_watched: false,
            unseen: Vec::new(),
            due: None,
        };
        Self(Arc::new(Mutex::new(stage)))
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The child wrote these bytes. Says whether there is something to take.
    pub(super) fn output(&self, bytes: &[u8]) -> bool {
        let mut stage = self.stage();
        stage.mirror.feed(bytes);
        if stage.is_watched {
            stage.unseen.extend_from_slice(bytes);
            let is_too_much = stage.unseen.len() > UNSEEN_BYTES_MAX;
            stage.want(if is_too_much { Due::Lost } else { Due::Bytes });
        }
        stage.is_watched
    }

    /// Output is missing here.
    pub(super) fn lose(&self) -> bool {
        let mut stage = self.stage();
        stage.mirror.forget();
        stage.want(Due::Lost);
        stage.is_watched
    }

    /// The terminal has another size.
    pub(super) fn resize(&self, cols: u16, rows: u16) -> bool {
        let mut stage = self.stage();
        stage.mirror.resize(Size { cols, rows });
        stage.want(Due::Bytes);
        stage.is_watched
    }

    /// Somebody watches and needs the whole screen, or nobody watches any more.
    pub(super) fn watched(&self, on: bool) {
        let mut stage = self.stage();
        stage.is_watched = on;
        if on {
            stage.want(Due::Repaint);
        } else {
            (stage.unseen, stage.due) = (Vec::new(), None);
        }
    }

    /// What is to be sent now, in order.
    pub(super) fn take(&self, session: &str) -> Vec<Shown> {
        let mut stage = self.stage();
        let Some(due) = stage.due.take() else {
            return Vec::new();
        };
        let Size { cols, rows } = stage.mirror.size();
        let piece = |paint, content: Vec<u8>| Shown {
            session: session.to_owned(),
            content: content.into(),
            cols,
            rows,
            paint,
        };
        let unseen = std::mem::take(&mut stage.unseen);
        match due {
            Due::Bytes => vec![piece(Paint::Bytes, unseen)],
            Due::Repaint => {
                vec![
                    piece(Paint::Bytes, unseen),
                    piece(Paint::Repaint, stage.mirror.repaint()),
                ]
            }
            Due::Lost => vec![piece(Paint::Lost, stage.mirror.repaint())],
        }
    }
}

impl Default for Share {
    fn default() -> Self {
        Self::new()
    }
}

impl Stage {
    /// Notes what is due; the more thorough one wins. Nothing is due while nobody watches.
    fn want(&mut self, due: Due) {
        if !self.is_watched {
            return;
        }
        self.due = match (self.due, due) {
            (Some(Due::Lost), _) | (_, Due::Lost) => Some(Due::Lost),
            (Some(Due::Repaint), _) | (_, Due::Repaint) => Some(Due::Repaint),
            (Some(Due::Bytes) | None, Due::Bytes) => Some(Due::Bytes),
        };
        if self.due == Some(Due::Lost) {
            self.unseen = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(share: &Share) -> Vec<(&'static str, usize)> {
        let text = |shown: &Shown| String::from_utf8_lossy(&shown.content).matches('x').count();
        share
            .take("s")
            .iter()
            .map(|shown| (shown.paint.word(), text(shown)))
            .collect()
    }

    #[test]
    fn nothing_is_kept_while_nobody_watches_and_the_whole_screen_comes_first() {
        let share = Share::with_size(Size { cols: 80, rows: 24 });
        assert!(!share.output(b"xx"));
        assert_eq!(pieces(&share), []);
        share.watched(true);
        assert_eq!(pieces(&share), [("bytes", 0), ("repaint", 2)]);
        assert!(share.output(b"x"));
        assert_eq!(pieces(&share), [("bytes", 1)]);
        share.output(b"x");
        share.watched(true);
        share.output(b"x");
        assert_eq!(
            pieces(&share),
            [("bytes", 2), ("repaint", 5)],
            "a newcomer costs nobody a byte"
        );
        share.output(b"x");
        share.watched(false);
        assert_eq!(pieces(&share), []);
    }

    #[test]
    fn who_takes_too_slowly_or_missed_something_gets_the_whole_screen() {
        let share = Share::with_size(Size { cols: 10, rows: 2 });
        share.watched(true);
        share.take("s");
        share.output(&vec![b'x'; UNSEEN_BYTES_MAX + 1]);
        share.output(b"\x1b[2J");
        share.watched(true);
        assert_eq!(pieces(&share), [("lost", 0)]);
        share.output(b"x");
        share.lose();
        assert_eq!(pieces(&share), [("lost", 0)]);
        share.resize(30, 9);
        let shown = share.take("s");
        assert_eq!((shown.len(), shown[0].cols, shown[0].rows), (1, 30, 9));
    }
}
