//! The desktop around this process: what the environment says about it, and its clipboard for the broker.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use turnkeep_pty::desktop::open::Opened;
use turnkeep_pty::desktop::{Adapter, ClipboardProvider, Surroundings};
use turnkeep_server::broker::Clipboard;

use crate::config::process_environment;

/// The user's runtime directory.
pub(crate) fn runtime_dir() -> Option<PathBuf> {
    process_environment("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The desktop around this process.
pub(crate) fn surroundings() -> Surroundings {
    let terminal = Path::new("/dev/tty");
    Surroundings {
        display: process_environment("DISPLAY"),
        wayland_display: process_environment("WAYLAND_DISPLAY"),
        tmux: process_environment("TMUX"),
        // The broker's directory, which only this user may enter.
        runtime_dir: runtime_dir().unwrap_or_default().join("turnkeep"),
        terminal: std::fs::OpenOptions::new().write(true).open(terminal).is_ok().then(|| terminal.to_owned()),
    }
}

/// The clipboard that the broker fills. It is opened when it is first needed, because the broker may be
/// older than the desktop, and opened anew after a failure, because a desktop may go and come back.
pub(crate) struct DesktopClipboard {
    adapter: Adapter,
    opened: Mutex<Option<Opened<dyn ClipboardProvider>>>,
}

impl DesktopClipboard {
    /// The clipboard of an adapter.
    pub(crate) fn new(adapter: Adapter) -> Self {
        Self { adapter, opened: Mutex::new(None) }
    }
}

impl Clipboard for DesktopClipboard {
    fn write(&self, content: &[u8]) -> Result<(), String> {
        // What is behind a poisoned lock is dropped and opened anew.
        let mut place = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let mut opened = match place.take() {
            Some(opened) => opened,
            None => surroundings().clipboard(self.adapter).map_err(|error| error.to_string())?,
        };
        opened.part.write(content).map_err(|error| error.to_string())?;
        *place = Some(opened);
        Ok(())
    }
}
