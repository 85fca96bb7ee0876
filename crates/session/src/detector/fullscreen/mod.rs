//! Finds the turns of a full-screen program that no profile describes.
//!
//! A program is full-screen when it shows the alternate screen, or repaints the main one around an
//! input area, before anything was submitted to it. A shell never qualifies: its first prompt, or
//! the first line that is entered, makes it a line program for the rest of the session, whatever
//! runs in it later.
//!
//! Worked example, with the rows that matter:
//!
//! ```text
//!  2.0 s  idle      ────────────          the cursor is behind `❯ `: that is the empty input area
//!                   ❯
//!                   ────────────
//!  2.4 s  typed     ❯ Name a colour.      the text appears there: Enter will submit it
//!  3.0 s  Enter     > Name a colour.      a turn opens; rows above the area are now compared
//!                   ⠋ Working 1s          ticks three times: a spinner
//!                   ❯
//!  4.1 s            > Name a colour.      the spinner is gone and the area is empty …
//!                   ● Red.
//!                   ❯
//!  4.7 s  boundary                        … and nothing has moved for 600 ms. The text is `Red.`
//! ```
//!
//! Without a spinner the screen must rest for 1.5 s, which is longer than a timer takes to tick. A
//! dialog that replaces the area, or a draft that stays in it, completes nothing. A program that
//! reports its state (OSC 7501, or the marks B and C of OSC 133) is believed instead of its screen.
//! It needs no input area that can be learned: the transcript then ends above the cursor. No bytes
//! make this fail, and everything kept has a limit.

mod answer;
mod area;
mod footer;
mod input;
mod inspect;
mod motion;
mod output;

use super::event::{Detection, Event, Signal, State, TtyMode};
use super::keys::KeyParser;
use super::raw_output::RawOutput;
use super::signals::ReportedState;
use super::typed_line::TypedLine;
use crate::screen::{Gatherer, Screen, Size};
use crate::sequence::Tokenizer;
use area::{FoundArea, InputArea, is_painted_below};
use footer::Footer;
use motion::Motion;
use std::collections::HashSet;
use std::time::Duration;

/// How many bytes wait for the screen; more are painted in pieces of this size.
const PENDING_BYTES_MAX: usize = 64 * 1024;

/// How long the screen must rest before a turn ends whose spinner is gone.
const REST_AFTER_SPINNER: Duration = Duration::from_millis(600);

/// How long the screen must rest otherwise: longer than a timer that counts seconds.
const REST: Duration = Duration::from_millis(1500);

/// How long to wait for the words of an answer before the turn is given up.
const WORDS_WAIT_MAX: Duration = Duration::from_secs(4);

/// How long a ready status must hold, and how long the output gets to end after it.
const STATUS_HOLD: Duration = Duration::from_millis(50);
const STATUS_QUIET: Duration = Duration::from_millis(70);
const STATUS_QUIET_MAX: Duration = Duration::from_millis(250);

/// How long the input area must be missing before its replacement counts as a dialog.
const DIALOG_HOLD: Duration = Duration::from_millis(500);

/// How long a program may go on after Esc and still count as stopped by it.
const STOP_MAX: Duration = Duration::from_millis(1500);

/// How long the area must be empty before a draft counts as erased.
const ERASED_HOLD: Duration = Duration::from_millis(300);

/// How long the screen must rest before a new draft shows that the answer is over.
const REST_BEFORE_DRAFT: Duration = Duration::from_millis(500);

/// How many repaints of the main screen make a program full-screen.
const REPAINTS_MIN: u32 = 3;

/// How many rows above the input area may belong to it.
const STICKY_ROWS_MAX: usize = 4;

/// How many such rows are remembered in all.
const STICKY_MAX: usize = 64;

/// The delay between output and inspection, so that all bytes of one moment are painted first.
const INSPECT_DELAY: Duration = Duration::from_millis(1);

/// The kind of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramKind {
    /// Neither kind is proved yet.
    Undecided,
    /// The program paints the whole screen: its turns are found here.
    FullScreen,
    /// The program reads lines: the line rule finds its turns.
    LineProgram,
}

/// The phase of the session.
#[derive(Debug)]
enum Phase {
    /// No empty input area was seen yet.
    Starting,
    /// Nothing is submitted.
    Idle,
    Open(OpenTurn),
}

/// A turn that is not complete.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is seen by itself")]
struct OpenTurn {
    start: Duration,
    /// The typed text, where the keys show it.
    asked: Option<String>,
    /// The typed text was seen in the input area.
    echoed: bool,
    /// The input area was empty after the submit, so the program took the text.
    taken: bool,
    /// The program reported that it works …
    said_working: bool,
    /// … and its reports are known to change, so they count more than its screen.
    reported: bool,
    /// A mark of OSC 133 showed the prompt at the submit. Some programs mark each row of their
    /// transcript instead, which shows nothing about their state.
    marked: bool,
    interrupted: bool,
    escaped_at: Option<Duration>,
    incomplete: bool,
    /// The rows right above the input area at the submit.
    above: Vec<String>,
    /// The rows that stay there were separated from the transcript.
    sorted: bool,
    /// The screen rests, and nothing was said.
    silent: bool,
    /// The signal by which the program was ready, while the turn waits for its words.
    ready_by: Option<Signal>,
}

/// The text that the user is typing.
#[derive(Debug, Default)]
struct Draft {
    typed: TypedLine,
    /// The text was seen in the input area.
    echoed: bool,
    key_at: Duration,
}

