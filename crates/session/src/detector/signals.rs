//! What the program says about itself in its output: status, title, shell marks and modes.
//!
//! Status, marks and title are *voices*: each repeats a word (working, blocked, ready) whenever the
//! program likes. A voice decides for the others below it only while it has **authority**: it has
//! said both that the program is busy and that it is ready, so it is known to move. A claude inside
//! tmux prints the title `✳ Claude Code` once and never another one; that title has no authority,
//! and the rows of the screen decide. A voice loses its authority when it turns out to be stuck
//! ([`Signals::distrust`]) and gains it again with its next ready word.

use super::event::Signal;
use super::profile::Profile;
use super::sequence::{Csi, OSC_BYTES_MAX};
use std::time::Duration;

/// What a signal says about the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Light {
    Working,
    Blocked,
    Ready,
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// A voice said something.
    Light(Signal, Light),
    /// The prompt begins (OSC 133 A) or the command is done (D).
    PromptBegins,
    /// The output of a command begins (OSC 133 C).
    OutputBegins,
    /// Bracketed paste was switched on.
    PasteOn,
    /// Bracketed paste was switched off.
    PasteOff,
    /// The other screen is shown.
    Screens,
}

/// One signal that speaks by events.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word that was said or not"
)]
pub(super) struct Voice {
    /// The last word.
    word: Option<Light>,
    /// When it was said, or said again.
    spoke_at: Duration,
    /// It has said that the program works or waits for a decision …
    was_busy: bool,
    /// … and that it is ready, since it was last found to be stuck.
    was_ready: bool,
    /// It has said busy since the last submit …
    busy_since_submit: bool,
    /// … and ready.
    ready_since_submit: bool,
}

impl Voice {
    fn say(&mut self, now: Duration, light: Light) {
        self.word = Some(light);
        self.spoke_at = now;
        if light == Light::Ready {
            self.was_ready = true;
            self.ready_since_submit = true;
        } else {
            self.was_busy = true;
            self.busy_since_submit = true;
        }
    }

    /// Whether it is known to move between busy and ready.
    fn moves(&self) -> bool {
        self.was_busy && self.was_ready
    }

    fn is_busy(&self) -> bool {
        matches!(self.word, Some(Light::Working | Light::Blocked))
    }

    /// Whether it has said ready for what happens now. A mark of the shell does so with every
    /// prompt, and is trusted without having said busy.
    fn marks_prompt(&self, is_open: bool) -> bool {
        self.word == Some(Light::Ready) && (!is_open || self.ready_since_submit)
    }

    /// Whether it follows what happens now: in an open turn, a ready word from before the submit
    /// says nothing.
    fn follows(&self, is_open: bool) -> bool {
        self.word.is_some()
            && self.moves()
            && (!is_open || self.busy_since_submit || self.is_busy())
    }
}

/// Whether a voice decides for those below it.
fn has_authority(signal: Signal, voice: &Voice, is_open: bool) -> bool {
    voice.follows(is_open) || (signal == Signal::Marks && voice.marks_prompt(is_open))
}

/// What a voice says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) signal: Signal,
    pub(super) light: Light,
    /// When it was said, or said again.
    pub(super) at: Duration,
}

/// The last word of each signal.
#[derive(Debug, Default)]
pub(super) struct Signals {
    status: Voice,
    marks: Voice,
    title: Voice,
    /// Whether the last ready status was `idle`, not `done`.
    pub(super) idle: bool,
    /// Whether bracketed paste is on; none before its first switch.
    pub(super) paste: Option<bool>,
    /// Whether it was ever on, and when it was switched last.
    pub(super) paste_was_on: bool,
    pub(super) paste_at: Duration,
    pub(super) alternate: bool,
}

impl Signals {
    /// The voices, most trusted first.
    fn voices(&self) -> [(Signal, &Voice); 3] {
        [
            (Signal::Status, &self.status),
            (Signal::Marks, &self.marks),
            (Signal::Title, &self.title),
        ]
    }

    /// What the most trusted voice with authority says. In an open turn a voice that has not said
    /// busy since the submit has none: it may be stuck at ready.
    pub(super) fn authority(&self, is_open: bool) -> Option<Word> {
        self.words(move |signal, voice| has_authority(signal, voice, is_open))
            .next()
    }

    /// What the voices say that are less trusted than this one and have authority too.
    pub(super) fn below(&self, signal: Signal, is_open: bool) -> impl Iterator<Item = Word> {
        let words = self.words(move |signal, voice| has_authority(signal, voice, is_open));
        words.skip_while(move |word| word.signal != signal).skip(1)
    }

    /// What the voices say that have no authority.
    pub(super) fn others(&self, is_open: bool) -> impl Iterator<Item = Word> {
        self.words(move |signal, voice| !has_authority(signal, voice, is_open))
    }

