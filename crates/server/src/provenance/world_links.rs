//! The causes of an entry of a world: the handoff that it reports, the words that it answers, or
//! the person who wrote it.

use std::sync::Arc;

use turnkeep_ledger::entry::{AuthorClass, Entry};
use turnkeep_ledger::ids::EntryId;
use turnkeep_ledger::{View, Viewer};
use turnkeep_runtime::Run;
use turnkeep_runtime::ids::EventId;
use turnkeep_runtime::input::InputId;
use turnkeep_wire::json::{WhyKind, WhyLink};

use super::refs::CausedRef;
use super::run_links::{find_input_run, find_run};
use super::{Cause, Explained, make_link, operator_link};
use crate::error::ApiError;
use crate::ledger::WorldHandle;
use crate::shared::Shared;

/// A world in which the operator may see this entry. A fork has the entries of its origin, and all
/// of them say the same.
pub(super) fn find_world(shared: &Shared, id: EntryId) -> Option<Arc<WorldHandle>> {
    let worlds = shared.worlds.list();
    let has_entry = |world: &Arc<WorldHandle>| {
        world.read(|world| world.view(Viewer::operator()).entry(id).is_some())
    };
    worlds.into_iter().find(has_entry)
}

/// An entry, without the world that it is borrowed from.
struct FoundEntry {
    link: WhyLink,
    class: AuthorClass,
    request: Arc<str>,
    /// The entry that caused this one.
    answered: Option<EntryId>,
    author: WhyLink,
}

pub(super) fn explain_entry(
    shared: &Shared,
    world: &Arc<WorldHandle>,
    id: EntryId,
) -> Result<Explained, ApiError> {
    let found = world.read(|known| {
        let view = known.view(Viewer::operator());
        let entry = view.entry(id)?;
        Some(describe_entry(&view, entry))
    });
    let found = found.ok_or_else(|| ApiError::not_found("the entry is gone"))?;
    // An entry that the server wrote for a run leads back into the run. Any other entry was written in
    // the world itself.
    let reported = find_reported_event(shared, &found);
    let cause = reported.unwrap_or_else(|| match found.answered {
        Some(answered) => Cause::Entry(Arc::clone(world), answered),
        None => Cause::Person(found.author),
    });
    Ok(Explained::one(found.link, Some(cause)))
}

fn describe_entry(view: &View<'_>, entry: &Entry) -> FoundEntry {
    let world = view.world.config.world.as_str();
    let author = match entry.author.class {
        AuthorClass::Operator => operator_link(),
        AuthorClass::Person | AuthorClass::World | AuthorClass::System => {
            let reference = format!("person:{world}/{}", entry.author.id);
            let text = format!("{} of the world {world}", entry.label);
            make_link(WhyKind::Person, &reference, &text)
        }
    };
    FoundEntry {
        link: WhyLink {
            at: Some(entry.time.as_str().to_owned()),
            by: Some(entry.label.to_string()),
            ..make_link(WhyKind::Entry, &CausedRef::Entry(entry.id), &entry.text)
        },
        class: entry.author.class,
        request: Arc::clone(&entry.request),
        answered: find_answered(view, entry),
        author,
    }
}

/// The entry that an entry replies to, or the operator's words in the same request: they made the
/// attached writer write.
fn find_answered(view: &View<'_>, entry: &Entry) -> Option<EntryId> {
    let replied = view.replied_to(entry).map(|replied| replied.id);
    let words = || {
        let mut beside = view.entries_of_bundle(entry.bundle);
        let words = beside.find(|(_, other)| other.author.class == AuthorClass::Operator);
        words
            .map(|(_, words)| words.id)
            .filter(|id| *id != entry.id)
    };
    replied.or_else(words)
}

/// The event of a run that the server reported with this entry. Its id is the entry's request.
fn find_reported_event(shared: &Shared, found: &FoundEntry) -> Option<Cause> {
    match found.class {
        AuthorClass::Person => {
            let input = InputId::Envelope(found.request.parse().ok()?);
            let run = find_input_run(shared, input)?;
            Some(Cause::Input(run, input))
        }
        AuthorClass::System => {
            let event: EventId = found.request.parse().ok()?;
            let has_event = |run: &Run| {
                let mut reported = run.archive.milestones_after(0).iter();
                reported.any(|milestone| milestone.event == event)
            };
            find_run(shared, has_event).map(Cause::Run)
        }
        AuthorClass::Operator | AuthorClass::World => None,
    }
}
