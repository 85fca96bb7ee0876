//! The bounded queue of bytes that others put into the child's input: pastes, and answers to its queries.
//!
//! Any thread may add; only the byte path takes, and only between two keys of the user. What is added is
//! delivered whole and in order. A full queue refuses at once ([`InjectError::Busy`]) and never waits.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use turnkeep_types::broker::INJECT_BYTES_MAX;
use turnkeep_types::broker::ends_paste;

use super::typed::PASTE_END;

/// Why bytes were not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InjectError {
    /// The child does not read as fast as it is written to.
    #[error("{waiting} bytes wait for the program already, {bytes} more are above {INJECT_BYTES_MAX}")]
    Busy {
        /// Bytes in the queue.
        waiting: usize,
        /// Bytes that were to be added.
        bytes: usize,
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
    contents: VecDeque<(Framing, Vec<u8>)>,
    bytes: usize,
    ended: bool,
}

/// Adds to the child's input.
#[derive(Debug, Clone)]
pub struct Injector {
    queue: Arc<Mutex<Queue>>,
    bell: Arc<PipeWriter>,
    framing: Framing,
}

/// Takes what was added.
#[derive(Debug)]
pub struct Injected {
    queue: Arc<Mutex<Queue>>,
    bell: PipeReader,
    /// Keeps the bell from hanging up, which could be heard without end, when nobody can inject.
    _ringer: Arc<PipeWriter>,
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A queue, by its two ends, with the framing of everything that asks for none itself.
pub fn inject_queue(framing: Framing) -> io::Result<(Injector, Injected)> {
    let (heard, bell) = io::pipe()?;
    rustix::io::ioctl_fionbio(&heard, true)?;
    rustix::io::ioctl_fionbio(&bell, true)?;
    let queue = Arc::new(Mutex::new(Queue::default()));
    let bell = Arc::new(bell);
    let injector = Injector { queue: queue.clone(), bell: bell.clone(), framing };
    Ok((injector, Injected { queue, bell: heard, _ringer: bell }))
}

impl Injector {
    /// Puts the bytes into the queue. They reach the child after everything that was added before.
    pub fn inject(&self, content: Vec<u8>) -> Result<(), InjectError> {
        self.inject_as(Framing::Plain, content)
    }

    /// The same, framed if either the queue or the caller wants it.
    pub fn inject_as(&self, framing: Framing, content: Vec<u8>) -> Result<(), InjectError> {
        let framing = if self.framing == Framing::Bracketed { self.framing } else { framing };
        if framing == Framing::Bracketed && ends_paste(&content) {
            return Err(InjectError::HoldsPasteEnd);
        }
        let mut queue = lock(&self.queue);
        if queue.ended {
            return Err(InjectError::Ended);
        }
        if queue.bytes + content.len() > INJECT_BYTES_MAX {
            return Err(InjectError::Busy { waiting: queue.bytes, bytes: content.len() });
        }
        queue.bytes += content.len();
        queue.contents.push_back((framing, content));
        drop(queue);
        // A full pipe has rung already.
        drop((&*self.bell).write(&[1]));
        Ok(())
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
        !lock(&self.queue).contents.is_empty()
    }

    /// The next content, framed if the child is in `bracketed` mode and framing is wanted. It counts as
    /// waiting until [`Injected::written`].
    pub(super) fn take(&self, bracketed: bool) -> Option<Vec<u8>> {
        let (framing, content) = lock(&self.queue).contents.pop_front()?;
        if bracketed && framing == Framing::Bracketed {
            return Some([b"\x1b[200~", &*content, PASTE_END].concat());
        }
        Some(content)
    }

    /// So many injected bytes have reached the child.
    pub(super) fn written(&self, bytes: usize) {
        let mut queue = lock(&self.queue);
        queue.bytes = queue.bytes.saturating_sub(bytes);
    }
}

impl Drop for Injected {
    fn drop(&mut self) {
        *lock(&self.queue) = Queue { ended: true, ..Queue::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_refuses_until_bytes_have_reached_the_child() {
        let (injector, injected) = inject_queue(Framing::Plain).unwrap();
        injector.inject(vec![b'x'; INJECT_BYTES_MAX]).unwrap();
        let busy = InjectError::Busy { waiting: INJECT_BYTES_MAX, bytes: 1 };
        assert_eq!(injector.inject(b"y".to_vec()), Err(busy));
        assert_eq!(injected.take(false).map(|content| content.len()), Some(INJECT_BYTES_MAX));
        assert_eq!(injector.inject(b"y".to_vec()), Err(busy), "taken, but not yet written");
        injected.written(1);
        assert_eq!(injector.inject(b"y".to_vec()), Ok(()));
        drop(injected);
        assert_eq!(injector.inject(b"z".to_vec()), Err(InjectError::Ended));
    }

    #[test]
    fn only_a_child_in_paste_mode_gets_a_frame_and_only_when_wanted() {
        let check = |framing: Framing, mode: bool, expect: &[u8]| {
            let (injector, injected) = inject_queue(framing).unwrap();
            injector.inject(b"text".to_vec()).unwrap();
            assert_eq!(injected.take(mode).as_deref(), Some(expect), "{framing:?} {mode}");
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
