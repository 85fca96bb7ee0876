//! The log as its users see it: what was acked is there after whatever happened, bit for bit; what
//! is damaged is named; nothing else is ever served.

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
