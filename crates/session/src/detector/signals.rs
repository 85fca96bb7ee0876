//! What the program says about itself in its output: status, title, shell marks and modes.
//!
//! Each is kept as the last one said; the order of trust between them is the machine's affair.

use super::profile::Profile;
use super::sequence::{Csi, OSC_BYTES_MAX};

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
    /// The program's light, by its most trusted word.
    Light(Light),
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

/// The last word of each signal.
#[derive(Debug, Default)]
pub(super) struct Signals {
    pub(super) status: Option<Light>,
    /// Whether the last ready status was `idle`, not `done`.
    pub(super) idle: bool,
    pub(super) title: Option<Light>,
    pub(super) marks: Option<Light>,
    /// Whether bracketed paste is on; none before its first switch.
    pub(super) paste: Option<bool>,
    pub(super) alternate: bool,
}

impl Signals {
    /// The word of the most trusted signal of those that speak by events.
    pub(super) fn trusted(&self) -> Option<Light> {
        self.status.or(self.marks).or(self.title)
    }

    /// Takes an operating system command.
    pub(super) fn osc(&mut self, command: &[u8], profile: &Profile) -> Option<Change> {
        let text = String::from_utf8_lossy(command.get(..OSC_BYTES_MAX).unwrap_or(command));
        let (number, rest) = text.split_once(';')?;
        match number {
            "7501" if profile.status => self.status(rest),
            "133" if profile.marks => self.mark(rest),
            "0" | "2" => self.title(rest, profile),
            _ => None,
        }
    }

    /// Takes a control sequence.
    pub(super) fn csi(&mut self, csi: &Csi) -> Option<Change> {
        let (modes, on) = csi.modes()?;
        let mut change = None;
        for mode in modes {
            change = self.mode(*mode, on).or(change);
        }
        change
    }

    fn mode(&mut self, mode: u16, on: bool) -> Option<Change> {
        match mode {
            2004 => {
                self.paste = Some(on);
                Some(if on { Change::PasteOn } else { Change::PasteOff })
            }
            47 | 1047 | 1049 => {
                let before = std::mem::replace(&mut self.alternate, on);
                (before != on).then_some(Change::Screens)
            }
            _ => None,
        }
    }

    fn status(&mut self, fields: &str) -> Option<Change> {
        let state = fields.split([':', ';']).find_map(|field| field.strip_prefix("state="))?;
        let light = match state {
            "working" => Light::Working,
            "blocked" => Light::Blocked,
            "done" | "idle" => Light::Ready,
            _ => {
                self.status = None;
                return None;
            }
        };
        if light == Light::Ready && self.status != Some(Light::Ready) {
            self.idle = state == "idle";
        }
        self.status = Some(light);
        Some(Change::Light(light))
    }

    fn mark(&mut self, mark: &str) -> Option<Change> {
        match mark.as_bytes().first()? {
            b'A' | b'D' => Some(Change::PromptBegins),
            b'B' => {
                self.marks = Some(Light::Ready);
                Some(Change::Light(Light::Ready))
            }
            b'C' => {
                // A program that never marks the end of its prompt would never be ready again.
                self.marks = self.marks.map(|_| Light::Working);
                Some(Change::OutputBegins)
            }
            _ => None,
        }
    }

    fn title(&mut self, title: &str, profile: &Profile) -> Option<Change> {
        let rule = profile.title.as_ref()?;
        let light = if rule.blocked.as_ref().is_some_and(|blocked| blocked.matches(title)) {
            Light::Blocked
        } else if rule.busy.matches(title) {
            Light::Working
        } else if rule.ready.matches(title) {
            Light::Ready
        } else {
            return None;
        };
        self.title = Some(light);
        (self.status.is_none() && self.marks.is_none()).then_some(Change::Light(light))
    }
}

/// A state that a program reports by OSC 7501.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) light: Light,
    /// It is idle, not done: after a turn that was interrupted.
    pub(super) is_idle: bool,
}

/// The state that a command reports by OSC 7501; none where it reports none.
pub(super) fn read_status(command: &[u8]) -> Option<Status> {
    let fields = String::from_utf8_lossy(command.strip_prefix(b"7501;")?).into_owned();
    let state = fields.split([':', ';']).find_map(|field| field.strip_prefix("state="))?;
    let light = match state {
        "working" => Light::Working,
        "blocked" => Light::Blocked,
        "done" | "idle" => Light::Ready,
        _ => return None,
    };
    Some(Status { light, is_idle: state == "idle" })
}
