//! The configuration file: TOML, flat, with one table of limits. A key that means nothing is an error.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use turnkeep_types::Limits;

use crate::failure::Failure;

/// What the file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub(super) data: Option<String>,
    pub(super) server: Option<String>,
    pub(super) tls_ca: Option<String>,
    pub(super) listen: Option<String>,
    pub(super) http: Option<String>,
    pub(super) durability: Option<String>,
    pub(super) strict_types: Option<bool>,
    pub(super) no_auth: Option<bool>,
    pub(super) tls_cert: Option<String>,
    pub(super) tls_key: Option<String>,
    pub(super) allow_host: Option<Vec<String>>,
    pub(super) allow_origin: Option<Vec<String>>,
    pub(super) limits: Option<RawLimits>,
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
            /// These limits over the others.
            pub(super) fn over(self, under: &Limits) -> Limits {
                Limits { $($name: self.$name.unwrap_or(under.$name),)* }
            }

            /// Every limit's name, its value after all, and whether the file set it.
            pub(super) fn rows(self, resolved: &Limits) -> Vec<(&'static str, usize, bool)> {
                vec![$((concat!("limits.", stringify!($name)), resolved.$name, self.$name.is_some()),)*]
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
    type_id_bytes_max,
    key_bytes_max,
    labels_max,
    label_bytes_max,
    nesting_max,
    page_turns_max,
    page_bytes_max,
    has_blobs_max,
);

/// Reads the file; a file that is not there says nothing, unless somebody named it.
pub(super) fn read(path: &Path, must_exist: bool) -> Result<RawFile> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && !must_exist => return Ok(RawFile::default()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read the configuration {}", path.display()));
        }
    };
    toml::from_str(&text).map_err(|error| {
        Failure::usage(format!("the configuration {} is not valid:\n{error}", path.display())).into()
    })
}