/// The last state that the program reported, by OSC 7501 or by the marks of OSC 133.
#[derive(Debug, Default)]
struct StatusReport {
    state: Option<ReportedState>,
    /// The source of the report; `None` before the first one.
    signal: Option<Signal>,
    /// The program reported `idle`, not `done`: it was stopped.
    stopped: bool,
    /// The source has reported ready once. One that has not may be stuck.
    was_ready: bool,
    at: Duration,
}

/// Finds the turns of a program that paints the whole screen.
pub(super) struct FullScreen {
    now: Duration,
    screen: Screen,
    pending: Vec<u8>,
    tokens: Tokenizer,
    keys: KeyParser,
    tty: Option<TtyMode>,
    kind: ProgramKind,
    repaints: u32,
    title: Vec<u8>,
    report: StatusReport,
    draft: Draft,
    area: Option<InputArea>,
    found_area: Option<FoundArea>,
    area_lost_at: Duration,
    /// The rows around the input area while the program is idle.
    footer: Footer,
    motion: Motion,
    gatherer: Option<Gatherer>,
    /// Rows above the input area that are not part of the transcript.
    sticky: HashSet<String>,
    output_at: Duration,
    inspect_at: Option<Duration>,
    phase: Phase,
    state: State,
    signal: Option<Signal>,
    raw: Option<RawOutput>,
    out: Vec<Detection>,
}

impl FullScreen {
    pub(super) fn new(size: Size) -> Self {
        Self {
            now: Duration::ZERO,
            screen: Screen::new(size),
            pending: Vec::new(),
            tokens: Tokenizer::new(),
            keys: KeyParser::new(),
            tty: None,
            kind: ProgramKind::Undecided,
            repaints: 0,
            title: Vec::new(),
            report: StatusReport::default(),
            draft: Draft::default(),
            area: None,
            found_area: None,
            area_lost_at: Duration::ZERO,
            footer: Footer::default(),
            motion: Motion::default(),
            gatherer: None,
            sticky: HashSet::new(),
            output_at: Duration::ZERO,
            inspect_at: None,
            phase: Phase::Starting,
            state: State::Starting,
            signal: None,
            raw: None,
            out: Vec::new(),
        }
    }

    /// Keeps up to `bytes_max` bytes of the program's output beside each turn.
    pub(super) fn keep_raw(&mut self, bytes_max: usize) {
        self.raw = Some(RawOutput::new(bytes_max));
    }

    pub(super) fn kind(&self) -> ProgramKind {
        self.kind
    }

    /// Whether nothing is painted below the cursor, as in a line program.
    pub(super) fn ends_at_cursor(&mut self) -> bool {
        // The waiting bytes must be on the screen before the cursor's place means anything.
        self.paint();
        !is_painted_below(&self.screen, &self.screen.rows())
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    pub(super) fn signal(&self) -> Option<Signal> {
        self.signal
    }

    pub(super) fn held_bytes(&self) -> usize {
        let raw = self.raw.as_ref().map_or(0, RawOutput::held_bytes);
        self.pending.len() + self.draft.typed.held_bytes() + self.title.len() + raw
    }

    /// When the next tick is due.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match (self.keys.deadline(), self.inspect_at) {
            (Some(keys), Some(inspection)) => Some(keys.min(inspection)),
            (keys, inspection) => keys.or(inspection),
        }
    }

    /// Applies an event. The result counts only for a program that is known to be full-screen.
    pub(super) fn feed(&mut self, now: Duration, event: Event<'_>) -> Vec<Detection> {
        self.advance(now.max(self.now));
        match event {
            Event::Output(bytes) => self.handle_output(bytes),
            Event::Input(bytes) => self.handle_input(bytes),
            Event::TtyMode(mode) => self.note_tty_mode(mode),
            Event::Resize(size) => self.handle_resize(size),
            Event::Interrupt => self.handle_interrupt(),
            Event::Gap => self.handle_gap(),
            Event::Tick => {}
        }
        std::mem::take(&mut self.out)
    }

    fn advance(&mut self, now: Duration) {
        if now > self.now {
            self.paint();
        }
        while let Some(due) = self.deadline().filter(|due| *due <= now) {
            self.now = due.max(self.now);
            if let Some(key) = self.keys.expire(self.now) {
                self.handle_key(key);
            }
            if self.inspect_at.is_some_and(|at| at <= self.now) {
                self.inspect_at = None;
                self.inspect();
            }
        }
        self.now = now;
    }

    fn inspect_by(&mut self, at: Duration) {
        self.inspect_at = Some(self.inspect_at.map_or(at, |earlier| earlier.min(at)));
    }

    fn note_tty_mode(&mut self, mode: TtyMode) {
        self.tty = Some(mode);
    }

    fn handle_resize(&mut self, size: Size) {
        self.paint();
        self.screen.resize(size);
        self.motion.title_changed(self.now);
        self.inspect_by(self.now + INSPECT_DELAY);
    }

    fn handle_gap(&mut self) {
        self.paint();
        self.screen.reset();
        self.tokens = Tokenizer::new();
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.note_gap();
        }
        if let Phase::Open(open) = &mut self.phase {
            open.incomplete = true;
        }
    }
}

/// Whether the text in the input area is the typed text, or a part that scrolled. A paste may be
/// shown in another form, so any text counts for it.
fn is_echo(typed: Option<&[u8]>, shown: &str) -> bool {
    let Some(typed) = typed
        .map(String::from_utf8_lossy)
        .filter(|_| !shown.is_empty())
    else {
        return false;
    };
    typed.contains('\n')
        || typed.trim_start().starts_with(shown)
        || typed.trim_end().ends_with(shown)
}

/// The row with its digits masked, because counters change while the row stays.
fn mask_digits(row: &str) -> String {
    row.chars()
        .map(|c| if c.is_numeric() { '0' } else { c })
        .collect()
}

#[cfg(test)]
mod tests;
