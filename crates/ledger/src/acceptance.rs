//! Acceptance: decides whether a proposed bundle may be committed.
//!
//! The checks run in a fixed order and stop at the first fault, so the same bundle always gets the
//! same verdict. First come `SHAPE`, `REQUEST_MISMATCH`, `ACTOR_MISMATCH`, `WROTE_MISMATCH` and
//! `TOO_LARGE`, then `ID_PRESET` and `UNKNOWN_FIELD` outside the entries. Then each entry goes
//! through all of its checks, entry by entry. Last come the permission to offer a scene or notes,
//! `POCKET_INVALID` and `PROVENANCE_INVALID`. No check depends on an entry that the writer may not
//! see, and none interprets the meaning of a text.

mod entry;
mod pocket;
mod prose;

use serde_json::Value;

use crate::config::{Config, People};
use crate::draft::{BundleDraft, ProseDraft};
use crate::fact::ProposedBy;
use crate::fault::{Code, Fault};
use crate::ids::{EntryId, ItemId};
use crate::principal::Grant;
use crate::proposal::Proposal;
use crate::time::{WorldTime, Zone};

/// Entries per bundle.
pub const ENTRIES_MAX: usize = 64;
/// Bytes per text of an entry, a scene or a note.
pub const TEXT_BYTES_MAX: usize = 256 << 10;
/// Bytes of all texts of a bundle together.
pub const BUNDLE_TEXT_BYTES_MAX: usize = ENTRIES_MAX * TEXT_BYTES_MAX;
/// Readers per private entry.
pub const READERS_MAX: usize = 256;
/// How many seconds the time of an entry may be ahead of the commit's time.
pub const AHEAD_SECONDS_MAX: i64 = 60;
/// Pocket items per bundle.
pub const ITEMS_MAX: usize = 256;
/// Notes per bundle.
pub const NOTES_MAX: usize = 64;
/// Citations per scene or note.
pub const CITED_MAX: usize = 1024;
/// Bytes of an engine's or an actor's name.
pub const PROPOSER_BYTES_MAX: usize = 1024;

/// The actor that a bundle must name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor<'a> {
    /// This name.
    Exactly(&'a str),
    /// Any name.
    AnyName,
}

/// The conditions under which a writer may write.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// The world's configuration.
    pub config: &'a Config,
    /// Its people.
    pub people: &'a People,
    /// The id of the beat's request.
    pub request: &'a str,
    /// The required actor.
    pub actor: Actor<'a>,
    /// The authors in whose names the writer may write.
    pub grant: &'a Grant,
    /// The earliest allowed time of an entry. It is the world's time, but at most the writer's
    /// thinking time before the commit; after an entry of the operator it is the commit's time.
    pub earliest: &'a WorldTime,
    /// The commit's time.
    pub commit: &'a WorldTime,
    /// How many seconds an entry's time may be ahead of the commit's time; 0 while the clock is
    /// paused.
    pub ahead_seconds: i64,
    /// The zone of local times in the bundle.
    pub zone: &'a Zone,
    /// Whether the writer may set the scene.
    pub may_set_scene: bool,
    /// Whether an entry exists and the writer may cite it.
    pub cites: &'a dyn Fn(EntryId) -> bool,
    /// Whether a pocket item exists and the writer may replace it.
    pub item: &'a dyn Fn(ItemId) -> bool,
}

/// A check of the bundle as a whole.
type Check = fn(&BundleDraft<'_>, &Terms<'_>) -> Result<(), Fault>;

/// The checks after SHAPE and before the entries, in order.
const BUNDLE_CHECKS: &[Check] = &[
    check_request,
    check_actor,
    check_wrote,
    check_sizes,
    check_no_preset_id,
    check_fields,
];

