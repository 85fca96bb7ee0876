//! The emulated screen, and the text that is gathered from it as it scrolls away.
//!
//! [`Screen`] turns bytes into rows; [`Gatherer`] compares its frames and keeps what leaves the
//! top; [`TextRules`] say, as data, which of those rows are the assistant's words. Use:
//!
//! ```text
//! screen.feed(bytes, |screen| gatherer.frame(screen));   // each whole frame
//! gatherer.begin(&screen);                               // at the submit, before its output
//! let said = gatherer.text(Ending::Complete);            // at the boundary
//! ```
//!
//! Everything is bounded: strings are cut before the emulator, rows that nobody collected are
//! dropped (and the gatherer then says `incomplete`), and a turn has a largest number of rows.
//! Nothing here fails on any bytes.

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
