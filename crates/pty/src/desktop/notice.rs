//! Shows a line to the user who pressed a key: as a desktop notification, or as a message in tmux.
//! A failure is returned; the caller decides whether it matters.

use std::process::Command;
use std::time::Duration;

use super::error::DesktopError;
use super::open::{Adapter, DesktopEnvironment};
use super::program;
use super::tmux::Tmux;

/// How long a notice may take; the user waits meanwhile.
const SHOW_TIME_MAX: Duration = Duration::from_secs(2);

/// A destination of notices.
#[derive(Debug, Clone)]
pub enum Notifier {
    /// `notify-send`, the desktop's own.
    Desktop,
    /// The message line of a tmux client.
    Tmux(Tmux),
}

impl Notifier {
    /// The notifier of the place where hotkeys are pressed; `None` where there is no display.
    pub fn for_hotkeys(hotkeys: Adapter, environment: &DesktopEnvironment) -> Option<Self> {
        match hotkeys {
            Adapter::Tmux => environment
                .tmux_socket()
                .map(|socket| Self::Tmux(Tmux::at(socket))),
            // Without a display there is nothing to show a notification on.
            _ if environment.display.is_some() || environment.wayland_display.is_some() => {
                Some(Self::Desktop)
            }
            _ => None,
        }
    }

    /// Shows a line.
    pub fn show(&self, text: &str) -> Result<(), DesktopError> {
        match self {
            Self::Tmux(tmux) => tmux.show_message(&format!("turnkeep: {text}")),
            Self::Desktop => {
                let mut command = Command::new("notify-send");
                command.args([
                    "--app-name=turnkeep",
                    "--expire-time=3000",
                    "--",
                    "Turnkeep",
                    text,
                ]);
                program::run_program(&mut command, "notify-send", b"", SHOW_TIME_MAX).map(drop)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_goes_to_where_the_key_was_pressed() {
        let tmux = || Some("/run/tmux-1000/default,17,0".to_owned());
        let display = || Some(":0".to_owned());
        for (hotkeys, environment, expect) in [
            (
                Adapter::Tmux,
                DesktopEnvironment {
                    tmux: tmux(),
                    display: display(),
                    ..Default::default()
                },
                "Tmux",
            ),
            (
                Adapter::X11,
                DesktopEnvironment {
                    tmux: tmux(),
                    display: display(),
                    ..Default::default()
                },
                "Desktop",
            ),
            (Adapter::X11, DesktopEnvironment::default(), "None"),
            (Adapter::Tmux, DesktopEnvironment::default(), "None"),
        ] {
            let notifier = match Notifier::for_hotkeys(hotkeys, &environment) {
                Some(Notifier::Tmux(tmux)) => {
                    assert_eq!(tmux.socket().to_str(), Some("/run/tmux-1000/default"));
                    "Tmux"
                }
                Some(Notifier::Desktop) => "Desktop",
                None => "None",
            };
            assert_eq!(notifier, expect);
        }
    }
}
