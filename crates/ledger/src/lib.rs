//! The ledger: one shared history of a world that its people can cite, never rewrite, and never see
//! more of than they may.
//!
//! A world is a deterministic state: facts go in through [`World::apply`], and every answer is read
//! from a [`View`], which is a world as one reader may see it at one position. Nothing here does I/O,
//! reads a clock or draws a random number: the edge brings the time and the ids.

pub mod search;
pub mod teamworld;
