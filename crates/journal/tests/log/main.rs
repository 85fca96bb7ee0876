//! The log through its public functions. Acknowledged frames survive every fault unchanged, damage
//! is reported, and no reader ever sees other bytes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod arbitrary;
mod committer;
mod damage;
mod faults;
mod import;
mod lock;
mod reopen;
mod space;
mod support;
mod sync_policy;
mod torn;
