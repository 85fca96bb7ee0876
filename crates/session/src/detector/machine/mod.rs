//! The state machine of the detector: events in, detections out, and the time of the next
//! inspection.
//!
//! Time is the session's own (since its start) and never runs backwards. Events with the same time
//! count as one: the machine inspects the program only after time has moved on, so it makes no
//! difference how the bytes of one moment are cut. A prompt completes a turn; a timeout never does.
//! Everything kept has a limit: the line, the content, the screen, the typed input. No input makes
//! the machine fail.
//!
//! The parts: `output` and `input` read the bytes, `assess` decides what the program is doing,
//! `turns` opens and completes turns, `type_ahead` handles lines that were typed too early.

mod assess;
mod input;
mod output;
mod turns;
mod type_ahead;

use super::enter_counter::EnterCounter;
use super::event::{Detection, Event, Signal, State, TtyMode};
use super::fullscreen::{FullScreen, ProgramKind};
use super::keys::KeyParser;
use super::profile::{ContentKind, Profile};
use super::profile_screen::ProfileScreen;
use super::raw_output::RawOutput;
use super::signals::Signals;
use super::stream_content::StreamContent;
use super::typed_line::TypedLine;
use crate::screen::Size;
use crate::sequence::Tokenizer;
use output::OutputLine;
use std::collections::VecDeque;
use std::time::Duration;
use turns::Phase;

/// The delay between output and inspection where signals report the state. It only has to be longer
/// than zero, so that all bytes of one moment are read first.
const INSPECT_DELAY: Duration = Duration::from_millis(1);

/// The inspection that was scheduled when a moment began.
#[derive(Debug, Clone, Copy)]
struct ScheduledBefore {
    moment: Duration,
    inspect_at: Option<Duration>,
}

/// The time since which the program has been ready, and the signal that says so.
#[derive(Debug, Clone, Copy)]
struct ReadySince {
    at: Duration,
    signal: Signal,
    /// Whether the machine waited for words that were not painted yet.
    waited_for_words: bool,
}

/// Finds the turns of one session.
pub struct Detector {
    profile: Profile,
    now: Duration,
    keys: KeyParser,
    enters: EnterCounter,
    typed: TypedLine,
    /// The offset of the output at which the user began to type the current line.
    typed_from: u64,
    tokens: Tokenizer,
    signals: Signals,
    tty: Option<TtyMode>,
    raw_seen: bool,
    canonical_seen: bool,
    output_at: Duration,
    tty_at: Duration,
    resized_at: Option<Duration>,
    inspect_at: Option<Duration>,
    /// The inspection from before the last moment with output, so that the pieces of a moment
    /// schedule the same one together as each alone.
    scheduled_before: Option<ScheduledBefore>,
    line: OutputLine,
    prompt: String,
    screen: Option<ProfileScreen>,
    content: StreamContent,
    raw: Option<RawOutput>,
    /// Watches for a full-screen program where the profile allows one, and finds its turns.
    full_screen: Option<Box<FullScreen>>,
    /// Whether the program is known to be full-screen.
    is_full_screen: bool,
    phase: Phase,
    ready: Option<ReadySince>,
    reported_ready_at: Option<Duration>,
    interrupt_row: Option<usize>,
    state: State,
    signal: Option<Signal>,
    out: Vec<Detection>,
}

impl Detector {
    /// Creates a detector for a session that starts now, in a window of this size.
    pub fn new(profile: Profile, size: Size) -> Self {
        let screen = profile
            .needs_screen()
            .then(|| ProfileScreen::new(&profile, size));
        let full_screen = profile.full_screen.then(|| Box::new(FullScreen::new(size)));
        Self {
            profile,
            now: Duration::ZERO,
            keys: KeyParser::new(),
            enters: EnterCounter::new(),
            typed: TypedLine::default(),
            typed_from: 0,
            tokens: Tokenizer::new(),
            signals: Signals::default(),
            tty: None,
            raw_seen: false,
            canonical_seen: false,
            output_at: Duration::ZERO,
            tty_at: Duration::ZERO,
            resized_at: None,
            inspect_at: None,
            scheduled_before: None,
            line: OutputLine::default(),
            prompt: String::new(),
            screen,
            content: StreamContent::new(),
            raw: None,
            full_screen,
            is_full_screen: false,
            phase: Phase::Starting(VecDeque::new()),
            ready: None,
            reported_ready_at: None,
            interrupt_row: None,
            state: State::Starting,
            signal: None,
            out: Vec::new(),
        }
    }

