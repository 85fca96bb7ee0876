//! Queries of the ledger's routes.
//!
//! Every route in a world takes `as`; those that the owner may read as audit take `audit` too.
//! [`CallerQuery`] reads these two. Each route has its own query type, which knows all legal names.

use super::{FromQuery, Pairs, QueryError};

/// Entries on a page, unless the request says otherwise.
const ENTRIES_DEFAULT: usize = 500;

/// As whom the owner makes a request. Other parameters are left to the route's query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerQuery {
    /// The person as whom the owner acts.
    pub as_person: Option<String>,
    /// Whether the owner reads everything, as audit.
    pub audit: bool,
}

impl FromQuery for CallerQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        // No names are checked here: the route's own query knows the others.
        Ok(Self {
            as_person: pairs.optional_text("as")?,
            audit: pairs.parse_flag("audit", false)?,
        })
    }
}

/// A route that may be asked as a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActingQuery;

impl ActingQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["as"];
}

impl FromQuery for ActingQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES).map(|()| Self)
    }
}

/// A route that may be read as a person or as the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingQuery;

impl ReadingQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["as", "audit"];
}

impl FromQuery for ReadingQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES).map(|()| Self)
    }
}

/// Where a page of a stream starts, and how long it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamQuery {
    /// A page's `cursor_after`; none starts at the beginning.
    pub cursor: Option<String>,
    /// At most so many entries.
    pub limit: usize,
    /// Whether each entry says who may see it.
    pub audience: bool,
}

impl StreamQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["cursor", "limit", "audience", "as", "audit"];
}

impl FromQuery for StreamQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        Ok(Self {
            cursor: pairs.optional_text("cursor")?,
            limit: read_limit(&pairs)?,
            audience: pairs.parse_flag("audience", false)?,
        })
    }
}

/// Where a subscription starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscribeQuery {
    /// A cursor; none starts at the beginning.
    pub cursor: Option<String>,
    /// Whether each entry says who may see it.
    pub audience: bool,
}

impl SubscribeQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["cursor", "audience", "as"];
}

impl FromQuery for SubscribeQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        Ok(Self {
            cursor: pairs.optional_text("cursor")?,
            audience: pairs.parse_flag("audience", false)?,
        })
    }
}

/// Which view, when, and compared with whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewsQuery {
    /// A time, or a cursor of the view; none means now.
    pub as_of: Option<String>,
    /// Another person.
    pub vs: Option<String>,
    /// At most so many entries.
    pub limit: usize,
}

impl ViewsQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["as_of", "vs", "limit", "as", "audit"];
}

impl FromQuery for ViewsQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        Ok(Self {
            as_of: pairs.optional_text("as_of")?,
            vs: pairs.optional_text("vs")?,
            limit: read_limit(&pairs)?,
        })
    }
}

/// Which lines of the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinesQuery {
    /// A page's `next_cursor`.
    pub cursor: usize,
    /// At most so many.
    pub limit: usize,
}

impl LinesQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["cursor", "limit"];
}

impl FromQuery for LinesQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        Ok(Self {
            cursor: pairs.parse_count("cursor", 0)?,
            limit: read_limit(&pairs)?,
        })
    }
}

/// Whether a verification also looks for what an author could not have seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyQuery {
    /// Lists verbatim runs that an author could not have seen.
    pub leaks: bool,
}

impl VerifyQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["leaks"];
}

impl FromQuery for VerifyQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        Ok(Self {
            leaks: pairs.parse_flag("leaks", false)?,
        })
    }
}

/// The limit of a page. Its error differs from that of the store's routes: the ledger has a code of
/// its own for a bad limit.
fn read_limit(pairs: &Pairs) -> Result<usize, QueryError> {
    match pairs.parse_count("limit", ENTRIES_DEFAULT) {
        Ok(0) => Err(QueryError::Limit("0".to_owned())),
        Err(QueryError::Kind { value, .. }) => Err(QueryError::Limit(value)),
        limit => limit,
    }
}
