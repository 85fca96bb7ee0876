//! Tells the child that the pipe in front of the wrapper has ended, by the end-of-file control
//! character.
//!
//! Where the terminal collects lines, the character ends an empty line; text before it needs it
//! twice. A program that reads keys itself receives it as a key, and one that is written before the
//! program switches modes is lost. So it is sent when everything before it was read, and again,
//! less and less often, for as long as the child runs: every reader of an ended pipe learns that it
//! has ended.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::termios::{LocalModes, SpecialCodeIndex};

use super::mode::unread_bytes;

/// How often the child's terminal is checked.
pub(super) const END_PAUSE: Duration = Duration::from_millis(20);
/// The pause before it is sent again; it doubles up to the last.
const AGAIN_FIRST: Duration = Duration::from_millis(250);
const AGAIN_LAST: Duration = Duration::from_secs(5);

/// The control character for end of input where the terminal defines none.
const END_OF_INPUT: u8 = 0x04;

/// The end of the input, and how it was sent so far.
#[derive(Debug)]
pub(super) struct EndOfInput {
    in_line: bool,
    /// Whether the terminal collected lines when the character was last sent.
    sent_by_lines: Option<bool>,
    again_at: Option<Instant>,
    pause: Duration,
}

impl EndOfInput {
    /// Creates the end of an input whose last byte was `last`.
    pub(super) fn new(last: Option<u8>) -> Self {
        let in_line = last.is_some_and(|byte| byte != b'\n');
        Self {
            in_line,
            sent_by_lines: None,
            again_at: None,
            pause: AGAIN_FIRST,
        }
    }

    /// The bytes to send the child now, if any are due.
    pub(super) fn next_bytes(&mut self, now: Instant, master: &OwnedFd) -> Option<Vec<u8>> {
        let settings = rustix::termios::tcgetattr(master).ok()?;
        let lines = settings.local_modes.contains(LocalModes::ICANON);
        // The mode has changed, so the last character may be lost: send it again at once.
        if self.sent_by_lines != Some(lines) {
            self.again_at = None;
        }
        if self.again_at.is_some_and(|at| now < at) || (!lines && unread_bytes(master) > 0) {
            return None;
        }
        self.sent_by_lines = Some(lines);
        self.again_at = Some(now + self.pause);
        self.pause = (self.pause * 2).min(AGAIN_LAST);
        let end = settings.special_codes[SpecialCodeIndex::VEOF];
        let end = if lines && end != 0 { end } else { END_OF_INPUT };
        // The first character only ends the unfinished line, the second one the input.
        let count = 1 + usize::from(lines && std::mem::take(&mut self.in_line));
        Some(vec![end; count])
    }
}