    /// Keeps up to `bytes_max` bytes of the program's output beside each turn of a screen.
    #[must_use]
    pub fn keep_raw(mut self, bytes_max: usize) -> Self {
        self.raw = Some(RawOutput::new(bytes_max));
        if let Some(full_screen) = &mut self.full_screen {
            full_screen.keep_raw(bytes_max);
        }
        self
    }

    /// The profile that the session was started with.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The current state of the program.
    pub fn state(&self) -> State {
        self.active_full_screen()
            .map_or(self.state, FullScreen::state)
    }

    /// The signal that showed the last prompt; `None` before the first one.
    pub fn signal(&self) -> Option<Signal> {
        self.active_full_screen()
            .map_or(self.signal, FullScreen::signal)
    }

    /// How often the user pressed Enter since the last turn. A high number means that the profile
    /// does not fit the program.
    pub fn unanswered(&self) -> u32 {
        self.enters.count()
    }

    /// Where the content of the turns comes from. The answer changes when a program without a
    /// profile turns out to be full-screen.
    pub fn content(&self) -> ContentKind {
        if self.active_full_screen().is_some() {
            ContentKind::Screen
        } else {
            self.profile.content()
        }
    }

    /// How many bytes the detector holds, without the emulated screen. The number has an upper
    /// limit.
    pub fn held_bytes(&self) -> usize {
        let screen = self.screen.as_ref().map_or(0, ProfileScreen::held_bytes);
        let raw = self.raw.as_ref().map_or(0, RawOutput::held_bytes);
        let full_screen = self
            .full_screen
            .as_ref()
            .map_or(0, |full_screen| full_screen.held_bytes());
        let own = self.line.held_bytes() + self.content.held_bytes() + self.typed.held_bytes();
        own + screen + raw + full_screen
    }

    /// When the next [`Event::Tick`] is due. Send the tty's mode before it, so that the tick sees
    /// the current one.
    pub fn deadline(&self) -> Option<Duration> {
        let full_screen = self
            .full_screen
            .as_ref()
            .and_then(|full_screen| full_screen.deadline());
        if self.active_full_screen().is_some() {
            return full_screen;
        }
        [self.own_deadline(), full_screen]
            .into_iter()
            .flatten()
            .min()
    }

