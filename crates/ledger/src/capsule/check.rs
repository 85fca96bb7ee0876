//! Checks a capsule pack against its view, for tests. The product only makes packs.

use serde_json::Value;

use super::{DERIVED, NOTES, SOURCES, capsule_id};
use crate::fault::{Code, Fault};
use crate::json::Node;
use crate::quotation::{self, Quotation};
use crate::view::View;

/// Rejects a pack that is not a capsule of the view: its evidence must come first and be verbatim,
/// it may only use visible entries, and its id must match its content.
pub fn validate(view: &View<'_>, pack: &Value) -> Result<(), Fault> {
    let root = Node::root(pack, Code::PackInvalid);
    let sections = root.field("sections")?;
    let items = sections.items()?;
    let (first, rest) = items
        .split_first()
        .ok_or_else(|| sections.fault("must hold SOURCE_EXCERPTS"))?;
    check_evidence(view, first)?;
    match rest {
        [] => {}
        [derived] => check_derived(view, derived)?,
        _ => return Err(sections.fault("may hold one section of notes behind the evidence")),
    }
    let person = root.field("person_id")?.text()?;
    let id = root.field("capsule_id")?;
    if id.text()? == capsule_id(view, person, sections.value).to_string() {
        return Ok(());
    }
    Err(id.fault("is not the hash of person, view and sections"))
}

fn check_name(section: &Node<'_>, name: &str) -> Result<(), Fault> {
    let given = section.field("name")?;
    if given.text()? == name {
        Ok(())
    } else {
        Err(given.fault(format!("must be {name}")))
    }
}

fn check_evidence(view: &View<'_>, section: &Node<'_>) -> Result<(), Fault> {
    check_name(section, SOURCES)?;
    let excerpts = section.field("excerpts")?.items()?;
    let quotations = excerpts
        .iter()
        .map(|node| read_excerpt(view, node))
        .collect::<Result<Vec<_>, _>>()?;
    if !quotations.is_sorted_by(|one, other| one.number < other.number) {
        return Err(section.fault("must quote every entry once, in ledger order"));
    }
    let used = quotation::cited_entries(view, section)?;
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
    if text.text()? == quotation::join_texts(&quotations) {
        return Ok(());
    }
    Err(text.fault("must be the excerpts, to the byte, joined by newlines"))
}

fn read_excerpt<'a>(view: &View<'a>, node: &Node<'_>) -> Result<Quotation<'a>, Fault> {
    let id = node.field("entry_id")?;
    let number = id.text()?.parse().ok().and_then(|id| view.number_of(id));
    let found = number.and_then(|number| Some((number, view.entry_at(number)?)));
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

fn check_derived(view: &View<'_>, section: &Node<'_>) -> Result<(), Fault> {
    check_name(section, NOTES)?;
    let text = section.field("text")?;
    if !text.text()?.starts_with(DERIVED) {
        return Err(text.fault("must say that it is derived"));
    }
    if quotation::cited_entries(view, section)?.is_empty() {
        return Err(section.field("provenance")?.fault("must cite an entry"));
    }
    Ok(())
}
