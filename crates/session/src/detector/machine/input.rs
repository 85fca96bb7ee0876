//! Reads the program's input: keys become submits and interruptions.
//!
//! Input is parsed into keys before anything is decided, so pasted text and reports of the terminal
//! never submit. Enter in a dialog answers it and submits nothing.

use super::super::event::Signal;
use super::super::keys::Key;
use super::super::render::left_of_cursor;
use super::super::typed_line::TypedLine;
use super::Detector;
use crate::pattern::{Pattern, matches_optional};

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
            // What the user does next concerns the next turn, so the one that is handed over ends
            // first.
            self.hand_over();
        }
        match key {
            Key::Enter => self.handle_enter(),
            Key::LineFeed if self.is_stream() => self.handle_enter(),
            Key::Escape => self.handle_escape(),
            Key::Interrupt => {
                // Ctrl-C at a ready prompt does not interrupt the turn that is only waiting for its
                // words.
                if self.state == super::State::Ready {
                    self.stop_waiting();
                }
                self.typed.apply_key(key);
                self.handle_interrupt();
            }
            key => self.edit_line(key),
        }
    }

    /// Applies a key that changes the line, unless it answers a dialog.
    fn edit_line(&mut self, key: Key) {
        if self.state == super::State::Blocked {
            return;
        }
        if !self.typed.has_text() {
            self.typed_from = self.line.offset;
        }
        self.typed.apply_key(key);
    }

    /// Handles Ctrl-C, or SIGINT that was passed on.
    pub(super) fn handle_interrupt(&mut self) {
        if let Some(open) = self.phase.open_mut() {
            open.interrupted = true;
            // The shell discards the unfinished input, so its lines are not part of the content.
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

    /// Remembers, at an ESC byte, the row that already shows an interruption. Whether the byte is
    /// the key Esc is known only later, when the program may have answered. The screen is read as
    /// painted before this moment, because half a frame is no evidence.
    fn note_interrupt_row(&mut self) {
        if self.phase.is_open()
            && let Some(screen) = &mut self.screen
        {
            self.interrupt_row = screen.interrupt_row(&self.profile);
        }
    }

    /// Handles Enter: a submit, the answer to a dialog, or the submit of the next turn.
    fn handle_enter(&mut self) {
        // Enter ends the typed line in every case, also in a dialog.
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
        // A screen shows the answer to its question itself; in a stream the line's echo must be
        // removed.
        } else if !asked || self.is_stream() {
            self.queue_line(typed, !asked);
        }
    }

    /// Completes an unprompted text at Enter where only rows show its end: a draft hides whether
    /// the program works.
    fn complete_unprompted(&mut self) {
        let by_rows = self.signals.authoritative_report(true).is_none();
        if by_rows && self.phase.open_mut().is_some_and(|open| open.unprompted) {
            self.complete_turn(Signal::Rows, self.line.start);
        }
    }

    /// Detects a prompt behind which the user goes on typing. It never rests, so it is detected at
    /// the Enter, where the cursor is behind it.
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

    /// Detects the first prompt of the line rule, which may not have rested yet: it is in front of
    /// the typed text.
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
        let typed = typed.known_text().unwrap_or_default();
        if pattern.matches(row.strip_suffix(&*typed).unwrap_or(&row)) {
            self.prompt_seen(Signal::Line, self.line.start);
        }
    }

    /// Whether the submitted line is a command of the program's own, which asks the assistant
    /// nothing.
    fn is_command(&mut self, typed: &TypedLine) -> bool {
        let Some(rule) = &self.profile.prompt else {
            return false;
        };
        let Some(command) = &rule.command else {
            return false;
        };
        let line = match (typed.known_text(), &mut self.screen) {
            (Some(text), _) => text,
            // Keys such as Tab or the arrows change the line in ways that only the screen shows.
            (None, Some(screen)) => {
                behind_prompt(&screen.left_of_cursor(), &rule.cursor).unwrap_or_default()
            }
            (None, None) => return false,
        };
        command.matches(&line) && !matches_optional(rule.asks.as_ref(), &line)
    }

    /// The first line that is submitted to a screen program, where its profile knows commands. Keys
    /// do not show a line that was recalled from the history; then the row of the cursor is used.
    pub(super) fn submitted_line(&mut self, typed: &TypedLine) -> String {
        if self.profile.command.is_none() && self.profile.no_turn.is_none() {
            return String::new();
        }
        let text = typed.known_text().filter(|text| !text.is_empty());
        match (text, &mut self.screen) {
            (Some(text), _) => text.lines().next().unwrap_or_default().to_owned(),
            (None, Some(screen)) => screen.cursor_row(),
            (None, None) => String::new(),
        }
    }

    /// Whether Enter answers a question of a program that reads its input the way the prompt does.
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

/// The text behind the prompt, if the row begins with one. The shortest match wins, so that typed
/// text that looks like a prompt stays text.
fn behind_prompt(row: &str, prompt: &Pattern) -> Option<String> {
    let is_prompt = |at: &usize| row.get(..*at).is_some_and(|head| prompt.matches(head));
    let end = (0..=row.len()).find(is_prompt)?;
    row.get(end..).map(str::to_owned)
}
