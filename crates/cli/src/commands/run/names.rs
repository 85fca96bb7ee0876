//! Finds the run, the node or the approval that a person names.
//!
//! | written | names |
//! |---|---|
//! | `3f2a`, `run:3f2a…` | a run by its id or a unique head of its id |
//! | `@last` | the newest run |
//! | `impl`, `7b1c`, `node:7b1c…` | a node by its alias, its label, its id or a unique head of its id |
//! | `9c4e`, `approval:9c4e…` | an open approval by its id or a unique head of its id |
//!
//! The forms with a colon are the references that `turnkeep inbox` prints. Where a command takes no
//! run, or none is given, the only active run is meant.

use std::fmt;
use std::str::FromStr;

use turnkeep_wire::runs::{
    ApprovalOfRun, NodeView, RunStatus, RunSummary, RunSummaryList, RunView,
};

use crate::failure::Failure;
use crate::render::{printable, shorten_to_chars};

/// A shorter head of an id would soon be shared with a new one.
const SHORT_CHARS_MIN: usize = 4;
/// How many runs, nodes or approvals an error lists.
const LISTED_MAX: usize = 5;
/// How much of a title an error shows.
const TITLE_CHARS_MAX: usize = 40;

/// A run, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunName {
    /// `@last`: the newest.
    Last,
    /// By its id or a head of its id.
    Called(String),
}

/// A text that names no run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadRunName;

impl fmt::Display for BadRunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a run: its id, a unique head of its id, or @last")
    }
}

impl std::error::Error for BadRunName {}

impl FromStr for RunName {
    type Err = BadRunName;

    fn from_str(text: &str) -> Result<Self, BadRunName> {
        match text.strip_prefix("run:").unwrap_or(text) {
            "@last" => Ok(Self::Last),
            // `@` is reserved for words such as @last.
            "" => Err(BadRunName),
            name if name.starts_with('@') || name.contains(':') => Err(BadRunName),
            name => Ok(Self::Called(name.to_owned())),
        }
    }
}

/// The runs of the server, newest first.
pub(crate) struct KnownRuns(Vec<RunSummary>);

impl KnownRuns {
    pub(crate) fn new(list: RunSummaryList) -> Self {
        Self(list.runs)
    }

    pub(crate) fn all(&self) -> &[RunSummary] {
        &self.0
    }

    /// The run that a person names, or means by naming none: the only active one, or the only one.
    pub(crate) fn choose(&self, name: Option<&RunName>) -> Result<&RunSummary, Failure> {
        let Some(name) = name else {
            return self.choose_unnamed();
        };
        match name {
            RunName::Last => self.0.first().ok_or_else(no_runs_error),
            RunName::Called(name) => self.find_called(name),
        }
    }

    fn choose_unnamed(&self) -> Result<&RunSummary, Failure> {
        let active: Vec<_> = self.0.iter().filter(|run| is_active(run)).collect();
        match (&active[..], &self.0[..]) {
            ([active], _) => Ok(active),
            ([], [only]) => Ok(only),
            ([], []) => Err(no_runs_error()),
            ([], _) => {
                Err(Failure::usage("no run is active, so name one").hint(self.newest_hint()))
            }
            (several, _) => {
                let message = format!("{} runs are active, so name one", several.len());
                Err(Failure::usage(message).hint(self.newest_hint()))
            }
        }
    }

    fn find_called(&self, name: &str) -> Result<&RunSummary, Failure> {
        match find_by_head(&self.0, name, |run| &run.id.0)[..] {
            [one] => Ok(one),
            [] if self.0.is_empty() => Err(no_runs_error()),
            [] => {
                let failure = Failure::new(format!("there is no run `{}`", printable(name)));
                Err(failure.hint(self.newest_hint()))
            }
            ref many => {
                let ids: Vec<_> = many.iter().map(|run| self.short_id(&run.id.0)).collect();
                Err(ambiguous_error(name, "runs", &ids))
            }
        }
    }

    /// The newest runs, with their titles.
    fn newest_hint(&self) -> String {
        let named = |run: &RunSummary| {
            let title = shorten_to_chars(&printable(&run.title), TITLE_CHARS_MAX);
            format!("{} ({title})", self.short_id(&run.id.0))
        };
        let newest: Vec<_> = self.0.iter().take(LISTED_MAX).map(named).collect();
        format!(
            "the newest runs are {}; `turnkeep run list` lists all",
            newest.join(", ")
        )
    }

