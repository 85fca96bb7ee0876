//! The bounded queue of bytes that others put into the child's input: pastes, and answers to its
//! queries.
//!
//! Any thread may add; only the byte path takes, and only between two keys of the user. What is
//! added is delivered in order and whole, by pieces that leave room for keys, unless the user
//! interrupts it: then all of it is dropped, and what is still on its way here too. The queue is
//! short, because whoever adds has one of its own: it takes one content of any length while less
//! than [`WAITING_BYTES_MAX`] wait, refuses at once beyond that ([`InjectError::Busy`]), and tells
//! when there is room again.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;
use turnkeep_types::broker::ends_paste;

use super::typed::{PASTE_END, PASTE_START};

/// Bytes that wait for the child, from which on no more are taken.
pub const WAITING_BYTES_MAX: usize = 64 << 10;

/// Why bytes were not taken.
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

/// Whether pastes are framed when the child asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// Never: exactly the bytes.
    #[default]
    Plain,
    /// As a bracketed paste, while the child has that mode on.
    Bracketed,
}

#[derive(Debug, Default)]
struct Queue {
    contents: VecDeque<(Framing, Bytes)>,
    bytes: usize,
    ended: bool,
    /// The user has interrupted what was pasted: what still comes of it is dropped.
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
    /// There is room again.
    room: Notify,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the queue so that there may be room again.
    fn ease(&self, change: impl FnOnce(&mut Queue)) {
        let mut queue = self.queue();
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
    framing: Framing,
}

/// A content on its way to the child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) bytes: Bytes,
    /// Whether it stands between the marks of a bracketed paste.
    pub(super) is_framed: bool,
}

/// Takes what was added.
#[derive(Debug)]
pub struct Injected {
    shared: Arc<Shared>,
    bell: PipeReader,
    /// Keeps the bell from hanging up, which could be heard without end, when nobody can inject.
    _ringer: Arc<PipeWriter>,
}

/// A queue, by its two ends, with the framing of everything that asks for none itself.
pub fn inject_queue(framing: Framing) -> io::Result<(Injector, Injected)> {
    let (heard, bell) = io::pipe()?;
    rustix::io::ioctl_fionbio(&heard, true)?;
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
        Injected {
            shared,
            bell: heard,
            _ringer: bell,
        },
    ))
}

impl Injector {
    /// Puts the bytes into the queue. They reach the child after everything that was added before.
    pub fn inject(&self, content: impl Into<Bytes>) -> Result<(), InjectError> {
        self.inject_as(Framing::Plain, content)
    }

    /// The same, framed if either the queue or the caller wants it.
    pub fn inject_as(
        &self,
        framing: Framing,
        content: impl Into<Bytes>,
    ) -> Result<(), InjectError> {
        let content = content.into();
        let framing = if self.framing == Framing::Bracketed {
            self.framing
        } else {
            framing
        };
        if framing == Framing::Bracketed && ends_paste(&content) {
            return Err(InjectError::HoldsPasteEnd);
        }
        let mut queue = self.shared.queue();
        if queue.ended {
            return Err(InjectError::Ended);
        }
        if queue.dropping {
            return Ok(());
        }
        if !queue.has_room() {
            return Err(InjectError::Busy {
                waiting: queue.bytes,
            });
        }
        queue.bytes += content.len();
        queue.contents.push_back((framing, content));
        drop(queue);
        // A full pipe has rung already.
        drop((&*self.bell).write(&[1]));
        Ok(())
    }

    /// Whether the queue takes something now.
    pub fn has_room(&self) -> bool {
        self.shared.queue().has_room()
    }

    /// Whether what comes is dropped, until [`Injector::resume`].
    pub(super) fn is_dropping(&self) -> bool {
        self.shared.queue().dropping
    }

    /// Nothing more comes of what the user has interrupted.
    pub(super) fn resume(&self) {
        self.shared.queue().dropping = false;
    }

    /// Waits until the queue may take something again, or drops what comes.
    pub async fn room(&self) {
        self.shared.room.notified().await;
    }
}

impl Injected {
    /// Where additions can be waited for.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Forgets the ringing.
    pub(super) fn hear(&mut self) {
        drop(self.bell.read(&mut [0; 64]));
    }

    /// Whether something waits.
    pub(super) fn is_waiting(&self) -> bool {
        !self.shared.queue().contents.is_empty()
    }

    /// The next content, framed if the child is in `bracketed` mode and framing is wanted. It
    /// counts as waiting until [`Injected::written`].
    pub(super) fn take(&self, bracketed: bool) -> Option<Content> {
        let (framing, content) = self.shared.queue().contents.pop_front()?;
        let is_framed = bracketed && framing == Framing::Bracketed;
        let bytes = if is_framed {
            [PASTE_START, &*content, PASTE_END].concat().into()
        } else {
            content
        };
        Some(Content { bytes, is_framed })
    }

    /// So many injected bytes have reached the child.
    pub(super) fn written(&self, bytes: usize) {
        self.shared
            .ease(|queue| queue.bytes = queue.bytes.saturating_sub(bytes));
    }

    /// Drops everything that waits, here and on its way: the user has interrupted it.
    pub(super) fn forget(&self) {
        self.shared.ease(|queue| {
            *queue = Queue {
                ended: queue.ended,
                dropping: true,
                ..Queue::default()
            }
        });
    }
}

impl Drop for Injected {
    fn drop(&mut self) {
        self.shared.ease(|queue| {
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
        let (injector, injected) = inject_queue(Framing::Plain).unwrap();
        let long = 16 << 20;
        injector.inject(vec![b'x'; long]).unwrap();
        let busy = InjectError::Busy { waiting: long };
        assert_eq!(injector.inject(b"y".to_vec()), Err(busy));
        assert_eq!(
            injected.take(false).map(|content| content.bytes.len()),
            Some(long)
        );
        assert_eq!(
            injector.inject(b"y".to_vec()),
            Err(busy),
            "taken, but not yet written"
        );
        injected.written(long - WAITING_BYTES_MAX + 1);
        assert!(injector.has_room());
        assert_eq!(injector.inject(vec![b'y'; WAITING_BYTES_MAX]), Ok(()));
        assert!(!injector.has_room());
        injected.forget();
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
        let check = |framing: Framing, mode: bool, expect: &[u8]| {
            let (injector, injected) = inject_queue(framing).unwrap();
            injector.inject(b"text".to_vec()).unwrap();
            let taken = injected.take(mode).unwrap();
            assert_eq!(
                (&*taken.bytes, taken.is_framed),
                (expect, expect != b"text"),
                "{framing:?} {mode}"
            );
        };
        check(Framing::Plain, true, b"text");
        check(Framing::Plain, false, b"text");
        check(Framing::Bracketed, false, b"text");
        check(Framing::Bracketed, true, b"\x1b[200~text\x1b[201~");
    }

    #[test]
    fn content_that_could_leave_its_frame_is_refused() {
        let content = b"a\x1b[201~rm".to_vec();
        let (plain, _injected) = inject_queue(Framing::Plain).unwrap();
        assert_eq!(plain.inject(content.clone()), Ok(()));
        let (framed, _injected) = inject_queue(Framing::Bracketed).unwrap();
        assert_eq!(framed.inject(content), Err(InjectError::HoldsPasteEnd));
    }
}
