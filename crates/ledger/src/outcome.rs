//! The same request, the same bytes, for ever: an outcome is a recipe by which its answer is made
//! again.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::audience::Viewer;
use crate::entry::Entry;
use crate::fact::{BundleCommit, Door, Outcome, PocketItem, ProposedBy};
use crate::fault::{Code, Fault};
use crate::ids::{Name, PUBLIC};
use crate::principal::Principal;
use crate::projection::{self, Frame};
use crate::proposal;
use crate::staged::Staged;
use crate::view::View;
use crate::world::World;

/// What an earlier request with the same id means for this one.
#[derive(Debug, Clone)]
pub enum Gate {
    /// There was none.
    Fresh,
    /// It was this very request: it is answered as before.
    Again(Arc<Outcome>),
}

/// Looks an id up. Used by somebody else, or for something else, it is refused.
pub fn gate(
    world: &World,
    principal: &Principal,
    request: &str,
    fingerprint: &[u8; 32],
) -> Result<Gate, Fault> {
    let Some(outcome) = world.outcome(request) else {
        return Ok(Gate::Fresh);
    };
    if outcome.principal != principal.key() {
        return Err(foreign());
    }
    if outcome.fingerprint != *fingerprint {
        return Err(reused());
    }
    Ok(Gate::Again(Arc::clone(outcome)))
}

/// The refusal of an id that somebody else used.
pub fn foreign() -> Fault {
    Fault::new(
        Code::RequestIdForeign,
        "request_id",
        "was used by another caller: take a new one",
    )
}

/// The refusal of an id that was used for something else.
pub fn reused() -> Fault {
    let message = "was used for a different request, of which nothing changes: take a new one";
    Fault::new(Code::RequestIdReused, "request_id", message)
}

/// The answer of a door: a projection, or a bundle with it.
pub(crate) fn response(bundle: Option<Value>, projection: Value) -> Bytes {
    let value = match bundle {
        Some(bundle) => json!({ "bundle": bundle, "projection": projection }),
        None => projection,
    };
    value.to_string().into()
}

/// The bundle as the caller is shown it: rejected, committed, or accepted without a word.
pub(crate) fn bundle_form(
    sent: &Value,
    rejection: Option<&str>,
    written: Option<(&BundleCommit, &[Entry], &[PocketItem])>,
    proposed_by: &ProposedBy,
) -> Value {
    match (rejection, written) {
        (Some(reason), _) => proposal::rejected_form(sent, reason),
        (None, Some((commit, entries, items))) => {
            proposal::committed_form(commit, entries.iter(), items.iter())
        }
        (None, None) => {
            let request = sent
                .get("request_id")
                .and_then(Value::as_str)
                .unwrap_or_default();
            proposal::unwritten_form(request, proposed_by)
        }
    }
}

/// Makes a recorded answer again; `bundle` is what came with the request, this time as the first
/// time.
pub fn replay(world: &World, outcome: &Outcome, bundle: Option<&Value>) -> Result<Bytes, Fault> {
    let corrupt = || {
        Fault::new(
            Code::Corrupt,
            "request_id",
            "the recorded answer cannot be made again",
        )
    };
    let viewer = match outcome.viewer.as_str() {
        PUBLIC => Viewer::Public,
        name => Viewer::Reader(Name::new(name).ok_or_else(corrupt)?),
    };
    let view = world.view_at(viewer, outcome.position);
    let frame = Frame {
        request: &outcome.request,
        cursor_before: outcome.cursor_before.as_deref(),
        start: outcome.page_start,
        clock: &outcome.clock,
        pocket_available: outcome.pocket_available,
        bundle: outcome.bundle,
        staged: Staged::default(),
        limit: projection::PAGE_ENTRIES_MAX,
    };
    let projected = projection::project_again(&view, &frame, outcome.cursor_after.as_deref());
    let form = bundle
        .filter(|_| outcome.door == Door::Beat)
        .map(|sent| form_again(&view, outcome, sent));
    let response = response(form, projected);
    if *blake3::hash(&response).as_bytes() == outcome.response {
        Ok(response)
    } else {
        Err(corrupt())
    }
}

fn form_again(view: &View<'_>, outcome: &Outcome, sent: &Value) -> Value {
    let world = view.world;
    let bundle = outcome.bundle.and_then(|id| world.bundle(id));
    let numbers = bundle.map_or(0..0, |bundle| {
        bundle.first..bundle.first + bundle.commit.entries
    });
    let entries: Vec<Entry> = numbers
        .clone()
        .filter_map(|number| world.entry(number).cloned())
        .collect();
    let items = world
        .items_from(numbers.start)
        .take_while(|row| row.entry < numbers.end);
    let items: Vec<PocketItem> = items.map(|row| row.item.clone()).collect();
    let written = bundle.map(|bundle| (&bundle.commit, &entries[..], &items[..]));
    let text = |key: &str| {
        sent.pointer(&format!("/proposed_by/{key}"))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let by = ProposedBy {
        engine: text("engine").to_owned(),
        actor: text("actor").to_owned(),
    };
    bundle_form(sent, outcome.rejection.as_deref(), written, &by)
}
