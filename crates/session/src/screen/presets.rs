//! The text rules of the shipped screen profiles, each found on recordings of the real program.
//!
//! They are files of the form that a user's own profile has under `text`. A test compiles each.

use super::rules::TextRules;

const SHIPPED: [(&str, &str); 6] = [
    ("aider", include_str!("presets/aider.toml")),
    ("claude", include_str!("presets/claude.toml")),
    ("codex", include_str!("presets/codex.toml")),
    ("gemini", include_str!("presets/gemini.toml")),
    ("ipython", include_str!("presets/ipython.toml")),
    ("opencode", include_str!("presets/opencode.toml")),
];

impl TextRules {
    /// The rules of a shipped screen profile, by its name.
    pub fn preset(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(shipped, _)| *shipped == name)?;
        toml::from_str(text).ok()
    }

    /// The names of the shipped screen profiles.
    pub fn preset_names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }
}
