//! The architecture as tests: dependencies between crates, what the core may use, licences, and
//! rules on sources.
//!
//! The input is `cargo metadata` and the sources, so a forbidden dependency fails at once.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod arrows;
mod licences;
mod metadata;
mod sources;
