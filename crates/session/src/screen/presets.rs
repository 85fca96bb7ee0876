//! The text rules of the shipped screen profiles, each derived from recordings of the real program.
//!
//! They are files in the form of the `text` part of a user's own profile. A test compiles each.

use super::rules::TextRules;

const SHIPPED: [(&str, &str); 12] = [
    ("aider", include_str!("presets/aider.toml")),
    ("claude", include_str!("presets/claude.toml")),
    ("cn", include_str!("presets/cn.toml")),
    ("codex", include_str!("presets/codex.toml")),
    ("copilot", include_str!("presets/copilot.toml")),
    ("gemini", include_str!("presets/gemini.toml")),
    ("ipython", include_str!("presets/ipython.toml")),
    ("kilo", include_str!("presets/kilo.toml")),
    ("opencode", include_str!("presets/opencode.toml")),
    ("pi", include_str!("presets/pi.toml")),
    ("qwen", include_str!("presets/qwen.toml")),
    ("vibe", include_str!("presets/vibe.toml")),
];

impl TextRules {
    /// The rules of the shipped screen profile of this name.
    pub fn preset(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(shipped, _)| *shipped == name)?;
        toml::from_str(text).ok()
    }

    /// The names of the shipped screen profiles.
    pub fn preset_names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }
}
