//! Large bytes while they arrive: a frame of the binary port, a body of HTTP.
//!
//! The buffer takes the address space of the whole from the start, so that it never moves. It takes
//! memory only for pages that were written, and only as far as its permit covers them. The permit
//! grows by doubling, so a peer that declares much and sends little holds little.

use bytes::Bytes;
use turnkeep_store::{LargeBuffer, ReadError};

use super::{LARGE_FROM_BYTES, MemoryBudget, MemoryPermit};
use crate::error::ApiError;

/// Large bytes, of which some have arrived.
#[derive(Debug)]
pub(crate) struct ArrivingBytes {
    buffer: LargeBuffer,
    filled: usize,
    /// How far bytes may arrive under the permit. It may be further than the permit's own size,
    /// because a request that needs more than the budget goes on when it has all of it.
    covered: usize,
    permit: Option<MemoryPermit>,
}

/// The permit that is needed before more bytes may arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WantedPermit {
    held_bytes: usize,
    bytes: usize,
    covers: usize,
}

impl WantedPermit {
    /// Acquires it, if the budget has it now.
    pub(crate) fn try_acquire(self, budget: &MemoryBudget) -> Option<MemoryPermit> {
        budget.try_acquire_beside(self.held_bytes, self.bytes)
    }

    /// Waits for it.
    pub(crate) fn acquire(
        self,
        budget: &MemoryBudget,
    ) -> impl Future<Output = Result<MemoryPermit, ApiError>> + Send + use<> + 'static {
        budget.acquire_beside(self.held_bytes, self.bytes)
    }
}

impl ArrivingBytes {
    /// Reserves address space for at most `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> Result<Self, ApiError> {
        let buffer =
            LargeBuffer::sparse(bytes_max).map_err(|_| ReadError::NoMemory(bytes_max as u64))?;
        Ok(Self {
            buffer,
            filled: 0,
            covered: 0,
            permit: None,
        })
    }

    /// The bytes that have arrived.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// How many bytes may still arrive.
    pub(crate) fn bytes_left(&self) -> usize {
        self.buffer.len() - self.filled
    }

    /// Whether all bytes have arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.filled == self.buffer.len()
    }

    /// The permit that `more` bytes need; `None` if the present one covers them.
    pub(crate) fn wanted(&self, more: usize) -> Option<WantedPermit> {
        let whole = self.buffer.len();
        let needed = self.filled.saturating_add(more).min(whole);
        if needed <= self.covered {
            return None;
        }
        let held_bytes = self.permit.as_ref().map_or(0, MemoryPermit::bytes);
        // Doubling keeps the number of waits small, and the start keeps the first wait useful.
        let covers = needed
            .max(2 * self.filled)
            .max(2 * LARGE_FROM_BYTES)
            .min(whole);
        Some(WantedPermit {
            held_bytes,
            bytes: covers.saturating_sub(held_bytes),
            covers,
        })
    }

    /// Adds the permit that was wanted.
    pub(crate) fn cover(&mut self, wanted: WantedPermit, permit: MemoryPermit) {
        self.covered = self.covered.max(wanted.covers);
        match &mut self.permit {
            Some(held) => held.merge(permit),
            None => self.permit = Some(permit),
        }
    }

    /// Where the next bytes go, as far as the permit covers them.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled..self.covered]
    }

    /// Says that `bytes` of the space were written.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.filled = (self.filled + bytes).min(self.covered);
    }

    /// Appends bytes for which [`Self::wanted`] asked.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.space()[..bytes.len()].copy_from_slice(bytes);
        self.advance(bytes.len());
    }

    /// The bytes that have arrived. They hold the permit as long as they live.
    pub(crate) fn finish(mut self) -> Bytes {
        self.buffer.truncate(self.filled);
        match self.permit {
            Some(permit) => permit.hold(self.buffer),
            None => self.buffer.into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn arrive(arriving: &mut ArrivingBytes, bytes: usize, budget: &MemoryBudget) {
        if let Some(wanted) = arriving.wanted(bytes) {
            arriving.cover(wanted, wanted.try_acquire(budget).unwrap());
        }
        arriving.append(&vec![7; bytes]);
    }

    #[test]
    fn the_permit_follows_what_has_come() {
        let budget = MemoryBudget::new(64 << 20, Duration::from_secs(1));
        let mut arriving = ArrivingBytes::new(32 << 20).unwrap();
        for _ in 0..20 {
            arrive(&mut arriving, 1 << 20, &budget);
            let (come, used) = (arriving.filled().len(), budget.used_bytes());
            assert!(
                used >= come && used <= 2 * come && !arriving.is_complete(),
                "{used} for {come}"
            );
        }
        let bytes = arriving.finish();
        assert_eq!((bytes.len(), &bytes[..2]), (20 << 20, &[7, 7][..]));
        drop(bytes);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn what_is_larger_than_the_budget_arrives_when_it_has_all_of_it() {
        let budget = MemoryBudget::new(1 << 20, Duration::from_secs(1));
        let mut arriving = ArrivingBytes::new(3 << 20).unwrap();
        for _ in 0..3 {
            arrive(&mut arriving, 1 << 20, &budget);
        }
        assert!(arriving.is_complete() && budget.used_bytes() == budget.total_bytes());
    }
}
