//! Paste buffers: `prefix ]` pastes the newest one without a name. An empty content is rejected,
//! because tmux would keep the one before.

use super::Tmux;
use crate::desktop::error::{ClipboardError, DesktopError};
use crate::desktop::{Adapter, ClipboardProvider};

/// The newest paste buffer of a server.
#[derive(Debug)]
pub struct TmuxBuffers {
    tmux: Tmux,
}

impl TmuxBuffers {
    /// The buffers of a server.
    pub fn new(tmux: Tmux) -> Self {
        Self { tmux }
    }
}

impl ClipboardProvider for TmuxBuffers {
    fn write(&mut self, content: &[u8]) -> Result<(), ClipboardError> {
        // tmux silently drops an empty buffer, and would paste the one before.
        if content.is_empty() {
            return Err(ClipboardError::NoEmptyContent {
                adapter: Adapter::Tmux,
            });
        }
        self.tmux.run_command(&["load-buffer", "-"], content)?;
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<u8>, ClipboardError> {
        match self.tmux.run_command(&["save-buffer", "-"], b"") {
            Ok(content) => Ok(content),
            Err(DesktopError::Program { message, .. }) if message == "no buffers" => {
                Err(ClipboardError::Empty)
            }
            Err(error) => Err(error.into()),
        }
    }
}
