//! Chooses the adapter: the one that the configuration names, or with `detect` the first that
//! answers.
//!
//! Inside tmux, focus and hotkeys are tmux's: an X server sees only one window there, however many
//! panes. The clipboard is the desktop's where there is one, since only that reaches other
//! programs. If no adapter opens, the error lists what was tried.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::osc52::{Osc52, Osc52Framing};
use super::tmux::{Tmux, TmuxBuffers, TmuxFocus, TmuxHotkeys};
use super::wayland::WaylandClipboard;
use super::x11::{X11Clipboard, X11Focus, X11Hotkeys};
use super::{Binding, ClipboardProvider, DesktopError, HotkeyProvider, SessionResolver};

/// A way to reach a desktop, by its name in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Adapter {
    /// The first that answers.
    #[default]
    Detect,
    /// An X server.
    X11,
    /// A tmux server.
    Tmux,
    /// A Wayland compositor; clipboard only.
    Wayland,
    /// The terminal's own clipboard; write only.
    Osc52,
}

impl Adapter {
    const NAMES: [(Self, &'static str); 5] = [
        (Self::Detect, "detect"),
        (Self::X11, "x11"),
        (Self::Tmux, "tmux"),
        (Self::Wayland, "wayland"),
        (Self::Osc52, "osc52"),
    ];

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .into_iter()
            .find(|(adapter, _)| *adapter == self)
            .map_or("detect", |(_, name)| name)
    }

    /// The default combinations for capture and paste: a terminal has no Super key.
    pub fn default_bindings(self) -> [&'static str; 2] {
        match self {
            Self::Tmux => ["Alt+Shift+C", "Alt+Shift+V"],
            _ => ["Super+Shift+C", "Super+Shift+V"],
        }
    }
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no adapter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected detect, x11, tmux, wayland or osc52")]
pub struct UnknownAdapter;

impl FromStr for Adapter {
    type Err = UnknownAdapter;

    fn from_str(text: &str) -> Result<Self, UnknownAdapter> {
        Self::NAMES
            .into_iter()
            .find(|(_, name)| *name == text)
            .map(|(adapter, _)| adapter)
            .ok_or(UnknownAdapter)
    }
}

/// A text that names no adapter with hotkeys and focus.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected detect, x11 or tmux (wayland and osc52 have a clipboard and nothing else)")]
pub struct NoHotkeyAdapter;

impl Adapter {
    /// Parses the name of an adapter that may have hotkeys and focus.
    pub fn parse_for_keys(text: &str) -> Result<Self, NoHotkeyAdapter> {
        let named = text.parse().ok();
        named
            .filter(|adapter| !matches!(adapter, Self::Wayland | Self::Osc52))
            .ok_or(NoHotkeyAdapter)
    }
}

/// The environment variables and paths that lead to a desktop.
#[derive(Debug, Clone, Default)]
pub struct DesktopEnvironment {
    /// `DISPLAY`.
    pub display: Option<String>,
    /// `WAYLAND_DISPLAY`.
    pub wayland_display: Option<String>,
    /// `TMUX`: socket, server and session, separated by commas.
    pub tmux: Option<String>,
    /// The directory for the hotkey pipe; no other user may write there.
    pub runtime_dir: PathBuf,
    /// The terminal, if there is one.
    pub terminal: Option<PathBuf>,
}

/// An opened provider, and its adapter.
pub struct Opened<T: ?Sized> {
    /// The adapter that answered.
    pub adapter: Adapter,
    /// The provider.
    pub provider: Box<T>,
}

const FOCUS: &str = "focus";
const HOTKEYS: &str = "hotkeys";
const CLIPBOARD: &str = "clipboard";

impl DesktopEnvironment {
    /// Opens the provider of focus.
    pub fn resolver(&self, adapter: Adapter) -> Result<Opened<dyn SessionResolver>, DesktopError> {
        open_first::<dyn SessionResolver>(
            adapter,
            &[Adapter::Tmux, Adapter::X11],
            FOCUS,
            |adapter| match adapter {
                Adapter::X11 => Ok(Box::new(X11Focus::connect(self.x_display()?)?)),
                Adapter::Tmux => Ok(Box::new(TmuxFocus::new(self.tmux_server(FOCUS)?))),
                adapter => Err(DesktopError::Unsupported {
                    adapter,
                    what: FOCUS,
                }),
            },
        )
    }

    /// Opens the provider of hotkeys.
    pub fn hotkeys(&self, adapter: Adapter) -> Result<Opened<dyn HotkeyProvider>, DesktopError> {
        open_first::<dyn HotkeyProvider>(
            adapter,
            &[Adapter::Tmux, Adapter::X11],
            HOTKEYS,
            |adapter| match adapter {
                Adapter::X11 => Ok(Box::new(X11Hotkeys::connect(self.x_display()?)?)),
                Adapter::Tmux => Ok(Box::new(TmuxHotkeys::new(
                    self.tmux_server(HOTKEYS)?,
                    &self.runtime_dir,
                )?)),
                adapter => Err(DesktopError::Unsupported {
                    adapter,
                    what: HOTKEYS,
                }),
            },
        )
    }

