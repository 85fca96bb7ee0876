//! The errors of the desktop: it is missing, it refuses, or it does not know. Each names the
//! adapter, program or display that failed.

use std::io;

use super::binding::Binding;
use super::open::Adapter;

/// The reason why a desktop cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DesktopError {
    /// No adapter answers here.
    #[error("found no desktop that offers {what}: {tried}")]
    NotFound {
        /// What was wanted.
        what: &'static str,
        /// What was tried, and why each failed.
        tried: String,
    },
    /// The adapter lacks this feature.
    #[error("{adapter} offers no {what}")]
    Unsupported {
        /// The adapter that was asked for.
        adapter: Adapter,
        /// What it lacks.
        what: &'static str,
    },
    /// The X server cannot be reached.
    #[error("cannot connect to the X display `{display}`: {source}")]
    X11Connect {
        /// The display's name.
        display: String,
        /// Why.
        source: Box<x11rb::errors::ConnectError>,
    },
    /// The X server is gone or refused.
    #[error("the X server: {0}")]
    X11(Box<x11rb::errors::ReplyOrIdError>),
    /// A program that the adapter uses failed.
    #[error("`{command}` failed: {message}")]
    Program {
        /// What was run.
        command: String,
        /// What it said.
        message: String,
    },
    /// A program did not end in time.
    #[error("`{command}` did not end within {seconds} s")]
    ProgramStuck {
        /// What was run.
        command: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A file or a pipe failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl DesktopError {
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

macro_rules! x11_errors {
    ($($error:ty),*) => {
        $(impl From<$error> for DesktopError {
            fn from(error: $error) -> Self {
                Self::X11(Box::new(error.into()))
            }
        })*
    };
}

x11_errors!(
    x11rb::errors::ConnectionError,
    x11rb::errors::ReplyError,
    x11rb::errors::ReplyOrIdError
);

/// The reason why the focused session is unknown.
#[derive(Debug, thiserror::Error)]
pub enum FocusError {
    /// Nothing has focus.
    #[error("nothing has focus")]
    Nothing,
    /// The focused window does not name its process.
    #[error("the focused window 0x{window:x} does not say which process it belongs to")]
    NoProcess {
        /// The window.
        window: u32,
    },
    /// No session runs in the focused window or pane.
    #[error("no session runs in what has focus (process {process})")]
    NoSession {
        /// The process that has focus.
        process: u32,
    },
    /// More than one session could be meant.
    #[error("several sessions run in what has focus: {}", sessions.join(", "))]
    Ambiguous {
        /// All of them.
        sessions: Vec<String>,
    },
    /// The desktop cannot be asked.
    #[error(transparent)]
    Desktop(#[from] DesktopError),
}

/// The reason why the clipboard could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ClipboardError {
    /// The clipboard holds nothing, or no text.
    #[error("the clipboard holds no text")]
    Empty,
    /// This clipboard cannot hold empty content.
    #[error(
        "there is nothing to copy: {adapter} holds no empty clipboard and keeps the one before"
    )]
    NoEmptyContent {
        /// The adapter.
        adapter: Adapter,
    },
    /// The content is larger than the clipboard carries.
    #[error("{bytes} bytes are more than the {max} that this clipboard carries")]
    TooLarge {
        /// What there was.
        bytes: usize,
        /// What fits.
        max: usize,
    },
    /// Another program became the owner at the same moment.
    #[error("another program took the clipboard at the same moment")]
    NotOwner,
    /// The owner of the clipboard does not answer.
    #[error("the owner of the clipboard did not answer within {seconds} s")]
    Stuck {
        /// How long it was waited for.
        seconds: u64,
    },
    /// This clipboard cannot be read.
    #[error("{adapter} can write a clipboard but not read it")]
    WriteOnly {
        /// The adapter.
        adapter: Adapter,
    },
    /// The Wayland compositor failed.
    #[error("the Wayland clipboard: {0}")]
    Wayland(String),
    /// The desktop cannot be used.
    #[error(transparent)]
    Desktop(#[from] DesktopError),
}

/// A combination that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedBinding {
    /// Its index in the registered bindings.
    pub index: usize,
    /// The combination.
    pub binding: Binding,
    /// Why.
    pub reason: RefusalReason,
}

/// The reason why a combination was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusalReason {
    /// Another program has it.
    #[error("another program has taken it")]
    Taken,
    /// The keyboard has no such key.
    #[error("the keyboard has no such key")]
    NoSuchKey,
    /// A terminal cannot send this combination.
    #[error("tmux cannot tell it: a terminal sends no {0}")]
    NotInTerminals(&'static str),
}
