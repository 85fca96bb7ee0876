//! Repeated requests: the same request gets the same bytes, for ever.
//!
//! The answer itself is not stored. An outcome records what is needed to make the answer again, and
//! the hash of the answer. [`replay`] fails with `CORRUPT` if the hash does not match.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::audience::Viewer;
use crate::entry::Entry;
use crate::fact::{BundleCommit, Outcome, PocketItem, ProposedBy, RequestKind};
use crate::fault::{Code, Fault};
use crate::ids::{Name, PUBLIC};
use crate::principal::Principal;
use crate::projection::{self, Frame};
use crate::proposal;
use crate::staged::Staged;
use crate::view::View;
use crate::world::World;

/// What is known of a request id.
#[derive(Debug, Clone)]
pub enum RequestLookup {
    /// The id is new.
    New,
    /// The same caller sent the same request before. It gets the same answer.
    Repeated(Arc<Outcome>),
}

/// Looks up a request id. Rejects an id that another caller used, or that was used for another
/// request.
pub fn look_up_request(
    world: &World,
    principal: &Principal,
    request: &str,
    fingerprint: &[u8; 32],
) -> Result<RequestLookup, Fault> {
    let Some(outcome) = world.outcome(request) else {
        return Ok(RequestLookup::New);
    };
    if outcome.principal != principal.key() {
        return Err(foreign_id_fault());
    }
    if outcome.fingerprint != *fingerprint {
        return Err(reused_id_fault());
    }
    Ok(RequestLookup::Repeated(Arc::clone(outcome)))
}

/// The fault for an id that another caller used.
pub fn foreign_id_fault() -> Fault {
    Fault::new(
        Code::RequestIdForeign,
        "request_id",
        "was used by another caller: take a new one",
    )
}

/// The fault for an id that was used for another request.
pub fn reused_id_fault() -> Fault {
    let message = "was used for a different request, of which nothing changes: take a new one";
    Fault::new(Code::RequestIdReused, "request_id", message)
}

/// Encodes an answer: a projection, or a bundle and a projection.
pub(crate) fn encode_response(bundle: Option<Value>, projection: Value) -> Bytes {
    let value = match bundle {
        Some(bundle) => json!({ "bundle": bundle, "projection": projection }),
        None => projection,
    };
    value.to_string().into()
}

/// What a committed bundle wrote.
#[derive(Clone, Copy)]
pub(crate) struct WrittenBundle<'a> {
    pub(crate) commit: &'a BundleCommit,
    pub(crate) entries: &'a [Entry],
    pub(crate) items: &'a [PocketItem],
}

/// The form of a bundle in an answer: rejected, committed, or accepted without entries.
pub(crate) fn bundle_form(
    sent: &Value,
    rejection: Option<&str>,
    written: Option<WrittenBundle<'_>>,
    proposed_by: &ProposedBy,
) -> Value {
    match (rejection, written) {
        (Some(reason), _) => proposal::rejected_form(sent, reason),
        (None, Some(written)) => {
            proposal::committed_form(written.commit, written.entries.iter(), written.items.iter())
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

/// Makes a recorded answer again. `bundle` is the bundle of the repeated request.
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
        audiences: false,
    };
    let projected = projection::project_again(&view, &frame, outcome.cursor_after.as_deref());
    let form = bundle
        .filter(|_| outcome.kind == RequestKind::Beat)
        .map(|sent| bundle_form_again(&view, outcome, sent));
    let response = encode_response(form, projected);
    // A different answer would break the promise of equal bytes, so it is an error instead.
    if *blake3::hash(&response).as_bytes() == outcome.response {
        Ok(response)
    } else {
        Err(corrupt())
    }
}

fn bundle_form_again(view: &View<'_>, outcome: &Outcome, sent: &Value) -> Value {
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
    let written = bundle.map(|bundle| WrittenBundle {
        commit: &bundle.commit,
        entries: &entries,
        items: &items,
    });
    let text = |key: &str| {
        sent.pointer(&format!("/proposed_by/{key}"))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    // Only used for a bundle that wrote nothing; a committed one has its recorded proposer.
    let by = ProposedBy {
        engine: text("engine").to_owned(),
        actor: text("actor").to_owned(),
    };
    bundle_form(sent, outcome.rejection.as_deref(), written, &by)
}
