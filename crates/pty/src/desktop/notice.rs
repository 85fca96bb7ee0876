//! A word to the person who pressed a key: a desktop notification, or a message in tmux.

use std::process::Command;
use std::time::Duration;

use super::error::DesktopError;
use super::open::{Adapter, Surroundings};
use super::program;
use super::tmux::Tmux;

/// A person waits: what takes longer is not shown.
const SHOW_TIME_MAX: Duration = Duration::from_secs(2);

/// Where notices go.
#[derive(Debug, Clone)]
pub enum Notifier {
    /// `notify-send`, the desktop's own.
    Desktop,
    /// The message line of a tmux client.
    Tmux(Tmux),
}

impl Notifier {
    /// The one that belongs to where hotkeys are pressed; none where there is nothing to show one
    /// on.
    pub fn beside(hotkeys: Adapter, surroundings: &Surroundings) -> Option<Self> {
        match hotkeys {
            Adapter::Tmux => surroundings
                .tmux_socket()
                .map(|socket| Self::Tmux(Tmux::at(socket))),
            _ if surroundings.display.is_some() || surroundings.wayland_display.is_some() => {
                Some(Self::Desktop)
            }
            _ => None,
        }
    }

    /// Shows a line.
    pub fn show(&self, text: &str) -> Result<(), DesktopError> {
        match self {
            Self::Tmux(tmux) => tmux.show(&format!("turnkeep: {text}")),
            Self::Desktop => {
                let mut command = Command::new("notify-send");
                command.args([
                    "--app-name=turnkeep",
                    "--expire-time=3000",
                    "--",
                    "Turnkeep",
                    text,
                ]);
                program::run(&mut command, "notify-send", b"", SHOW_TIME_MAX).map(drop)
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
        for (hotkeys, surroundings, expect) in [
            (
                Adapter::Tmux,
                Surroundings {
                    tmux: tmux(),
                    display: display(),
                    ..Default::default()
                },
                "Tmux",
            ),
            (
                Adapter::X11,
                Surroundings {
                    tmux: tmux(),
                    display: display(),
                    ..Default::default()
                },
                "Desktop",
            ),
            (Adapter::X11, Surroundings::default(), "None"),
            (Adapter::Tmux, Surroundings::default(), "None"),
        ] {
            let notifier = match Notifier::beside(hotkeys, &surroundings) {
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
