//! The Wayland clipboard under a real compositor without a screen, against `wl-copy` and
//! `wl-paste`.
//!
//! The library finds the compositor by the environment, so the test runs itself again in one.

use std::fs;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use turnkeep_pty::desktop::{ClipboardProvider, WaylandClipboard};

use crate::program::{Running, eventually, noise, output};

/// The user that runs the compositor in root's place, because it refuses root.
const NOBODY: u32 = 65534;

struct Compositor {
    _sway: Running,
    folder: TempDir,
    display: String,
}

impl Compositor {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        fs::write(&config, "xwayland disable\n").unwrap();
        let mut command = if rustix::process::getuid().is_root() {
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            let mut command = Command::new("setpriv");
            command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]);
            command.args(["--clear-groups", "sway"]);
            command
        } else {
            Command::new("sway")
        };
        command
            .arg("-c")
            .arg(&config)
            .env("XDG_RUNTIME_DIR", folder.path())
            .env("HOME", folder.path());
        command
            .env("WLR_BACKENDS", "headless")
            .env("WLR_LIBINPUT_NO_DEVICES", "1")
            .env("WLR_RENDERER", "pixman");
        let mut sway = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()), "sway");
        let display = eventually("the compositor listens", || {
            let ended = sway.0.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "no compositor: install the Debian package sway ({ended:?})"
            );
            let names = fs::read_dir(folder.path()).unwrap();
            let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.find(|name| name.starts_with("wayland-") && !name.contains('.'))
        });
        Self {
            _sway: sway,
            folder,
            display,
        }
    }
}

#[test]
fn what_is_written_is_pasted_by_others_and_the_other_way_round() {
    let compositor = Compositor::start();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "wayland::inside_a_compositor"]);
    command
        .env("XDG_RUNTIME_DIR", compositor.folder.path())
        .env("WAYLAND_DISPLAY", &compositor.display);
    let done = output(&mut command, "sway", b"");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "needs a compositor of its own: the test above runs it in one"]
fn inside_a_compositor() {
    let mut clipboard = WaylandClipboard::open().unwrap();
    assert_eq!(
        clipboard.read().unwrap_err().to_string(),
        "the clipboard holds no text"
    );
    for size in [10, 5 << 20] {
        let content = noise(size);
        clipboard.write(&content).unwrap();
        let paste = ["--no-newline", "--type", "text/plain;charset=utf-8"];
        // The compositor may hear of `wl-paste` before it hears of the new content.
        eventually(&format!("{size} bytes by wl-paste"), || {
            let pasted = output(Command::new("wl-paste").args(paste), "wl-clipboard", b"");
            (pasted.stdout == content).then_some(())
        });
        assert!(
            clipboard.read().unwrap() == content,
            "{size} bytes by ourselves"
        );
    }
    let mut other = Command::new("wl-copy");
    let _other = Running::start(other.args(["--foreground", "--", "theirs"]), "wl-clipboard");
    eventually("the other program's content is read", || {
        clipboard
            .read()
            .is_ok_and(|content| content == b"theirs")
            .then_some(())
    });
}
