//! Input: keys become submits and interruptions.

use super::super::keys::Key;
use super::Detector;

impl Detector {
    pub(super) fn input(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == 0x1b && self.keys.at_ground() {
                self.before_escape();
            }
            if let Some(key) = self.keys.byte(self.now, *byte) {
                self.key(key);
            }
        }
    }

    pub(super) fn key(&mut self, key: Key) {
        match key {
            Key::Enter => self.enter(),
            Key::LineFeed if self.is_stream() => self.enter(),
            Key::Escape => self.escape(),
            Key::Interrupt => {
                self.typed.key(key);
                self.interrupt();
            }
            key => self.write(key),
        }
    }

    /// A key that changes the line.
    fn write(&mut self, key: Key) {
        if !self.typed.has_text() {
            self.typed_from = self.line.offset;
        }
        self.typed.key(key);
    }

    /// Ctrl-C was typed, or SIGINT was passed on.
    pub(super) fn interrupt(&mut self) {
        if let Some(open) = self.phase.open_mut() {
            open.interrupted = true;
            if open.continuing {
                self.capture.cut_head(self.line.offset);
            }
            self.capture.interrupted(self.line.offset);
        }
    }

    fn escape(&mut self) {
        let Some(open) = self.phase.open_mut() else { return };
        open.escapes = open.escapes.saturating_add(1);
        open.interrupt_row = self.interrupt_row;
    }

    /// An ESC byte came. Whether it is the key shows only later, when the program may have answered.
    /// The screen is taken as it was before this moment: half a frame is none.
    fn before_escape(&mut self) {
        if self.phase.is_open()
            && let Some(view) = &mut self.view
        {
            self.interrupt_row = view.interrupt_row(&self.profile);
        }
    }

    /// Enter: a submit, the answer to a dialog, or the submit of the next turn.
    fn enter(&mut self) {
        let typed = std::mem::take(&mut self.typed);
        if self.state == super::State::Blocked {
            return;
        }
        let asked = self.asks();
        if !asked && self.phase.takes_submit(self.shows_working(), self.is_stream()) {
            self.open(self.now, &typed, false);
        } else if !asked || self.is_stream() {
            self.queue(typed, !asked);
        }
    }

    /// Whether Enter answers a question of a program that reads its input as the prompt does.
    fn asks(&mut self) -> bool {
        let working = self.phase.open_mut().is_some_and(|open| !open.continuing && open.feeds > 0);
        let raw = self.tty.is_some_and(|mode| !mode.canonical);
        let line_program = self.profile.prompt.as_ref().is_some_and(|prompt| prompt.tty);
        line_program && raw && working
    }
}
