//! The store's rules: how a command changes the state, or why it changes nothing.
//!
//! `decide` reads and never writes. Before a command is logged, the writer calls it with the state
//! plus the batch so far, and logs only commands that change something. `apply` decides again with
//! the state alone, live and in replay, and only that decision counts. `decide` reads no clock, no
//! configuration and no payload bytes, so the same log always gives the same decisions.

use std::sync::Arc;

use turnkeep_types::{BlobHash, ContextId, TurnId};

use crate::command::Refusal;
use crate::keys::{self, KeyDigest};
use crate::record::{InlineVec, PartRecord, Record};
use crate::registry::{Checked, ParsedBundle, Registry};
use crate::state::{KeyEntry, State};

/// The part of a state that `decide` reads.
pub(crate) trait StateView {
    /// The number of turns. The next turn gets the next id.
    fn turns(&self) -> u64;
    /// The depth of a turn; `None` if there is no such turn.
    fn depth(&self, turn: TurnId) -> Option<u32>;
    /// The head of a context; the outer `None` means that there is no such context.
    fn head(&self, context: ContextId) -> Option<Option<TurnId>>;
    /// Whether damage took the record that created a context, and with it the head it began at.
    fn is_creation_lost(&self, context: ContextId) -> bool;
    fn has_blob(&self, hash: &BlobHash) -> bool;
    /// The request that used an idempotency key before.
    fn key(&self, key: KeyDigest) -> Option<KeyEntry>;
    /// The filesystem root that is attached to the turn itself, not to an ancestor.
    fn fs_root(&self, turn: TurnId) -> Option<BlobHash>;
    fn registry(&self) -> Arc<Registry>;
}

/// Whether a command changes the state.
#[derive(Debug)]
pub(crate) enum Decision {
    Change(Plan),
    NoChange(NoChange),
}

/// An idempotency key and the request that came with it, as digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyUse {
    pub(crate) key: KeyDigest,
    pub(crate) request: u64,
}

impl KeyUse {
    /// Digests the key of a record and its request. Only the record decides the result, so it can
    /// be computed once, before the record is decided.
    pub(crate) fn digest(record: &Record) -> Option<Self> {
        match record {
            Record::Create { base, labels, key } => key.as_ref().map(|key| Self {
                key: keys::digest_create_key(key),
                request: keys::digest_create_request(*base, labels),
            }),
            Record::Append { parts, key, .. } => {
                let scope = parts.first()?.context;
                key.as_ref().map(|key| Self {
                    key: keys::digest_append_key(scope, key),
                    request: keys::digest_append_request(parts),
                })
            }
            _ => None,
        }
    }
}

/// How a command changes the state.
#[derive(Debug)]
pub(crate) enum Plan {
    Create {
        head_depth: u32,
        key: Option<KeyUse>,
    },
    Append {
        /// One per part.
        placements: InlineVec<Placement>,
        key: Option<KeyUse>,
    },
    AttachFs,
    PutBlob,
    PutBundle(Arc<Registry>),
    SetLabels,
    Lost,
    LostRoot,
}

/// The place of a part's first turn in the DAG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) parent: Option<TurnId>,
    pub(crate) depth: u32,
}

/// Why a command changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoChange {
    Refused(Refusal),
    AlreadyCreated(KeyEntry),
    AlreadyAppended(KeyEntry),
    BlobExists,
    FsRootExists,
    BundleExists,
}

