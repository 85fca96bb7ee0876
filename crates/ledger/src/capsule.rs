//! Capsules: what a view shows of one person, quoted verbatim with its sources.
//!
//! A capsule is computed, not stored. It quotes the entries that the person wrote or that name the
//! person, the newest first up to [`CAPSULE_BYTES_MAX`], and their open appointments, however old.
//! Whether an appointment is over depends on the view's own time. So a capsule depends on the view
//! alone, and hidden entries change neither its text nor its id. Notes come last and are never
//! evidence.

#[cfg(any(test, feature = "dev"))]
mod check;

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::anchor::may_see_all;
use crate::cursor;
use crate::fact::Note;
use crate::ids::{CapsuleId, OPERATOR, hash_parts};
use crate::json::canonical;
use crate::pocket::open_calendar;
use crate::quotation::{self, Quotation, Space};
use crate::search::{Mention, Scope, excerpt_naming};
use crate::time::WorldTime;
use crate::view::View;
use crate::world::World;

#[cfg(any(test, feature = "dev"))]
pub use check::validate;

/// The bytes of the quoted text. Appointments may use as much again.
pub const CAPSULE_BYTES_MAX: usize = 16 << 10;
/// The prefix of a note.
pub const DERIVED: &str = "Derived, not authority: ";

/// How many candidates the first lookup returns. Each further one returns twice as many, so that a
/// person whom few entries name costs one small lookup, and any other a few large ones.
const FIRST_CANDIDATES: usize = 128;

/// Reading a text of this size is cheaper than an index lookup.
const SHORT_TEXT_BYTES: usize = 4 << 10;

const SOURCES: &str = "SOURCE_EXCERPTS";
const NOTES: &str = "OPTIONAL_DERIVED";

/// A capsule of one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capsule<'a> {
    /// A hash of the person, the view, its cursor and the sections.
    pub id: CapsuleId,
    /// The person's id.
    pub person: String,
    /// The time of the newest visible entry.
    pub created_at: WorldTime,
    /// The evidence, in ledger order.
    pub quotations: Vec<Quotation<'a>>,
    /// The newest note about the person.
    pub note: Option<&'a Note>,
}

/// The names of a person: id, label and aliases. Empty if the world cannot have such a person.
fn names_of<'a>(world: &'a World, person: &'a str) -> Vec<&'a str> {
    if person == OPERATOR {
        return vec![OPERATOR, &world.config.operator_label];
    }
    if world.people.resolve(person, world.config.registry).is_err() {
        return Vec::new();
    }
    let known = world.people.get(person).into_iter();
    let mut names = vec![person];
    names.extend(
        known
            .flat_map(|known| [&known.label].into_iter().chain(&known.aliases))
            .map(String::as_str),
    );
    names
}

/// The person that a capsule is about.
struct Subject<'a> {
    id: &'a str,
    names: Vec<&'a str>,
    mentions: Vec<Mention>,
}

/// Entries that may be about a person.
struct Candidates {
    /// The newest first.
    numbers: Vec<u32>,
    /// Older candidates have smaller numbers than this.
    end: u32,
}

impl<'n> Subject<'n> {
    fn new(world: &'n World, id: &'n str) -> Self {
        let mut names = names_of(world, id);
        names.sort_unstable();
        names.dedup();
        let mentions = names.iter().map(|name| Mention::new(name)).collect();
        Self {
            id,
            names,
            mentions,
        }
    }

