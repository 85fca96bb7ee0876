//! Input: keys become submits and interruptions.

use super::super::event::{Happening, Signal, State};
use super::super::keys::Key;
use super::area::InputArea;
use super::footer::{Footer, Place};
use super::output::transcript_end;
use super::{
    Draft, ERASED_HOLD, FullScreen, Open, Phase, REST, REST_BEFORE_DRAFT, STICKY_ROWS_MAX, Verdict,
    masked, words,
};
use crate::screen::Gatherer;

impl FullScreen {
    pub(super) fn input(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(key) = self.keys.byte(self.now, *byte) {
                self.key(key);
            }
        }
    }

    pub(super) fn key(&mut self, key: Key) {
        match key {
            Key::Enter => self.enter(),
            Key::Escape => {
                if let Phase::Open(open) = &mut self.phase {
                    open.escaped_at = Some(self.now);
                }
            }
            Key::Interrupt => {
                self.draft = Draft::default();
                self.interrupt();
            }
            key => self.write(key),
        }
    }

    pub(super) fn interrupt(&mut self) {
        if let Phase::Open(open) = &mut self.phase {
            open.interrupted = true;
        }
    }

    /// A key of a draft. Its first one shows where the empty input area is.
    fn write(&mut self, key: Key) {
        if self.state == State::Blocked {
            return;
        }
        let is_text = matches!(key, Key::Text(_) | Key::Pasted(_));
        self.forget_erased_draft();
        if is_text && !self.draft.typed.has_text() {
            self.paint();
            self.end_before_draft();
            self.learn_area();
        }
        self.draft.typed.key(key);
        self.draft.key_at = self.now;
    }

    pub(super) fn place(&self) -> Option<Place> {
        self.spot.as_ref().map(|spot| Place {
            top: spot.top,
            row: spot.row,
        })
    }

    /// A draft is begun in an empty area while nothing moves: the user takes the answer for
    /// complete.
    fn end_before_draft(&mut self) {
        let rested = self.now >= self.motion.changed_at + REST_BEFORE_DRAFT;
        let is_empty = self.spot.as_ref().is_some_and(|spot| spot.draft.is_empty());
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        if !rested || !is_empty || !open.taken || open.reported || self.motion.shows_spinner() {
            return;
        }
        // What is typed now is a prompt of its own, whatever becomes of this turn.
        open.silent = true;
        if open.echoed && self.looks_idle() {
            self.complete(Signal::Rows);
        }
    }

    /// Whether what stands around the input area is what stood there while the program was idle.
    pub(super) fn looks_idle(&self) -> bool {
        let rows = self.screen.rows();
        let is_idle =
            |place| self.footer.is_idle(&rows, place) && !self.footer.says_busy(&rows, place);
        self.place().is_some_and(is_idle)
    }

    fn learn_area(&mut self) {
        let rows = self.screen.rows();
        let is_open = matches!(self.phase, Phase::Open(_));
        if let Some(area) = InputArea::learn(&self.screen, &rows).filter(|_| !is_open) {
            self.spot = area.find(&self.screen, &rows, "");
            self.area = Some(area);
            if let Some(place) = self.place() {
                self.footer = Footer::learn(&rows, place);
            }
        }
    }

    /// A draft that is no longer in the area was erased by a key that only the program knows.
    fn forget_erased_draft(&mut self) {
        let is_empty = self.spot.as_ref().is_some_and(|spot| spot.draft.is_empty());
        if self.draft.echoed && is_empty && self.now > self.draft.key_at + ERASED_HOLD {
            self.draft = Draft::default();
        }
    }

    fn enter(&mut self) {
        self.paint();
        self.forget_erased_draft();
        let draft = std::mem::take(&mut self.draft);
        let has_text = draft.typed.has_text() || draft.typed.plain().is_none();
        if self.verdict == Verdict::Undecided && draft.typed.has_text() {
            self.verdict = Verdict::LineProgram;
        }
        let may_submit = match &self.phase {
            Phase::Starting | Phase::Idle => true,
            Phase::Open(open) => open.silent || (!open.taken && !open.reported),
        };
        let knows_area = self.area.is_some() && self.verdict == Verdict::FullScreen;
        if has_text && may_submit && knows_area && self.state != State::Blocked {
            self.open(&draft);
        }
    }

    fn open(&mut self, draft: &Draft) {
        if matches!(self.phase, Phase::Starting) {
            self.out.push(Happening::Ready);
        }
        let asked = draft
            .typed
            .plain()
            .map(|typed| String::from_utf8_lossy(typed).into_owned());
        let rows = self.screen.rows();
        let end = self.spot.as_ref().map_or(rows.len(), |spot| spot.top);
        let first_row = rows
            .first()
            .map(|row| row.text.as_str())
            .unwrap_or_default();
        self.gatherer = Gatherer::new(&words::rules(asked.as_deref(), first_row)).ok();
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.set_end(Some(transcript_end(&rows, end, &self.sticky, &self.motion)));
            gatherer.begin(&self.screen);
        }
        let above = rows
            .iter()
            .take(end)
            .rev()
            .filter(|row| !row.is_blank())
            .take(STICKY_ROWS_MAX);
        self.phase = Phase::Open(Open {
            start: self.now,
            echoed: draft.echoed,
            above: above.map(|row| masked(&row.text)).collect(),
            asked,
            ..Open::default()
        });
        if let Some(raw) = &mut self.raw {
            raw.clear();
        }
        self.motion.begin(self.now);
        self.enter_state(State::Working);
        self.look_by(self.now + REST);
    }

    pub(super) fn enter_state(&mut self, state: State) {
        if self.state != state {
            self.state = state;
            self.out.push(Happening::State(state));
        }
    }
}
