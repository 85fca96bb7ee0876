//! Reads the output of a possibly full-screen program: tokens show its kind, frames show what it
//! does.
//!
//! Bytes are painted when time moves on, so that a frame never depends on how they were cut. Until
//! the tty leaves canonical mode, an undecided program is not painted at all.

use super::super::event::Signal;
use super::super::signals::{ReportedState, Status, parse_status};
use super::answer::HEAD_CHARS;
use super::area::InputArea;
use super::motion::{FrameContext, Motion};
use super::{
    FullScreen, INSPECT_DELAY, PENDING_BYTES_MAX, Phase, ProgramKind, REPAINTS_MIN, STICKY_MAX,
    StatusReport, is_echo, mask_digits,
};
use crate::screen::Row;
use crate::sequence::{Token, is_alternate_screen};
use std::collections::HashSet;

impl FullScreen {
    pub(super) fn handle_output(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.output_at = self.now;
        if let (Phase::Open(_), Some(raw)) = (&self.phase, &mut self.raw) {
            raw.push(bytes);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let step = self.tokens.next_token(rest);
            let (used, after) = rest.split_at(step.used.clamp(1, rest.len()));
            // The bytes first: what a token decides must not depend on bytes behind it.
            self.push_bytes(used);
            self.apply_token(step.token);
            rest = after;
        }
        self.inspect_by(self.now + INSPECT_DELAY);
    }

    /// Takes bytes for the screen. A program that has not touched its tty is not full-screen yet:
    /// only its last bytes wait, unpainted, so that a stream costs nothing.
    fn push_bytes(&mut self, bytes: &[u8]) {
        if self.kind == ProgramKind::Undecided && self.is_canonical() {
            self.pending.extend_from_slice(bytes);
            // Twice the maximum may wait, so that few of a stream's small writes move bytes.
            if self.pending.len() >= 2 * PENDING_BYTES_MAX {
                self.drop_oldest_pending();
            }
            return;
        }
        self.drop_oldest_pending();
        let mut rest = bytes;
        while self.pending.len() + rest.len() >= PENDING_BYTES_MAX {
            let room = PENDING_BYTES_MAX.saturating_sub(self.pending.len());
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.pending.extend_from_slice(now);
            self.paint();
            rest = later;
        }
        self.pending.extend_from_slice(rest);
    }

    fn drop_oldest_pending(&mut self) {
        let excess = self.pending.len().saturating_sub(PENDING_BYTES_MAX);
        self.pending.drain(..excess);
    }

    fn is_canonical(&self) -> bool {
        self.tty.is_some_and(|mode| mode.canonical)
    }

    fn apply_token(&mut self, token: Token) {
        match token {
            Token::Csi => self.apply_control(),
            Token::Osc => self.apply_command(),
            _ => {}
        }
    }

    fn apply_control(&mut self) {
        let csi = self.tokens.csi();
        // A synchronized update and a cursor move to a row both begin a repaint.
        let repaints = match csi.mode_switch() {
            Some(switch) => switch.on && switch.modes.contains(&2026),
            None => csi.private == 0 && matches!(csi.last, b'A' | b'F' | b'H' | b'f'),
        };
        let alternate = csi.mode_switch().is_some_and(|switch| {
            switch.on && switch.modes.iter().any(|mode| is_alternate_screen(*mode))
        });
        self.repaints = self.repaints.saturating_add(u32::from(repaints));
        if alternate && self.kind == ProgramKind::Undecided {
            self.kind = ProgramKind::FullScreen;
        }
    }

    fn apply_command(&mut self) {
        let command = self.tokens.osc();
        if let Some(fields) = command.strip_prefix(b"7501;") {
            if let Some(status) = parse_status(&String::from_utf8_lossy(fields)) {
                self.note_status(Signal::Status, status);
            }
        } else if let Some(mark) = command.strip_prefix(b"133;") {
            if let Some(status) = self.mark_status(mark.first().copied()) {
                self.note_status(Signal::Marks, status);
            }
        } else if (command.starts_with(b"0;") || command.starts_with(b"2;"))
            && self.title != command
        {
            self.title = command.to_vec();
            self.motion.title_changed(self.now);
        }
    }

