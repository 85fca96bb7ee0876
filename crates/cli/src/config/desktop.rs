//! How hotkeys, focus and clipboard are reached: the table `desktop` of the configuration.

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};
use turnkeep_pty::desktop::{Adapter, Binding};

use super::setting::{Setting, Source, Sources};

/// What the file may say.
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

/// Every setting of the desktop, resolved. A binding that nobody set is the adapter's default.
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
    /// These settings, with the environment before them and the defaults after.
    pub(super) fn resolve(self, from: Sources<'_>) -> Result<Desktop> {
        let adapter = |name, file| {
            anyhow::Ok(
                from.find_parsed(name, None::<Adapter>, file)?
                    .or(Adapter::Detect),
            )
        };
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
    /// Every setting as its name, its value and where it came from.
    pub(super) fn rows(&self) -> Vec<(&'static str, Value, Source)> {
        let adapter = |name, setting: &Setting<Adapter>| {
            (name, json!(setting.value.name()), setting.source.clone())
        };
        let binding = |name, setting: &Setting<Option<Binding>>| {
            (
                name,
                json!(setting.value.map(|binding| binding.to_string())),
                setting.source.clone(),
            )
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
