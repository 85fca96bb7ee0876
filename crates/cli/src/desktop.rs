//! Reads the desktop's settings from the environment, once, and passes them on as values.

use std::path::{Path, PathBuf};

use turnkeep_pty::desktop::DesktopEnvironment;

use crate::config::process_environment;

/// The user's runtime directory.
pub(crate) fn runtime_dir() -> Option<PathBuf> {
    process_environment("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// The desktop around this process.
pub(crate) fn desktop_environment() -> DesktopEnvironment {
    let terminal = Path::new("/dev/tty");
    DesktopEnvironment {
        display: process_environment("DISPLAY"),
        wayland_display: process_environment("WAYLAND_DISPLAY"),
        tmux: process_environment("TMUX"),
        // The broker's directory, which only this user may enter.
        runtime_dir: runtime_dir().unwrap_or_default().join("turnkeep"),
        // Opening proves that there is a controlling terminal: the path exists without one, too.
        terminal: std::fs::OpenOptions::new()
            .write(true)
            .open(terminal)
            .is_ok()
            .then(|| terminal.to_owned()),
    }
}