    /// The state that a mark of OSC 133 shows. A program without the mark of the prompt's end (B)
    /// would never become ready, so the mark of the output (C) alone shows nothing. The status is
    /// the better source where there are both.
    fn mark_status(&self, mark: Option<u8>) -> Option<Status> {
        let state = match (mark?, self.report.signal) {
            (_, Some(Signal::Status)) => return None,
            (b'B', _) => ReportedState::Ready,
            (b'C', Some(Signal::Marks)) => ReportedState::Working,
            _ => return None,
        };
        Some(Status {
            state: Some(state),
            is_idle: false,
        })
    }

    fn note_status(&mut self, signal: Signal, Status { state, is_idle }: Status) {
        let was_ready = self.report.was_ready || state == Some(ReportedState::Ready);
        // A repeated report must not restart the hold time.
        if self.report.state != state || self.report.signal != Some(signal) {
            self.report = StatusReport {
                state,
                signal: Some(signal),
                stopped: is_idle,
                was_ready,
                at: self.now,
            };
        }
        if let Phase::Open(open) = &mut self.phase {
            match state {
                Some(ReportedState::Working) => {
                    open.said_working |= signal == Signal::Status || open.marked;
                }
                // After an error, say, the program may report nothing more: the screen counts again.
                None => open.said_working = false,
                Some(ReportedState::Blocked | ReportedState::Ready) => {}
            }
            // A source that never said ready may be stuck, so the screen counts.
            open.reported = open.said_working && was_ready;
        }
    }

    /// Paints the waiting bytes and observes the frame.
    pub(super) fn paint(&mut self) {
        if self.pending.is_empty() || (self.kind == ProgramKind::Undecided && self.is_canonical()) {
            return;
        }
        self.drop_oldest_pending();
        let pending = std::mem::take(&mut self.pending);
        let typed = self.expected_draft();
        let (area, sticky, motion) = (&self.area, &self.sticky, &self.motion);
        let gatherer = &mut self.gatherer;
        self.screen.feed(&pending, |screen| {
            let Some(gatherer) = gatherer.as_mut() else {
                return;
            };
            let rows = screen.rows();
            let top = match area {
                Some(area) => area.find(screen, &rows, &typed).map(|area| area.top),
                None => Some(usize::from(screen.cursor().row)),
            };
            if let Some(top) = top {
                gatherer.set_end(Some(transcript_end(&rows, top, sticky, motion)));
                gatherer.apply_frame(screen);
            }
        });
        self.observe_frame();
    }

    fn observe_frame(&mut self) {
        // Half a frame proves nothing.
        if self.screen.sync_open() {
            return;
        }
        let rows = self.screen.rows();
        self.decide_kind(&rows);
        self.learn_from_draft(&rows);
        let typed = self.expected_draft();
        let had_area = self.found_area.is_some();
        self.found_area = self
            .area
            .as_ref()
            .and_then(|area| area.find(&self.screen, &rows, &typed));
        // The time of the loss counts: half a frame loses the area for a moment, a dialog for
        // longer.
        if had_area && self.found_area.is_none() {
            self.area_lost_at = self.now;
        }
        self.note_draft();
        self.learn_sticky_rows(&rows);
        let asked = matches!(self.phase, Phase::Open(_));
        let input = self.area_rows();
        let context = FrameContext {
            now: self.now,
            asked,
            input,
        };
        self.motion.observe_rows(context, &rows);
    }