impl From<Refusal> for NoChange {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Decides how a command changes the state behind `view`, without changing it. `key` is the digest
/// of the record's own key.
pub(crate) fn decide(view: &impl StateView, record: &Record, key: Option<KeyUse>) -> Decision {
    let decided = match record {
        Record::Create { base, .. } => decide_create(view, *base, key),
        Record::Append { parts, strict, .. } => decide_append(view, parts, key, *strict),
        Record::AttachFs { turn, root } => decide_attach_fs(view, *turn, root),
        // In replay the frame's blobs are in the state already. That the frame brought this one
        // shows that it was new.
        Record::PutBlob { blob } if blob.in_frame.is_some() => Ok(Plan::PutBlob),
        Record::PutBlob { blob } if view.has_blob(&blob.hash) => Err(NoChange::BlobExists),
        Record::PutBlob { .. } => Ok(Plan::PutBlob),
        Record::PutBundle { bundle } => decide_put_bundle(view, bundle),
        Record::SetLabels { context, .. } => decide_set_labels(view, *context),
        Record::Lost { .. } => Ok(Plan::Lost),
        Record::LostRoot { turn, root, .. } => decide_lost_root(view, *turn, root),
    };
    decided.map_or_else(Decision::NoChange, Decision::Change)
}

fn decide_create(
    view: &impl StateView,
    base: Option<TurnId>,
    key: Option<KeyUse>,
) -> Result<Plan, NoChange> {
    // First of all checks: a repeat must get its first answer even if the base is lost since.
    if let Some(before) = find_earlier_request(view, key)? {
        return Err(NoChange::AlreadyCreated(before));
    }
    let head_depth = match base {
        Some(turn) => view.depth(turn).ok_or(Refusal::UnknownTurn(turn))?,
        None => 0,
    };
    Ok(Plan::Create { head_depth, key })
}

fn decide_append(
    view: &impl StateView,
    parts: &[PartRecord],
    key: Option<KeyUse>,
    strict: bool,
) -> Result<Plan, NoChange> {
    // Before the head check: a repeat with `expected_head` must not fail on its own first effect.
    if let Some(before) = find_earlier_request(view, key)? {
        return Err(NoChange::AlreadyAppended(before));
    }
    // The ids that `apply` will assign, so that a later part can name the turns of an earlier one.
    let mut next_turn = view.turns() + 1;
    let mut moved: Vec<MovedHead> = Vec::new();
    let mut placements = InlineVec::with_capacity(parts.len());
    for part in parts {
        let placement = place_part(view, &moved, part)?;
        check_turns(view, part, strict)?;
        let turns = part.turns.len() as u64;
        let last_depth = u64::from(placement.depth) + turns - 1;
        let moved_head = MovedHead {
            context: part.context,
            head: TurnId::new(next_turn + turns - 1),
            depth: u32::try_from(last_depth).map_err(|_| Refusal::TooDeep)?,
        };
        next_turn += turns;
        // Almost every append has one part, and then no later part reads the list.
        if parts.len() > 1 {
            moved.push(moved_head);
        }
        placements.push(placement);
    }
    Ok(Plan::Append { placements, key })
}

/// The head that an earlier part of the same append gives to a context.
struct MovedHead {
    context: ContextId,
    head: Option<TurnId>,
    depth: u32,
}

/// Finds an equal request with the same key. Rejects the same key with a different request.
fn find_earlier_request(
    view: &impl StateView,
    key: Option<KeyUse>,
) -> Result<Option<KeyEntry>, Refusal> {
    let Some(KeyUse { key, request }) = key else {
        return Ok(None);
    };
    match view.key(key) {
        Some(before) if before.request == request => Ok(Some(before)),
        Some(_) => Err(Refusal::KeyReused),
        None => Ok(None),
    }
}

/// Finds the place of a part's first turn. `moved` lists the heads that earlier parts of the same
/// append moved.
fn place_part(
    view: &impl StateView,
    moved: &[MovedHead],
    part: &PartRecord,
) -> Result<Placement, Refusal> {
    let context = part.context;
    // From the back: the latest earlier part to this context decides its head.
    let earlier = moved.iter().rev().find(|moved| moved.context == context);
    let head = match earlier {
        Some(moved) => moved.head,
        None => view.head(context).ok_or(Refusal::UnknownContext(context))?,
    };
    // After the check of the context, which holds for repaired parts too. Before the check of the
    // head, which may be lost.
    if part.placed {
        return place_repaired_part(view, part);
    }
    if let Some(expected) = part.expected_head
        && expected != head
    {
        return Err(Refusal::HeadMoved {
            context,
            expected,
            actual: head,
        });
    }
    let Some(parent) = part.sent_parent.or(head) else {
        // Turns may have stood there. A first turn in their place would hide the gap for good.
        if view.is_creation_lost(context) {
            return Err(Refusal::HeadLost(context));
        }
        return Ok(Placement {
            parent: None,
            depth: 0,
        });
    };
    let parent_depth = match earlier {
        // The parent is a turn of this very append, so the view does not have it yet.
        Some(moved) if moved.head == Some(parent) => moved.depth,
        _ => view.depth(parent).ok_or(Refusal::UnknownTurn(parent))?,
    };
    Ok(Placement {
        parent: Some(parent),
        depth: parent_depth.checked_add(1).ok_or(Refusal::TooDeep)?,
    })
}

/// Accepts the place that repair wrote into the record, whatever the head is now. The parent must
/// exist, though it may be lost.
fn place_repaired_part(view: &impl StateView, part: &PartRecord) -> Result<Placement, Refusal> {
    if let Some(parent) = part.parent
        && view.depth(parent).is_none()
    {
        return Err(Refusal::UnknownTurn(parent));
    }
    Ok(Placement {
        parent: part.parent,
        depth: part.depth,
    })
}

/// Rejects turns with a filesystem root that the store lacks or, if `strict`, an unpublished type.
fn check_turns(view: &impl StateView, part: &PartRecord, strict: bool) -> Result<(), Refusal> {
    let missing_root = part
        .turns
        .iter()
        .filter_map(|turn| turn.fs_root)
        .find(|root| !view.has_blob(root));
    if let Some(root) = missing_root {
        return Err(Refusal::UnknownBlob(root));
    }
    if strict {
        // `strict` is part of the record, so a replay decides with the setting of that time.
        let registry = view.registry();
        if let Some(turn) = part
            .turns
            .iter()
            .find(|turn| !registry.knows(&turn.declared))
        {
            return Err(Refusal::UnknownType(turn.declared.clone()));
        }
    }
    Ok(())
}

fn decide_attach_fs(
    view: &impl StateView,
    turn: TurnId,
    root: &BlobHash,
) -> Result<Plan, NoChange> {
    view.depth(turn).ok_or(Refusal::UnknownTurn(turn))?;
    if !view.has_blob(root) {
        return Err(Refusal::UnknownBlob(*root).into());
    }
    check_fs_root_is_free(view, turn, root)?;
    Ok(Plan::AttachFs)
}

/// Decides a `LostRoot` record. It differs from an attachment in that the tree blob is missing.
fn decide_lost_root(
    view: &impl StateView,
    turn: TurnId,
    root: &BlobHash,
) -> Result<Plan, NoChange> {
    view.depth(turn).ok_or(Refusal::UnknownTurn(turn))?;
    check_fs_root_is_free(view, turn, root)?;
    Ok(Plan::LostRoot)
}

fn check_fs_root_is_free(
    view: &impl StateView,
    turn: TurnId,
    root: &BlobHash,
) -> Result<(), NoChange> {
    match view.fs_root(turn) {
        None => Ok(()),
        // Attaching the same root again is a repeat, not a conflict.
        Some(actual) if actual == *root => Err(NoChange::FsRootExists),
        Some(actual) => Err(Refusal::FsRootSet { turn, actual }.into()),
    }
}

fn decide_put_bundle(view: &impl StateView, bundle: &ParsedBundle) -> Result<Plan, NoChange> {
    match view.registry().check_parsed(bundle) {
        Ok(Checked::New(registry)) => Ok(Plan::PutBundle(Arc::new(registry))),
        Ok(Checked::Identical) => Err(NoChange::BundleExists),
        Err(error) => Err(Refusal::Bundle(Arc::new(error)).into()),
    }
}

fn decide_set_labels(view: &impl StateView, context: ContextId) -> Result<Plan, NoChange> {
    view.head(context).ok_or(Refusal::UnknownContext(context))?;
    Ok(Plan::SetLabels)
}

impl StateView for State {
    fn turns(&self) -> u64 {
        self.turns.len()
    }

    fn depth(&self, turn: TurnId) -> Option<u32> {
        self.turn(turn).map(|row| row.depth)
    }

    fn head(&self, context: ContextId) -> Option<Option<TurnId>> {
        State::head(self, context)
    }

    fn is_creation_lost(&self, context: ContextId) -> bool {
        State::is_creation_lost(self, context)
    }

    fn has_blob(&self, hash: &BlobHash) -> bool {
        self.find_blob(hash).is_some()
    }

    fn key(&self, key: KeyDigest) -> Option<KeyEntry> {
        self.find_key(key)
    }

    fn fs_root(&self, turn: TurnId) -> Option<BlobHash> {
        State::fs_root(self, turn)
    }

    fn registry(&self) -> Arc<Registry> {
        self.registry.load_full()
    }
}