    /// Opens the provider of the clipboard.
    pub fn clipboard(
        &self,
        adapter: Adapter,
    ) -> Result<Opened<dyn ClipboardProvider>, DesktopError> {
        let order = [
            Adapter::Wayland,
            Adapter::X11,
            Adapter::Tmux,
            Adapter::Osc52,
        ];
        open_first::<dyn ClipboardProvider>(adapter, &order, CLIPBOARD, |adapter| match adapter {
            Adapter::X11 => Ok(Box::new(X11Clipboard::connect(self.x_display()?)?)),
            Adapter::Tmux => Ok(Box::new(TmuxBuffers::new(self.tmux_server(CLIPBOARD)?))),
            Adapter::Wayland => self.open_wayland(),
            Adapter::Osc52 => self.open_osc52(),
            adapter @ Adapter::Detect => Err(DesktopError::Unsupported {
                adapter,
                what: CLIPBOARD,
            }),
        })
    }

    fn x_display(&self) -> Result<&str, DesktopError> {
        self.display
            .as_deref()
            .ok_or_else(|| clipboard_not_found("DISPLAY is not set"))
    }

    /// The socket of the tmux server that we run in.
    pub(super) fn tmux_socket(&self) -> Option<&str> {
        let socket = self.tmux.as_deref().and_then(|tmux| tmux.split(',').next());
        socket.filter(|socket| !socket.is_empty())
    }

    fn tmux_server(&self, what: &'static str) -> Result<Tmux, DesktopError> {
        let absent = || DesktopError::NotFound {
            what,
            tried: "TMUX is not set".to_owned(),
        };
        let tmux = Tmux::at(self.tmux_socket().ok_or_else(absent)?);
        tmux.probe().map(|()| tmux)
    }

    fn open_wayland(&self) -> Result<Box<dyn ClipboardProvider>, DesktopError> {
        if self.wayland_display.is_none() {
            return Err(clipboard_not_found("WAYLAND_DISPLAY is not set"));
        }
        let opened =
            WaylandClipboard::open().map_err(|error| clipboard_not_found(&error.to_string()))?;
        Ok(Box::new(opened))
    }

    fn open_osc52(&self) -> Result<Box<dyn ClipboardProvider>, DesktopError> {
        let terminal = self
            .terminal
            .clone()
            .ok_or_else(|| clipboard_not_found("there is no terminal"))?;
        // tmux swallows the sequence unless it is wrapped.
        let framing = if self.tmux.is_some() {
            Osc52Framing::Tmux
        } else {
            Osc52Framing::Plain
        };
        Ok(Box::new(Osc52::new(terminal, framing)))
    }
}

fn clipboard_not_found(why: &str) -> DesktopError {
    DesktopError::NotFound {
        what: CLIPBOARD,
        tried: why.to_owned(),
    }
}

/// Opens the named adapter, or the first of the order that opens.
fn open_first<T: ?Sized>(
    named: Adapter,
    order: &[Adapter],
    what: &'static str,
    open: impl Fn(Adapter) -> Result<Box<T>, DesktopError>,
) -> Result<Opened<T>, DesktopError> {
    // A named adapter is not replaced silently by another.
    if named != Adapter::Detect {
        return Ok(Opened {
            adapter: named,
            provider: open(named)?,
        });
    }
    let mut tried = Vec::new();
    for adapter in order.iter().copied() {
        match open(adapter) {
            Ok(provider) => return Ok(Opened { adapter, provider }),
            Err(DesktopError::NotFound { tried: why, .. }) => {
                tried.push(format!("{adapter}: {why}"));
            }
            Err(error) => tried.push(format!("{adapter}: {error}")),
        }
    }
    Err(DesktopError::NotFound {
        what,
        tried: tried.join("; "),
    })
}

/// The default bindings of an adapter.
pub fn default_bindings(adapter: Adapter) -> Vec<Binding> {
    adapter
        .default_bindings()
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_is_everything_that_was_tried_is_said() {
        let nowhere = DesktopEnvironment::default();
        for (error, expect) in [
            (
                nowhere.resolver(Adapter::Detect).err(),
                "found no desktop that offers focus: tmux: TMUX is not set; x11: DISPLAY is not set",
            ),
            (
                nowhere.clipboard(Adapter::Detect).err(),
                "found no desktop that offers clipboard: wayland: WAYLAND_DISPLAY is not set; \
                 x11: DISPLAY is not set; tmux: TMUX is not set; osc52: there is no terminal",
            ),
            (
                nowhere.hotkeys(Adapter::Wayland).err(),
                "wayland offers no hotkeys",
            ),
            (
                nowhere.resolver(Adapter::Osc52).err(),
                "osc52 offers no focus",
            ),
        ] {
            assert_eq!(error.unwrap().to_string(), expect);
        }
    }

    #[test]
    fn a_terminal_alone_has_a_clipboard() {
        let terminal = Some(PathBuf::from("/dev/tty"));
        let opened = DesktopEnvironment {
            terminal,
            ..DesktopEnvironment::default()
        }
        .clipboard(Adapter::Detect);
        assert_eq!(opened.unwrap().adapter, Adapter::Osc52);
    }

    #[test]
    fn adapters_read_as_they_are_shown_and_have_bindings() {
        for (adapter, name) in Adapter::NAMES {
            assert_eq!(name.parse(), Ok(adapter));
            assert_eq!(default_bindings(adapter).len(), 2, "{adapter}");
        }
        assert_eq!("wayward".parse::<Adapter>(), Err(UnknownAdapter));
        assert_eq!(Adapter::parse_for_keys("tmux"), Ok(Adapter::Tmux));
        for other in ["osc52", "wayland", "windows"] {
            assert_eq!(Adapter::parse_for_keys(other), Err(NoHotkeyAdapter));
        }
    }
}