/// Accepts a bundle, or returns its first fault.
pub fn accept(bundle: &Value, terms: &Terms<'_>) -> Result<Proposal, Fault> {
    // A rejected writer learns only the first fault, so the order of the checks is part of the
    // interface.
    let draft = BundleDraft::read(bundle)?;
    for check in BUNDLE_CHECKS {
        check(&draft, terms)?;
    }
    let mut entries = entry::accept_all(&draft.entries, terms)?;
    prose::check_permission(&draft, terms)?;
    let mut items = Vec::with_capacity(draft.items.len());
    for item in &draft.items {
        items.push(pocket::accept(item, &draft.entries, terms)?);
    }
    let (scene, notes) = prose::accept(&draft, terms)?;
    // A reply cites an entry, and citations are checked last.
    for (entry, draft) in entries.iter_mut().zip(&draft.entries) {
        entry.reply_to = entry::accept_reply(draft, terms)?;
    }
    let proposed_by = ProposedBy {
        engine: draft.engine.to_owned(),
        actor: draft.actor.to_owned(),
    };
    Ok(Proposal {
        proposed_by,
        entries,
        items,
        scene,
        notes,
    })
}

fn check_request(draft: &BundleDraft<'_>, terms: &Terms<'_>) -> Result<(), Fault> {
    let message = "is not the id of the request that the bundle came with";
    if draft.request != terms.request {
        return Err(Fault::new(Code::RequestMismatch, "request_id", message));
    }
    // Every entry repeats the request id, and a wrong one means a bundle for another request.
    let foreign = draft
        .entries
        .iter()
        .find(|entry| entry.request != terms.request);
    foreign.map_or(Ok(()), |entry| {
        Err(entry.fault(Code::RequestMismatch, "request_id", message))
    })
}

fn check_actor(draft: &BundleDraft<'_>, terms: &Terms<'_>) -> Result<(), Fault> {
    match terms.actor {
        Actor::Exactly(name) if name != draft.actor => {
            let message = format!("must be {name}, in whose name the request came");
            Err(Fault::new(
                Code::ActorMismatch,
                "proposed_by.actor",
                message,
            ))
        }
        Actor::Exactly(_) | Actor::AnyName => Ok(()),
    }
}

fn check_wrote(draft: &BundleDraft<'_>, _: &Terms<'_>) -> Result<(), Fault> {
    let message = match (draft.wrote, draft.entries.is_empty()) {
        (true, true) => "is true, but there are no entries",
        (false, false) => "is false, but there are entries",
        (true, false) | (false, true) => return Ok(()),
    };
    Err(Fault::new(Code::WroteMismatch, "wrote", message))
}

fn check_at_most(path: &str, count: usize, max: usize) -> Result<(), Fault> {
    if count <= max {
        return Ok(());
    }
    Err(Fault::new(
        Code::TooLarge,
        path,
        format!("is {count}; at most {max} fit"),
    ))
}

fn check_sizes(draft: &BundleDraft<'_>, _: &Terms<'_>) -> Result<(), Fault> {
    check_at_most("proposed_by.engine", draft.engine.len(), PROPOSER_BYTES_MAX)?;
    check_at_most("proposed_by.actor", draft.actor.len(), PROPOSER_BYTES_MAX)?;
    check_at_most("entries", draft.entries.len(), ENTRIES_MAX)?;
    check_at_most("pocket_items", draft.items.len(), ITEMS_MAX)?;
    check_at_most("capsule_notes", draft.notes.len(), NOTES_MAX)?;
    let mut text_bytes = 0;
    let notes = draft.notes.iter().map(|note| &note.prose);
    for prose in draft.scene.iter().chain(notes) {
        check_prose_size(prose)?;
        text_bytes += prose.text.len();
    }
    for entry in &draft.entries {
        text_bytes += entry.text.len();
    }
    check_at_most("", text_bytes, BUNDLE_TEXT_BYTES_MAX)
}

fn check_prose_size(prose: &ProseDraft<'_>) -> Result<(), Fault> {
    check_at_most(
        &format!("{}.text", prose.node.path),
        prose.text.len(),
        TEXT_BYTES_MAX,
    )?;
    check_at_most(
        &format!("{}.used_entry_ids", prose.node.path),
        prose.cited.len(),
        CITED_MAX,
    )
}

fn check_no_preset_id(draft: &BundleDraft<'_>, _: &Terms<'_>) -> Result<(), Fault> {
    let preset = draft.root.optional("bundle_id")?;
    preset.map_or(Ok(()), |id| {
        Err(Fault::new(
            Code::IdPreset,
            id.path,
            "is given by the commit: leave it null",
        ))
    })
}

fn check_fields(draft: &BundleDraft<'_>, _: &Terms<'_>) -> Result<(), Fault> {
    draft.check_fields()
}
