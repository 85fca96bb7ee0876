//! Reads the input of a full-screen program: keys become submits and interruptions.
//!
//! Enter submits only where an input area is known and holds a draft, or where the program reports
//! its state and text was typed. Enter in a dialog answers it.

use super::super::event::{Detection, Signal, State};
use super::super::keys::Key;
use super::super::signals::ReportedState;
use super::area::InputArea;
use super::footer::{AreaRows, Footer};
use super::output::transcript_end;
use super::{
    Draft, ERASED_HOLD, FullScreen, OpenTurn, Phase, ProgramKind, REST, REST_BEFORE_DRAFT,
    STICKY_ROWS_MAX, answer, mask_digits,
};
use crate::screen::{Gatherer, Row, Submitted};

impl FullScreen {
    pub(super) fn handle_input(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(key) = self.keys.push_byte(self.now, *byte) {
                self.handle_key(key);
            }
        }
    }

    pub(super) fn handle_key(&mut self, key: Key) {
        match key {
            Key::Enter => self.handle_enter(),
            Key::Escape => {
                if let Phase::Open(open) = &mut self.phase {
                    open.escaped_at = Some(self.now);
                }
            }
            Key::Interrupt => {
                self.draft = Draft::default();
                self.handle_interrupt();
            }
            key => self.edit_draft(key),
        }
    }

    pub(super) fn handle_interrupt(&mut self) {
        if let Phase::Open(open) = &mut self.phase {
            open.interrupted = true;
        }
    }

    /// Applies a key to the draft. The first key shows where the empty input area is.
    fn edit_draft(&mut self, key: Key) {
        // Keys in a dialog choose an answer and are no draft.
        if self.state == State::Blocked {
            return;
        }
        let is_text = matches!(key, Key::Text(_) | Key::Pasted(_));
        self.forget_erased_draft();
        if is_text && !self.draft.typed.has_text() {
            self.paint();
            self.complete_before_draft();
            self.learn_area();
        }
        self.draft.typed.apply_key(key);
        self.draft.key_at = self.now;
    }

    pub(super) fn area_rows(&self) -> Option<AreaRows> {
        self.found_area.as_ref().map(|area| AreaRows {
            top: area.top,
            row: area.row,
        })
    }

    /// Completes the turn when the user begins a draft in an empty area while nothing moves: the
    /// user considers the answer complete.
    fn complete_before_draft(&mut self) {
        let rested = self.now >= self.motion.changed_at + REST_BEFORE_DRAFT;
        let is_empty = self
            .found_area
            .as_ref()
            .is_some_and(|area| area.draft.is_empty());
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        if !rested || !is_empty || !open.taken || open.reported || self.motion.shows_spinner() {
            return;
        }
        // The text typed now is a prompt of its own, whatever becomes of this turn.
        open.silent = true;
        if open.echoed && self.shows_idle_footer() {
            self.complete_turn(Signal::Rows);
        }
    }

    /// Whether the rows around the input area are those of an idle program.
    pub(super) fn shows_idle_footer(&self) -> bool {
        let rows = self.screen.rows();
        let is_idle =
            |area| self.footer.is_idle(&rows, area) && !self.footer.says_busy(&rows, area);
        self.area_rows().is_some_and(is_idle)
    }

    fn learn_area(&mut self) {
        let rows = self.screen.rows();
        let is_open = matches!(self.phase, Phase::Open(_));
        if let Some(area) = InputArea::learn(&self.screen, &rows).filter(|_| !is_open) {
            self.found_area = area.find(&self.screen, &rows, "");
            self.area = Some(area);
            if let Some(area) = self.area_rows() {
                self.footer = Footer::learn(&rows, area);
            }
        }
    }

    /// Forgets a draft that is no longer in the area: a key that only the program knows has erased
    /// it.
    fn forget_erased_draft(&mut self) {
        let is_empty = self
            .found_area
            .as_ref()
            .is_some_and(|area| area.draft.is_empty());
        if self.draft.echoed && is_empty && self.now > self.draft.key_at + ERASED_HOLD {
            self.draft = Draft::default();
        }
    }

    fn handle_enter(&mut self) {
        self.paint();
        self.forget_erased_draft();
        let draft = std::mem::take(&mut self.draft);
        // Unknown keys (history, completion) may have put text there.
        let has_text = draft.typed.has_text() || draft.typed.known_bytes().is_none();
        if self.kind == ProgramKind::Undecided && draft.typed.has_text() {
            // A line was entered and nothing showed a full-screen program: it is a line program for
            // good.
            self.kind = ProgramKind::LineProgram;
        }
        let may_submit = match &self.phase {
            Phase::Starting | Phase::Idle => true,
            // Before the program has taken the text, or after an empty answer, Enter submits again.
            Phase::Open(open) => open.silent || (!open.taken && !open.reported),
        };
        // A program that reports its state shows by that whether the Enter was a submit.
        let reports_ready = self.report.state == Some(ReportedState::Ready);
        let is_watched = self.area.is_some() || reports_ready;
        let knows_area = is_watched && self.kind == ProgramKind::FullScreen;
        if has_text && may_submit && knows_area && self.state != State::Blocked {
            self.stop_waiting();
            self.open_turn(&draft);
        }
    }

    fn open_turn(&mut self, draft: &Draft) {
        if matches!(self.phase, Phase::Starting) {
            self.out.push(Detection::Ready);
        }
        let asked = draft.typed.known_text();
        let rows = self.screen.rows();
        let end = self.area_top(&rows);
        self.begin_gathering(asked.as_deref(), &rows, end);
        let printed = rows.iter().take(end).rev().filter(|row| !row.is_blank());
        let above = printed.take(STICKY_ROWS_MAX);
        let reports_ready = self.report.state == Some(ReportedState::Ready);
        self.phase = Phase::Open(OpenTurn {
            start: self.now,
            echoed: draft.echoed,
            above: above.map(|row| mask_digits(&row.text)).collect(),
            asked,
            marked: self.report.signal == Some(Signal::Marks) && reports_ready,
            ..OpenTurn::default()
        });
        if let Some(raw) = &mut self.raw {
            raw.clear();
        }
        self.motion.begin(self.now);
        self.enter_state(State::Working);
        self.inspect_by(self.now + REST);
    }

    /// The first row of the input area. A program that reports its state needs none: its cursor is
    /// then the best guess.
    fn area_top(&self, rows: &[Row]) -> usize {
        match (&self.found_area, &self.area) {
            (Some(area), _) => area.top,
            (None, Some(_)) => rows.len(),
            (None, None) => usize::from(self.screen.cursor().row),
        }
    }

    /// Begins to gather the text of a turn; `end` is the row of the input area.
    fn begin_gathering(&mut self, asked: Option<&str>, rows: &[Row], end: usize) {
        let first_row = rows
            .first()
            .map(|row| row.text.as_str())
            .unwrap_or_default();
        self.gatherer = Gatherer::new(&answer::rules_for_turn(asked, first_row)).ok();
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.set_end(Some(transcript_end(rows, end, &self.sticky, &self.motion)));
            gatherer.begin_turn(&self.screen);
            gatherer.set_submitted(Submitted {
                text: asked.unwrap_or_default().to_owned(),
                is_command: false,
            });
        }
    }

    pub(super) fn enter_state(&mut self, state: State) {
        if self.state != state {
            self.state = state;
            self.out.push(Detection::State(state));
        }
    }
}
