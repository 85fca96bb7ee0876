//! Input: keys become submits and interruptions.

use super::super::event::Signal;
use super::super::keys::Key;
use super::super::render::left_of_cursor;
use super::super::typed_line::TypedLine;
use super::Detector;
use crate::pattern::Pattern;

impl Detector {
    pub(super) fn handle_input(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == 0x1b && self.keys.at_ground() {
                self.note_interrupt_row();
            }
            if let Some(key) = self.keys.push_byte(self.now, *byte) {
                self.handle_key(key);
            }
        }
    }

    pub(super) fn handle_key(&mut self, key: Key) {
        if matches!(key, Key::Enter | Key::Escape | Key::Interrupt) {
            self.hand_over();
        }
        match key {
            Key::Enter => self.handle_enter(),
            Key::LineFeed if self.is_stream() => self.handle_enter(),
            Key::Escape => self.handle_escape(),
            Key::Interrupt => {
                if self.state == super::State::Ready {
                    self.stop_waiting();
                }
                self.typed.apply_key(key);
                self.handle_interrupt();
            }
            key => self.edit_line(key),
        }
    }

    /// A key that changes the line, unless it answers a dialog.
    fn edit_line(&mut self, key: Key) {
        if self.state == super::State::Blocked {
            return;
        }
        if !self.typed.has_text() {
            self.typed_from = self.line.offset;
        }
        self.typed.apply_key(key);
    }

    /// Ctrl-C was typed, or SIGINT was passed on.
    pub(super) fn handle_interrupt(&mut self) {
        if let Some(open) = self.phase.open_mut() {
            open.interrupted = true;
            if open.continuing {
                self.content.cut_head(self.line.offset);
            }
            self.content.expect_interrupt_echo(self.line.offset);
        }
    }

    fn handle_escape(&mut self) {
        let blocked = self.state == super::State::Blocked;
        let Some(open) = self.phase.open_mut() else {
            return;
        };
        open.note_escape(blocked);
        open.escapes = open.escapes.saturating_add(1);
        open.interrupt_row = self.interrupt_row;
    }

    /// An ESC byte came. Whether it is the key shows only later, when the program may have
    /// answered. The screen is taken as it was before this moment: half a frame is none.
    fn note_interrupt_row(&mut self) {
        if self.phase.is_open()
            && let Some(screen) = &mut self.screen
        {
            self.interrupt_row = screen.interrupt_row(&self.profile);
        }
    }

    /// Enter: a submit, the answer to a dialog, or the submit of the next turn.
    fn handle_enter(&mut self) {
        let typed = std::mem::take(&mut self.typed);
        if self.state == super::State::Blocked {
            return;
        }
        self.complete_unprompted();
        self.detect_typed_prompt();
        self.detect_first_prompt(&typed);
        self.stop_waiting();
        let asked = self.answers_question();
        if !asked
            && self
                .phase
                .takes_submit(self.shows_working(), self.is_stream())
        {
            if !self.is_command(&typed) {
                self.open_turn(self.now, &typed, false);
            }
        } else if !asked || self.is_stream() {
            self.queue_line(typed, !asked);
        }
    }

    /// An Enter ends what the program says unprompted where only rows tell: a draft hides whether
    /// it works.
    fn complete_unprompted(&mut self) {
        let by_rows = self.signals.authoritative_report(true).is_none();
        if by_rows && self.phase.open_mut().is_some_and(|open| open.unprompted) {
            self.complete_turn(Signal::Rows, self.line.start);
        }
    }

    /// A prompt at which somebody went on typing never rests: it is seen at the Enter, where the
    /// cursor stands behind it.
    fn detect_typed_prompt(&mut self) {
        let Some(rule) = self
            .profile
            .prompt
            .as_ref()
            .filter(|_| !self.phase.is_idle())
        else {
            return;
        };
        let Some(signal) = self
            .prompt_evidence(rule)
            .filter(|found| found.is_sure())
            .map(|found| found.signal)
        else {
            return;
        };
        let Some(screen) = self.screen.as_mut() else {
            return;
        };
        if behind_prompt(&screen.left_of_cursor(), &rule.cursor).is_some() {
            self.prompt_seen(signal, self.line.start);
        }
    }

    /// The first prompt of the line rule may not have rested yet: it stands before what was typed.
    fn detect_first_prompt(&mut self, typed: &TypedLine) {
        let Some(pattern) = self
            .profile
            .line
            .as_ref()
            .filter(|_| self.phase.is_starting())
        else {
            return;
        };
        let row = left_of_cursor(self.line.bytes());
        let typed = typed
            .known_bytes()
            .map(String::from_utf8_lossy)
            .unwrap_or_default();
        if pattern.matches(row.strip_suffix(&*typed).unwrap_or(&row)) {
            self.prompt_seen(Signal::Line, self.line.start);
        }
    }

    /// Whether what is submitted is a command of the program's own, which asks the assistant
    /// nothing.
    fn is_command(&mut self, typed: &TypedLine) -> bool {
        let Some(rule) = &self.profile.prompt else {
            return false;
        };
        let Some(command) = &rule.command else {
            return false;
        };
        let line = match (typed.known_bytes(), &mut self.screen) {
            (Some(plain), _) => String::from_utf8_lossy(plain).into_owned(),
            (None, Some(screen)) => {
                behind_prompt(&screen.left_of_cursor(), &rule.cursor).unwrap_or_default()
            }
            (None, None) => return false,
        };
        command.matches(&line) && !rule.asks.as_ref().is_some_and(|asks| asks.matches(&line))
    }

    /// The first line that is submitted to a screen program, where its profile knows commands. A
    /// line that was recalled from the history is not known from its keys: then it is the row of
    /// the cursor.
    pub(super) fn submitted_line(&mut self, typed: &TypedLine) -> String {
        if self.profile.command.is_none() && self.profile.no_turn.is_none() {
            return String::new();
        }
        let plain = typed.known_bytes().filter(|plain| !plain.is_empty());
        match (plain, &mut self.screen) {
            (Some(plain), _) => String::from_utf8_lossy(plain)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
            (None, Some(screen)) => screen.cursor_row(),
            (None, None) => String::new(),
        }
    }

    /// Whether Enter answers a question of a program that reads its input as the prompt does.
    fn answers_question(&mut self) -> bool {
        let working = self
            .phase
            .open_mut()
            .is_some_and(|open| !open.continuing && open.line_feeds > 0);
        let raw = self.tty.is_some_and(|mode| !mode.canonical);
        let line_program = self
            .profile
            .prompt
            .as_ref()
            .is_some_and(|prompt| prompt.tty);
        line_program && raw && working
    }
}

/// What stands behind the prompt, if it is there.
fn behind_prompt(row: &str, prompt: &Pattern) -> Option<String> {
    let is_prompt = |at: &usize| row.get(..*at).is_some_and(|head| prompt.matches(head));
    let end = (0..=row.len()).find(is_prompt)?;
    row.get(end..).map(str::to_owned)
}
