//! What one who watches is still to be shown: a bounded queue that begins with the whole screen.
//!
//! Whoever puts something in never waits. A viewer who takes too long loses everything that waits
//! for it and goes on with a new repaint; what it is shown is therefore always the screen as it was
//! at some time, and then every byte since.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use turnkeep_types::broker::{Paint, Shown};

/// Bytes that wait for one viewer; the first piece may be longer.
const VIEW_BYTES_MAX: usize = 2 << 20;
/// Pieces that wait for one viewer.
const VIEW_PIECES_MAX: usize = 4096;

/// What a viewer comes to next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum View {
    /// This is to be shown.
    Shown(Arc<Shown>),
    /// Something was missed: the whole screen is to be asked for.
    Behind,
    /// The session, which is named, has gone.
    Ended(String),
}

#[derive(Debug)]
struct Queue {
    pieces: VecDeque<Arc<Shown>>,
    bytes: usize,
    /// Whether nothing counts before the next repaint.
    waits: bool,
    /// Whether that repaint was asked for.
    asked: bool,
    ended: Option<String>,
}

/// The queue of one who watches, or may come to watch.
#[derive(Debug)]
pub(super) struct Viewer {
    queue: Mutex<Queue>,
    filled: Notify,
}

impl Default for Viewer {
    fn default() -> Self {
        let queue = Queue {
            pieces: VecDeque::new(),
            bytes: 0,
            waits: true,
            asked: true,
            ended: None,
        };
        Self {
            queue: Mutex::new(queue),
            filled: Notify::new(),
        }
    }
}

impl Viewer {
    /// Puts a piece in, if it is of use.
    pub(super) fn show(&self, shown: &Arc<Shown>) {
        let mut queue = self.queue();
        let is_of_use = match shown.paint {
            Paint::Bytes => !queue.waits,
            Paint::Repaint => queue.waits,
            Paint::Lost => true,
        };
        if !is_of_use {
            return;
        }
        let is_full = queue.bytes + shown.content.len() > VIEW_BYTES_MAX
            || queue.pieces.len() >= VIEW_PIECES_MAX;
        if is_full && !queue.pieces.is_empty() {
            queue.pieces.clear();
            queue.bytes = 0;
            (queue.waits, queue.asked) = (shown.paint == Paint::Bytes, false);
        } else {
            queue.waits = false;
        }
        if !queue.waits {
            queue.bytes += shown.content.len();
            queue.pieces.push_back(Arc::clone(shown));
        }
        self.filled.notify_one();
    }

    /// Nothing more will be shown of this session. The viewer may watch another one after that.
    pub(super) fn end(&self, session: &str) {
        let mut queue = self.queue();
        queue.ended = Some(session.to_owned());
        (queue.waits, queue.asked) = (true, true);
        self.filled.notify_one();
    }

    /// What comes next, however long that takes.
    pub(super) async fn next(&self) -> View {
        loop {
            if let Some(view) = self.take() {
                return view;
            }
            self.filled.notified().await;
        }
    }

    fn take(&self) -> Option<View> {
        let mut queue = self.queue();
        if let Some(shown) = queue.pieces.pop_front() {
            queue.bytes -= shown.content.len();
            return Some(View::Shown(shown));
        }
        if let Some(session) = queue.ended.take() {
            return Some(View::Ended(session));
        }
        let is_behind = queue.waits && !queue.asked;
        queue.asked |= is_behind;
        is_behind.then_some(View::Behind)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn views(viewer: &Viewer) -> Vec<String> {
        std::iter::from_fn(|| viewer.take())
            .map(|view| match view {
                View::Shown(shown) => format!("{} {}", shown.paint.word(), shown.content.len()),
                View::Behind => "behind".to_owned(),
                View::Ended(session) => format!("ended {session}"),
            })
            .collect()
    }

    #[test]
    fn a_view_begins_with_the_whole_screen_and_has_it_once() {
        let viewer = Viewer::default();
        for (paint, bytes) in [
            (Paint::Bytes, 1),
            (Paint::Repaint, 2),
            (Paint::Bytes, 3),
            (Paint::Repaint, 4),
            (Paint::Lost, 5),
        ] {
            viewer.show(&piece(paint, bytes));
        }
        viewer.end("s");
        assert_eq!(
            views(&viewer),
            ["repaint 2", "bytes 3", "lost 5", "ended s"]
        );
    }

    #[test]
    fn a_viewer_who_is_too_slow_skips_to_a_new_repaint() {
        let viewer = Viewer::default();
        viewer.show(&piece(Paint::Repaint, 1));
        viewer.show(&piece(Paint::Bytes, VIEW_BYTES_MAX - 1));
        viewer.show(&piece(Paint::Bytes, 1));
        viewer.show(&piece(Paint::Bytes, 1));
        assert_eq!(views(&viewer), ["behind"]);
        viewer.show(&piece(Paint::Bytes, 1));
        assert_eq!(
            views(&viewer),
            [""; 0],
            "asked once, nothing before the repaint"
        );
        viewer.show(&piece(Paint::Repaint, VIEW_BYTES_MAX * 2));
        viewer.show(&piece(Paint::Lost, 7));
        assert_eq!(
            views(&viewer),
            ["lost 7"],
            "a newer whole screen takes the place of what waits"
        );
        for _ in 0..=VIEW_PIECES_MAX {
            viewer.show(&piece(Paint::Bytes, 0));
        }
        assert_eq!(views(&viewer), ["behind"]);
    }
}
