//! Capsules: what a view may know of one person, verbatim, with its sources.
//!
//! A capsule is computed and not stored. It quotes entries that the person wrote or that name the
//! person, the newest first until [`CAPSULE_BYTES_MAX`], and what of them is still planned, however
//! old. What is past is decided by the view's own time, so that a capsule depends on the view's
//! position alone and hidden writes move neither its words nor its id. Notes come last and are
//! never evidence.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::anchor::may_see_all;
use crate::cursor;
use crate::fact::Note;
use crate::fault::{Code, Fault};
use crate::ids::{CapsuleId, OPERATOR, hash_of};
use crate::json::{Node, canonical};
use crate::pocket::open_calendar;
use crate::quotation::{self, Quotation, Space};
use crate::search::{Mention, Scope, excerpt_naming};
use crate::time::WorldTime;
use crate::view::View;
use crate::world::World;

/// The words of a capsule; what is planned may take as much again.
pub const CAPSULE_BYTES_MAX: usize = 16 << 10;
/// What stands before a note.
pub const DERIVED: &str = "Derived, not authority: ";

/// How many entries are looked at first; then twice as many, and so on until the capsule is full.
const FIRST_CANDIDATES: usize = 128;

/// A text of so many bytes is short.
const SHORT_BYTES: usize = 4 << 10;

const SOURCES: &str = "SOURCE_EXCERPTS";
const NOTES: &str = "OPTIONAL_DERIVED";

/// What a view may know of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capsule<'a> {
    /// A hash of the person, the view, its cursor and the sections.
    pub id: CapsuleId,
    /// Of whom.
    pub person: String,
    /// The time of the newest visible entry.
    pub created_at: WorldTime,
    /// The evidence, in ledger order.
    pub quotations: Vec<Quotation<'a>>,
    /// What was noted last.
    pub note: Option<&'a Note>,
}

/// By what a person is called: the id, the label, the aliases. Nobody is called anything if the
/// world cannot have such a person.
fn names<'a>(world: &'a World, person: &'a str) -> Vec<&'a str> {
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

/// Whom a capsule is about.
struct Subject<'a> {
    id: &'a str,
    names: Vec<&'a str>,
    mentions: Vec<Mention>,
}

impl<'n> Subject<'n> {
    fn of(world: &'n World, id: &'n str) -> Self {
        let mut names = names(world, id);
        names.sort_unstable();
        names.dedup();
        let mentions = names.iter().map(|name| Mention::new(name)).collect();
        Self {
            id,
            names,
            mentions,
        }
    }

    /// The piece of an entry to quote, if it is the person's or names the person.
    fn quotation<'a>(&self, view: &View<'a>, number: u32) -> Option<Quotation<'a>> {
        let entry = view.numbered(number)?;
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

    /// The newest entries before a number that may be about the person, the newest first, and the
    /// number before which there may be more.
    fn candidates(&self, view: &View<'_>, before: u32, count: usize) -> (Vec<u32>, u32) {
        let scope = Scope {
            classes: view.classes(),
            at: before.min(view.at()),
        };
        let authored = view.world.authored_by(self.id);
        let authored = &authored[..authored.partition_point(|number| *number < scope.at)];
        let mut sources = vec![
            authored
                .iter()
                .rev()
                .take(count)
                .copied()
                .collect::<Vec<_>>(),
        ];
        sources.extend(
            self.names
                .iter()
                .map(|name| view.world.index().entries_naming(&scope, name, count)),
        );
        // A source that gave all it was asked for may have more before its last.
        let cut = sources
            .iter()
            .filter(|found| found.len() == count)
            .filter_map(|found| found.last());
        let end = cut.max().copied().unwrap_or(0);
        let mut numbers: Vec<u32> = sources
            .concat()
            .into_iter()
            .filter(|number| *number >= end)
            .collect();
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        numbers.dedup();
        (numbers, end)
    }

    /// All entries that may be about the person, the newest first.
    fn newest_first(&self, view: &View<'_>) -> impl Iterator<Item = u32> {
        let (mut before, mut count) = (view.at(), FIRST_CANDIDATES);
        let batches = std::iter::from_fn(move || {
            let (numbers, end) = (before > 0).then(|| self.candidates(view, before, count))?;
            (before, count) = (end, count.saturating_mul(2));
            Some(numbers)
        });
        batches.flatten()
    }

    /// Whether an entry is worth reading: a short one is read sooner than looked up.
    fn may_be_in(&self, view: &View<'_>, number: u32) -> bool {
        let is_short = view
            .numbered(number)
            .is_some_and(|entry| entry.text.len() <= SHORT_BYTES);
        is_short || self.candidates(view, number + 1, 1).0.first() == Some(&number)
    }
}

impl<'a> Capsule<'a> {
    /// What the view may know of a person. Of somebody unknown there is nothing to know.
    pub fn of(view: &View<'a>, person: &str) -> Self {
        let subject = Subject::of(view.world, person);
        let about = |number| subject.quotation(view, number);
        let mut taken = HashSet::new();
        let newest = subject.newest_first(view).filter_map(about);
        let mut quotations = Space::of_text(CAPSULE_BYTES_MAX).fill(newest, &mut taken);
        let planned = open_calendar(view, view.time()).into_iter().rev();
        let planned = planned
            .filter(|number| subject.may_be_in(view, *number))
            .filter_map(about);
        quotations.extend(Space::of_text(CAPSULE_BYTES_MAX).fill(planned, &mut taken));
        quotations.sort_by_key(|quotation| quotation.number);
        let note = newest_note(view, person);
        let id = id_of(view, person, &sections(&quotations, note));
        Self {
            id,
            person: person.to_owned(),
            created_at: view.time().clone(),
            quotations,
            note,
        }
    }

