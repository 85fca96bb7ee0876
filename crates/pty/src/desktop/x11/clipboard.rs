//! The CLIPBOARD selection: writing starts a thread that owns it, reading asks its owner.
//!
//! On X11 a clipboard is not a place but a promise: its owner must stay to answer. The thread runs
//! until another program owns the selection or this value is dropped. The next write takes the
//! selection from it; readers in the middle of a large content still get the rest.

use std::collections::VecDeque;
use std::io::{PipeWriter, pipe};
use std::thread::{self, JoinHandle};

use super::selection_owner::SelectionOwner;
use super::{connect, selection_reader};
use crate::desktop::ClipboardProvider;
use crate::desktop::error::{ClipboardError, DesktopError};

/// How many replaced contents may still be read; beyond that the oldest is dropped.
const FINISHING_MAX: usize = 8;

/// The clipboard of an X display.
#[derive(Debug)]
pub struct X11Clipboard {
    display: String,
    serving: Option<OwnerThread>,
    /// Earlier owners, which have lost the selection and finish their transfers.
    finishing: VecDeque<OwnerThread>,
}

impl X11Clipboard {
    /// The clipboard of a display, after a test connection.
    pub fn connect(display: &str) -> Result<Self, DesktopError> {
        connect(display)?;
        Ok(Self {
            display: display.to_owned(),
            serving: None,
            finishing: VecDeque::new(),
        })
    }

    /// Whether other programs still paste what was written last.
    pub fn is_owner(&self) -> bool {
        self.serving
            .as_ref()
            .is_some_and(|serving| !serving.has_ended())
    }
}

impl ClipboardProvider for X11Clipboard {
    fn write(&mut self, content: &[u8]) -> Result<(), ClipboardError> {
        // Claimed before the old owner ends, so that the clipboard is never empty in between.
        let owner = SelectionOwner::claim(&self.display, content.to_vec())?;
        let before = self.serving.replace(OwnerThread::start(owner)?);
        self.finishing.extend(before);
        self.finishing.retain(|serving| !serving.has_ended());
        while self.finishing.len() > FINISHING_MAX {
            self.finishing.pop_front();
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<u8>, ClipboardError> {
        selection_reader::read_clipboard(&self.display)
    }
}

/// A thread that serves a selection.
#[derive(Debug)]
struct OwnerThread {
    /// Closing it ends the thread.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl OwnerThread {
    fn start(owner: SelectionOwner) -> Result<Self, DesktopError> {
        let (stopped, stop) = pipe().map_err(DesktopError::io("cannot make a pipe"))?;
        let serve = move || {
            if let Err(error) = owner.serve(&stopped) {
                tracing::warn!(%error, "the clipboard was lost");
            }
        };
        let thread = thread::Builder::new()
            .name("x11-clipboard".to_owned())
            .spawn(serve);
        let thread = thread.map_err(DesktopError::io("cannot start a thread for the clipboard"))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for OwnerThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("the clipboard's thread panicked");
        }
    }
}
