//! The shipped profiles, and which program gets which.

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

/// The profile of programs that no other claims.
pub const GENERIC: &str = "generic";

/// Why there is no such profile.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// The name is unknown.
    #[error("no profile is called {name:?}; there are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The file does not parse.
    #[error("profile {name}: {source}")]
    Syntax {
        /// The profile's name.
        name: String,
        /// What the parser says, with the place.
        source: Box<toml::de::Error>,
    },
    /// The profile is refused.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// The profiles of a session: the shipped ones and the user's own, which win.
#[derive(Debug, Clone)]
pub struct Presets(Vec<(String, ProfileSpec)>);

/// The shipped profiles.
pub fn presets() -> Presets {
    let parse = |(name, text): &(&str, &str)| {
        // A test parses each of them: a shipped profile is never missing.
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

    /// Gives a program of this base name a profile, before whatever the profiles claim.
    pub fn claim(&mut self, program: &str, name: &str) -> Result<(), PresetError> {
        let Some(at) = self.0.iter().position(|(known, _)| known == name) else {
            return Err(self.unknown(name));
        };
        let mut claimed = self.0.remove(at);
        claimed.1.programs.push(program.to_owned());
        self.0.insert(0, claimed);
        Ok(())
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// The profile of a name.
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

    /// A profile as it was written, for whoever varies it.
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
