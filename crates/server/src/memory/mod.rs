//! What large requests and answers of all connections, on both ports, may hold in memory together.
//!
//! Whatever is smaller than [`LARGE_FROM_BYTES`] is bounded by its connection. Whatever is larger
//! holds a
//! [`MemoryPermit`] for as long as its bytes live, and keeps its bytes in a
//! [`LargeBuffer`](turnkeep_store::LargeBuffer), so that the memory goes back to the system together with
//! the permit. A request takes the permit before it unpacks, copies or reads anything, for bytes
//! that are there or are about to be made, never for what a peer declares. A request that gets no
//! permit in time is answered by 429, so a slow holder stops others for no longer than that.

mod arriving;
mod budget;

pub(crate) use arriving::{ArrivingBytes, WantedPermit};
pub use budget::MemoryBudget;
pub(crate) use budget::MemoryPermit;

/// From this size on, something counts against the budget and its work leaves the runtime's thread.
pub(crate) const LARGE_FROM_BYTES: usize = turnkeep_store::MAPPED_FROM_BYTES;