    fn own_deadline(&self) -> Option<Duration> {
        [self.keys.deadline(), self.inspect_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// The full-screen detector, once it has replaced the signals of the profile.
    fn active_full_screen(&self) -> Option<&FullScreen> {
        self.full_screen.as_deref().filter(|_| self.is_full_screen)
    }

    /// Applies an event and returns what was detected. `now` is the time since the start of the
    /// session.
    pub fn feed(&mut self, now: Duration, event: Event<'_>) -> Vec<Detection> {
        let mut detections = Vec::new();
        if now > self.now {
            detections = self.decide_kind(now);
        }
        detections.extend(match &mut self.full_screen {
            Some(full_screen) if self.is_full_screen => full_screen.feed(now, event),
            Some(full_screen) => {
                // The program is undecided, so the full-screen detector only learns. Its findings
                // are discarded.
                full_screen.feed(now, event);
                self.feed_own(now, event)
            }
            None => self.feed_own(now, event),
        });
        if detections
            .iter()
            .any(|detection| matches!(detection, Detection::Turn(_)))
        {
            self.enters.reset();
        }
        // After the turns: Enter at the end of a turn is the first one of the next.
        if let Event::Input(bytes) = event {
            self.enters.count_in(now.max(self.now), bytes);
        }
        detections
    }

    /// Decides whether the program reads lines or paints the whole screen, from everything that
    /// came before `now`. It runs only when time moves on: within one moment the answer would
    /// depend on how the bytes were cut.
    fn decide_kind(&mut self, now: Duration) -> Vec<Detection> {
        if self.full_screen.is_none() || self.is_full_screen {
            return Vec::new();
        }
        // The profile's own signals come first: a prompt that they see now makes this a line
        // program.
        let mut detections = self.feed_own(now, Event::Tick);
        let prompt_seen = !self.phase.is_starting();
        let Some(full_screen) = &mut self.full_screen else {
            return detections;
        };
        let reads_lines = match full_screen.kind() {
            ProgramKind::FullScreen => false,
            ProgramKind::LineProgram => true,
            // A prompt with rows painted below it may be a dialog of a full-screen program.
            ProgramKind::Undecided => prompt_seen && full_screen.ends_at_cursor(),
        };
        if reads_lines {
            self.full_screen = None;
            return detections;
        }
        let found = full_screen.feed(now, Event::Tick);
        self.is_full_screen = full_screen.kind() == ProgramKind::FullScreen;
        if self.is_full_screen {
            detections.extend(found);
        }
        detections
    }

    /// Applies an event by the signals of the profile.
    fn feed_own(&mut self, now: Duration, event: Event<'_>) -> Vec<Detection> {
        self.advance(now.max(self.now));
        match event {
            Event::Output(bytes) => self.handle_output(bytes),
            Event::Input(bytes) => self.handle_input(bytes),
            Event::TtyMode(mode) => self.note_tty_mode(mode),
            Event::Resize(size) => self.handle_resize(size),
            Event::Interrupt => self.handle_interrupt(),
            Event::Gap => self.handle_gap(),
            Event::Tick => {}
        }
        std::mem::take(&mut self.out)
    }

    /// Lets time pass up to `now` and does, in order, everything that is due on the way.
    fn advance(&mut self, now: Duration) {
        // Bytes of the last moment are complete now, so they can be painted as one frame.
        if now > self.now
            && let Some(screen) = &mut self.screen
        {
            screen.paint();
        }
        while let Some(due) = self.own_deadline().filter(|due| *due <= now) {
            self.now = due.max(self.now);
            if let Some(key) = self.keys.expire(self.now) {
                self.handle_key(key);
            }
            if self.inspect_at.is_some_and(|at| at <= self.now) {
                self.inspect_at = None;
                self.inspect();
            }
        }
        self.now = now;
    }

    fn note_tty_mode(&mut self, mode: TtyMode) {
        self.raw_seen |= !mode.canonical;
        self.canonical_seen |= mode.canonical;
        // A repeated mode must not postpone the rest of the output.
        if self.tty != Some(mode) {
            self.tty = Some(mode);
            self.tty_at = self.now;
            self.inspect_soon();
        }
    }

    fn handle_resize(&mut self, size: Size) {
        if let Some(screen) = &mut self.screen {
            screen.resize(size);
        }
        self.resized_at = Some(self.now);
        self.inspect_soon();
    }

    fn handle_gap(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.note_gap();
        }
        // The gap may have cut a sequence in half.
        self.tokens = Tokenizer::new();
        self.line.clear();
        self.mark_incomplete();
        self.inspect_soon();
    }

    /// Schedules an inspection for when the output has settled.
    fn inspect_soon(&mut self) {
        let at = self.now + INSPECT_DELAY;
        let before = self
            .scheduled_before
            .filter(|before| before.moment == self.now)
            .unwrap_or(ScheduledBefore {
                moment: self.now,
                inspect_at: self.inspect_at,
            });
        self.scheduled_before = Some(before);
        // Without a reporting signal, each output postpones the inspection: only a line at rest is
        // a prompt. Otherwise the earliest inspection wins, since a spinner would postpone it
        // forever.
        self.inspect_at = Some(if self.waits_for_rest() {
            self.now + self.profile.settle
        } else {
            before.inspect_at.map_or(at, |earlier| earlier.min(at))
        });
    }

    /// Whether a prompt is visible only when the output rests, because no signal reports it.
    fn waits_for_rest(&self) -> bool {
        let is_reported =
            self.signals.authoritative_report(false).is_some() || self.profile.rows.is_some();
        !is_reported && self.has_weaker_signal()
    }

    /// Whether the profile has a signal below the state sources: rows, a prompt or a line.
    fn has_weaker_signal(&self) -> bool {
        self.profile.rows.is_some() || self.profile.prompt.is_some() || self.profile.line.is_some()
    }

    /// Whether the program shows that it works. A submit that is not followed by work then makes no
    /// turn.
    fn shows_working(&self) -> bool {
        !self.is_stream() && self.profile.prompt.is_none()
    }

    fn is_stream(&self) -> bool {
        self.profile.content == ContentKind::Stream
    }
}
