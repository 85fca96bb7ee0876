//! The table `desktop` of the configuration: how commands reach hotkeys, focus and clipboard.

use anyhow::Result;
use serde::Deserialize;
use turnkeep_pty::desktop::{Adapter, Binding};

use super::setting::{Setting, SettingRow, Sources};

/// The keys of the table in the file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDesktop {
    focus: Option<String>,
    hotkeys: Option<String>,
    clipboard: Option<String>,
    capture: Option<String>,
    paste: Option<String>,
    copy: Option<String>,
}

/// Every setting of the desktop, resolved. Without a binding the adapter's default applies.
#[derive(Debug, Clone)]
pub(crate) struct Desktop {
    pub(crate) focus: Setting<Adapter>,
    pub(crate) hotkeys: Setting<Adapter>,
    pub(crate) clipboard: Setting<Adapter>,
    pub(crate) capture: Setting<Option<Binding>>,
    pub(crate) paste: Setting<Option<Binding>>,
    pub(crate) copy: Setting<Option<Binding>>,
}

impl RawDesktop {
    /// Resolves the settings: the environment wins over the file, the file over the defaults.
    pub(super) fn resolve(self, from: Sources<'_>) -> Result<Desktop> {
        let adapter = |name, file| {
            anyhow::Ok(
                from.find_parsed(name, None::<Adapter>, file)?
                    .or(Adapter::Detect),
            )
        };
        // Hotkeys and focus exist on fewer desktops than clipboards do.
        let keys = |name, file| {
            anyhow::Ok(
                from.find_with(name, None, file, Adapter::parse_for_keys)?
                    .or(Adapter::Detect),
            )
        };
        let binding =
            |name, file| anyhow::Ok(from.find_parsed(name, None::<Binding>, file)?.optional());
        Ok(Desktop {
            focus: keys("desktop.focus", self.focus)?,
            hotkeys: keys("desktop.hotkeys", self.hotkeys)?,
            clipboard: adapter("desktop.clipboard", self.clipboard)?,
            capture: binding("desktop.capture", self.capture)?,
            paste: binding("desktop.paste", self.paste)?,
            copy: binding("desktop.copy", self.copy)?,
        })
    }
}

impl Desktop {
    /// Every setting, for `config show`.
    pub(super) fn rows(&self) -> Vec<SettingRow> {
        let adapter = |name, setting: &Setting<Adapter>| {
            setting.as_ref().map(|adapter| adapter.name()).to_row(name)
        };
        let binding = |name, setting: &Setting<Option<Binding>>| {
            let shown = setting
                .as_ref()
                .map(|binding| binding.map(|keys| keys.to_string()));
            shown.to_row(name)
        };
        vec![
            adapter("desktop.focus", &self.focus),
            adapter("desktop.hotkeys", &self.hotkeys),
            adapter("desktop.clipboard", &self.clipboard),
            binding("desktop.capture", &self.capture),
            binding("desktop.paste", &self.paste),
            binding("desktop.copy", &self.copy),
        ]
    }
}
