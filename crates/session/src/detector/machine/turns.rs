//! Opens turns at a submit and completes them at a prompt.
//!
//! [`Phase`] is the one place that knows whether a turn is open. A turn that says nothing visible
//! is dropped, not returned, unless its words may have been missed: bytes are missing, or the
//! rules do not know the rows below its prompt.

use super::super::event::{Detection, Signal, State, Turn};
use super::super::raw_output::RawOutput;
use super::super::render::render;
use super::super::stream_content::{EchoMode, FinishedContent, StreamContent};
use super::super::typed_line::TypedLine;
use super::Detector;
use super::type_ahead::QueuedLine;
use crate::pattern::matches_optional;
use crate::screen::Ending;
use crate::sequence::strip_sequences;
use std::collections::VecDeque;
use std::time::Duration;

/// How long a program may work on after Esc in a dialog and still count as ending the turn. Without
/// it, a rejected tool call that the program goes on after would look interrupted.
const ENDING_MAX: Duration = Duration::from_millis(500);

/// The phase of the session.
#[derive(Debug)]
pub(super) enum Phase {
    /// No prompt was seen yet: dialogs and banners belong to no turn. Lines may wait for the first
    /// prompt.
    Starting(VecDeque<QueuedLine>),
    /// A prompt was seen and nothing is submitted.
    Idle,
    /// A submitted input is not completed yet.
    Open(OpenTurn),
}

/// A turn that is not complete.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is seen by itself")]
pub(super) struct OpenTurn {
    start: Duration,
    /// The program was seen working on the turn.
    busy: bool,
    /// A row of the screen showed that work.
    pub(super) rows_busy: bool,
    /// The prompt was on the screen at the submit.
    prompted: bool,
    /// The number of line feeds since the submit.
    pub(super) line_feeds: u64,
    /// The program wants the rest of the input.
    pub(super) continuing: bool,
    /// The submit was an Enter that was typed before the last boundary.
    by_queue: bool,
    /// The lines that were entered while the turn was open.
    pub(super) queued: VecDeque<QueuedLine>,
    /// The user typed Ctrl-C or sent SIGINT.
    pub(super) interrupted: bool,
    /// How often the user pressed Esc.
    pub(super) escapes: u8,
    /// The lowest row that confirmed an interruption before Esc was pressed. Only a lower one
    /// counts.
    pub(super) interrupt_row: Option<usize>,
    /// The user pressed Esc in a dialog.
    pub(super) rejected: bool,
    /// When the program was first seen working after that Esc.
    works_since: Option<Duration>,
    /// When the program was seen working on the prompt that was queued behind this one.
    pub(super) handed_over: Option<Duration>,
    incomplete: bool,
    /// The submitted line is a command of the program's own, which the assistant need not answer.
    is_command: bool,
    /// The submitted line is a command that never makes a turn, whatever the program prints for it.
    makes_no_turn: bool,
    /// The user submitted nothing: the program began to work by itself.
    pub(super) unprompted: bool,
}

impl OpenTurn {
    /// Whether a missing prompt was replaced by something else in mid-turn, such as a dialog.
    pub(super) fn is_replaced(&self) -> bool {
        self.prompted && self.busy
    }

    /// Notes an Esc. In a dialog it rejects what the dialog asks for.
    pub(super) fn note_escape(&mut self, in_dialog: bool) {
        if in_dialog {
            (self.rejected, self.works_since) = (true, None);
        }
    }

    /// Whether the turn ended because its dialog was rejected: the program worked on for at most
    /// the moment that it takes to end.
    fn is_rejected(&self, ready_at: Duration) -> bool {
        let worked = self
            .works_since
            .map_or(Duration::ZERO, |since| ready_at.saturating_sub(since));
        self.rejected && worked < ENDING_MAX
    }

    /// Whether an Enter from before the last boundary opened the turn and nothing has come for it
    /// yet.
    pub(super) fn is_unanswered_queue(&self) -> bool {
        self.by_queue && self.line_feeds == 0
    }
}