    /// The shortest head of an id that names this run and no other.
    pub(crate) fn short_id(&self, id: &str) -> String {
        short_id(self.0.iter().map(|run| run.id.0.as_str()), id)
    }
}

/// Whether the run can still go on by itself.
fn is_active(run: &RunSummary) -> bool {
    !matches!(run.status, RunStatus::Completed | RunStatus::Failed)
}

fn no_runs_error() -> Failure {
    Failure::new("there is no run yet").hint("`turnkeep run new \"what to do\"` starts one")
}

fn ambiguous_error(name: &str, kind: &str, ids: &[String]) -> Failure {
    let (name, count) = (printable(name), ids.len());
    let listed = ids.get(..LISTED_MAX.min(count)).unwrap_or_default();
    Failure::new(format!("`{name}` may be any of {count} {kind}"))
        .hint(format!("name one by its id: {}", listed.join(", ")))
}

/// The items with this id, or else those whose id begins so.
fn find_by_head<'a, T>(items: &'a [T], name: &str, id_of: impl Fn(&T) -> &str) -> Vec<&'a T> {
    let exact: Vec<&T> = items.iter().filter(|item| id_of(item) == name).collect();
    if !exact.is_empty() || name.is_empty() {
        return exact;
    }
    items
        .iter()
        .filter(|item| id_of(item).starts_with(name))
        .collect()
}

/// The shortest head of an id, at least four characters long, with which no other id begins.
pub(crate) fn short_id<'a>(ids: impl Iterator<Item = &'a str>, id: &str) -> String {
    let others: Vec<&str> = ids.filter(|other| *other != id).collect();
    let is_unique = |head: &str| !others.iter().any(|other| other.starts_with(head));
    // Ids are UUIDs, but a server of another version may send any text: cut at characters.
    for (start, last) in id.char_indices().skip(SHORT_CHARS_MIN - 1) {
        let head = &id[..start + last.len_utf8()];
        if is_unique(head) {
            return printable(head);
        }
    }
    printable(id)
}

/// What a person calls a node: its alias, or else its label.
pub(crate) fn node_title(node: &NodeView) -> String {
    printable(node.alias.as_deref().unwrap_or(&node.label))
}

/// A word that names the node on a command line: its alias, or else a short head of its id.
pub(crate) fn node_word(run: &RunView, node: &NodeView) -> String {
    match &node.alias {
        Some(alias) => printable(alias),
        None => short_id(run.nodes.keys().map(String::as_str), &node.id.0),
    }
}

/// The nodes of a run in the order of their creation.
pub(crate) fn nodes_in_order(run: &RunView) -> Vec<&NodeView> {
    let mut nodes: Vec<&NodeView> = run.nodes.values().collect();
    // The id breaks ties: nodes of a team are made in one moment.
    nodes.sort_by_key(|node| (node.created_at.0, node.id.0.clone()));
    nodes
}

/// The node of a run that a person names.
pub(crate) fn find_node<'a>(run: &'a RunView, name: &str) -> Result<&'a NodeView, Failure> {
    let name = name.strip_prefix("node:").unwrap_or(name);
    match nodes_called(run, name)[..] {
        [one] => Ok(one),
        [] => Err(unknown_node_error(run, name)),
        ref many => {
            let ids: Vec<String> = many.iter().map(|node| node_word(run, node)).collect();
            Err(ambiguous_error(name, "nodes", &ids))
        }
    }
}

/// The nodes that a name may mean. The first rule that any node meets decides.
fn nodes_called<'a>(run: &'a RunView, name: &str) -> Vec<&'a NodeView> {
    let is_alias = |node: &NodeView| {
        let alias = node.alias.as_deref();
        alias.is_some_and(|alias| alias.eq_ignore_ascii_case(name))
    };
    // In this order, so that an alias wins over another node's id that begins with the same letters.
    let rules: [&dyn Fn(&NodeView) -> bool; 4] = [
        &|node| node.id.0 == name,
        &is_alias,
        &|node| node.label.eq_ignore_ascii_case(name),
        &|node| !name.is_empty() && node.id.0.starts_with(name),
    ];
    let nodes = nodes_in_order(run);
    let found = rules.iter().map(|rule| -> Vec<&NodeView> {
        nodes.iter().copied().filter(|node| rule(node)).collect()
    });
    found
        .into_iter()
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

