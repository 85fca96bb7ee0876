//! The roles and teams that a person edits over HTTP.
//!
//! A file of the user's configuration directory stands before a built-in one of the same name.
//! Deleting it brings the built-in one back; a built-in one cannot be deleted. A text is parsed before
//! it is kept, so a file that was written here can be used. Everything here blocks.

use std::io;
use std::path::Path;

use turnkeep_runtime::words::CliPermissions;
use turnkeep_wire::runs as wire;

use super::json::{NodeDefaults, capabilities_view};
use super::named_files::{NamedFiles, TEXT_BYTES_MAX, is_file_name};
use super::settings::RunsConfig;
use super::{roles, teams};

/// What a file describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigFileKind {
    Role,
    Team,
}

/// A role or a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigFile {
    pub(crate) name: String,
    pub(crate) source: wire::FileSource,
    pub(crate) text: String,
}

/// Why a role or a team cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigFileError {
    #[error("a name has 1 to 64 small letters, digits, `-` and `_`")]
    BadName,
    #[error("nothing is called `{0}`")]
    Unknown(String),
    #[error("`{0}` is built in: it can be replaced, not deleted")]
    BuiltIn(String),
    #[error("the text has {bytes} bytes; the limit is {TEXT_BYTES_MAX}")]
    TooLong {
        /// The length of the text.
        bytes: u64,
    },
    #[error("{0}")]
    Invalid(String),
    #[error("this server has no configuration directory")]
    NoDirectory,
    #[error("the file cannot be used: {0}")]
    Unusable(String),
}

impl From<io::Error> for ConfigFileError {
    fn from(error: io::Error) -> Self {
        Self::Unusable(error.to_string())
    }
}

impl ConfigFileKind {
    fn user_dir(self, config: &RunsConfig) -> Option<&Path> {
        match self {
            Self::Role => config.roles_dir.as_deref(),
            Self::Team => config.teams_dir.as_deref(),
        }
    }

    fn files_in(self, dir: &Path) -> NamedFiles<'_> {
        match self {
            Self::Role => roles::user_files(dir),
            Self::Team => teams::user_files(dir),
        }
    }

    fn built_in_text(self, name: &str) -> Option<&'static str> {
        match self {
            Self::Role => roles::built_in_text(name),
            Self::Team => teams::built_in_text(name),
        }
    }

    fn built_in_names(self) -> Vec<&'static str> {
        match self {
            Self::Role => roles::built_in_names().collect(),
            Self::Team => teams::built_in_names().collect(),
        }
    }

    fn check_text(self, text: &str) -> Result<(), String> {
        match self {
            Self::Role => roles::parse(text).map(drop),
            Self::Team => teams::parse(text).map(drop),
        }
    }
}

/// The files of a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfigFiles<'a> {
    pub(crate) kind: ConfigFileKind,
    pub(crate) config: &'a RunsConfig,
}

impl<'a> ConfigFiles<'a> {
    fn of_user(self) -> Option<NamedFiles<'a>> {
        let dir = self.kind.user_dir(self.config)?;
        Some(self.kind.files_in(dir))
    }

    /// All of them: the built-in ones, then those that only the user has.
    pub(crate) fn list(self) -> Result<Vec<ConfigFile>, ConfigFileError> {
        let built_in = self.kind.built_in_names();
        let of_user = match self.of_user() {
            Some(files) => files.list()?,
            None => Vec::new(),
        };
        let is_own = |name: &&String| !built_in.contains(&name.as_str());
        let own = of_user.iter().filter(is_own).map(String::as_str);
        let names = built_in.iter().copied().chain(own);
        names.map(|name| self.find(name)).collect()
    }

    /// The one of this name.
    pub(crate) fn find(self, name: &str) -> Result<ConfigFile, ConfigFileError> {
        check_name(name)?;
        let found = |source, text| ConfigFile {
            name: name.to_owned(),
            source,
            text,
        };
        if let Some(files) = self.of_user()
            && let Some(text) = files.read(name).map_err(ConfigFileError::Unusable)?
        {
            return Ok(found(wire::FileSource::User, text));
        }
        let text = self.kind.built_in_text(name);
        let text = text.ok_or_else(|| ConfigFileError::Unknown(name.to_owned()))?;
        Ok(found(wire::FileSource::BuiltIn, text.to_owned()))
    }

    /// Writes the user's file of this name.
    pub(crate) fn put(self, name: &str, text: &str) -> Result<ConfigFile, ConfigFileError> {
        check_name(name)?;
        let bytes = text.len() as u64;
        if bytes > TEXT_BYTES_MAX {
            return Err(ConfigFileError::TooLong { bytes });
        }
        let checked = self.kind.check_text(text);
        checked.map_err(ConfigFileError::Invalid)?;
        let files = self.of_user().ok_or(ConfigFileError::NoDirectory)?;
        files.write(name, text)?;
        self.find(name)
    }

    /// Removes the user's file of this name.
    pub(crate) fn remove(self, name: &str) -> Result<(), ConfigFileError> {
        check_name(name)?;
        let was_there = match self.of_user() {
            Some(files) => files.remove(name)?,
            None => false,
        };
        match self.kind.built_in_text(name) {
            _ if was_there => Ok(()),
            Some(_) => Err(ConfigFileError::BuiltIn(name.to_owned())),
            None => Err(ConfigFileError::Unknown(name.to_owned())),
        }
    }
}

