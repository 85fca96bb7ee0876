//! The options of pages of turns and of single turns.

use std::str::FromStr;

use turnkeep_store::projection::{self, TypeHint, UnknownValue};
use turnkeep_types::TurnId;

use super::{FromQuery, Pairs, QueryError, optional_turn, wrong_kind};

/// Turns on a page, unless the request says otherwise.
const TURNS_DEFAULT: usize = 64;

/// Which forms of a turn's payload to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PayloadView {
    /// The payload by field names.
    #[default]
    Typed,
    /// The payload's bytes.
    Raw,
    /// Both.
    Both,
}

impl PayloadView {
    /// Whether the payload is projected.
    pub fn is_typed(self) -> bool {
        self != Self::Raw
    }

    /// Whether the payload's bytes are shown.
    pub fn is_raw(self) -> bool {
        self != Self::Typed
    }
}

impl FromStr for PayloadView {
    type Err = UnknownValue;

    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        match text {
            "typed" => Ok(Self::Typed),
            "raw" => Ok(Self::Raw),
            "both" => Ok(Self::Both),
            _ => Err(UnknownValue {
                option: "view",
                given: text.to_owned(),
                legal: &["typed", "raw", "both"],
            }),
        }
    }
}

/// How to show turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewOptions {
    /// Which forms.
    pub view: PayloadView,
    /// How the typed form is made.
    pub projection: projection::ProjectionOptions,
}

/// The query of a page of turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnsQuery {
    /// At most so many.
    pub limit: usize,
    /// Ancestors of this turn; none starts at the head.
    pub before: Option<TurnId>,
    /// How to show them.
    pub options: ViewOptions,
}

impl TurnsQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &[
        "limit",
        "before_turn_id",
        "view",
        "type_hint_mode",
        "as_type_id",
        "as_type_version",
        "include_unknown",
        "bytes_render",
        "bytes_format",
        "u64_format",
        "enum_render",
        "time_render",
        super::PROVENANCE,
    ];
}

impl FromQuery for TurnsQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        Ok(Self {
            limit: pairs.parse_count("limit", TURNS_DEFAULT)?,
            before: optional_turn(&pairs, "before_turn_id")?,
            options: view_options(&pairs)?,
        })
    }
}

/// The query of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnQuery {
    /// How to show it.
    pub options: ViewOptions,
}

impl TurnQuery {
    /// The parameters: those of a page that do not choose turns.
    pub const NAMES: &'static [&'static str] = match TurnsQuery::NAMES {
        [_, _, rest @ ..] => rest,
        _ => &[],
    };
}

impl FromQuery for TurnQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        Ok(Self {
            options: view_options(&pairs)?,
        })
    }
}

fn view_options(pairs: &Pairs) -> Result<ViewOptions, QueryError> {
    pairs.accept_provenance()?;
    let projection = projection::ProjectionOptions {
        hint: type_hint(pairs)?,
        include_unknown: pairs.parse_choice("include_unknown", None)?,
        bytes_render: pairs.parse_choice("bytes_render", Some("bytes_format"))?,
        u64_format: pairs.parse_choice("u64_format", None)?,
        enum_render: pairs.parse_choice("enum_render", None)?,
        time_render: pairs.parse_choice("time_render", None)?,
    };
    Ok(ViewOptions {
        view: pairs.parse_choice("view", None)?,
        projection,
    })
}

fn type_hint(pairs: &Pairs) -> Result<TypeHint, QueryError> {
    let version = pairs
        .single_value("as_type_version", None)?
        .map(type_version)
        .transpose()?;
    let mode = pairs.single_value("type_hint_mode", None)?;
    let id = pairs.single_value("as_type_id", None)?;
    Ok(TypeHint::parse(mode, id, version)?)
}

fn type_version(value: &str) -> Result<u32, QueryError> {
    let canonical = super::is_number(value) && (value == "0" || !value.starts_with('0'));
    let version = if canonical { value.parse().ok() } else { None };
    version.ok_or_else(|| wrong_kind("as_type_version", value, "a whole number up to 2^32 - 1"))
}