    /// Decides the kind of program where the alternate screen does not show it.
    fn decide_kind(&mut self, rows: &[Row]) {
        let may_be = self.kind == ProgramKind::Undecided && !self.is_canonical();
        if may_be && self.repaints >= REPAINTS_MIN && InputArea::is_framed(&self.screen, rows) {
            self.kind = ProgramKind::FullScreen;
        }
    }

    /// Learns the input area from a draft that the cursor did not show.
    fn learn_from_draft(&mut self, rows: &[Row]) {
        let may_be =
            !self.draft.echoed && !matches!(self.phase, Phase::Open(_)) && !self.is_canonical();
        let Some(typed) = self.draft.typed.known_text().filter(|_| may_be) else {
            return;
        };
        let shown = typed.lines().next().unwrap_or_default().trim();
        let area = self
            .area
            .as_ref()
            .and_then(|area| area.find(&self.screen, rows, &typed));
        // An area that already shows the draft needs no new definition.
        let is_known = area.is_some_and(|area| !area.draft.is_empty());
        if let Some(area) = InputArea::learn_from_draft(rows, shown).filter(|_| !is_known) {
            self.area = Some(area);
            if self.kind == ProgramKind::Undecided && self.repaints >= REPAINTS_MIN {
                self.kind = ProgramKind::FullScreen;
            }
        }
    }

    /// The text that may be in the input area: the draft, or the prompt that was just submitted.
    fn expected_draft(&self) -> String {
        let submitted = match &self.phase {
            Phase::Open(open) if !open.taken => open.asked.clone(),
            Phase::Open(_) | Phase::Starting | Phase::Idle => None,
        };
        submitted
            .or_else(|| self.draft.typed.known_text())
            .unwrap_or_default()
    }

    /// Notes when typed text appears in the input area and when it leaves.
    fn note_draft(&mut self) {
        let Some(area) = &self.found_area else { return };
        let typed = &self.draft.typed;
        if typed.has_text() && is_echo(typed.known_bytes(), &area.draft) {
            self.draft.echoed = true;
        }
        if let Phase::Open(open) = &mut self.phase {
            // Once empty after the submit, the text was taken, whatever is typed next.
            open.taken |= area.draft.is_empty();
            let asked = open.asked.as_deref().map(str::as_bytes);
            open.echoed |= !open.taken && is_echo(asked, &area.draft);
        }
    }

    /// Separates the rows that stay above the input area (a path, a hint) from the transcript: they
    /// were there before the prompt, and are below it now.
    fn learn_sticky_rows(&mut self, rows: &[Row]) {
        let (Phase::Open(open), Some(area)) = (&mut self.phase, &self.found_area) else {
            return;
        };
        let Some(head) = open.asked.as_deref().and_then(|asked| asked.lines().next()) else {
            return;
        };
        let head: String = head.trim().chars().take(HEAD_CHARS).collect();
        let shown = rows.get(..area.top).unwrap_or_default();
        if open.sorted || head.is_empty() || self.sticky.len() >= STICKY_MAX {
            return;
        }
        let is_prompt = |row: &Row| row.text.contains(head.trim_end());
        let Some(prompt) = shown.iter().rposition(is_prompt) else {
            return;
        };
        open.sorted = true;
        let below = shown.iter().skip(prompt + 1).filter(|row| !row.is_blank());
        let masked = below.map(|row| mask_digits(&row.text));
        self.sticky
            .extend(masked.filter(|row| open.above.contains(row)));
    }
}

/// The row at which the transcript ends above the input area. Spinners and sticky rows do not
/// belong to it.
pub(super) fn transcript_end(
    rows: &[Row],
    top: usize,
    sticky: &HashSet<String>,
    motion: &Motion,
) -> usize {
    let is_apart = |row: &Row| {
        row.is_blank()
            || sticky.contains(&mask_digits(&row.text))
            || motion.is_spinner_row(&row.text)
    };
    let above = rows.get(..top).unwrap_or_default();
    above
        .iter()
        .rposition(|row| !is_apart(row))
        .map_or(0, |last| last + 1)
}