fn check_name(name: &str) -> Result<(), ConfigFileError> {
    if is_file_name(name) {
        Ok(())
    } else {
        Err(ConfigFileError::BadName)
    }
}

/// A role as clients see it, with the capabilities of its nodes.
pub(crate) fn role_view(file: ConfigFile) -> wire::RoleFile {
    let defaults = NodeDefaults::of_role(&file.name, CliPermissions::Gated);
    // A file that a person broke with an editor is shown as it is.
    let template = roles::parse(&file.text).unwrap_or_default();
    wire::RoleFile {
        capabilities: capabilities_view(template.adjust(defaults).capabilities),
        name: file.name,
        source: file.source,
        text: file.text,
    }
}

/// A team as clients see it.
pub(crate) fn team_view(file: ConfigFile) -> wire::TeamFile {
    wire::TeamFile {
        name: file.name,
        source: file.source,
        text: file.text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_role_can_be_replaced_and_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let config = RunsConfig {
            roles_dir: Some(dir.path().join("roles")),
            ..RunsConfig::default()
        };
        let files = ConfigFiles {
            kind: ConfigFileKind::Role,
            config: &config,
        };
        let built_in = files.find("reviewer").unwrap();
        assert_eq!(built_in.source, wire::FileSource::BuiltIn);
        let refused = files.remove("reviewer").unwrap_err();
        assert!(matches!(refused, ConfigFileError::BuiltIn(_)), "{refused}");
        let mine = files
            .put("reviewer", "---\nwriteCode: true\n---\nMine.")
            .unwrap();
        assert_eq!(mine.source, wire::FileSource::User);
        assert!(role_view(mine).capabilities.write_code);
        files.put("pilot", "You fly.").unwrap();
        let names: Vec<String> = files
            .list()
            .unwrap()
            .into_iter()
            .map(|file| file.name)
            .collect();
        assert_eq!(names.last().map(String::as_str), Some("pilot"));
        assert_eq!(names.iter().filter(|name| *name == "reviewer").count(), 1);
        files.remove("reviewer").unwrap();
        assert_eq!(files.find("reviewer").unwrap(), built_in);
    }

    #[test]
    fn a_text_that_cannot_be_used_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let config = RunsConfig {
            teams_dir: Some(dir.path().to_owned()),
            ..RunsConfig::default()
        };
        let files = |kind| ConfigFiles {
            kind,
            config: &config,
        };
        let check = |name: &str, text: &str, expect: &str| {
            let error = files(ConfigFileKind::Team).put(name, text).unwrap_err();
            assert!(error.to_string().contains(expect), "{error}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        };
        check("mine", "", "no nodes");
        check("mine", "[[nodes]]\nrule = 1\n", "unknown field");
        check("../mine", "[[nodes]]\nrole = 'docs'\n", "small letters");
        check("mine", &"#".repeat(70_000), "limit");
        let nowhere = files(ConfigFileKind::Role).put("mine", "text").unwrap_err();
        assert!(matches!(nowhere, ConfigFileError::NoDirectory));
    }
}
