//! The emulated screen, and the text that is gathered from it as it scrolls away.
