//! The detector: `feed(now, event)` gives what happened; `deadline()` says when it wants to be
//! woken.
//!
//! A [`Profile`] says, as data, by which signals a program shows that it is ready, and where the
//! content of its turns comes from; [`presets`] has the shipped ones. The [`Detector`] is a state
//! machine over the bytes of one session: it knows no clock and does no I/O, and no bytes make it
//! fail. How to write a profile is told in `docs/turn-detection.md`.

mod enter_counter;
mod event;
mod fill;
mod fullscreen;
#[doc(hidden)]
pub mod fuzz;
mod keys;
mod machine;
mod presets;
mod profile;
mod profile_screen;
mod raw_output;
mod recording;
mod render;
mod sequence;
mod signals;
mod stream_content;
mod typed_line;

pub(crate) use render::render as render_stream;

pub use crate::pattern::{Pattern, PatternError};
pub use crate::screen::Size;
pub use event::{Event, Happening, Signal, State, TtyMode, Turn};
pub use machine::Detector;
pub use presets::{GENERIC, PresetError, Presets, presets};
pub use profile::{
    ContentKind, InterruptSpec, LINE_SETTLE, Profile, ProfileError, ProfileSpec, PromptSpec,
    RowsSpec, TitleSpec,
};
pub use recording::{Entry, Recorded, RecordingError, parse_recording, replay};
