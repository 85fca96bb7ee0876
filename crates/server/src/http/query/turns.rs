//! The options of pages of turns and of single turns.

use turnkeep_store::projection::{self, BytesRender, EnumRender, TimeRender, TypeHint, U64Format};
use turnkeep_types::{TurnId, TypeRef};

use super::{FromQuery, Pairs, QueryError, kind, optional_turn};

/// Turns on a page, unless the request says otherwise.
const TURNS_DEFAULT: usize = 64;

/// Which of a turn's faces to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// The payload by field names.
    Typed,
    /// The payload's bytes.
    Raw,
    /// Both.
    Both,
}

impl View {
    /// Whether the payload is projected.
    pub fn is_typed(self) -> bool {
        self != Self::Raw
    }

    /// Whether the payload's bytes are shown.
    pub fn is_raw(self) -> bool {
        self != Self::Typed
    }
}

/// How to show turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewOptions {
    /// Which faces.
    pub view: View,
    /// How the typed face is made.
    pub projection: projection::Options,
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
    ];
}

impl FromQuery for TurnsQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.only(Self::NAMES)?;
        Ok(Self {
            limit: pairs.count("limit", TURNS_DEFAULT)?,
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
        pairs.only(Self::NAMES)?;
        Ok(Self { options: view_options(&pairs)? })
    }
}

fn view_options(pairs: &Pairs) -> Result<ViewOptions, QueryError> {
    let views = [("typed", View::Typed), ("raw", View::Raw), ("both", View::Both)];
    let bytes = [("base64", BytesRender::Base64), ("hex", BytesRender::Hex), ("len_only", BytesRender::LenOnly)];
    let enums = [("label", EnumRender::Label), ("number", EnumRender::Number), ("both", EnumRender::Both)];
    let view = pairs.choice("view", None, views)?;
    let projection = projection::Options {
        type_hint: type_hint(pairs)?,
        include_unknown: pairs.choice("include_unknown", None, [("0", false), ("1", true)])?,
        bytes_render: pairs.choice("bytes_render", Some("bytes_format"), bytes)?,
        u64_format: pairs.choice("u64_format", None, [("string", U64Format::String), ("number", U64Format::Number)])?,
        enum_render: pairs.choice("enum_render", None, enums)?,
        time_render: pairs.choice("time_render", None, [("iso", TimeRender::Iso), ("unix_ms", TimeRender::UnixMs)])?,
    };
    Ok(ViewOptions { view, projection })
}

#[derive(Clone, Copy)]
enum Mode {
    Inherit,
    Explicit,
    Latest,
}

fn type_hint(pairs: &Pairs) -> Result<TypeHint, QueryError> {
    let modes = [("inherit", Mode::Inherit), ("explicit", Mode::Explicit), ("latest", Mode::Latest)];
    let mode = pairs.choice("type_hint_mode", None, modes)?;
    let id = pairs.one("as_type_id", None)?;
    let version = match pairs.one("as_type_version", None)? {
        Some(value) => Some(type_version(value)?),
        None => None,
    };
    match (mode, id, version) {
        (Mode::Explicit, Some(id), Some(version)) if !id.is_empty() => {
            Ok(TypeHint::Explicit(TypeRef::new(id, version)))
        }
        (Mode::Explicit, _, _) => Err(QueryError::MissingTypeHint),
        (_, Some(_), _) => Err(QueryError::NeedsExplicit { name: "as_type_id" }),
        (_, _, Some(_)) => Err(QueryError::NeedsExplicit { name: "as_type_version" }),
        (Mode::Inherit, None, None) => Ok(TypeHint::Inherit),
        (Mode::Latest, None, None) => Ok(TypeHint::Latest),
    }
}

fn type_version(value: &str) -> Result<u32, QueryError> {
    let canonical = super::is_number(value) && (value == "0" || !value.starts_with('0'));
    let version = if canonical { value.parse().ok() } else { None };
    version.ok_or_else(|| kind("as_type_version", value, "a whole number up to 2^32 - 1"))
}