impl Phase {
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    pub(super) fn is_starting(&self) -> bool {
        matches!(self, Self::Starting(_))
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    pub(super) fn is_queued(&self) -> bool {
        matches!(self, Self::Open(open) if !open.queued.is_empty() && open.busy)
    }

    pub(super) fn open_mut(&mut self) -> Option<&mut OpenTurn> {
        match self {
            Self::Open(open) => Some(open),
            Self::Starting(_) | Self::Idle => None,
        }
    }

    /// The lines that wait for a prompt; `None` where the prompt is already shown.
    pub(super) fn queued_mut(&mut self) -> Option<&mut VecDeque<QueuedLine>> {
        match self {
            Self::Starting(queued) => Some(queued),
            Self::Idle => None,
            Self::Open(open) => Some(&mut open.queued),
        }
    }

    /// Notes that the program was seen working.
    pub(super) fn note_busy(&mut self) {
        if let Self::Open(open) = self {
            open.busy = true;
        }
    }

    /// Notes that the program works after Esc in a dialog: the dialog may not have ended the turn.
    pub(super) fn note_work_after_reject(&mut self, now: Duration) {
        if let Self::Open(open) = self
            && open.rejected
        {
            open.works_since.get_or_insert(now);
        }
    }

    /// Counts a line feed.
    pub(super) fn line_feed(&mut self) {
        if let Self::Open(open) = self {
            open.line_feeds += 1;
        }
    }

    /// Whether Enter submits: at a prompt, or again before the program took up the last Enter.
    ///
    /// A program that shows its work is known to have taken it up when it works; others show it by
    /// a line feed. A stream takes up every line, so a second Enter before that is only early.
    pub(super) fn takes_submit(&self, shows_working: bool, is_stream: bool) -> bool {
        match self {
            Self::Starting(_) => false,
            Self::Idle => true,
            Self::Open(open) if open.continuing => true,
            Self::Open(open) if shows_working => !open.busy,
            Self::Open(open) => open.line_feeds == 0 && (open.by_queue || !is_stream),
        }
    }

    /// Whether the program did something for the turn, as far as this kind of signal can show it.
    pub(super) fn is_answered(&self, signal: Signal) -> bool {
        let Self::Open(open) = self else { return false };
        match signal {
            // These signals show work, so a turn without work was never answered.
            Signal::Status | Signal::Title | Signal::Rows => open.busy,
            // Line programs show no work; their first line feed is the answer's beginning.
            Signal::Marks | Signal::Tty | Signal::Paste | Signal::Line => open.line_feeds > 0,
        }
    }
}

impl Detector {
    /// Opens a turn with a submit at this time.
    pub(super) fn open_turn(&mut self, start: Duration, typed: &TypedLine, by_queue: bool) {
        let line = self.submitted_line(typed);
        let is_command = matches_optional(self.profile.command.as_ref(), &line);
        let makes_no_turn = matches_optional(self.profile.no_turn.as_ref(), &line);
        self.phase = Phase::Open(OpenTurn {
            start,
            by_queue,
            is_command,
            makes_no_turn,
            ..OpenTurn::default()
        });
        self.signals.note_submit();
        // What was ready before the submit must not complete the turn.
        self.ready = None;
        if self.is_stream() {
            self.begin_stream_content(typed);
            self.enter_state(State::Working);
        } else if let Some(screen) = self
            .screen
            .as_mut()
            .filter(|screen| !by_queue || !screen.is_open())
        {
            screen.begin_turn(typed, is_command);
        }
        self.note_visible_prompt();
        if let Some(raw) = &mut self.raw {
            raw.clear();
        }
    }

    fn begin_stream_content(&mut self, typed: &TypedLine) {
        let echo_mode = EchoMode {
            line_editor: self.tty.is_some_and(|mode| !mode.canonical),
            until_paste_off: self.signals.paste == Some(true) && self.profile.prompt.is_some(),
        };
        self.content
            .begin(self.line.offset, typed, self.line.bytes(), echo_mode);
    }

    /// Notes whether the prompt is on the screen at the submit.
    fn note_visible_prompt(&mut self) {
        let boxed = self
            .profile
            .rows
            .as_ref()
            .is_some_and(|rows| rows.edge.is_some());
        // Only a prompt in a box can be missed reliably: its edge shows that something replaced it.
        let prompted = boxed && self.read_signs().ready;
        if let Some(open) = self.phase.open_mut() {
            open.prompted = prompted;
        }
    }

    /// Opens a turn although nothing was submitted, such as when a background task ended. Its text
    /// is followed like a turn, so that an Enter meanwhile waits for its end.
    pub(super) fn open_unprompted(&mut self) {
        let Some(screen) = self.screen.as_mut() else {
            return;
        };
        screen.begin_turn(&TypedLine::default(), false);
        self.phase = Phase::Open(OpenTurn {
            start: self.now,
            unprompted: true,
            busy: true,
            ..OpenTurn::default()
        });
        if let Some(raw) = &mut self.raw {
            raw.clear();
        }
    }

    /// Handles a prompt: the first one makes the session ready, another completes a turn.
    pub(super) fn prompt_seen(&mut self, signal: Signal, end: u64) {
        self.signal = Some(signal);
        match &self.phase {
            Phase::Starting(_) => self.complete_turn(signal, end),
            Phase::Idle => self.enter_state(State::Ready),
            Phase::Open(_) if self.phase.is_answered(signal) => self.complete_turn(signal, end),
            // The prompt is back and nothing was printed for the queued line, so an earlier program
            // read it.
            Phase::Open(open) if open.is_unanswered_queue() && !self.shows_working() => {
                self.discard_taken_line();
            }
            Phase::Open(_) => {}
        }
    }