    /// The capsule pack.
    pub fn pack(&self) -> Value {
        json!({
            "capsule_id": self.id.to_string(),
            "person_id": self.person,
            "created_at_world": self.created_at.as_str(),
            "sections": sections(&self.quotations, self.note),
        })
    }
}

/// The newest note on a person from entries that the view may all see. One without words was
/// offered and not taken: there is none.
fn newest_note<'a>(view: &View<'a>, person: &str) -> Option<&'a Note> {
    let known = |note: &&Note| view.reaches(note.position) && may_see_all(view, &note.cited);
    view.world
        .notes_on(person)
        .iter()
        .rev()
        .find(known)
        .filter(|note| !note.text.is_empty())
}

fn id_of(view: &View<'_>, person: &str, sections: &Value) -> CapsuleId {
    let cursor = cursor::write(view, view.count());
    CapsuleId(hash_of(&[
        "capsule",
        person,
        view.viewer.as_str(),
        &cursor,
        &canonical(sections),
    ]))
}

fn sections(quotations: &[Quotation<'_>], note: Option<&Note>) -> Value {
    let excerpt = |quotation: &Quotation<'_>| {
        let range = &quotation.range;
        json!({ "entry_id": quotation.entry.id.to_string(), "start": range.start, "end": range.end })
    };
    let used = quotation::listed(quotations.iter().map(|quotation| &quotation.entry.id));
    let evidence = json!({
        "name": SOURCES,
        "text": quotation::join(quotations),
        "provenance": { "used_entry_ids": used },
        "excerpts": quotations.iter().map(excerpt).collect::<Vec<_>>(),
    });
    let derived = note.map(|note| {
        json!({
            "name": NOTES,
            "text": format!("{DERIVED}{}", note.text),
            "provenance": { "used_entry_ids": quotation::listed(&note.cited) },
        })
    });
    Value::Array([evidence].into_iter().chain(derived).collect())
}

/// Refuses a pack that is no capsule of the view: without its evidence in the first place, with a
/// changed word, with an entry that the view may not see, or with the id of another content.
pub fn validate(view: &View<'_>, pack: &Value) -> Result<(), Fault> {
    let root = Node::root(pack, Code::PackInvalid);
    let sections = root.field("sections")?;
    let items = sections.items()?;
    let (first, rest) = items
        .split_first()
        .ok_or_else(|| sections.fault("must hold SOURCE_EXCERPTS"))?;
    evidence_is_verbatim(view, first)?;
    match rest {
        [] => {}
        [derived] => derived_says_so(view, derived)?,
        _ => return Err(sections.fault("may hold one section of notes behind the evidence")),
    }
    let person = root.field("person_id")?.text()?;
    let id = root.field("capsule_id")?;
    if id.text()? == id_of(view, person, sections.value).to_string() {
        return Ok(());
    }
    Err(id.fault("is not the hash of person, view and sections"))
}

fn named(section: &Node<'_>, name: &str) -> Result<(), Fault> {
    let given = section.field("name")?;
    if given.text()? == name {
        Ok(())
    } else {
        Err(given.fault(format!("must be {name}")))
    }
}

fn evidence_is_verbatim(view: &View<'_>, section: &Node<'_>) -> Result<(), Fault> {
    named(section, SOURCES)?;
    let excerpts = section.field("excerpts")?.items()?;
    let quotations = excerpts
        .iter()
        .map(|node| excerpt(view, node))
        .collect::<Result<Vec<_>, _>>()?;
    if !quotations.is_sorted_by(|one, other| one.number < other.number) {
        return Err(section.fault("must quote every entry once, in ledger order"));
    }
    let used = quotation::used(view, section)?;
    if !used
        .iter()
        .map(|entry| entry.id)
        .eq(quotations.iter().map(|quotation| quotation.entry.id))
    {
        return Err(section
            .field("provenance")?
            .fault("must list what is quoted"));
    }
    let text = section.field("text")?;
    if text.text()? == quotation::join(&quotations) {
        return Ok(());
    }
    Err(text.fault("must be the excerpts, to the byte, joined by newlines"))
}

fn excerpt<'a>(view: &View<'a>, node: &Node<'_>) -> Result<Quotation<'a>, Fault> {
    let id = node.field("entry_id")?;
    let number = id.text()?.parse().ok().and_then(|id| view.number_of(id));
    let found = number.and_then(|number| Some((number, view.numbered(number)?)));
    let (number, entry) = found.ok_or_else(|| id.fault("is no entry of this view"))?;
    let bound = |key: &str| -> Result<usize, Fault> {
        let node = node.field(key)?;
        usize::try_from(node.count()?).map_err(|_| node.fault("is too large"))
    };
    let range = bound("start")?..bound("end")?;
    if entry.text.get(range.clone()).is_none() {
        return Err(node.fault("is no piece of the entry's text"));
    }
    Ok(Quotation {
        number,
        entry,
        range,
    })
}

fn derived_says_so(view: &View<'_>, section: &Node<'_>) -> Result<(), Fault> {
    named(section, NOTES)?;
    let text = section.field("text")?;
    if !text.text()?.starts_with(DERIVED) {
        return Err(text.fault("must say that it is derived"));
    }
    if quotation::used(view, section)?.is_empty() {
        return Err(section.field("provenance")?.fault("must cite an entry"));
    }
    Ok(())
}
