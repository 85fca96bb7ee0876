//! Provenance: why a line, a diff, a turn or an entry is there, up to the person who wanted it.
//!
//! [`explain`] follows causes one at a time: a line was added by a diff, the diff was made in a turn,
//! the turn was started by a prompt, the prompt was for a handoff, the handoff was sent in another
//! turn, and so on until a message of a person. Each kind of thing knows its own cause
//! (`run_links`, `world_links`, `store_links`).
//!
//! The module keeps nothing: every answer is made from the store, the runs and the worlds as they are.
//! A run's archive has an index of its turns, inputs and files, so a link takes a few lookups and reads
//! one event; a line also reads the whole diff. A note of the server is a link that leads to the turn
//! that it is about. A chain has at most [`LINKS_MAX`] links; one that ends before a person says why. A
//! ref that names nothing is `not found`. So is an entry that is hidden from
//! the operator, as on every other route.

mod added_line;
mod refs;
mod run_links;
mod store_links;
mod world_links;

use std::sync::Arc;

use turnkeep_ledger::ids::EntryId;
use turnkeep_runtime::ids::{AgentTurnId, ArtifactId};
use turnkeep_runtime::input::InputId;
use turnkeep_types::{Timestamp, TurnId};
use turnkeep_wire::json::{Time, Why, WhyKind, WhyLink};

pub(crate) use refs::CausedRef;
use refs::LineRef;

use crate::error::ApiError;
use crate::ledger::WorldHandle;
use crate::runs::RunHandle;
use crate::shared::Shared;

/// The longest chain. Agents can hand work back and forth for ever.
const LINKS_MAX: usize = 256;
/// How much of a text a summary has.
const SUMMARY_CHARACTERS_MAX: usize = 200;
/// The owner, as a link.
const OPERATOR_REF: &str = "person:operator";

/// Something whose link is still to be made.
enum Cause {
    Line(Arc<RunHandle>, LineRef),
    Artifact(Arc<RunHandle>, ArtifactId),
    Turn(Arc<RunHandle>, AgentTurnId),
    Input(Arc<RunHandle>, InputId),
    Run(Arc<RunHandle>),
    Entry(Arc<WorldHandle>, EntryId),
    StoreTurn(TurnId),
    Person(WhyLink),
}

/// The links of one thing, and what caused it.
struct Explained {
    links: Vec<WhyLink>,
    cause: Option<Cause>,
}

impl Explained {
    fn one(link: WhyLink, cause: Option<Cause>) -> Self {
        Self {
            links: vec![link],
            cause,
        }
    }
}

/// The chain of causes of a thing.
pub(crate) async fn explain(shared: &Arc<Shared>, reference: &CausedRef) -> Result<Why, ApiError> {
    // Clients tell a ref that names nothing from a route that the server does not have.
    let name_ref = |error: ApiError| error.with("ref", reference.to_string());
    let mut next = Some(find_cause(shared, reference).map_err(name_ref)?);
    let mut chain: Vec<WhyLink> = Vec::new();
    while let Some(cause) = next.take() {
        if chain.len() >= LINKS_MAX {
            next = Some(cause);
            break;
        }
        let explained = explain_one(shared, cause).await.map_err(name_ref)?;
        chain.extend(explained.links);
        next = explained.cause;
    }
    let complete = next.is_none();
    Ok(Why {
        reference: reference.to_string(),
        end: describe_end(&chain, complete),
        chain,
        complete,
    })
}

/// Why a chain ends before a person; `None` if it ends at one.
fn describe_end(chain: &[WhyLink], complete: bool) -> Option<String> {
    let last = chain.last()?;
    match (complete, last.kind) {
        (true, WhyKind::Person) => None,
        (true, _) => Some(
            "it belongs to no run and to no world, so nothing is recorded about its cause"
                .to_owned(),
        ),
        (false, _) => Some(format!(
            "the chain is longer than {LINKS_MAX} links: ask for its last link"
        )),
    }
}

/// Finds the thing that a ref names.
fn find_cause(shared: &Shared, reference: &CausedRef) -> Result<Cause, ApiError> {
    let unknown = || ApiError::not_found(format!("there is no {reference}"));
    let found = match reference {
        CausedRef::Line(line) => run_links::find_artifact_run(shared, line.artifact)
            .map(|run| Cause::Line(run, line.clone())),
        CausedRef::Artifact(id) => {
            run_links::find_artifact_run(shared, *id).map(|run| Cause::Artifact(run, *id))
        }
        CausedRef::AgentTurn(id) => {
            run_links::find_turn_run(shared, *id).map(|run| Cause::Turn(run, *id))
        }
        CausedRef::Input(id) => {
            run_links::find_input_run(shared, *id).map(|run| Cause::Input(run, *id))
        }
        CausedRef::Run(id) => shared.runs.get(*id).ok().map(Cause::Run),
        CausedRef::Entry(id) => {
            world_links::find_world(shared, *id).map(|world| Cause::Entry(world, *id))
        }
        CausedRef::StoreTurn(id) => Some(Cause::StoreTurn(*id)),
        CausedRef::Context(id) => shared.store.context(*id)?.head.map(Cause::StoreTurn),
    };
    found.ok_or_else(unknown)
}

async fn explain_one(shared: &Arc<Shared>, cause: Cause) -> Result<Explained, ApiError> {
    match cause {
        Cause::Line(run, line) => run_links::explain_line(shared, run, line).await,
        Cause::Artifact(run, id) => run_links::explain_artifact(run, id),
        Cause::Turn(run, id) => run_links::explain_turn(run, id).await,
        Cause::Input(run, id) => run_links::explain_input(run, id).await,
        Cause::Run(run) => Ok(run_links::explain_run(&run)),
        Cause::Entry(world, id) => world_links::explain_entry(shared, &world, id),
        Cause::StoreTurn(id) => store_links::explain_turn(shared, id).await,
        Cause::Person(link) => Ok(Explained::one(link, None)),
    }
}

/// A link of which neither the time nor the author is known. The first line of the text is its
/// summary.
fn make_link(kind: WhyKind, reference: &impl ToString, text: &str) -> WhyLink {
    WhyLink {
        reference: reference.to_string(),
        kind,
        summary: summarize(text),
        at: None,
        by: None,
        also: Vec::new(),
    }
}

/// The owner as the last link of a chain.
fn operator_link() -> WhyLink {
    make_link(WhyKind::Person, &OPERATOR_REF, "the operator")
}

fn format_time(at: Timestamp) -> String {
    Time(at).to_string()
}

/// The first line of a text, cut if it is long.
fn summarize(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut characters = line.chars();
    let mut summary: String = characters.by_ref().take(SUMMARY_CHARACTERS_MAX).collect();
    if characters.next().is_some() {
        summary.push('…');
    }
    summary
}
