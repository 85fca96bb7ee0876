//! What large requests and answers of all connections, on both ports, may hold in memory together.
//!
//! Whatever is smaller than [`LARGE_FROM_BYTES`] is bounded by its connection; whatever is larger
//! takes [`Room`] for as long as its bytes live. Room is taken for bytes that are there or are about to
//! be made, never for what a peer declares. Who gets none in time is told to come back, so that nobody
//! who holds on to room stops the others for longer than that; a single piece takes at most a quarter
//! of all, so that nobody waits for itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnkeep_wire::ErrorCode;

use crate::error::ApiError;

/// From this size on, something takes room and its work leaves the runtime's thread.
pub(crate) const LARGE_FROM_BYTES: usize = 256 << 10;
/// The unit in which room is counted.
const UNIT_BYTES: usize = 4 << 10;
/// How many pieces of the largest size there is room for at least.
const PIECES_MIN: usize = 4;

/// Room for what is large, shared by both ports.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    free: Arc<Semaphore>,
    units: usize,
    patience: Duration,
}

/// A part of that room, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Room(OwnedSemaphorePermit);

impl Memory {
    /// Room for `bytes_max`, waited for as long as `patience`.
    pub(crate) fn new(bytes_max: usize, patience: Duration) -> Self {
        let units = (bytes_max / UNIT_BYTES).clamp(PIECES_MIN, Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(units)), units, patience }
    }

    /// Bytes that are held now.
    pub(crate) fn held(&self) -> usize {
        (self.units - self.free.available_permits()) * UNIT_BYTES
    }

    /// Room for `bytes`, if there is some now.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Room> {
        Arc::clone(&self.free).try_acquire_many_owned(self.share(bytes)).ok().map(Room)
    }

    /// The same, with word for the caller when there is none.
    pub(crate) fn take_now(&self, bytes: usize) -> Result<Room, ApiError> {
        self.try_take(bytes).ok_or_else(busy)
    }

    /// Room for `bytes`, or word that none came in time. Nothing is refused for its size alone.
    pub(crate) fn take(
        &self,
        bytes: usize,
    ) -> impl Future<Output = Result<Room, ApiError>> + Send + use<> + 'static {
        let acquire = Arc::clone(&self.free).acquire_many_owned(self.share(bytes));
        let patience = self.patience;
        async move {
            match tokio::time::timeout(patience, acquire).await {
                Ok(Ok(permit)) => Ok(Room(permit)),
                Ok(Err(_)) | Err(_) => Err(busy()),
            }
        }
    }

    /// What `room` lacks for `bytes`; none when it suffices.
    pub(crate) fn lacking(&self, room: Option<&Room>, bytes: usize) -> Option<usize> {
        let (share, held) = (self.share(bytes) as usize, room.map_or(0, |Room(permit)| permit.num_permits()));
        share.checked_sub(held).filter(|units| *units > 0).map(|units| units * UNIT_BYTES)
    }

    fn share(&self, bytes: usize) -> u32 {
        let units = bytes.div_ceil(UNIT_BYTES).min(self.units / PIECES_MIN);
        u32::try_from(units).unwrap_or(u32::MAX)
    }
}

fn busy() -> ApiError {
    let message = "too many large requests are under way: try again in a moment";
    ApiError::new(ErrorCode::TooManyRequests, message)
}

impl Room {
    /// Two rooms as one.
    pub(crate) fn joined(mut self, other: Option<Self>) -> Self {
        if let Some(Self(other)) = other {
            self.0.merge(other);
        }
        self
    }

    /// Does work within the room, which is free again when it is done.
    pub(crate) fn during<T>(self, work: impl FnOnce() -> T) -> T {
        let done = work();
        drop(self);
        done
    }

    /// Bytes that keep the room as long as any part of them lives.
    pub(crate) fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(Held { bytes, _room: self })
    }
}

struct Held<B> {
    bytes: B,
    _room: Room,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn who_gets_no_room_in_time_is_told_to_come_back() {
        let memory = Memory::new(4 * UNIT_BYTES, PATIENCE);
        let held: Vec<_> = (0..4).map(|_| memory.try_take(1).unwrap()).collect();
        assert!(memory.try_take(1).is_none());
        assert_eq!(memory.take(1).await.unwrap_err().code, ErrorCode::TooManyRequests);
        drop(held);
        assert!(memory.take(1).await.is_ok());
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn no_piece_takes_more_than_a_quarter() {
        let memory = Memory::new(40 * UNIT_BYTES, PATIENCE);
        let check = |bytes, held| {
            let room = memory.try_take(bytes);
            assert!(room.is_some());
            assert_eq!(memory.held(), held, "{bytes}");
        };
        check(1, UNIT_BYTES);
        check(3 * UNIT_BYTES, 3 * UNIT_BYTES);
        check(usize::MAX, 10 * UNIT_BYTES);
    }

    #[test]
    fn room_grows_by_what_it_lacks_and_lives_as_long_as_its_bytes() {
        let memory = Memory::new(40 * UNIT_BYTES, PATIENCE);
        assert_eq!(memory.lacking(None, 2 * UNIT_BYTES), Some(2 * UNIT_BYTES));
        let room = memory.try_take(2 * UNIT_BYTES).unwrap();
        assert_eq!(memory.lacking(Some(&room), 2 * UNIT_BYTES), None);
        assert_eq!(memory.lacking(Some(&room), 5 * UNIT_BYTES), Some(3 * UNIT_BYTES));
        let room = room.joined(memory.try_take(3 * UNIT_BYTES));
        let bytes = room.hold(vec![7; 100]);
        let part = bytes.slice(10..20);
        drop(bytes);
        assert_eq!((memory.held(), &part[..2]), (5 * UNIT_BYTES, &[7, 7][..]));
        drop(part);
        assert_eq!(memory.held(), 0);
    }
}
