//! Checks a retrieval pack against its view, for tests. The product only makes packs.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;

use super::{CONTEXT_FIELD, Evidence};
use crate::entry::Entry;
use crate::fault::{Code, Fault};
use crate::json::Node;
use crate::view::View;

/// Rejects a pack that is not evidence of the view: its entries must be visible, distinct and
/// described correctly, and its excerpts must be pieces of their texts.
pub fn validate_pack(view: &View<'_>, pack: &Value) -> Result<(), Fault> {
    let root = Node::root(pack, Code::PackInvalid);
    let results = root.field("results")?.items()?;
    let mut met = HashSet::new();
    for node in &results {
        let entry = validate_result(view, node)?;
        if !met.insert(entry.id) {
            return Err(node.fault("is there twice"));
        }
    }
    let empty = root.field("empty")?;
    if empty.boolean()? == results.is_empty() {
        Ok(())
    } else {
        Err(empty.fault("must say whether there are results"))
    }
}

fn validate_result<'a>(view: &View<'a>, node: &Node<'_>) -> Result<&'a Entry, Fault> {
    let id = node.field("entry_id")?;
    let entry = id.text()?.parse().ok().and_then(|id| view.entry(id));
    let entry = entry.ok_or_else(|| id.fault("is no entry of this view"))?;
    // The pack must be what this ledger itself would return for the range.
    let expected = Evidence {
        entry,
        range: read_range(&node.field("range")?, entry)?,
        is_context: false,
    };
    let expected = expected.to_json();
    let fields = expected.as_object().into_iter().flatten();
    for (key, value) in fields {
        let given = node.field(key)?;
        if given.value != value {
            return Err(given.fault("is not what the entry says"));
        }
    }
    if let Some(context) = node.optional(CONTEXT_FIELD)? {
        context.boolean()?;
    }
    Ok(entry)
}

/// Reads a range of an entry's text, in bytes: `[start, end]`.
fn read_range(node: &Node<'_>, entry: &Entry) -> Result<Range<usize>, Fault> {
    let mut bounds: Vec<usize> = Vec::new();
    for item in node.items()? {
        bounds.extend(usize::try_from(item.count()?));
    }
    let [start, end] = bounds[..] else {
        return Err(node.fault("must be two places in the text"));
    };
    if entry.text.get(start..end).is_none() {
        return Err(node.fault("is no piece of the entry's text"));
    }
    Ok(start..end)
}
