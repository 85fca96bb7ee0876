//! Queries, parsed strictly. An unknown or repeated name, an illegal value and a broken escape are
//! errors that list the legal values.
//!
//! Parsing is a pure function of the query string, so that a table of cases and a fuzz target can
//! run it.

mod fs;
mod ledger;
mod runs;
mod turns;

pub use fs::{FsFormat, FsPathQuery, FsRootQuery};
pub use ledger::{
    ActingQuery, CallerQuery, LinesQuery, ReadingQuery, StreamQuery, SubscribeQuery, VerifyQuery,
    ViewsQuery,
};
pub use runs::{
    DirectoryQuery, EventDirection, EventQuery, ImportQuery, RawQuery, RunFilterQuery,
    RunListQuery, RunStreamQuery, SocketQuery,
};
pub use turns::{PayloadView, TurnQuery, TurnsQuery, ViewOptions};

use std::str::FromStr;

use turnkeep_store::projection::{HintError, UnknownValue};
use turnkeep_types::{BlobPrefix, ContextId, TurnId};

/// A parameter that is accepted and ignored.
const PROVENANCE: &str = "include_provenance";

/// Contexts on a page, unless the request says otherwise.
const CONTEXTS_DEFAULT: usize = 64;

/// Why a query is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A name that this route does not know.
    #[error("`{name}` is not a parameter here; these are: {}", .legal.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names that are.
        legal: &'static [&'static str],
    },
    /// A parameter given twice, perhaps once by an alias.
    #[error("`{0}` is given twice")]
    Twice(&'static str),
    /// A value that is not one of the list.
    #[error(transparent)]
    Illegal(#[from] UnknownValue),
    /// A value that is not of the parameter's kind.
    #[error("`{value}` is not a value of `{name}`: expected {expected}")]
    Kind {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A limit of a ledger's page that is not a positive number.
    #[error("`{0}` is not a value of `limit`: expected a whole number from 1 on")]
    Limit(String),
    /// A percent sign without two hex digits, or bytes that are not UTF-8.
    #[error("`{0}` is not percent-encoded UTF-8")]
    Encoding(String),
    /// A type hint that is incomplete or unknown.
    #[error(transparent)]
    Hint(#[from] HintError),
}

/// A query that a route understands.
pub trait FromQuery: Sized {
    /// Reads it from the pairs of the query string.
    fn from_query(pairs: Pairs) -> Result<Self, QueryError>;
}

/// The names and values of a query string, decoded, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// Splits and decodes a query string, the part after `?`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let parts = query.split('&').filter(|part| !part.is_empty());
        let pairs = parts.map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Ok((decode_text(name)?, decode_text(value)?))
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }

    /// Pairs that need no decoding.
    pub(crate) fn from_decoded(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

    /// Rejects names that are not in the list.
    fn check_names(&self, legal: &'static [&'static str]) -> Result<(), QueryError> {
        let mut names = self.0.iter().map(|(name, _)| name);
        match names.find(|name| !legal.contains(&name.as_str())) {
            Some(name) => Err(QueryError::Unknown {
                name: name.clone(),
                legal,
            }),
            None => Ok(()),
        }
    }

    /// The value of a parameter, under its name or its alias.
    fn single_value(
        &self,
        name: &'static str,
        alias: Option<&'static str>,
    ) -> Result<Option<&str>, QueryError> {
        let by_alias = alias.into_iter().flat_map(|alias| self.all_values(alias));
        let mut values = self.all_values(name).chain(by_alias);
        let first = values.next();
        // The name and its alias together are a contradiction too.
        if values.next().is_some() {
            Err(QueryError::Twice(name))
        } else {
            Ok(first)
        }
    }

    /// The text of a parameter.
    fn optional_text(&self, name: &'static str) -> Result<Option<String>, QueryError> {
        Ok(self.single_value(name, None)?.map(str::to_owned))
    }

    /// The first value of a parameter of a page, which ignores what it does not know.
    pub(crate) fn first_value<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all_values(name).next()
    }

    fn all_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that has a list of legal ones.
    fn parse_choice<T: FromStr<Err = UnknownValue> + Default>(
        &self,
        name: &'static str,
        alias: Option<&'static str>,
    ) -> Result<T, QueryError> {
        match self.single_value(name, alias)? {
            Some(value) => Ok(value.parse()?),
            None => Ok(T::default()),
        }
    }

    /// A yes or no, which is `default` where it is not given.
    fn parse_flag(&self, name: &'static str, default: bool) -> Result<bool, QueryError> {
        match self.single_value(name, None)? {
            None => Ok(default),
            Some("1" | "true") => Ok(true),
            Some("0" | "false") => Ok(false),
            Some(other) => Err(wrong_kind(name, other, "0, 1, true or false")),
        }
    }

    /// Accepts `include_provenance`, which clients of similar stores send. It has no effect: where
    /// a turn came from is not recorded apart from its payload.
    fn accept_provenance(&self) -> Result<(), QueryError> {
        self.parse_flag(PROVENANCE, false).map(drop)
    }

    /// A count. One beyond `usize` means the largest, because every route clamps it.
    fn parse_count(&self, name: &'static str, default: usize) -> Result<usize, QueryError> {
        match self.single_value(name, None)? {
            None => Ok(default),
            Some(value) if is_number(value) => Ok(value.parse().unwrap_or(usize::MAX)),
            Some(value) => Err(wrong_kind(name, value, "a whole number")),
        }
    }
}

