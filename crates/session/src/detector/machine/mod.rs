//! The machine: events in, happenings out, and the time of the next look.
//!
//! Time is the session's own (since its start) and never runs backwards. Events of the same moment are
//! one: the program is looked at only when time has moved on, so that cutting the bytes of a moment
//! anywhere changes nothing. A turn is completed only by a prompt that was seen, never by a timeout.
//! Everything that is kept is bounded: the line, the content, the screen, the typed input.

mod ahead;
mod input;
mod level;
mod output;
mod turns;

use super::capture::Capture;
use super::event::{Event, Happening, Signal, State, TtyMode};
use super::keys::Keys;
use super::profile::{ContentKind, Profile};
use super::sequence::Tokenizer;
use super::signals::Signals;
use super::typed::Typed;
use super::view::View;
use crate::screen::Size;
use output::Line;
use std::collections::VecDeque;
use std::time::Duration;
use turns::{Phase, Raw};

/// How soon after output the program is looked at where it says its state by signals.
const GLANCE: Duration = Duration::from_millis(1);

/// Since when the program has been ready, and what said so.
#[derive(Debug, Clone, Copy)]
struct Since {
    at: Duration,
    signal: Signal,
    /// Whether words were waited for that were not painted yet.
    waits: bool,
}

/// Finds the turns of one session.
pub struct Detector {
    profile: Profile,
    now: Duration,
    keys: Keys,
    typed: Typed,
    /// Where the output was when the line began to be typed.
    typed_from: u64,
    tokens: Tokenizer,
    signals: Signals,
    tty: Option<TtyMode>,
    raw_seen: bool,
    canonical_seen: bool,
    output_at: Duration,
    tty_at: Duration,
    resized_at: Option<Duration>,
    look_at: Option<Duration>,
    line: Line,
    prompt: String,
    view: Option<View>,
    capture: Capture,
    raw: Option<Raw>,
    phase: Phase,
    ready: Option<Since>,
    light_at: Option<Duration>,
    interrupt_row: Option<usize>,
    state: State,
    signal: Option<Signal>,
    out: Vec<Happening>,
}

impl Detector {
    /// A detector for a session that starts now, in a window of this size.
    pub fn new(profile: Profile, size: Size) -> Self {
        let view = profile.needs_screen().then(|| View::new(&profile, size));
        Self {
            profile,
            now: Duration::ZERO,
            keys: Keys::new(),
            typed: Typed::default(),
            typed_from: 0,
            tokens: Tokenizer::new(),
            signals: Signals::default(),
            tty: None,
            raw_seen: false,
            canonical_seen: false,
            output_at: Duration::ZERO,
            tty_at: Duration::ZERO,
            resized_at: None,
            look_at: None,
            line: Line::default(),
            prompt: String::new(),
            view,
            capture: Capture::new(),
            raw: None,
            phase: Phase::Starting(VecDeque::new()),
            ready: None,
            light_at: None,
            interrupt_row: None,
            state: State::Starting,
            signal: None,
            out: Vec::new(),
        }
    }

    /// Keeps the program's output of a screen's turn, up to `bytes_max` of it.
    #[must_use]
    pub fn keep_raw(mut self, bytes_max: usize) -> Self {
        self.raw = Some(Raw::new(bytes_max));
        self
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// What the program does.
    pub fn state(&self) -> State {
        self.state
    }

    /// The signal that told the last prompt; none before the first.
    pub fn signal(&self) -> Option<Signal> {
        self.signal
    }

    /// How many bytes of the session are kept, beside the emulated screen. It is bounded.
    pub fn held_bytes(&self) -> usize {
        let screen = self.view.as_ref().map_or(0, View::held_bytes);
        let raw = self.raw.as_ref().map_or(0, Raw::held_bytes);
        self.line.held_bytes() + self.capture.held_bytes() + self.typed.held_bytes() + screen + raw
    }

    /// When the next [`Event::Tick`] is due. Tell the tty's mode before it.
    pub fn deadline(&self) -> Option<Duration> {
        let keys = self.keys.deadline();
        match (keys, self.look_at) {
            (Some(keys), Some(look)) => Some(keys.min(look)),
            (keys, look) => keys.or(look),
        }
    }

    /// Takes an event. `now` is the time since the start of the session.
    pub fn feed(&mut self, now: Duration, event: Event<'_>) -> Vec<Happening> {
        self.advance(now.max(self.now));
        match event {
            Event::Output(bytes) => self.output(bytes),
            Event::Input(bytes) => self.input(bytes),
            Event::TtyMode(mode) => self.tty_mode(mode),
            Event::Resize(size) => self.resize(size),
            Event::Interrupt => self.interrupt(),
            Event::Gap => self.gap(),
            Event::Tick => {}
        }
        std::mem::take(&mut self.out)
    }

    /// Lets time pass up to `now`, doing what is due on the way.
    fn advance(&mut self, now: Duration) {
        if now > self.now
            && let Some(view) = &mut self.view
        {
            view.paint();
        }
        while let Some(due) = self.deadline().filter(|due| *due <= now) {
            self.now = due.max(self.now);
            if let Some(key) = self.keys.expire(self.now) {
                self.key(key);
            }
            if self.look_at.is_some_and(|at| at <= self.now) {
                self.look_at = None;
                self.look();
            }
        }
        self.now = now;
    }

    fn tty_mode(&mut self, mode: TtyMode) {
        self.raw_seen |= !mode.canonical;
        self.canonical_seen |= mode.canonical;
        if self.tty != Some(mode) {
            self.tty = Some(mode);
            self.tty_at = self.now;
            self.look_soon();
        }
    }

    fn resize(&mut self, size: Size) {
        if let Some(view) = &mut self.view {
            view.resize(size);
        }
        self.resized_at = Some(self.now);
        self.look_soon();
    }

    fn gap(&mut self) {
        if let Some(view) = &mut self.view {
            view.gap();
        }
        self.tokens = Tokenizer::new();
        self.line.clear();
        self.mark_incomplete();
        self.look_soon();
    }

    /// Sees to it that the program is looked at when the output has settled.
    fn look_soon(&mut self) {
        let at = self.now + GLANCE;
        self.look_at = Some(if self.settles() {
            self.now + self.profile.settle
        } else {
            self.look_at.map_or(at, |look| look.min(at))
        });
    }

    /// Whether a prompt shows only when the output rests, because no signal tells it.
    fn settles(&self) -> bool {
        let is_told = self.signals.authority(false).is_some() || self.profile.rows.is_some();
        !is_told && self.has_weaker_signal()
    }

    /// Whether the profile has a signal below the voices: rows, a prompt or a line.
    fn has_weaker_signal(&self) -> bool {
        self.profile.rows.is_some() || self.profile.prompt.is_some() || self.profile.line.is_some()
    }

    /// Whether the program shows that it works, so that a submit without that makes no turn.
    fn shows_working(&self) -> bool {
        !self.is_stream() && self.profile.prompt.is_none()
    }

    fn is_stream(&self) -> bool {
        self.profile.content == ContentKind::Stream
    }
}
