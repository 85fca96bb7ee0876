//! Plays a session that a test describes: input, output and the time between them.

use std::time::Duration;
use turnkeep_session::detector::{
    Detection, Detector, Event, Profile, Size, State, TtyMode, Turn, presets,
};

/// How long nothing happens in [`Play::rest`]: longer than any settle time.
const REST: Duration = Duration::from_secs(1);

/// How the bytes of a moment reach the detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Whole,
    Bytes,
    At(usize),
}

/// One step of a session.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Print(Vec<u8>),
    Type(Vec<u8>),
    Rest,
    Wait(u64),
    Raw,
    Canonical,
    Interrupt,
}

/// A session that was written down.
#[derive(Debug, Clone, Default)]
pub(crate) struct Play(Vec<Step>);

impl Play {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn step(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    /// The program prints.
    pub(crate) fn print(self, text: &str) -> Self {
        self.step(Step::Print(text.as_bytes().to_vec()))
    }

    /// The program prints bytes.
    pub(crate) fn print_bytes(self, bytes: &[u8]) -> Self {
        self.step(Step::Print(bytes.to_vec()))
    }

    /// Something is typed, without an echo.
    pub(crate) fn keys(self, text: &str) -> Self {
        self.step(Step::Type(text.as_bytes().to_vec()))
    }

    /// A line is typed and echoed by the tty.
    pub(crate) fn submit(self, line: &str) -> Self {
        self.keys(line).print(line).keys("\r").print("\r\n")
    }

    /// Nothing happens for a while.
    pub(crate) fn rest(self) -> Self {
        self.step(Step::Rest)
    }

    /// Milliseconds pass.
    pub(crate) fn wait(self, milliseconds: u64) -> Self {
        self.step(Step::Wait(milliseconds))
    }

    /// The tty becomes raw.
    pub(crate) fn raw(self) -> Self {
        self.step(Step::Raw)
    }

    /// The tty becomes canonical.
    pub(crate) fn canonical(self) -> Self {
        self.step(Step::Canonical)
    }

    /// SIGINT is passed on.
    pub(crate) fn signal(self) -> Self {
        self.step(Step::Interrupt)
    }

    /// The longest print.
    pub(crate) fn longest(&self) -> usize {
        self.0
            .iter()
            .map(|step| {
                if let Step::Print(bytes) = step {
                    bytes.len()
                } else {
                    0
                }
            })
            .max()
            .unwrap_or(0)
    }

    /// The detections with a profile.
    pub(crate) fn detections(&self, profile: Profile, cut: Cut) -> Vec<Detection> {
        let mut detector = Detector::new(profile, Size { cols: 80, rows: 24 });
        let mut now = Duration::ZERO;
        let mut out = Vec::new();
        for step in &self.0 {
            match step {
                Step::Print(bytes) => pieces(bytes, cut)
                    .into_iter()
                    .for_each(|piece| out.extend(detector.feed(now, Event::Output(piece)))),
                Step::Type(bytes) => pieces(bytes, cut)
                    .into_iter()
                    .for_each(|piece| out.extend(detector.feed(now, Event::Input(piece)))),
                Step::Rest => now += REST,
                Step::Wait(milliseconds) => now += Duration::from_millis(*milliseconds),
                Step::Raw => out.extend(detector.feed(now, tty(false))),
                Step::Canonical => out.extend(detector.feed(now, tty(true))),
                Step::Interrupt => out.extend(detector.feed(now, Event::Interrupt)),
            }
            out.extend(detector.feed(now, Event::Tick));
        }
        out
    }

    /// The turns with a profile.
    pub(crate) fn turns_of(&self, profile: Profile, cut: Cut) -> Vec<Turn> {
        let turn = |detection| match detection {
            Detection::Turn(turn) => Some(*turn),
            Detection::Ready | Detection::State(_) => None,
        };
        self.detections(profile, cut)
            .into_iter()
            .filter_map(turn)
            .collect()
    }

    /// The turns with a shipped profile.
    pub(crate) fn turns(&self, preset: &str) -> Vec<Turn> {
        self.turns_of(presets().get(preset).unwrap(), Cut::Whole)
    }

    /// The states that the program goes through.
    pub(crate) fn states(&self, preset: &str) -> Vec<State> {
        let state = |detection| {
            if let Detection::State(state) = detection {
                Some(state)
            } else {
                None
            }
        };
        self.detections(presets().get(preset).unwrap(), Cut::Whole)
            .into_iter()
            .filter_map(state)
            .collect()
    }
}

fn tty(canonical: bool) -> Event<'static> {
    Event::TtyMode(TtyMode {
        canonical,
        echo: canonical,
    })
}

fn pieces(bytes: &[u8], cut: Cut) -> Vec<&[u8]> {
    match cut {
        Cut::Whole => vec![bytes],
        Cut::Bytes => bytes.chunks(1).collect(),
        Cut::At(at) => {
            let (head, tail) = bytes.split_at(at.min(bytes.len()));
            vec![head, tail]
        }
    }
}
