//! The emulated screen, and the text that is gathered from it as it scrolls away.
//!
//! [`Screen`] turns bytes into rows. [`Gatherer`] compares its frames and keeps the rows that leave
//! the top. [`TextRules`] say, as data, which of those rows are the assistant's words. Use:
//!
//! ```text
//! screen.feed(bytes, |screen| gatherer.apply_frame(screen));   // each whole frame
//! gatherer.begin_turn(&screen);                                // at the submit, before its output
//! let gathered = gatherer.text(Ending::Complete);              // at the boundary
//! ```
//!
//! Everything has a limit: long strings are cut before the emulator, scrolled rows that no caller
//! collected are dropped (the gatherer then reports `incomplete`), and a turn has a largest number
//! of bytes. No bytes make this module fail.

mod align;
mod emulator;
mod extract;
mod gather;
mod mirror;
mod presets;
mod row;
mod rules;
mod sequence_filter;

#[cfg(test)]
mod tests;

pub use emulator::{CellPosition, SCROLLED_ROWS_MAX, Screen, Size};
pub use extract::Ending;
pub use gather::{GATHERED_BYTES_MAX, Gathered, Gatherer, Submitted};
pub use mirror::Mirror;
pub use row::{CellStyle, Colour, Row};
pub use rules::{Begin, Hidden, Look, Mark, Rewrite, RulesError, TextRules};
pub use sequence_filter::STRING_BYTES_MAX;
