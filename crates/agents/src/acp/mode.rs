//! The mode of a session: agents that have one for reading only, or one that never asks, are put
//! into it before the first prompt.
//!
//! Agents offer modes in two ways: as `modes`, or as a configuration option of the category `mode`.
//! Their names are free, so this module knows the usual ones.

use serde_json::{Value, json};

use crate::field::{list_at, text_at};
use crate::request::{Access, Permissions, StartOptions};

const READ_ONLY_MODES: &[&str] = &["plan", "read-only", "readonly"];
const NEVER_ASK_MODES: &[&str] = &["yolo", "bypassPermissions", "full-access"];

/// A mode to set.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ModeChange {
    Mode(String),
    ConfigOption { option: String, value: String },
}

impl ModeChange {
    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Mode(_) => "session/set_mode",
            Self::ConfigOption { .. } => "session/set_config_option",
        }
    }

    pub(super) fn params(&self, session: &str) -> Value {
        match self {
            Self::Mode(mode) => json!({"sessionId": session, "modeId": mode}),
            Self::ConfigOption { option, value } => {
                json!({"sessionId": session, "configId": option, "value": value})
            }
        }
    }
}

/// The mode that fits the options, if the agent offers one and is not in it already.
pub(super) fn choose_mode(options: &StartOptions, session: &Value) -> Option<ModeChange> {
    let wanted = match (options.access, options.permissions) {
        (Access::ReadOnly, _) => READ_ONLY_MODES,
        (Access::Write, Permissions::Skip) => NEVER_ASK_MODES,
        (Access::Write, Permissions::Gated) => return None,
    };
    choose_session_mode(wanted, session).or_else(|| choose_config_option(wanted, session))
}

fn choose_session_mode(wanted: &[&str], session: &Value) -> Option<ModeChange> {
    let offered = list_at(session, "/modes/availableModes").iter();
    let mode = find_wanted(wanted, offered.filter_map(|mode| text_at(mode, "/id")))?;
    let is_current = text_at(session, "/modes/currentModeId") == Some(mode);
    (!is_current).then(|| ModeChange::Mode(mode.to_owned()))
}

fn choose_config_option(wanted: &[&str], session: &Value) -> Option<ModeChange> {
    let mut options = list_at(session, "/configOptions").iter();
    let option = options.find(|option| text_at(option, "/category") == Some("mode"))?;
    let offered = list_at(option, "/options").iter();
    let value = find_wanted(wanted, offered.filter_map(|one| text_at(one, "/value")))?;
    let is_current = text_at(option, "/currentValue") == Some(value);
    (!is_current).then_some(ModeChange::ConfigOption {
        option: text_at(option, "/id")?.to_owned(),
        value: value.to_owned(),
    })
}

/// The first of the offered names that is wanted.
fn find_wanted<'a>(wanted: &[&str], mut offered: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    offered.find(|name| {
        wanted
            .iter()
            .any(|wanted| wanted.eq_ignore_ascii_case(name))
    })
}
