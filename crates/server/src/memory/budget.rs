//! The memory budget and its permits.
//!
//! Invariant: the permits in use never add up to more than the budget. A request that needs more
//! than the whole budget gets all of it, so that nothing is refused for its size alone and no
//! request waits for itself. Waiting requests are served in their order and give up after a fixed
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnkeep_store::{Command, LargeBuffer, ReadError};
use turnkeep_wire::ErrorCode;

use crate::error::ApiError;

/// The unit in which the budget is counted: a page of memory.
const UNIT_BYTES: usize = 4 << 10;

/// How much memory large requests and answers may hold together; clones share it.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    free: Arc<Semaphore>,
    units: usize,
    wait_max: Duration,
    waiting: Arc<AtomicUsize>,
}

/// A part of the budget, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryPermit(OwnedSemaphorePermit);

impl MemoryBudget {
    /// A budget of `bytes`, for which a request waits no longer than `wait_max`.
    pub(crate) fn new(bytes: usize, wait_max: Duration) -> Self {
        let units = (bytes / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self {
            free: Arc::new(Semaphore::new(units)),
            units,
            wait_max,
            waiting: Arc::default(),
        }
    }

    /// The whole budget in bytes.
    pub(crate) fn total_bytes(&self) -> usize {
        self.units * UNIT_BYTES
    }

    /// Bytes that permits hold now.
    pub fn used_bytes(&self) -> usize {
        (self.units - self.free.available_permits()) * UNIT_BYTES
    }

    /// Requests that wait for a permit now.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A permit for `bytes`, if the budget has them now.
    pub(crate) fn try_acquire(&self, bytes: usize) -> Option<MemoryPermit> {
        self.try_acquire_beside(0, bytes)
    }

    /// Like [`Self::try_acquire`], for a request that already holds `held_bytes` of the budget.
    pub(crate) fn try_acquire_beside(
        &self,
        held_bytes: usize,
        bytes: usize,
    ) -> Option<MemoryPermit> {
        let units = self.units_beside(held_bytes, bytes);
        Arc::clone(&self.free)
            .try_acquire_many_owned(units)
            .ok()
            .map(MemoryPermit)
    }

    /// Like [`Self::try_acquire`], with the error for the caller.
    pub(crate) fn acquire_now(&self, bytes: usize) -> Result<MemoryPermit, ApiError> {
        self.acquire_now_beside(0, bytes)
    }

    /// Like [`Self::acquire_now`], for a request that already holds `held_bytes` of the budget.
    pub(crate) fn acquire_now_beside(
        &self,
        held_bytes: usize,
        bytes: usize,
    ) -> Result<MemoryPermit, ApiError> {
        self.try_acquire_beside(held_bytes, bytes)
            .ok_or_else(too_busy)
    }

    /// Waits for a permit for `bytes`.
    pub(crate) fn acquire(
        &self,
        bytes: usize,
    ) -> impl Future<Output = Result<MemoryPermit, ApiError>> + Send + use<> + 'static {
        self.acquire_beside(0, bytes)
    }

    /// Like [`Self::acquire`], for a request that already holds `held_bytes` of the budget. It must
    /// not wait for these bytes, because only itself could free them.
    pub(crate) fn acquire_beside(
        &self,
        held_bytes: usize,
        bytes: usize,
    ) -> impl Future<Output = Result<MemoryPermit, ApiError>> + Send + use<> + 'static {
        let units = self.units_beside(held_bytes, bytes);
        let acquire = Arc::clone(&self.free).acquire_many_owned(units);
        let (wait_max, waiting) = (self.wait_max, Waiting::new(&self.waiting));
        async move {
            let acquired = tokio::time::timeout(wait_max, acquire).await;
            drop(waiting);
            match acquired {
                Ok(Ok(permit)) => Ok(MemoryPermit(permit)),
                Ok(Err(_)) | Err(_) => Err(too_busy()),
            }
        }
    }

    fn units_beside(&self, held_bytes: usize, bytes: usize) -> u32 {
        // More than this can never become free while the request waits.
        let others = self.units.saturating_sub(held_bytes.div_ceil(UNIT_BYTES));
        let units = bytes.div_ceil(UNIT_BYTES).min(others);
        u32::try_from(units).unwrap_or(u32::MAX)
    }
}

/// Counts a request while it waits.
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn too_busy() -> ApiError {
    let message = "too many large requests are under way: try again in a moment";
    ApiError::new(ErrorCode::TooManyRequests, message)
}

impl MemoryPermit {
    /// Bytes that the permit stands for.
    pub(crate) fn bytes(&self) -> usize {
        self.0.num_permits() * UNIT_BYTES
    }

    /// Adds another permit of the same budget to this one.
    pub(crate) fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
    }

    /// Takes a part for `bytes` out of the permit, or as much as is left of it.
    pub(crate) fn split(&mut self, bytes: usize) -> Option<Self> {
        let units = bytes.div_ceil(UNIT_BYTES).min(self.0.num_permits());
        self.0.split(units).map(Self)
    }

    /// Does work under the permit, which is free again when the work is done.
    pub(crate) fn during<T>(self, work: impl FnOnce() -> T) -> T {
        let done = work();
        drop(self);
        done
    }

    /// Makes a command under the permit. The part for the bytes that the command brings beyond what
    /// its caller sent stays with those bytes until they are written; the rest is free again.
    pub(crate) fn during_command(
        mut self,
        make: impl FnOnce() -> Result<Command, ApiError>,
    ) -> Result<Command, ApiError> {
        // If this fails, the whole permit is free again.
        let mut command = make()?;
        for blob in command.blobs_mut() {
            if blob.made_bytes() > 0
                && let Some(part) = self.split(blob.made_bytes())
            {
                blob.keep_with_bytes(part);
            }
        }
        Ok(command)
    }

    /// Copies bytes that were made under the permit, so that their own memory is freed where it was
    /// made (see [`LargeBuffer`]). The copy keeps its part of the permit; the rest is free again.
    pub(crate) fn hold_copy(mut self, made: impl AsRef<[u8]>) -> Result<Bytes, ApiError> {
        let bytes = made.as_ref().len();
        let copy =
            LargeBuffer::copy_of(made.as_ref()).map_err(|_| ReadError::NoMemory(bytes as u64))?;
        drop(made);
        Ok(match self.split(bytes) {
            Some(part) => part.hold(copy),
            None => copy.into_bytes(),
        })
    }

    /// Bytes that keep the permit as long as any part of them lives.
    pub(crate) fn hold(self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        Bytes::from_owner(HeldBytes {
            bytes,
            _permit: self,
        })
    }
}

