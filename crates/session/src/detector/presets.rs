//! The shipped profiles, and the choice of a profile for a program.
//!
//! The user's own profiles come first and replace shipped ones of the same name. An unknown name or
//! a profile that does not compile is an error; nothing else fails.

use super::profile::{Profile, ProfileError, ProfileSpec};

const SHIPPED: [(&str, &str); 21] = [
    ("aider", include_str!("presets/aider.toml")),
    ("bash", include_str!("presets/bash.toml")),
    ("claude", include_str!("presets/claude.toml")),
    ("cn", include_str!("presets/cn.toml")),
    ("codex", include_str!("presets/codex.toml")),
    ("copilot", include_str!("presets/copilot.toml")),
    ("fish", include_str!("presets/fish.toml")),
    ("gdb", include_str!("presets/gdb.toml")),
    ("gemini", include_str!("presets/gemini.toml")),
    ("generic", include_str!("presets/generic.toml")),
    ("ipython", include_str!("presets/ipython.toml")),
    ("kilo", include_str!("presets/kilo.toml")),
    ("node", include_str!("presets/node.toml")),
    ("opencode", include_str!("presets/opencode.toml")),
    ("pi", include_str!("presets/pi.toml")),
    ("psql", include_str!("presets/psql.toml")),
    ("python", include_str!("presets/python.toml")),
    ("qwen", include_str!("presets/qwen.toml")),
    ("sqlite3", include_str!("presets/sqlite3.toml")),
    ("vibe", include_str!("presets/vibe.toml")),
    ("zsh", include_str!("presets/zsh.toml")),
];

/// The profile of programs that no other profile claims.
pub const GENERIC: &str = "generic";

/// The reason why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// The name is unknown.
    #[error("no profile is called {name:?}; there are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The profile is not valid TOML.
    #[error("profile {name}: {source}")]
    Syntax {
        /// The profile's name.
        name: String,
        /// The parser's error, with the position.
        source: Box<toml::de::Error>,
    },
    /// The profile does not compile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// The profiles of a session: the shipped ones and the user's own, which come first.
#[derive(Debug, Clone)]
pub struct Presets(Vec<(String, ProfileSpec)>);

/// Returns the shipped profiles.
pub fn presets() -> Presets {
    let parse = |(name, text): &(&str, &str)| {
        // A test parses each of them, so a shipped profile is never missing here.
        toml::from_str(text)
            .ok()
            .map(|spec| ((*name).to_owned(), spec))
    };
    Presets(SHIPPED.iter().filter_map(parse).collect())
}

impl Presets {
    /// Adds or replaces a profile, written as TOML.
    pub fn add_toml(&mut self, name: &str, text: &str) -> Result<(), PresetError> {
        let syntax = |source| PresetError::Syntax {
            name: name.to_owned(),
            source: Box::new(source),
        };
        let spec: ProfileSpec = toml::from_str(text).map_err(syntax)?;
        self.add(name, spec)
    }

    /// Adds or replaces a profile. One that names no programs keeps those of the profile that it
    /// replaces.
    pub fn add(&mut self, name: &str, mut spec: ProfileSpec) -> Result<(), PresetError> {
        Profile::new(name, &spec)?;
        if spec.programs.is_empty() {
            spec.programs = self
                .spec(name)
                .map(|known| known.programs.clone())
                .unwrap_or_default();
        }
        self.0.retain(|(known, _)| known != name);
        self.0.insert(0, (name.to_owned(), spec));
        Ok(())
    }

    /// Assigns a profile to the program of this base name, before the programs that other profiles
    /// claim.
    pub fn claim(&mut self, program: &str, name: &str) -> Result<(), PresetError> {
        let Some(at) = self.0.iter().position(|(known, _)| known == name) else {
            return Err(self.unknown(name));
        };
        let mut claimed = self.0.remove(at);
        claimed.1.programs.push(program.to_owned());
        self.0.insert(0, claimed);
        Ok(())
    }

    /// The names of all profiles, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Compiles the profile of this name.
    pub fn get(&self, name: &str) -> Result<Profile, PresetError> {
        match self.0.iter().find(|(known, _)| known == name) {
            Some((_, spec)) => Ok(Profile::new(name, spec)?),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> PresetError {
        PresetError::Unknown {
            name: name.to_owned(),
            known: self.names().join(", "),
        }
    }

    /// The profile of this name as it was written, so that the caller can change it.
    pub fn spec(&self, name: &str) -> Option<&ProfileSpec> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, spec)| spec)
    }

    /// The name of the profile for a command, by the base name of its program.
    pub fn name_for(&self, command: &str) -> &str {
        let base = command.rsplit('/').next().unwrap_or(command);
        let claims = |spec: &ProfileSpec| {
            spec.programs
                .iter()
                .any(|program| matches_base_name(program, base))
        };
        self.0
            .iter()
            .find(|(_, spec)| claims(spec))
            .map_or(GENERIC, |(name, _)| name.as_str())
    }
}

fn matches_base_name(program: &str, base: &str) -> bool {
    match program.strip_suffix('*') {
        Some(prefix) => base.starts_with(prefix),
        None => program == base,
    }
}
