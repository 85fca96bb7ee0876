//! The limited queue of bytes that others put into the child's input: pastes.
//!
//! Any thread may add; only the byte path reads, and only between two keys of the user. Each
//! content is delivered in order and whole, in pieces that leave room for keys, unless the user
//! interrupts: then all of it is dropped, including content still on its way here. The queue is
//! short, because the senders have queues of their own. It accepts one content of any length while
//! less than [`WAITING_BYTES_MAX`] wait, rejects at once beyond that ([`InjectError::Busy`]), and
//! notifies when there is room again.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;
use turnkeep_types::broker::ends_paste;

use super::key_boundary::{PASTE_END, PASTE_START};

/// How many bytes may wait for the child before no more are accepted.
pub const WAITING_BYTES_MAX: usize = 64 << 10;

/// The reason why bytes were rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InjectError {
    /// The child does not read as fast as it is written to.
    #[error("{waiting} bytes wait for the program already")]
    Busy {
        /// Bytes in the queue.
        waiting: usize,
    },
    /// The content could leave its bracketed paste.
    #[error("the content holds the end mark of a bracketed paste")]
    HoldsPasteEnd,
    /// The child has ended.
    #[error("the program has ended")]
    Ended,
}

/// Whether pastes are framed when the child has bracketed paste on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PasteFraming {
    /// Never: exactly the bytes.
    #[default]
    Plain,
    /// As a bracketed paste, while the child has that mode on.
    Bracketed,
}

#[derive(Debug)]
struct QueuedPaste {
    framing: PasteFraming,
    content: Bytes,
}

#[derive(Debug, Default)]
struct Queue {
    contents: VecDeque<QueuedPaste>,
    bytes: usize,
    ended: bool,
    /// The user has interrupted the pastes: the rest of them is dropped as it comes.
    dropping: bool,
}

impl Queue {
    fn has_room(&self) -> bool {
        self.bytes < WAITING_BYTES_MAX
    }
}

/// What both ends share.
#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Notified when there is room again.
    room: Notify,
}

impl Shared {
    fn lock_queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the queue and notifies if there is room afterwards.
    fn free_space(&self, change: impl FnOnce(&mut Queue)) {
        let mut queue = self.lock_queue();
        change(&mut queue);
        let has_room = queue.has_room();
        drop(queue);
        if has_room {
            self.room.notify_one();
        }
    }
}

/// Adds to the child's input.
#[derive(Debug, Clone)]
pub struct Injector {
    shared: Arc<Shared>,
    bell: Arc<PipeWriter>,
    framing: PasteFraming,
}

/// A content on its way to the child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PasteContent {
    pub(super) bytes: Bytes,
    /// Whether it is between the marks of a bracketed paste.
    pub(super) is_framed: bool,
}

/// The reading end of the queue, for the byte path.
#[derive(Debug)]
pub struct InjectReceiver {
    shared: Arc<Shared>,
    bell: PipeReader,
    /// Keeps the pipe from hanging up when all injectors are gone, which would wake the poll for
    /// ever.
    _keep_open: Arc<PipeWriter>,
}

/// Creates a queue, with the framing of content that requests none itself.
pub fn inject_queue(framing: PasteFraming) -> io::Result<(Injector, InjectReceiver)> {
    let (wake_reader, bell) = io::pipe()?;
    rustix::io::ioctl_fionbio(&wake_reader, true)?;
    rustix::io::ioctl_fionbio(&bell, true)?;
    let shared = Arc::<Shared>::default();
    let bell = Arc::new(bell);
    let injector = Injector {
        shared: shared.clone(),
        bell: bell.clone(),
        framing,
    };
    Ok((
        injector,
        // A pipe without a writer is readable for ever. The receiver keeps one, so that `poll` still
        // rests when the last injector is gone.
        InjectReceiver {
            shared,
            bell: wake_reader,
            _keep_open: bell,
        },
    ))
}

impl Injector {
    /// Queues the bytes behind everything that was added before.
    pub fn inject(&self, content: impl Into<Bytes>) -> Result<(), InjectError> {
        self.inject_as(PasteFraming::Plain, content)
    }

    /// Queues the bytes, framed if either the queue or the caller requests it.
    pub fn inject_as(
        &self,
        framing: PasteFraming,
        content: impl Into<Bytes>,
    ) -> Result<(), InjectError> {
        let content = content.into();
        let framing = if self.framing == PasteFraming::Bracketed {
            self.framing
        } else {
            framing
        };
        // Text behind an end mark would be typed, and could run commands.
        if framing == PasteFraming::Bracketed && ends_paste(&content) {
            return Err(InjectError::HoldsPasteEnd);
        }
        let mut queue = self.shared.lock_queue();
        if queue.ended {
            return Err(InjectError::Ended);
        }
        // Accepted and dropped: the sender cannot know that the user has interrupted.
        if queue.dropping {
            return Ok(());
        }
        if !queue.has_room() {
            return Err(InjectError::Busy {
                waiting: queue.bytes,
            });
        }
        queue.bytes += content.len();
        queue.contents.push_back(QueuedPaste { framing, content });
        drop(queue);
        // A full pipe wakes the byte path anyway.
        drop((&*self.bell).write(&[1]));
        Ok(())
    }

