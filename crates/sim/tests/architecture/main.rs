//! The house as it is drawn: arrows between crates, what core may use, licences, and rules on
//! sources.
//!
//! `cargo metadata` and the sources themselves are the input, so a forbidden arrow fails here the
//! day that it is drawn.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod arrows;
mod licences;
mod metadata;
mod sources;
