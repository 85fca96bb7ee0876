//! Finds the turns of one session in its terminal bytes.
//!
//! The caller feeds events with `Detector::feed(now, event)` and gets back what was detected; it
//! sends the next [`Event::Tick`] when [`Detector::deadline`] is due. A [`Profile`] says, as data,
//! which signals show that a program is ready and where the content of its turns comes from;
//! [`presets`] returns the shipped ones. The [`Detector`] reads no clock and does no I/O. Any bytes
//! are valid input: only a profile can be rejected. `docs/turn-detection.md` explains how to write
//! one.

mod enter_counter;
mod event;
mod fill;
mod fullscreen;
#[doc(hidden)]
#[cfg(any(test, feature = "dev"))]
pub mod fuzz;
mod keys;
mod machine;
mod presets;
mod profile;
mod profile_screen;
mod raw_output;
mod recording;
mod render;
mod signals;
mod stream_content;
mod typed_line;

pub(crate) use render::render as render_stream;

pub use crate::pattern::{Pattern, PatternError};
pub use crate::screen::Size;
pub use event::{Detection, Event, Signal, State, TtyMode, Turn};
pub use machine::Detector;
pub use presets::{GENERIC, PresetError, Presets, presets};
pub use profile::{
    ContentKind, InterruptSpec, LINE_SETTLE, Profile, ProfileError, ProfileSpec, PromptSpec,
    RowsSpec, TitleSpec,
};
pub use recording::{Entry, Recorded, RecordingError, parse_recording, replay};
