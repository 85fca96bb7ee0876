//! The configuration file: flat TOML with tables for the broker, the desktop, the limits, runs, agent
//! programs and the profiles. An unknown key is an error.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;
use turnkeep_session::detector::{PresetError, Presets, ProfileSpec, presets};
use turnkeep_types::Limits;

use super::broker::RawBroker;
use super::desktop::RawDesktop;
use super::runs::{RawProvider, RawRuns};
use super::setting::{Setting, SettingRow, Sources};
use crate::failure::Failure;

/// The keys of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub(super) data: Option<String>,
    pub(super) server: Option<String>,
    pub(super) tls_ca: Option<String>,
    pub(super) listen: Option<String>,
    pub(super) http: Option<String>,
    pub(super) durability: Option<String>,
    #[serde(default, deserialize_with = "size_text")]
    pub(super) memory_budget: Option<String>,
    pub(super) strict_types: Option<bool>,
    pub(super) no_auth: Option<bool>,
    pub(super) tls_cert: Option<String>,
    pub(super) tls_key: Option<String>,
    pub(super) allow_host: Option<Vec<String>>,
    pub(super) allow_origin: Option<Vec<String>>,
    pub(super) broker: Option<RawBroker>,
    pub(super) desktop: Option<RawDesktop>,
    pub(super) limits: Option<RawLimits>,
    pub(super) runs: Option<RawRuns>,
    /// Agent programs, by name.
    pub(super) providers: Option<BTreeMap<String, RawProvider>>,
    /// Profiles of programs, by name.
    pub(super) profiles: Option<BTreeMap<String, ProfileSpec>>,
    /// Which profile a program gets, by its base name.
    pub(super) programs: Option<BTreeMap<String, String>>,
}

/// A size is a number of bytes, or text with a unit.
fn size_text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Bytes(u64),
        Text(String),
    }
    Ok(Some(match Size::deserialize(from)? {
        Size::Bytes(bytes) => bytes.to_string(),
        Size::Text(text) => text,
    }))
}

impl RawFile {
    /// The shipped profiles and the file's. A profile of the file replaces a shipped one.
    pub(super) fn take_presets(&mut self, path: &Path) -> Result<Presets> {
        let mut known = presets();
        let refused = |error: PresetError| {
            Failure::usage(format!(
                "the configuration {} is not valid: {error}",
                path.display()
            ))
        };
        for (name, spec) in self.profiles.take().unwrap_or_default() {
            known.add(&name, spec).map_err(refused)?;
        }
        // After the profiles: a program may get a profile that the same file defines.
        for (program, name) in self.programs.take().unwrap_or_default() {
            known.claim(&program, &name).map_err(refused)?;
        }
        Ok(known)
    }
}

macro_rules! raw_limits {
    ($($name:ident),* $(,)?) => {
        /// The limits that the file may set, by the names of [`Limits`].
        #[derive(Debug, Clone, Copy, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct RawLimits {
            $($name: Option<usize>,)*
        }

        impl RawLimits {
            /// These limits, with the environment before them and the defaults after.
            pub(super) fn resolve(self, from: Sources<'_>) -> Result<LimitSettings> {
                let defaults = Limits::default();
                let limit = |name, file: Option<usize>, default| {
                    let file = file.map(|value| value.to_string());
                    anyhow::Ok(from.find_with(name, None, file, parse_limit)?.or(default))
                };
                Ok(LimitSettings {
                    $($name: limit(concat!("limits.", stringify!($name)), self.$name, defaults.$name)?,)*
                })
            }
        }

        /// Every limit and where it came from.
        #[derive(Debug, Clone)]
        pub(super) struct LimitSettings {
            $($name: Setting<usize>,)*
        }

        impl LimitSettings {
            /// The values alone.
            pub(super) fn limits(&self) -> Limits {
                Limits { $($name: self.$name.value,)* }
            }

            /// Every limit, for `config show`.
            pub(super) fn rows(&self) -> Vec<SettingRow> {
                vec![$(self.$name.to_row(concat!("limits.", stringify!($name))),)*]
            }
        }
    };
}

raw_limits!(
    frame_bytes_max,
    blob_bytes_max,
    batch_bytes_max,
    batch_raw_bytes_max,
    batch_turns_max,
    http_body_bytes_max,
    bundle_bytes_max,
    registry_bytes_max,
    type_id_bytes_max,
    key_bytes_max,
    labels_max,
    label_bytes_max,
    nesting_max,
    page_turns_max,
    page_bytes_max,
    has_blobs_max,
    token_writes_per_minute,
    token_write_bytes_per_minute,
    world_writes_per_minute,
    world_write_bytes_per_minute,
);

fn parse_limit(text: &str) -> Result<usize, &'static str> {
    text.parse()
        .ok()
        .filter(|limit| *limit > 0)
        .ok_or("expected a number above 0")
}

/// Reads the file. A missing file counts as empty, unless the person named it.
pub(super) fn read_file(path: &Path, must_exist: bool) -> Result<RawFile> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && !must_exist => {
            return Ok(RawFile::default());
        }
        Err(error) => {
            let name = path.display();
            return Failure::usage(format!("cannot read the configuration {name}: {error}"))
                .hint("check --config and TURNKEEP_CONFIG, or leave them out")
                .fail();
        }
    };
    toml::from_str(&text).map_err(|error| {
        // The error quotes the line of the file, so it starts on a line of its own.
        let name = path.display();
        Failure::usage(format!("the configuration {name} is not valid:\n{error}")).into()
    })
}
