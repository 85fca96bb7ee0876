//! How a child in a terminal learns that the pipe in front of the wrapper has ended: by the control
//! character.
//!
//! A line that the terminal collects ends by it once, once more if text stands before it. A program
//! that reads keys itself takes it for a key, and one that is written while the terminal still
//! collects lines is lost when the program switches. So it is sent when everything before it was
//! read, and again, more and more rarely, for as long as the child runs: a pipe that has ended says
//! so to everyone who reads it.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::termios::{LocalModes, SpecialCodeIndex};

use super::mode::unread;

/// How often the child's terminal is looked at.
pub(super) const END_PAUSE: Duration = Duration::from_millis(20);
/// The pause before it is told again; it doubles up to the last.
const AGAIN_FIRST: Duration = Duration::from_millis(250);
const AGAIN_LAST: Duration = Duration::from_secs(5);

/// The control character that means end of input where a terminal says nothing else.
const END_OF_INPUT: u8 = 0x04;

/// The end of the input, as far as it has been told.
#[derive(Debug)]
pub(super) struct EndOfInput {
    in_line: bool,
    /// Whether the terminal collected lines when it was told last.
    told_lines: Option<bool>,
    again_at: Option<Instant>,
    pause: Duration,
}

impl EndOfInput {
    /// The input ended after this byte.
    pub(super) fn new(last: Option<u8>) -> Self {
        let in_line = last.is_some_and(|byte| byte != b'\n');
        Self {
            in_line,
            told_lines: None,
            again_at: None,
            pause: AGAIN_FIRST,
        }
    }

    /// What the child is to be sent now.
    pub(super) fn due(&mut self, now: Instant, master: &OwnedFd) -> Option<Vec<u8>> {
        let settings = rustix::termios::tcgetattr(master).ok()?;
        let lines = settings.local_modes.contains(LocalModes::ICANON);
        if self.told_lines != Some(lines) {
            self.again_at = None;
        }
        if self.again_at.is_some_and(|at| now < at) || (!lines && unread(master) > 0) {
            return None;
        }
        self.told_lines = Some(lines);
        self.again_at = Some(now + self.pause);
        self.pause = (self.pause * 2).min(AGAIN_LAST);
        let end = settings.special_codes[SpecialCodeIndex::VEOF];
        let end = if lines && end != 0 { end } else { END_OF_INPUT };
        let count = 1 + usize::from(lines && std::mem::take(&mut self.in_line));
        Some(vec![end; count])
    }
}
