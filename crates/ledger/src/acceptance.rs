//! Whether a proposed bundle may be committed.
//!
//! Checks run in a fixed order and stop at the first fault, so the same bundle gets the same
//! verdict everywhere: `SHAPE`, `REQUEST_MISMATCH`, `ACTOR_MISMATCH`, `WROTE_MISMATCH`,
//! `TOO_LARGE`; `ID_PRESET` and `UNKNOWN_FIELD` outside the entries; then each entry through all of
//! its checks, entry by entry; then who may offer prose; `POCKET_INVALID`; `PROVENANCE_INVALID`. No
//! check asks about anything that the writer may not see, and none looks at what words mean.

mod entry;
mod pocket;
mod prose;

use serde_json::Value;

use crate::config::{Config, People};
use crate::draft::{Draft, ProseDraft};
use crate::fact::ProposedBy;
use crate::fault::{Code, Fault};
use crate::ids::{EntryId, ItemId};
use crate::principal::Grant;
use crate::proposal::Proposal;
use crate::time::{WorldTime, Zone};

/// The entries of a bundle.
pub const ENTRIES_MAX: usize = 64;
/// The bytes of an entry's text, and of offered prose.
pub const TEXT_BYTES_MAX: usize = 256 << 10;
/// The bytes of all texts of a bundle.
pub const BUNDLE_TEXT_BYTES_MAX: usize = ENTRIES_MAX * TEXT_BYTES_MAX;
/// The readers of a private entry.
pub const READERS_MAX: usize = 256;
/// How many seconds an entry's time may be ahead of the commit's.
pub const AHEAD_SECONDS_MAX: i64 = 60;
/// The pocket items of a bundle.
pub const ITEMS_MAX: usize = 256;
/// The notes of a bundle.
pub const NOTES_MAX: usize = 64;
/// The entries that a scene or a note cites.
pub const CITED_MAX: usize = 1024;
/// The bytes of an engine's or an actor's name.
pub const PROPOSER_BYTES_MAX: usize = 1024;

/// Who must be the actor of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor<'a> {
    /// This one.
    Exactly(&'a str),
    /// Whoever the writer says.
    AnyName,
}

/// On what terms a writer may write now.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// The world's configuration.
    pub config: &'a Config,
    /// Its people.
    pub people: &'a People,
    /// The beat's request.
    pub request: &'a str,
    /// Who must be the actor.
    pub actor: Actor<'a>,
    /// In whose names the writer may write.
    pub grant: &'a Grant,
    /// The earliest time that an entry may have: the world's before this bundle, but no longer ago
    /// than a writer may think; where the operator's entry goes first, the commit's.
    pub earliest: &'a WorldTime,
    /// The commit's time.
    pub commit: &'a WorldTime,
    /// How many seconds an entry's time may be ahead of the commit's: none while time stands still.
    pub ahead_seconds: i64,
    /// The zone in which local times are meant.
    pub zone: &'a Zone,
    /// Whether the writer may set the scene.
    pub may_set_scene: bool,
    /// Whether an entry exists and the writer may see it.
    pub cites: &'a dyn Fn(EntryId) -> bool,
    /// Whether a pocket item exists, the writer may see it, and it may be superseded.
    pub item: &'a dyn Fn(ItemId) -> bool,
}

/// A check of the bundle as a whole.
type Check = fn(&Draft<'_>, &Terms<'_>) -> Result<(), Fault>;

/// What comes after SHAPE and before the entries.
const BUNDLE_CHECKS: &[Check] = &[
    of_this_request,
    by_this_actor,
    wrote_as_said,
    not_too_large,
    without_id,
    without_unknown_fields,
];

/// Accepts a bundle, or says what is wrong with it first.
pub fn accept(bundle: &Value, terms: &Terms<'_>) -> Result<Proposal, Fault> {
    let draft = Draft::read(bundle)?;
    BUNDLE_CHECKS
        .iter()
        .try_for_each(|check| check(&draft, terms))?;
    let mut entries = entry::accept_all(&draft.entries, terms)?;
    prose::may_be_offered(&draft, terms)?;
    let items = draft
        .items
        .iter()
        .map(|item| pocket::accept(item, &draft.entries, terms));
    let items = items.collect::<Result<_, _>>()?;
    let (scene, notes) = prose::accept(&draft, terms)?;
    for (entry, draft) in entries.iter_mut().zip(&draft.entries) {
        entry.reply_to = entry::answered(draft, terms)?;
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

fn of_this_request(draft: &Draft<'_>, terms: &Terms<'_>) -> Result<(), Fault> {
    let message = "is not the id of the request that the bundle came with";
    if draft.request != terms.request {
        return Err(Fault::new(Code::RequestMismatch, "request_id", message));
    }
    let foreign = draft
        .entries
        .iter()
        .find(|entry| entry.request != terms.request);
    foreign.map_or(Ok(()), |entry| {
        Err(entry.fault(Code::RequestMismatch, "request_id", message))
    })
}

fn by_this_actor(draft: &Draft<'_>, terms: &Terms<'_>) -> Result<(), Fault> {
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

fn wrote_as_said(draft: &Draft<'_>, _: &Terms<'_>) -> Result<(), Fault> {
    let message = match (draft.wrote, draft.entries.is_empty()) {
        (true, true) => "is true, but there are no entries",
        (false, false) => "is false, but there are entries",
        (true, false) | (false, true) => return Ok(()),
    };
    Err(Fault::new(Code::WroteMismatch, "wrote", message))
}

fn at_most(path: &str, count: usize, max: usize) -> Result<(), Fault> {
    if count <= max {
        return Ok(());
    }
    Err(Fault::new(
        Code::TooLarge,
        path,
        format!("is {count}; at most {max} fit"),
    ))
}

fn not_too_large(draft: &Draft<'_>, _: &Terms<'_>) -> Result<(), Fault> {
    at_most("proposed_by.engine", draft.engine.len(), PROPOSER_BYTES_MAX)?;
    at_most("proposed_by.actor", draft.actor.len(), PROPOSER_BYTES_MAX)?;
    at_most("entries", draft.entries.len(), ENTRIES_MAX)?;
    at_most("pocket_items", draft.items.len(), ITEMS_MAX)?;
    at_most("capsule_notes", draft.notes.len(), NOTES_MAX)?;
    let prose = || {
        draft
            .scene
            .iter()
            .chain(draft.notes.iter().map(|note| &note.prose))
    };
    prose().try_for_each(prose_not_too_large)?;
    let written: usize = draft.entries.iter().map(|entry| entry.text.len()).sum();
    let offered: usize = prose().map(|prose| prose.text.len()).sum();
    at_most("", written + offered, BUNDLE_TEXT_BYTES_MAX)
}

fn prose_not_too_large(prose: &ProseDraft<'_>) -> Result<(), Fault> {
    at_most(
        &format!("{}.text", prose.node.path),
        prose.text.len(),
        TEXT_BYTES_MAX,
    )?;
    at_most(
        &format!("{}.used_entry_ids", prose.node.path),
        prose.cited.len(),
        CITED_MAX,
    )
}

fn without_id(draft: &Draft<'_>, _: &Terms<'_>) -> Result<(), Fault> {
    let preset = draft.root.optional("bundle_id")?;
    preset.map_or(Ok(()), |id| {
        Err(Fault::new(
            Code::IdPreset,
            id.path,
            "is given by the commit: leave it null",
        ))
    })
}

fn without_unknown_fields(draft: &Draft<'_>, _: &Terms<'_>) -> Result<(), Fault> {
    draft.unknown_field()
}
