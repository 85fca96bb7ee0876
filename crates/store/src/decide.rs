//! The store's rules: what a command does to a state, or why it is refused.
//!
//! `decide` reads and never writes. It runs against the state alone in `apply`, live and in replay,
//! and against the state plus the batch so far before a command is logged. It sees no clock, no
//! configuration and no payload bytes, so the same log gives the same decisions for ever.

use std::sync::Arc;

use turnkeep_types::{BlobHash, ContextId, TurnId};

use crate::command::{Key, Labels, Refusal};
use crate::keys::{self, KeyDigest};
use crate::record::{Few, Part, Record};
use crate::registry::{Checked, ParsedBundle, Registry};
use crate::state::{KeyEntry, State};

/// What `decide` may ask of a state.
pub(crate) trait View {
    /// How many turns there are; the next one gets the next number.
    fn turns(&self) -> u64;
    /// A turn's depth, if it exists.
    fn depth(&self, turn: TurnId) -> Option<u32>;
    /// A context's head; the outer `None` if there is no such context.
    fn head(&self, context: ContextId) -> Option<Option<TurnId>>;
    /// Whether damage took the record that created a context, and with it the head it began at.
    fn is_creation_lost(&self, context: ContextId) -> bool;
    /// Whether a blob is kept.
    fn has_blob(&self, hash: &BlobHash) -> bool;
    /// What a key stands for.
    fn key(&self, key: KeyDigest) -> Option<KeyEntry>;
    /// The filesystem root of a turn.
    fn fs_root(&self, turn: TurnId) -> Option<BlobHash>;
    /// The registry.
    fn registry(&self) -> Arc<Registry>;
}

/// What comes of a command.
#[derive(Debug)]
pub(crate) enum Decision {
    /// It changes the state.
    Do(Plan),
    /// It changes nothing, for this reason.
    Settled(Settled),
}

/// How a command changes the state.
#[derive(Debug)]
pub(crate) enum Plan {
    Create {
        head_depth: u32,
        key: Option<(KeyDigest, u64)>,
    },
    Append {
        places: Few<Place>,
        key: Option<(KeyDigest, u64)>,
    },
    AttachFs,
    PutBlob,
    PutBundle(Arc<Registry>),
    SetLabels,
    Lost,
    LostRoot,
}

impl Plan {
    /// Whether two plans do the same.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Create {
                    head_depth: a,
                    key: b,
                },
                Self::Create { head_depth, key },
            ) => (a, b) == (head_depth, key),
            (Self::Append { places: a, key: b }, Self::Append { places, key }) => {
                (a, b) == (places, key)
            }
            (ours, theirs) => std::mem::discriminant(ours) == std::mem::discriminant(theirs),
        }
    }
}

/// Where a part's first turn goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) parent: Option<TurnId>,
    pub(crate) depth: u32,
}

/// Why a command changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settled {
    Refused(Refusal),
    CreatedBefore(KeyEntry),
    AppendedBefore(KeyEntry),
    BlobThere,
    FsRootThere,
    BundleThere,
}

