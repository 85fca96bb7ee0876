//! The queue of a subscription's frames, from the connection to the reader.
//!
//! The queue has limits in frames and in payload bytes. The connection never waits for it: a frame
//! that does not fit is rejected. Invariant: an empty queue accepts any one frame, so a reader that
//! resumes after every rejection still makes progress.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use turnkeep_wire::Frame;

/// The connection's end. After it is dropped, the reader gets the queued frames and then `None`.
pub(crate) struct FrameSender {
    frames: mpsc::Sender<QueuedFrame>,
    room: Arc<Semaphore>,
    bytes_max: u32,
}

/// The reader's end.
pub(crate) struct FrameReceiver {
    frames: mpsc::Receiver<QueuedFrame>,
}

/// A frame and its permits of the byte limit.
struct QueuedFrame {
    frame: Frame,
    _room: OwnedSemaphorePermit,
}

/// The frame does not fit, or the reader is gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

/// Makes a queue for this many deliveries and bytes, and one more frame for the acceptance.
pub(crate) fn frame_queue(events_max: usize, bytes_max: usize) -> (FrameSender, FrameReceiver) {
    let bytes_max = u32::try_from(bytes_max).unwrap_or(u32::MAX).max(1);
    let (sender, receiver) = mpsc::channel(events_max.clamp(1, Semaphore::MAX_PERMITS - 1) + 1);
    let room = Arc::new(Semaphore::new(bytes_max as usize));
    (
        FrameSender {
            frames: sender,
            room,
            bytes_max,
        },
        FrameReceiver { frames: receiver },
    )
}

impl FrameSender {
    /// Queues a frame if it fits. Never waits.
    pub(crate) fn try_send(&self, frame: Frame) -> Result<(), QueueFull> {
        // A frame over the limit takes all of it, so an empty queue still accepts it.
        let bytes = frame.header.len.min(self.bytes_max);
        let room = Arc::clone(&self.room)
            .try_acquire_many_owned(bytes)
            .map_err(|_| QueueFull)?;
        self.frames
            .try_send(QueuedFrame { frame, _room: room })
            .map_err(|_| QueueFull)
    }
}

impl FrameReceiver {
    /// Waits for the next frame; `None` after the connection has dropped its end.
    pub(crate) async fn recv(&mut self) -> Option<Frame> {
        self.frames.recv().await.map(|held| held.frame)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use turnkeep_wire::Header;

    use super::*;

    fn frame(bytes: u32) -> Frame {
        let header = Header {
            len: bytes,
            msg_type: 14,
            flags: 0,
            req_id: 1,
        };
        Frame {
            header,
            payload: Bytes::from(vec![0; bytes as usize]),
        }
    }

    /// How many of these frames an empty queue takes, after an acceptance.
    fn check(events_max: usize, bytes_max: usize, sizes: &[u32], expect: usize) {
        let (sender, _receiver) = frame_queue(events_max, bytes_max);
        sender.try_send(frame(0)).unwrap();
        let taken = sizes
            .iter()
            .take_while(|bytes| sender.try_send(frame(**bytes)).is_ok())
            .count();
        assert_eq!(
            taken, expect,
            "{sizes:?} into {events_max} events and {bytes_max} bytes"
        );
    }

    #[test]
    fn a_queue_is_full_by_frames_or_by_bytes_and_takes_at_least_one() {
        check(3, 100, &[10, 10, 10, 10], 3);
        check(9, 100, &[50, 50, 1], 2);
        check(9, 100, &[1000, 1], 1);
        check(9, 100, &[1, 1000], 1);
        check(0, 0, &[1000, 1000], 1);
    }

    #[tokio::test]
    async fn room_comes_back_when_a_frame_is_taken() {
        let (sender, mut receiver) = frame_queue(9, 10);
        sender.try_send(frame(10)).unwrap();
        assert_eq!(sender.try_send(frame(1)), Err(QueueFull));
        assert_eq!(receiver.recv().await, Some(frame(10)));
        sender.try_send(frame(10)).unwrap();
        drop(sender);
        assert_eq!(receiver.recv().await, Some(frame(10)));
        assert_eq!(receiver.recv().await, None);
    }
}