fn unknown_node_error(run: &RunView, name: &str) -> Failure {
    let failure = Failure::new(format!("the run has no node `{}`", printable(name)));
    let words: Vec<String> = nodes_in_order(run)
        .into_iter()
        .map(|node| node_word(run, node))
        .collect();
    if words.is_empty() {
        return failure.hint("it has no node at all: `turnkeep node add` adds one");
    }
    failure.hint(format!("its nodes are {}", words.join(", ")))
}

/// The open approval that a person names.
pub(crate) fn find_approval<'a>(
    open: &'a [ApprovalOfRun],
    name: &str,
) -> Result<Option<&'a ApprovalOfRun>, Failure> {
    let name = name.strip_prefix("approval:").unwrap_or(name);
    match find_by_head(open, name, |item| &item.approval.approval_id.0)[..] {
        [one] => Ok(Some(one)),
        [] => Ok(None),
        ref many => {
            let ids: Vec<String> = many
                .iter()
                .map(|item| approval_word(open, &item.approval.approval_id.0))
                .collect();
            Err(ambiguous_error(name, "approvals", &ids))
        }
    }
}

/// A short head of an approval's id.
pub(crate) fn approval_word(open: &[ApprovalOfRun], id: &str) -> String {
    short_id(
        open.iter().map(|item| item.approval.approval_id.0.as_str()),
        id,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(id: &str, status: &str) -> RunSummary {
        serde_json::from_value(json!({
            "id": id, "contractVersion": "1", "status": status, "phase": "EXECUTE",
            "mode": "AUTO", "globalMode": "IMPLEMENTATION", "title": "Fix it",
            "createdAt": "2026-01-01T00:00:00.000Z", "updatedAt": "2026-01-01T00:00:00.000Z",
            "usage": {"promptTokens": 0, "completionTokens": 0, "totalTokens": 0,
                      "cachedTokens": 0, "costUsd": 0.0},
            "nodeCount": 0, "runningCount": 0, "openApprovals": 0,
        }))
        .unwrap()
    }

    fn chosen(runs: &[(&str, &str)], name: Option<&str>) -> String {
        let runs = runs.iter().map(|(id, status)| run(id, status)).collect();
        let name = name.map(|name| name.parse::<RunName>().unwrap());
        match KnownRuns(runs).choose(name.as_ref()) {
            Ok(run) => run.id.0.clone(),
            Err(failure) => format!("- {failure}"),
        }
    }

    #[test]
    fn a_run_is_named_by_its_id_a_head_or_last() {
        let runs = [
            ("abc1x", "running"),
            ("abd2x", "completed"),
            ("abc", "paused"),
        ];
        for (name, expect) in [
            ("abd2x", "abd2x"),
            ("abd", "abd2x"),
            ("run:abd", "abd2x"),
            ("abc", "abc"),
            ("@last", "abc1x"),
            ("ab", "- `ab` may be any of 3 runs"),
            ("x", "- there is no run `x`"),
        ] {
            assert_eq!(chosen(&runs, Some(name)), expect, "{name}");
        }
        for bad in ["", "@first", "a:b", "run:"] {
            assert_eq!(bad.parse::<RunName>(), Err(BadRunName), "{bad}");
        }
    }

    #[test]
    fn without_a_name_the_only_active_run_is_meant() {
        for (runs, expect) in [
            (&[("aaaa", "completed"), ("bbbb", "paused")][..], "bbbb"),
            (&[("aaaa", "completed")], "aaaa"),
            (
                &[("aaaa", "completed"), ("bbbb", "failed")],
                "- no run is active, so name one",
            ),
            (
                &[("aaaa", "running"), ("bbbb", "queued")],
                "- 2 runs are active, so name one",
            ),
            (&[], "- there is no run yet"),
        ] {
            assert_eq!(chosen(runs, None), expect);
        }
    }

    #[test]
    fn a_short_id_is_unique() {
        let ids = ["abcd1234", "abcd1299", "ffff0000", "short", "short-er"];
        for (id, expect) in [
            ("ffff0000", "ffff"),
            ("abcd1234", "abcd123"),
            ("short", "short"),
            ("new", "new"),
        ] {
            assert_eq!(short_id(ids.iter().copied(), id), expect);
        }
    }
}