/// Bytes with their permit. Fields are dropped in order, so the bytes go first.
struct HeldBytes<B> {
    bytes: B,
    _permit: MemoryPermit,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for HeldBytes<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT_MAX: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_request_that_gets_no_permit_in_time_is_told_to_come_back() {
        let budget = MemoryBudget::new(4 * UNIT_BYTES, WAIT_MAX);
        let held: Vec<_> = (0..4).map(|_| budget.try_acquire(1).unwrap()).collect();
        assert!(budget.try_acquire(1).is_none());
        let waits = budget.acquire(1);
        assert_eq!(budget.waiting(), 1);
        assert_eq!(waits.await.unwrap_err().code, ErrorCode::TooManyRequests);
        assert_eq!(budget.waiting(), 0);
        drop(budget.acquire(1));
        assert_eq!(
            budget.waiting(),
            0,
            "a request that was cancelled waits no more"
        );
        drop(held);
        assert!(budget.acquire(1).await.is_ok());
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn a_permit_is_as_large_as_its_bytes_and_never_larger_than_the_budget() {
        let budget = MemoryBudget::new(40 * UNIT_BYTES, WAIT_MAX);
        let check = |bytes, used| {
            let permit = budget.try_acquire(bytes).unwrap();
            assert_eq!(
                (budget.used_bytes(), permit.bytes()),
                (used, used),
                "{bytes}"
            );
        };
        check(0, 0);
        check(1, UNIT_BYTES);
        check(3 * UNIT_BYTES, 3 * UNIT_BYTES);
        check(39 * UNIT_BYTES, 39 * UNIT_BYTES);
        check(usize::MAX, 40 * UNIT_BYTES);
    }

    #[test]
    fn a_request_never_waits_for_what_it_holds_itself() {
        let budget = MemoryBudget::new(10 * UNIT_BYTES, WAIT_MAX);
        let mut frame = budget.try_acquire(7 * UNIT_BYTES).unwrap();
        assert!(budget.try_acquire(8 * UNIT_BYTES).is_none());
        let rest = budget
            .try_acquire_beside(frame.bytes(), 8 * UNIT_BYTES)
            .unwrap();
        assert_eq!(
            (rest.bytes(), budget.used_bytes()),
            (3 * UNIT_BYTES, budget.total_bytes())
        );
        assert_eq!(budget.try_acquire_beside(usize::MAX, 1).unwrap().bytes(), 0);
        frame.merge(rest);
        assert_eq!(frame.split(2 * UNIT_BYTES).unwrap().bytes(), 2 * UNIT_BYTES);
        assert_eq!(
            (frame.bytes(), budget.used_bytes()),
            (8 * UNIT_BYTES, 8 * UNIT_BYTES)
        );
    }

    #[test]
    fn what_a_command_made_keeps_its_part_until_the_bytes_are_gone() {
        let budget = MemoryBudget::new(16 << 20, WAIT_MAX);
        let make = |bytes: Vec<u8>| {
            let permit = budget.try_acquire(4 << 20).unwrap();
            let blob = turnkeep_store::NewBlob::from_raw(bytes.into(), 8 << 20);
            permit
                .during_command(|| Ok(Command::PutBlob(blob?)))
                .unwrap()
        };
        let command = make((0..300_000_u32).flat_map(u32::to_le_bytes).collect());
        let kept = budget.used_bytes();
        assert!(kept > 0 && kept < 2 << 20, "{kept}");
        drop(command);
        assert_eq!(budget.used_bytes(), 0);
        assert!(
            budget
                .try_acquire(1)
                .unwrap()
                .during_command(|| Err(too_busy()))
                .is_err()
        );
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn a_copy_keeps_only_the_part_that_it_needs() {
        let budget = MemoryBudget::new(40 * UNIT_BYTES, WAIT_MAX);
        let permit = budget.try_acquire(30 * UNIT_BYTES).unwrap();
        let copy = permit.hold_copy(vec![7; 2 * UNIT_BYTES]).unwrap();
        assert_eq!(
            (copy.len(), budget.used_bytes()),
            (2 * UNIT_BYTES, copy.len())
        );
        drop(copy);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn a_permit_lives_as_long_as_its_bytes() {
        let budget = MemoryBudget::new(40 * UNIT_BYTES, WAIT_MAX);
        let bytes = budget
            .try_acquire(5 * UNIT_BYTES)
            .unwrap()
            .hold(vec![7; 100]);
        let part = bytes.slice(10..20);
        drop(bytes);
        assert_eq!(
            (budget.used_bytes(), &part[..2]),
            (5 * UNIT_BYTES, &[7, 7][..])
        );
        drop(part);
        assert_eq!(budget.used_bytes(), 0);
    }
}
