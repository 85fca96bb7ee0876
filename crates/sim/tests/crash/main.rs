//! The whole store on disks that fail: what was acked survives, what was not is there wholly or not
//! at all, no id is given twice, and damage is named and never served.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod cuts;
mod faults;
mod flips;
