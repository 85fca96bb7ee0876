//! The whole store on failing disks. Acknowledged commands survive, others are there completely or
//! not at all, no id is assigned twice, and damage is reported and never returned as data.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod cuts;
mod faults;
mod flips;
