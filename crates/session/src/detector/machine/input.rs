//! Input: keys become submits and interruptions.

use super::super::event::Signal;
use super::super::keys::Key;
use super::super::render::left_of_cursor;
use super::super::typed::Typed;
use super::Detector;
use crate::pattern::Pattern;

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
        if matches!(key, Key::Enter | Key::Escape | Key::Interrupt) {
            self.hand_over();
        }
        match key {
            Key::Enter => self.enter(),
            Key::LineFeed if self.is_stream() => self.enter(),
            Key::Escape => self.escape(),
            Key::Interrupt => {
                if self.state == super::State::Ready {
                    self.wait_no_longer();
                }
                self.typed.key(key);
                self.interrupt();
            }
            key => self.write(key),
        }
    }

    /// A key that changes the line, unless it answers a dialog.
    fn write(&mut self, key: Key) {
        if self.state == super::State::Blocked {
            return;
        }
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
        let blocked = self.state == super::State::Blocked;
        let Some(open) = self.phase.open_mut() else {
            return;
        };
        open.reject(blocked);
        open.escapes = open.escapes.saturating_add(1);
        open.interrupt_row = self.interrupt_row;
    }

    /// An ESC byte came. Whether it is the key shows only later, when the program may have
    /// answered. The screen is taken as it was before this moment: half a frame is none.
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
        self.end_unprompted();
        self.see_typed_prompt();
        self.see_first_prompt(&typed);
        self.wait_no_longer();
        let asked = self.asks();
        if !asked
            && self
                .phase
                .takes_submit(self.shows_working(), self.is_stream())
        {
            if !self.is_command(&typed) {
                self.open(self.now, &typed, false);
            }
        } else if !asked || self.is_stream() {
            self.queue(typed, !asked);
        }
    }

    /// An Enter ends what the program says unprompted where only rows tell: a draft hides whether
    /// it works.
    fn end_unprompted(&mut self) {
        let by_rows = self.signals.authority(true).is_none();
        if by_rows && self.phase.open_mut().is_some_and(|open| open.unprompted) {
            self.complete(Signal::Rows, self.line.start);
        }
    }

    /// A prompt at which somebody went on typing never rests: it is seen at the Enter, where the
    /// cursor stands behind it.
    fn see_typed_prompt(&mut self) {
        let Some(rule) = self
            .profile
            .prompt
            .as_ref()
            .filter(|_| !self.phase.is_idle())
        else {
            return;
        };
        let Some(signal) = self
            .at_prompt(rule)
            .filter(|found| found.is_sure())
            .map(|found| found.signal)
        else {
            return;
        };
        let Some(view) = self.view.as_mut() else {
            return;
        };
        if behind_prompt(&view.left_of_cursor(), &rule.cursor).is_some() {
            self.prompt_seen(signal, self.line.start);
        }
    }

    /// The first prompt of the line rule may not have rested yet: it stands before what was typed.
    fn see_first_prompt(&mut self, typed: &Typed) {
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
            .plain()
            .map(String::from_utf8_lossy)
            .unwrap_or_default();
        if pattern.matches(row.strip_suffix(&*typed).unwrap_or(&row)) {
            self.prompt_seen(Signal::Line, self.line.start);
        }
    }

    /// Whether what is submitted is a command of the program's own, which asks the assistant
    /// nothing.
    fn is_command(&mut self, typed: &Typed) -> bool {
        let Some(rule) = &self.profile.prompt else {
            return false;
        };
        let Some(command) = &rule.command else {
            return false;
        };
        let line = match (typed.plain(), &mut self.view) {
            (Some(plain), _) => String::from_utf8_lossy(plain).into_owned(),
            (None, Some(view)) => {
                behind_prompt(&view.left_of_cursor(), &rule.cursor).unwrap_or_default()
            }
            (None, None) => return false,
        };
        command.matches(&line) && !rule.asks.as_ref().is_some_and(|asks| asks.matches(&line))
    }

    /// The first line that is submitted to a screen program, where its profile knows commands. A
    /// line that was recalled from the history is not known from its keys: then it is the row of
    /// the cursor.
    pub(super) fn submitted_line(&mut self, typed: &Typed) -> String {
        if self.profile.command.is_none() && self.profile.no_turn.is_none() {
            return String::new();
        }
        let plain = typed.plain().filter(|plain| !plain.is_empty());
        match (plain, &mut self.view) {
            (Some(plain), _) => String::from_utf8_lossy(plain)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
            (None, Some(view)) => view.cursor_row(),
            (None, None) => String::new(),
        }
    }

    /// Whether Enter answers a question of a program that reads its input as the prompt does.
    fn asks(&mut self) -> bool {
        let working = self
            .phase
            .open_mut()
            .is_some_and(|open| !open.continuing && open.feeds > 0);
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