    /// Whether the queue accepts something now.
    pub fn has_room(&self) -> bool {
        self.shared.lock_queue().has_room()
    }

    /// Whether new content is dropped, until [`Injector::resume`].
    pub(super) fn is_dropping(&self) -> bool {
        self.shared.lock_queue().dropping
    }

    /// Accepts content again: the interrupted pastes have all come.
    pub(super) fn resume(&self) {
        self.shared.lock_queue().dropping = false;
    }

    /// Waits until the queue may accept something again, or drops what comes.
    pub async fn wait_for_room(&self) {
        self.shared.room.notified().await;
    }
}

impl InjectReceiver {
    /// The descriptor that becomes readable when something is added.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Empties the wake-up pipe.
    pub(super) fn clear_wake(&mut self) {
        drop(self.bell.read(&mut [0; 64]));
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.shared.lock_queue().contents.is_empty()
    }

    /// The next content, framed if the child is in `bracketed` mode and framing is requested. It
    /// counts as waiting until [`InjectReceiver::note_written`].
    pub(super) fn next_paste(&self, bracketed: bool) -> Option<PasteContent> {
        let QueuedPaste { framing, content } = self.shared.lock_queue().contents.pop_front()?;
        let is_framed = bracketed && framing == PasteFraming::Bracketed;
        let bytes = if is_framed {
            [PASTE_START, &*content, PASTE_END].concat().into()
        } else {
            content
        };
        Some(PasteContent { bytes, is_framed })
    }

    /// Notes that this many injected bytes have reached the child.
    pub(super) fn note_written(&self, bytes: usize) {
        self.shared
            .free_space(|queue| queue.bytes = queue.bytes.saturating_sub(bytes));
    }

    /// Drops everything that waits, here and on its way, because the user has interrupted it.
    pub(super) fn drop_all(&self) {
        self.shared.free_space(|queue| {
            *queue = Queue {
                ended: queue.ended,
                dropping: true,
                ..Queue::default()
            }
        });
    }
}

impl Drop for InjectReceiver {
    fn drop(&mut self) {
        self.shared.free_space(|queue| {
            *queue = Queue {
                ended: true,
                ..Queue::default()
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_refuses_until_bytes_have_reached_the_child() {
        let (injector, injected) = inject_queue(PasteFraming::Plain).unwrap();
        let long = 16 << 20;
        injector.inject(vec![b'x'; long]).unwrap();
        let busy = InjectError::Busy { waiting: long };
        assert_eq!(injector.inject(b"y".to_vec()), Err(busy));
        assert_eq!(
            injected
                .next_paste(false)
                .map(|content| content.bytes.len()),
            Some(long)
        );
        assert_eq!(
            injector.inject(b"y".to_vec()),
            Err(busy),
            "taken, but not yet written"
        );
        injected.note_written(long - WAITING_BYTES_MAX + 1);
        assert!(injector.has_room());
        assert_eq!(injector.inject(vec![b'y'; WAITING_BYTES_MAX]), Ok(()));
        assert!(!injector.has_room());
        injected.drop_all();
        assert_eq!((injector.has_room(), injected.is_waiting()), (true, false));
        assert_eq!(
            (injector.inject(b"z".to_vec()), injected.is_waiting()),
            (Ok(()), false),
            "on its way"
        );
        injector.resume();
        assert_eq!(
            (injector.inject(b"z".to_vec()), injected.is_waiting()),
            (Ok(()), true)
        );
        drop(injected);
        assert_eq!(injector.inject(b"z".to_vec()), Err(InjectError::Ended));
    }

    #[test]
    fn only_a_child_in_paste_mode_gets_a_frame_and_only_when_wanted() {
        let check = |framing: PasteFraming, mode: bool, expect: &[u8]| {
            let (injector, injected) = inject_queue(framing).unwrap();
            injector.inject(b"text".to_vec()).unwrap();
            let taken = injected.next_paste(mode).unwrap();
            assert_eq!(
                (&*taken.bytes, taken.is_framed),
                (expect, expect != b"text"),
                "{framing:?} {mode}"
            );
        };
        check(PasteFraming::Plain, true, b"text");
        check(PasteFraming::Plain, false, b"text");
        check(PasteFraming::Bracketed, false, b"text");
        check(PasteFraming::Bracketed, true, b"\x1b[200~text\x1b[201~");
    }

    #[test]
    fn content_that_could_leave_its_frame_is_refused() {
        let content = b"a\x1b[201~rm".to_vec();
        let (plain, _injected) = inject_queue(PasteFraming::Plain).unwrap();
        assert_eq!(plain.inject(content.clone()), Ok(()));
        let (framed, _injected) = inject_queue(PasteFraming::Bracketed).unwrap();
        assert_eq!(framed.inject(content), Err(InjectError::HoldsPasteEnd));
    }
}