fn wrong_kind(name: &'static str, value: &str, expected: &'static str) -> QueryError {
    QueryError::Kind {
        name,
        value: value.to_owned(),
        expected,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// An id, or 0 for none.
fn optional_turn(pairs: &Pairs, name: &'static str) -> Result<Option<TurnId>, QueryError> {
    match pairs.single_value(name, None)? {
        None | Some("0") => Ok(None),
        Some(value) => value
            .parse()
            .map(Some)
            .map_err(|_| wrong_kind(name, value, "a turn id")),
    }
}

/// Decodes percent escapes, and `+` as a space, as forms write it.
fn decode_text(text: &str) -> Result<String, QueryError> {
    let bytes = percent_decode(text, true).and_then(|bytes| String::from_utf8(bytes).ok());
    bytes.ok_or_else(|| QueryError::Encoding(text.to_owned()))
}

/// Decodes percent escapes once; none if an escape is broken.
pub(crate) fn percent_decode(text: &str, plus_is_space: bool) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digit = |b: Option<u8>| char::from(b?).to_digit(16);
                u8::try_from(digit(bytes.next())? * 16 + digit(bytes.next())?).ok()?
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    Some(decoded)
}

/// No parameters at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoQuery;

impl FromQuery for NoQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(&[]).map(|()| Self)
    }
}

/// Which contexts to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextsQuery {
    /// At most so many.
    pub limit: usize,
    /// From below this one on.
    pub before: Option<ContextId>,
    /// Labels that all of them have: a key, and perhaps its value.
    pub labels: Vec<(String, Option<String>)>,
    /// Whether the contexts of worlds are listed too.
    pub worlds: bool,
}

impl ContextsQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["limit", "cursor", "label", "worlds", PROVENANCE];
}

impl FromQuery for ContextsQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        pairs.accept_provenance()?;
        let cursor = pairs.single_value("cursor", None)?.map(|value| {
            let id = value.parse();
            id.map_err(|_| wrong_kind("cursor", value, "a page's next_cursor"))
        });
        let before = cursor.transpose()?;
        let labels = pairs.all_values("label").map(parse_label).collect();
        let limit = pairs.parse_count("limit", CONTEXTS_DEFAULT)?;
        Ok(Self {
            limit,
            before,
            labels,
            worlds: pairs.parse_flag("worlds", true)?,
        })
    }
}

