//! The options of a turn's filesystem.

use std::str::FromStr;

use turnkeep_store::projection::UnknownValue;

use super::{FromQuery, Pairs, QueryError};

/// How a file is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FsFormat {
    /// As its bytes.
    #[default]
    Bytes,
    /// As JSON with the content in base64.
    Json,
}

impl FromStr for FsFormat {
    type Err = UnknownValue;

    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        match text {
            "bytes" => Ok(Self::Bytes),
            "json" => Ok(Self::Json),
            _ => Err(UnknownValue {
                option: "format",
                given: text.to_owned(),
                legal: &["bytes", "json"],
            }),
        }
    }
}

/// The query of a filesystem without a path in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsRootQuery {
    /// The path; none for the root directory.
    pub path: Option<String>,
    /// How a file is sent.
    pub format: FsFormat,
}

impl FsRootQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["path", "format"];
}

impl FromQuery for FsRootQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        Ok(Self {
            path: pairs.optional_text("path")?,
            format: pairs.parse_choice("format", None)?,
        })
    }
}

/// The query of a filesystem whose path is in the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsPathQuery {
    /// How a file is sent.
    pub format: FsFormat,
}

impl FsPathQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["format"];
}

impl FromQuery for FsPathQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        Ok(Self {
            format: pairs.parse_choice("format", None)?,
        })
    }
}
