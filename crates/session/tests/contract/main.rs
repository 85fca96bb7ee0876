//! What a turn is, rule by rule, on byte streams.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod ahead;
mod boundaries;
mod content;
mod cuts;
mod faults;
mod keys;
mod play;
mod prompts;
mod screens;
mod shells;