    fn words(&self, wanted: impl Fn(Signal, &Voice) -> bool) -> impl Iterator<Item = Word> {
        self.voices()
            .into_iter()
            .filter_map(move |(signal, voice)| {
                let light = voice.word.filter(|_| wanted(signal, voice))?;
                Some(Word {
                    signal,
                    light,
                    at: voice.spoke_at,
                })
            })
    }

    /// An input was submitted.
    pub(super) fn submitted(&mut self) {
        for voice in [&mut self.status, &mut self.marks, &mut self.title] {
            (voice.busy_since_submit, voice.ready_since_submit) = (false, false);
        }
    }

    /// A voice says busy and a weaker one has proved it wrong.
    pub(super) fn distrust(&mut self, signal: Signal) {
        match signal {
            Signal::Status => self.status.was_ready = false,
            Signal::Marks => self.marks.was_ready = false,
            Signal::Title => self.title.was_ready = false,
            Signal::Rows | Signal::Tty | Signal::Paste | Signal::Line => {}
        }
    }

    /// Takes an operating system command.
    pub(super) fn osc(
        &mut self,
        now: Duration,
        command: &[u8],
        profile: &Profile,
    ) -> Option<Change> {
        let text = String::from_utf8_lossy(command.get(..OSC_BYTES_MAX).unwrap_or(command));
        let (number, rest) = text.split_once(';')?;
        match number {
            "7501" if profile.status => self.status(now, rest),
            "133" if profile.marks => self.mark(now, rest),
            "0" | "2" => self.title(now, rest, profile),
            _ => None,
        }
    }

    /// Takes a control sequence.
    pub(super) fn csi(&mut self, now: Duration, csi: &Csi) -> Option<Change> {
        let (modes, on) = csi.modes()?;
        let mut change = None;
        for mode in modes {
            change = self.mode(now, *mode, on).or(change);
        }
        change
    }

    fn mode(&mut self, now: Duration, mode: u16, on: bool) -> Option<Change> {
        match mode {
            2004 => {
                self.paste = Some(on);
                self.paste_was_on |= on;
                self.paste_at = now;
                Some(if on {
                    Change::PasteOn
                } else {
                    Change::PasteOff
                })
            }
            47 | 1047 | 1049 => {
                let before = std::mem::replace(&mut self.alternate, on);
                (before != on).then_some(Change::Screens)
            }
            _ => None,
        }
    }

    fn status(&mut self, now: Duration, fields: &str) -> Option<Change> {
        let Status { light, is_idle } = read_status(fields)?;
        let Some(light) = light else {
            self.status.word = None;
            return None;
        };
        if light == Light::Ready && self.status.word != Some(Light::Ready) {
            self.idle = is_idle;
        }
        self.status.say(now, light);
        Some(Change::Light(Signal::Status, light))
    }

    fn mark(&mut self, now: Duration, mark: &str) -> Option<Change> {
        match mark.as_bytes().first()? {
            b'A' | b'D' => Some(Change::PromptBegins),
            b'B' => {
                self.marks.say(now, Light::Ready);
                Some(Change::Light(Signal::Marks, Light::Ready))
            }
            b'C' => {
                // A program that never marks the end of its prompt would never be ready again.
                if self.marks.word.is_some() {
                    self.marks.say(now, Light::Working);
                }
                Some(Change::OutputBegins)
            }
            _ => None,
        }
    }

    fn title(&mut self, now: Duration, title: &str, profile: &Profile) -> Option<Change> {
        let rule = profile.title.as_ref()?;
        let light = if rule
            .blocked
            .as_ref()
            .is_some_and(|blocked| blocked.matches(title))
        {
            Light::Blocked
        } else if rule.busy.matches(title) {
            Light::Working
        } else if rule.ready.matches(title) {
            Light::Ready
        } else {
            return None;
        };
        self.title.say(now, light);
        Some(Change::Light(Signal::Title, light))
    }
}

/// A state that a program reports by OSC 7501.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    /// None where the program reports a state that says neither ready nor busy, such as an error.
    pub(super) light: Option<Light>,
    /// It is idle, not done: after a turn that was interrupted.
    pub(super) is_idle: bool,
}

/// The state in the fields of an OSC 7501; none where they hold none, or the state of a task in the
/// background, which has an id.
pub(super) fn read_status(fields: &str) -> Option<Status> {
    let mut state = None;
    for field in fields.split([':', ';']) {
        if field.starts_with("id=") {
            return None;
        }
        state = state.or_else(|| field.strip_prefix("state="));
    }
    let state = state?;
    let light = match state {
        "working" => Some(Light::Working),
        "blocked" => Some(Light::Blocked),
        "done" | "idle" => Some(Light::Ready),
        _ => None,
    };
    Some(Status {
        light,
        is_idle: state == "idle",
    })
}