/// A label to look for: `key`, or `key=value`.
fn parse_label(text: &str) -> (String, Option<String>) {
    match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (text.to_owned(), None),
    }
}

/// The query of one context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextQuery;

impl ContextQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &[PROVENANCE];
}

impl FromQuery for ContextQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        pairs.accept_provenance().map(|()| Self)
    }
}

/// Which blobs to name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobsQuery {
    /// Those whose hashes begin with these digits.
    pub prefix: BlobPrefix,
}

impl BlobsQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["prefix"];
}

impl FromQuery for BlobsQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        let text = pairs.single_value("prefix", None)?.unwrap_or_default();
        let prefix = text
            .parse()
            .map_err(|_| wrong_kind("prefix", text, "1 to 64 lower-case hex digits"))?;
        Ok(Self { prefix })
    }
}

/// Where an event stream starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventsQuery {
    /// After this position; none starts now.
    pub after: Option<u64>,
}

impl EventsQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["after"];
}

impl FromQuery for EventsQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        let after = pairs.single_value("after", None)?.map(|value| {
            parse_position(value)
                .ok_or_else(|| wrong_kind("after", value, "a position: a whole number from 0 on"))
        });
        Ok(Self {
            after: after.transpose()?,
        })
    }
}

/// A position in the feed.
pub(crate) fn parse_position(text: &str) -> Option<u64> {
    if is_number(text) {
        text.parse().ok()
    } else {
        None
    }
}

/// The query of a session's captured turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedTurnsQuery {
    /// At most so many.
    pub limit: Option<u32>,
    /// Whether texts without a submitted prompt are listed too.
    pub all: bool,
}

impl CapturedTurnsQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["limit", "all"];
}

impl FromQuery for CapturedTurnsQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        let limit = pairs.parse_count("limit", usize::MAX)?;
        Ok(Self {
            // A limit beyond `u32` is the same as no limit: a ring never has so many turns.
            limit: u32::try_from(limit).ok(),
            all: pairs.parse_flag("all", false)?,
        })
    }
}

/// The query of a captured turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedTurnQuery {
    /// Whether its bytes are sent beside the text.
    pub raw: bool,
}

impl CapturedTurnQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["raw"];
}

impl FromQuery for CapturedTurnQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        Ok(Self {
            raw: pairs.parse_flag("raw", false)?,
        })
    }
}

/// The query of the link that signs a browser in, and the fields of the form that does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInQuery {
    /// The owner's token.
    pub token: String,
    /// Where to go then.
    pub next: Option<String>,
}

impl SignInQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["token", "next"];
}

impl FromQuery for SignInQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        Ok(Self {
            token: pairs.optional_text("token")?.unwrap_or_default(),
            next: pairs.optional_text("next")?,
        })
    }
}

/// Parses arbitrary bytes as the query of every route; for fuzzing. It must not panic, and what
/// parses once parses the same way again.
#[cfg(any(test, feature = "dev"))]
pub fn parse_any(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(pairs) = Pairs::parse(text) else {
        return;
    };
    let turns = TurnsQuery::from_query(pairs.clone());
    assert_eq!(
        turns,
        TurnsQuery::from_query(pairs.clone()),
        "one query, two meanings"
    );
    let understood = [
        turns.is_ok(),
        is_understood::<ContextsQuery>(&pairs),
        is_understood::<EventsQuery>(&pairs),
        is_understood::<StreamQuery>(&pairs),
        is_understood::<ViewsQuery>(&pairs),
        is_understood::<CallerQuery>(&pairs),
        is_understood::<FsRootQuery>(&pairs),
    ];
    assert!(
        !is_understood::<NoQuery>(&pairs) || understood.iter().all(|ok| *ok),
        "an empty query is every route's"
    );
}

#[cfg(any(test, feature = "dev"))]
fn is_understood<T: FromQuery>(pairs: &Pairs) -> bool {
    T::from_query(pairs.clone()).is_ok()
}

#[cfg(test)]
mod tests;