    /// Drops a turn whose queued line was read by an earlier program: the prompt rests without its
    /// echo.
    fn discard_taken_line(&mut self) {
        self.phase = Phase::Idle;
        self.content = StreamContent::new();
        self.typed.note_prompt();
        self.enter_state(State::Ready);
    }

    /// Completes the turn, or the start of the program, and opens the turn of a line that waited
    /// for that.
    pub(super) fn complete_turn(&mut self, signal: Signal, end: u64) {
        let (detection, queued) = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Starting(queued) => (Some(Detection::Ready), queued),
            Phase::Idle => return,
            Phase::Open(open) => {
                let turn = if self.is_stream() {
                    self.stream_turn(&open, signal, end)
                } else {
                    self.screen_turn(&open, signal)
                };
                (
                    turn.map(|turn| Detection::Turn(Box::new(turn))),
                    open.queued,
                )
            }
        };
        self.out.extend(detection);
        self.signal = Some(signal);
        self.ready = None;
        self.enter_state(State::Ready);
        // Text typed so far was typed before this prompt.
        self.typed.note_prompt();
        self.open_queued(queued);
    }

    pub(super) fn enter_state(&mut self, state: State) {
        if self.state != state {
            self.state = state;
            self.out.push(Detection::State(state));
        }
    }

    pub(super) fn mark_incomplete(&mut self) {
        if let Phase::Open(open) = &mut self.phase {
            open.incomplete = true;
        }
    }

    /// Builds the turn of a stream; `None` when it shows nothing. A truncated turn counts as
    /// visible, since its discarded bytes may be.
    fn stream_turn(&mut self, open: &OpenTurn, signal: Signal, end: u64) -> Option<Turn> {
        let FinishedContent {
            bytes: content,
            truncated,
        } = self.content.finish(end);
        self.content = StreamContent::new();
        // Only escape sequences and blanks are no answer.
        let is_seen = truncated || strip_sequences(&content).contains(|c: char| !c.is_whitespace());
        is_seen.then(|| Turn {
            text: render(&content),
            content,
            raw: None,
            raw_truncated: false,
            truncated,
            interrupted: open.interrupted,
            incomplete: open.incomplete,
            unprompted: false,
            signal,
            start: open.start,
            end: self.now,
        })
    }

    /// Builds the turn of a screen; `None` when the assistant said nothing in it. Where the text
    /// could not be followed, an empty text proves nothing: the turn is kept and marked incomplete.
    fn screen_turn(&mut self, open: &OpenTurn, signal: Signal) -> Option<Turn> {
        let interrupted = self.was_interrupted(open, signal);
        let ending = Ending::new(interrupted);
        let hands_over = open.handed_over.is_some();
        let gathered = self.screen.as_mut().map(|screen| {
            if hands_over {
                screen.hand_over(ending)
            } else {
                screen.finish_turn(ending)
            }
        })?;
        let raw = self.raw.as_mut().map(RawOutput::take_kept);
        let is_empty = gathered.text.trim().is_empty();
        // In these cases silence is normal, so an empty text is no lost one.
        let may_be_empty = interrupted || open.is_command || open.unprompted || gathered.followed;
        if open.makes_no_turn || (is_empty && may_be_empty) {
            return None;
        }
        Some(Turn {
            content: gathered.text.clone().into_bytes(),
            text: gathered.text,
            raw_truncated: raw.as_ref().is_some_and(|raw| raw.truncated),
            raw: raw.map(|raw| raw.bytes),
            truncated: false,
            interrupted,
            incomplete: open.incomplete || gathered.incomplete || is_empty,
            unprompted: open.unprompted,
            signal,
            start: open.start,
            // The turn ended when the next one began, not when its last words were painted.
            end: open.handed_over.unwrap_or(self.now),
        })
    }

    /// Whether the user interrupted the turn. Ctrl-C always does; Esc does where it is the
    /// program's key for it and the program confirms it.
    fn was_interrupted(&mut self, open: &OpenTurn, signal: Signal) -> bool {
        let Some(rule) = &self.profile.interrupt else {
            return open.interrupted;
        };
        let rejected = open.is_rejected(self.ready.map_or(self.now, |since| since.at));
        if open.interrupted || rejected || open.escapes < rule.escapes {
            return open.interrupted || rejected;
        }
        // A program with a status confirms by `idle` instead of `done`, so no row is needed.
        if signal == Signal::Status {
            return self.signals.idle;
        }
        let row = self.screen.as_mut().and_then(|screen| {
            screen.paint();
            screen.interrupt_row(&self.profile)
        });
        // The row from an earlier interruption may still be visible: only a lower one is new.
        row > open.interrupt_row
    }
}