    /// The quotation of an entry, if the person wrote it or it names the person.
    fn quote<'a>(&self, view: &View<'a>, number: u32) -> Option<Quotation<'a>> {
        let entry = view.entry_at(number)?;
        if self.names.is_empty() {
            return None;
        }
        if entry.author.id.as_str() == self.id {
            return Some(Quotation::beginning(number, entry));
        }
        self.mentions
            .iter()
            .find(|mention| mention.find(&entry.text).is_some())?;
        Some(Quotation {
            number,
            entry,
            range: excerpt_naming(&entry.text, &self.mentions),
        })
    }

    /// The newest entries before a number that may be about the person.
    fn find_candidates(&self, view: &View<'_>, before: u32, count: usize) -> Candidates {
        let scope = Scope {
            classes: view.classes(),
            at: before.min(view.position()),
        };
        let authored = view.world.authored_by(self.id);
        let authored = &authored[..authored.partition_point(|number| *number < scope.at)];
        let mut sources: Vec<Vec<u32>> = Vec::with_capacity(1 + self.names.len());
        sources.push(authored.iter().rev().take(count).copied().collect());
        for name in &self.names {
            sources.push(view.world.index().entries_naming(&scope, name, count));
        }
        // A source that returned `count` entries may have more before its last one. Entries older
        // than that are left to the next batch, so that batches stay in order.
        let mut end = 0;
        for found in &sources {
            if found.len() == count
                && let Some(last) = found.last()
            {
                end = end.max(*last);
            }
        }
        let mut numbers = sources.concat();
        numbers.retain(|number| *number >= end);
        // The sources overlap: an entry by the person may also name the person.
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        numbers.dedup();
        Candidates { numbers, end }
    }

    /// All entries that may be about the person, the newest first.
    fn newest_first(&self, view: &View<'_>) -> impl Iterator<Item = u32> {
        let (mut before, mut count) = (view.position(), FIRST_CANDIDATES);
        let batches = std::iter::from_fn(move || {
            if before == 0 {
                return None;
            }
            let candidates = self.find_candidates(view, before, count);
            before = candidates.end;
            count = count.saturating_mul(2);
            Some(candidates.numbers)
        });
        batches.flatten()
    }

    /// Whether an entry is worth reading. Short entries are, because reading one is cheaper than
    /// looking it up.
    fn may_be_about(&self, view: &View<'_>, number: u32) -> bool {
        let is_short = view
            .entry_at(number)
            .is_some_and(|entry| entry.text.len() <= SHORT_TEXT_BYTES);
        is_short || self.find_candidates(view, number + 1, 1).numbers.first() == Some(&number)
    }
}

impl<'a> Capsule<'a> {
    /// Makes the capsule of a person. It is empty for an unknown person.
    pub fn build(view: &View<'a>, person: &str) -> Self {
        let subject = Subject::new(view.world, person);
        let about = |number| subject.quote(view, number);
        // An entry that is quoted as evidence is not quoted again as an appointment.
        let mut taken = HashSet::new();
        let newest = subject.newest_first(view).filter_map(about);
        let mut quotations = Space::of_text(CAPSULE_BYTES_MAX).fill(newest, &mut taken);
        // The view's own time, not the clock: hidden entries must not end an appointment.
        let planned = open_calendar(view, view.newest_time()).into_iter().rev();
        let planned = planned
            .filter(|number| subject.may_be_about(view, *number))
            .filter_map(about);
        quotations.extend(Space::of_text(CAPSULE_BYTES_MAX).fill(planned, &mut taken));
        quotations.sort_by_key(|quotation| quotation.number);
        let note = newest_note(view, person);
        let id = capsule_id(view, person, &sections_json(&quotations, note));
        Self {
            id,
            person: person.to_owned(),
            created_at: view.newest_time().clone(),
            quotations,
            note,
        }
    }

    /// The capsule pack as JSON.
    pub fn pack(&self) -> Value {
        json!({
            "capsule_id": self.id.to_string(),
            "person_id": self.person,
            "created_at_world": self.created_at.as_str(),
            "sections": sections_json(&self.quotations, self.note),
        })
    }
}

/// The newest note on a person that cites only visible entries. A note with an empty text records
/// that the writer's text was not accepted.
fn newest_note<'a>(view: &View<'a>, person: &str) -> Option<&'a Note> {
    // Of a note that cites a hidden entry, not even the existence may show. The next older counts.
    let known = |note: &&Note| view.covers(note.position) && may_see_all(view, &note.cited);
    view.world
        .notes_on(person)
        .iter()
        .rev()
        .find(known)
        .filter(|note| !note.text.is_empty())
}

fn capsule_id(view: &View<'_>, person: &str, sections: &Value) -> CapsuleId {
    // The cursor counts visible entries, so a hidden entry does not change the id.
    let cursor = cursor::write(view, view.count());
    CapsuleId(hash_parts(&[
        "capsule",
        person,
        view.viewer.as_str(),
        &cursor,
        &canonical(sections),
    ]))
}

fn sections_json(quotations: &[Quotation<'_>], note: Option<&Note>) -> Value {
    let excerpt = |quotation: &Quotation<'_>| {
        let range = &quotation.range;
        json!({ "entry_id": quotation.entry.id.to_string(), "start": range.start, "end": range.end })
    };
    let used = quotation::id_texts(quotations.iter().map(|quotation| &quotation.entry.id));
    let evidence = json!({
        "name": SOURCES,
        "text": quotation::join_texts(quotations),
        "provenance": { "used_entry_ids": used },
        "excerpts": quotations.iter().map(excerpt).collect::<Vec<_>>(),
    });
    let derived = note.map(|note| {
        json!({
            "name": NOTES,
            "text": format!("{DERIVED}{}", note.text),
            "provenance": { "used_entry_ids": quotation::id_texts(&note.cited) },
        })
    });
    Value::Array([evidence].into_iter().chain(derived).collect())
}
