//! Turns terminal bytes into turns and keeps them. Values in, values out, no I/O.
//!
//! - [`detector`]: when a turn began, when it is complete, what it said.
//! - [`screen`]: the emulated screen, and the text that is gathered from it as it scrolls away.
//! - [`broker`]: sessions, their rings of completed turns, the relay buffer.

pub mod broker;
pub mod detector;
mod pattern;
pub mod screen;
mod sequence;