impl From<Refusal> for Settled {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Decides a command.
pub(crate) fn decide(view: &impl View, record: &Record) -> Decision {
    let decided = match record {
        Record::Create { base, labels, key } => create(view, *base, labels, key.as_ref()),
        Record::Append { parts, key, strict } => append(view, parts, key.as_ref(), *strict),
        Record::AttachFs { turn, root } => attach(view, *turn, root),
        Record::PutBlob { blob } => put_blob(blob.in_frame.is_some() || !view.has_blob(&blob.hash)),
        Record::PutBundle { bundle } => put_bundle(view, bundle),
        Record::SetLabels { context, .. } => set_labels(view, *context),
        Record::Lost { .. } => Ok(Plan::Lost),
        Record::LostRoot { turn, root, .. } => lose_root(view, *turn, root),
    };
    decided.map_or_else(Decision::Settled, Decision::Do)
}

fn create(
    view: &impl View,
    base: Option<TurnId>,
    labels: &Labels,
    key: Option<&Key>,
) -> Result<Plan, Settled> {
    let key = key.map(|key| (keys::of_create(key), keys::create_request(base, labels)));
    if let Some(before) = replay(view, key)? {
        return Err(Settled::CreatedBefore(before));
    }
    let head_depth = match base {
        Some(turn) => view.depth(turn).ok_or(Refusal::UnknownTurn(turn))?,
        None => 0,
    };
    Ok(Plan::Create { head_depth, key })
}

fn append(
    view: &impl View,
    parts: &[Part],
    key: Option<&Key>,
    strict: bool,
) -> Result<Plan, Settled> {
    let scope = parts.first().map(|part| part.context);
    let key = key
        .zip(scope)
        .map(|(key, scope)| (keys::of_append(scope, key), keys::append_request(parts)));
    if let Some(before) = replay(view, key)? {
        return Err(Settled::AppendedBefore(before));
    }
    let mut next = view.turns() + 1;
    let mut moved: Vec<(ContextId, Place)> = Vec::new();
    let mut places = Few::with_capacity(parts.len());
    for part in parts {
        let place = place(view, &moved, part)?;
        check_turns(view, part, strict)?;
        let turns = part.turns.len() as u64;
        let last_depth = u64::from(place.depth) + turns - 1;
        let last = Place {
            parent: TurnId::new(next + turns - 1),
            depth: u32::try_from(last_depth).map_err(|_| Refusal::TooDeep)?,
        };
        next += turns;
        if parts.len() > 1 {
            moved.push((part.context, last));
        }
        places.push(place);
    }
    Ok(Plan::Append { places, key })
}

/// An equal request with the same key was carried out before, or a different one was.
fn replay(view: &impl View, key: Option<(KeyDigest, u64)>) -> Result<Option<KeyEntry>, Refusal> {
    let Some((digest, request)) = key else {
        return Ok(None);
    };
    match view.key(digest) {
        Some(before) if before.request == request => Ok(Some(before)),
        Some(_) => Err(Refusal::KeyReused),
        None => Ok(None),
    }
}

/// Where a part goes; `moved` are the heads that earlier parts of the same command moved.
fn place(view: &impl View, moved: &[(ContextId, Place)], part: &Part) -> Result<Place, Refusal> {
    let context = part.context;
    let earlier = moved
        .iter()
        .rev()
        .find(|(id, _)| *id == context)
        .map(|(_, last)| *last);
    let head = match earlier {
        Some(last) => last.parent,
        None => view.head(context).ok_or(Refusal::UnknownContext(context))?,
    };
    if part.placed {
        return placed(view, part);
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
        return Ok(Place {
            parent: None,
            depth: 0,
        });
    };
    let parent_depth = match earlier {
        Some(last) if last.parent == Some(parent) => last.depth,
        _ => view.depth(parent).ok_or(Refusal::UnknownTurn(parent))?,
    };
    Ok(Place {
        parent: Some(parent),
        depth: parent_depth.checked_add(1).ok_or(Refusal::TooDeep)?,
    })
}

/// Where repair put a part, whatever the head; its parent must be there all the same.
fn placed(view: &impl View, part: &Part) -> Result<Place, Refusal> {
    let unknown = part.parent.filter(|&parent| view.depth(parent).is_none());
    unknown.map_or(
        Ok(Place {
            parent: part.parent,
            depth: part.depth,
        }),
        |turn| Err(Refusal::UnknownTurn(turn)),
    )
}

fn check_turns(view: &impl View, part: &Part, strict: bool) -> Result<(), Refusal> {
    let missing_root = part
        .turns
        .iter()
        .filter_map(|turn| turn.fs_root)
        .find(|root| !view.has_blob(root));
    if let Some(root) = missing_root {
        return Err(Refusal::UnknownBlob(root));
    }
    if strict {
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

fn attach(view: &impl View, turn: TurnId, root: &BlobHash) -> Result<Plan, Settled> {
    view.depth(turn).ok_or(Refusal::UnknownTurn(turn))?;
    if !view.has_blob(root) {
        return Err(Refusal::UnknownBlob(*root).into());
    }
    match view.fs_root(turn) {
        None => Ok(Plan::AttachFs),
        Some(actual) if actual == *root => Err(Settled::FsRootThere),
        Some(actual) => Err(Refusal::FsRootSet { turn, actual }.into()),
    }
}

/// As an attachment, but of a root whose tree is gone.
fn lose_root(view: &impl View, turn: TurnId, root: &BlobHash) -> Result<Plan, Settled> {
    view.depth(turn).ok_or(Refusal::UnknownTurn(turn))?;
    match view.fs_root(turn) {
        None => Ok(Plan::LostRoot),
        Some(actual) if actual == *root => Err(Settled::FsRootThere),
        Some(actual) => Err(Refusal::FsRootSet { turn, actual }.into()),
    }
}

fn put_blob(is_new: bool) -> Result<Plan, Settled> {
    if is_new {
        Ok(Plan::PutBlob)
    } else {
        Err(Settled::BlobThere)
    }
}

fn put_bundle(view: &impl View, bundle: &ParsedBundle) -> Result<Plan, Settled> {
    match view.registry().check_parsed(bundle) {
        Ok(Checked::New(registry)) => Ok(Plan::PutBundle(Arc::new(registry))),
        Ok(Checked::Identical) => Err(Settled::BundleThere),
        Err(error) => Err(Refusal::Bundle(Arc::new(error)).into()),
    }
}

fn set_labels(view: &impl View, context: ContextId) -> Result<Plan, Settled> {
    view.head(context).ok_or(Refusal::UnknownContext(context))?;
    Ok(Plan::SetLabels)
}

impl View for State {
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
