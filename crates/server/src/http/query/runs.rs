//! Queries of the routes of runs.

use super::{FromQuery, Pairs, QueryError, is_number, wrong_kind};

/// Events on a page, unless the request says otherwise.
const EVENTS_DEFAULT: usize = 200;
/// Events on a page, at most.
const EVENTS_MAX: usize = 2000;

/// The query of the list of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunListQuery {
    /// Whether nodes, edges and artifacts are left out.
    pub summary: bool,
}

impl FromQuery for RunListQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(&["summary"])?;
        Ok(Self {
            summary: pairs.parse_flag("summary", false)?,
        })
    }
}

/// The query of a list over all runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilterQuery {
    /// The only run to list.
    pub run_id: Option<String>,
}

impl FromQuery for RunFilterQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(&["runId"])?;
        Ok(Self {
            run_id: pairs.optional_text("runId")?,
        })
    }
}

/// The query of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawQuery {
    /// Whether its bytes are sent.
    pub raw: bool,
}

impl FromQuery for RawQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(&["raw"])?;
        Ok(Self {
            raw: pairs.parse_flag("raw", false)?,
        })
    }
}

/// The query of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportQuery {
    /// Whether the run gets a new id.
    pub copy: bool,
    /// The run's directory on this machine.
    pub cwd: Option<String>,
}

impl FromQuery for ImportQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(&["copy", "cwd"])?;
        Ok(Self {
            copy: pairs.parse_flag("copy", false)?,
            cwd: pairs.optional_text("cwd")?,
        })
    }
}

/// The query of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryQuery {
    /// The directory to list.
    pub path: Option<String>,
}

impl FromQuery for DirectoryQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(&["path"])?;
        Ok(Self {
            path: pairs.optional_text("path")?,
        })
    }
}

/// Which page of events is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventDirection {
    /// The newest.
    Newest,
    /// The one that ends just before an event.
    Before(u64),
    /// The one that begins just after an event.
    After(u64),
}

/// The query of a page of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQuery {
    /// How many events, at most.
    pub limit: usize,
    /// Which page.
    pub direction: EventDirection,
    /// The types to show; all types if the list is empty.
    pub types: Vec<String>,
    /// The node to show, by its id or alias.
    pub node: Option<String>,
}

impl EventQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["limit", "before", "after", "types", "nodeId"];

    /// Whether some events may not belong on the page.
    pub fn is_filtered(&self) -> bool {
        !self.types.is_empty() || self.node.is_some()
    }
}

impl FromQuery for EventQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        let before = parse_seq(&pairs, "before")?;
        let after = parse_seq(&pairs, "after")?;
        let direction = match (before, after) {
            (None, None) => EventDirection::Newest,
            (Some(seq), None) => EventDirection::Before(seq),
            (None, Some(seq)) => EventDirection::After(seq),
            (Some(_), Some(seq)) => {
                let value = seq.to_string();
                return Err(wrong_kind("after", &value, "no `after` beside `before`"));
            }
        };
        Ok(Self {
            limit: parse_limit(&pairs)?,
            direction,
            types: parse_types(&pairs)?,
            node: pairs.optional_text("nodeId")?,
        })
    }
}

fn parse_limit(pairs: &Pairs) -> Result<usize, QueryError> {
    let Some(text) = pairs.optional_text("limit")? else {
        return Ok(EVENTS_DEFAULT);
    };
    let number = text.parse().ok().filter(|_| is_number(&text));
    number
        .filter(|limit| (1..=EVENTS_MAX).contains(limit))
        .ok_or_else(|| wrong_kind("limit", &text, "a whole number from 1 to 2000"))
}

fn parse_seq(pairs: &Pairs, name: &'static str) -> Result<Option<u64>, QueryError> {
    let text = pairs.optional_text(name)?;
    text.map(|text| {
        let number = text.parse().ok().filter(|_| is_number(&text));
        number.ok_or_else(|| wrong_kind(name, &text, "the number of an event"))
    })
    .transpose()
}

fn parse_types(pairs: &Pairs) -> Result<Vec<String>, QueryError> {
    let text = pairs.optional_text("types")?.unwrap_or_default();
    let names = text.split(',').map(str::trim);
    Ok(names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect())
}

/// The query of a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketQuery {
    /// A shared terminal.
    Session(String),
    /// The events of runs.
    Runs(RunStreamQuery),
}

/// The query of a socket with events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStreamQuery {
    /// The run; all of them without one.
    pub run_id: Option<String>,
    /// The number of the last event that the client has.
    pub since: Option<u64>,
    /// The types to send; all types if the list is empty.
    pub types: Vec<String>,
}

impl SocketQuery {
    /// The parameters.
    pub const NAMES: &'static [&'static str] = &["session", "runId", "since", "types"];
}

impl FromQuery for SocketQuery {
    fn from_query(pairs: Pairs) -> Result<Self, QueryError> {
        pairs.check_names(Self::NAMES)?;
        if let Some(session) = pairs.optional_text("session")? {
            pairs.check_names(&["session"])?;
            return Ok(Self::Session(session));
        }
        Ok(Self::Runs(RunStreamQuery {
            run_id: pairs.optional_text("runId")?,
            since: parse_seq(&pairs, "since")?,
            types: parse_types(&pairs)?,
        }))
    }
}
