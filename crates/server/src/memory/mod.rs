//! The memory budget: how much memory the large requests and answers of all connections may use
//! together.
//!
//! Each connection bounds what is smaller than [`LARGE_FROM_BYTES`]. Larger bytes need a
//! [`MemoryPermit`] as long as they live. They are kept in a
//! [`LargeBuffer`](turnkeep_store::LargeBuffer), so the memory goes back to the system together
//! with the permit.
//!
//! A request takes the permit before it unpacks, copies or reads anything. The permit is for bytes
//! that have arrived or are about to be made, never for a length that a peer declares. A request
//! that gets no permit in time is answered with 429, so a slow holder delays others no longer than
//! that.

mod arriving;
mod budget;

pub(crate) use arriving::{ArrivingBytes, WantedPermit};
pub use budget::MemoryBudget;
pub(crate) use budget::MemoryPermit;

/// From this size on, something counts against the budget and its work leaves the runtime's thread.
pub(crate) const LARGE_FROM_BYTES: usize = turnkeep_store::MAPPED_FROM_BYTES;
