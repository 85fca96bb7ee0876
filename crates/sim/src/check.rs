//! The named checkers: each tests one guarantee of the store.
//!
//! They use only the store's public functions and report a [`Violation`].

use std::collections::BTreeSet;

use turnkeep_store::command::AppendedTurn;
use turnkeep_store::{Appended, Command, EventKind, Outcome, ReadError, Store, Turn};
use turnkeep_types::{BlobHash, ContextId, Timestamp, TurnId};

use crate::linearize::{Sent, linearize};
use crate::model::Model;
use crate::snapshot::{Snapshot, check_bytes};

/// A broken guarantee.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Violation {
    /// Acknowledged data cannot be read.
    #[error("what must be there cannot be read: {0}")]
    Unreadable(ReadError),
    /// The store returned bytes with another hash than requested.
    #[error("blob {hash} was served as bytes that hash to {served}")]
    WrongBytes {
        /// The name.
        hash: BlobHash,
        /// The hash of the returned bytes.
        served: BlobHash,
    },
    /// The store keeps blobs that no command put there.
    #[error("the store keeps {kept} blobs, but only {known} can be accounted for")]
    StrayBlobs {
        /// As counted by the store.
        kept: u64,
        /// As found.
        known: u64,
    },
    /// A position of the feed without an event.
    #[error("event {0} is missing")]
    MissingEvent(u64),
    /// The store does not hold an acknowledged command as acknowledged.
    #[error("acked_survives: this was acked and is not there like that: {0:?}")]
    AckedLost(Box<Sent>),
    /// The path from a head to its root is broken.
    #[error("heads_reachable: the path of context {0} is broken at depth {1}")]
    BrokenPath(ContextId, u32),
    /// Ids have a gap, or two objects share an id.
    #[error("ids_dense_and_never_reused: {0}")]
    BadId(String),
    /// A time is before the previous one or after the latest time of the clock.
    #[error("stamps_never_fall: {0:?} after {1:?}")]
    BadStamp(Timestamp, Timestamp),
    /// Replay gives another state than the live store had.
    #[error("replay_equals_live: the state was {live} and is {replayed} after replay")]
    ReplayDiffers {
        /// The digest before.
        live: BlobHash,
        /// The digest after.
        replayed: BlobHash,
    },
    /// No order of complete commands explains the visible state.
    #[error("nothing_half_visible: no order of these as whole commands gives this state: {0:?}")]
    HalfVisible(Vec<Sent>),
}

fn unreadable(error: ReadError) -> Violation {
    Violation::Unreadable(error)
}

/// Everything that was acknowledged is readable and unchanged.
pub fn acked_survives<'a>(
    store: &Store,
    sent: impl IntoIterator<Item = &'a Sent>,
) -> Result<(), Violation> {
    for sent in sent {
        let survives = match (sent.acked(), &sent.command) {
            (Some(Outcome::Appended(appended)), _) => turns_survive(store, appended)?,
            (Some(Outcome::Created(created)), _) => {
                store
                    .context(created.context)
                    .map_err(unreadable)?
                    .created_at
                    == created.created_at
            }
            (Some(_), Command::AttachFs { turn, root }) => {
                store.turn(*turn).map_err(unreadable)?.fs_root == Some(*root)
            }
            (Some(_), Command::PutBlob(blob)) => {
                check_bytes(store, blob.hash(), blob.raw_len())?;
                true
            }
            (Some(_), Command::PutBundle { id, .. }) => store.registry().bundle(id).is_some(),
            _ => true,
        };
        if !survives {
            return Err(Violation::AckedLost(Box::new(sent.clone())));
        }
    }
    Ok(())
}

fn turns_survive(store: &Store, appended: &Appended) -> Result<bool, Violation> {
    for acked in &appended.turns {
        let turn = store.turn(acked.turn).map_err(unreadable)?;
        check_bytes(store, turn.hash, turn.raw_len)?;
        if as_acked(&turn) != *acked {
            return Ok(false);
        }
    }
    Ok(true)
}

fn as_acked(turn: &Turn) -> AppendedTurn {
    AppendedTurn {
        context: turn.context,
        turn: turn.id,
        parent: turn.parent,
        depth: turn.depth,
        hash: turn.hash,
        created_at: turn.created_at,
    }
}

/// Every head leads to a root, and all read functions return the same path.
pub fn heads_reachable(store: &Store) -> Result<(), Violation> {
    for context in store.contexts(None) {
        let path = store.last(context.id, usize::MAX).map_err(unreadable)?;
        let mut parent = None;
        // The path ascends from the root, which has depth 0 and no parent.
        for (turn, depth) in path.iter().zip(0..) {
            if turn.depth != depth || turn.parent != parent {
                return Err(Violation::BrokenPath(context.id, depth));
            }
            parent = Some(turn.id);
        }
        if context.head != parent || context.head_depth as usize != path.len().saturating_sub(1) {
            return Err(Violation::BrokenPath(context.id, context.head_depth));
        }
        pages_agree(store, context.id, &path)?;
    }
    Ok(())
}

/// Reads from the middle of a path return the same turns.
fn pages_agree(store: &Store, context: ContextId, path: &[Turn]) -> Result<(), Violation> {
    let (before, after) = path.split_at(path.len() / 2);
    let Some(middle) = after.first() else {
        return Ok(());
    };
    let some = store.range(context, middle.depth, 3).map_err(unreadable)?;
    let rest = store.before(middle.id, usize::MAX).map_err(unreadable)?;
    let newest = store.last(context, 2).map_err(unreadable)?;
    if after.starts_with(&some)
        && some.len() == after.len().min(3)
        && rest == before
        && path.ends_with(&newest)
    {
        return Ok(());
    }
    Err(Violation::BrokenPath(context, middle.depth))
}

/// Ids start at 1 without gaps, the feed has each once, and no two new acknowledgements share an
/// id.
pub fn ids_dense_and_never_reused<'a>(
    store: &Store,
    sent: impl IntoIterator<Item = &'a Sent>,
) -> Result<(), Violation> {
    check_feed_is_dense(store)?;
    let stats = store.stats();
    let mut seen = BTreeSet::new();
    for id in sent.into_iter().filter_map(Sent::acked).flat_map(new_ids) {
        let is_known = match id {
            NewId::Turn(turn) => turn.get() <= stats.turns,
            NewId::Context(context) => context.get() <= stats.contexts,
        };
        if !is_known || !seen.insert(id) {
            let what = format!("{id:?} was acked twice as new, or does not exist");
            return Err(Violation::BadId(what));
        }
    }
    Ok(())
}

/// The feed has every turn and every context once, in the order of their ids.
fn check_feed_is_dense(store: &Store) -> Result<(), Violation> {
    let stats = store.stats();
    let bad = |what: String| Err(Violation::BadId(what));
    if TurnId::new(stats.turns + 1).is_some_and(|id| store.turn(id).is_ok()) {
        return bad(format!(
            "there is a turn after the last one, {}",
            stats.turns
        ));
    }
    let (mut turns, mut contexts) = (0, 0);
    for position in 1..=store.last_position() {
        let event = store
            .event(position)
            .ok_or(Violation::MissingEvent(position))?;
        // The feed must have the ids in ascending order, and a root only for an earlier turn.
        match event.kind {
            EventKind::TurnAppended(id) if id.get() == turns + 1 => turns += 1,
            EventKind::ContextCreated(id) if id.get() == contexts + 1 => contexts += 1,
            EventKind::FsAttached(id) if id.get() <= turns => {}
            EventKind::RegistryPut(_) => {}
            other => {
                return bad(format!(
                    "{other:?} after {turns} turns and {contexts} contexts"
                ));
            }
        }
    }
    if (turns, contexts) != (stats.turns, stats.contexts) {
        return bad(format!(
            "the feed has {turns} turns and {contexts} contexts of {stats:?}"
        ));
    }
    Ok(())
}

/// An id that a reply acknowledged for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NewId {
    Turn(TurnId),
    Context(ContextId),
}

fn new_ids(outcome: &Outcome) -> Vec<NewId> {
    match outcome {
        Outcome::Appended(appended) if !appended.replayed => appended
            .turns
            .iter()
            .map(|turn| NewId::Turn(turn.turn))
            .collect(),
        Outcome::Created(created) if !created.replayed => vec![NewId::Context(created.context)],
        _ => Vec::new(),
    }
}

/// Times ascend in log order and are never after `latest`.
pub fn stamps_never_fall(seen: &Snapshot, latest: Timestamp) -> Result<(), Violation> {
    let stamps = seen.events.iter().filter_map(|event| match event {
        EventKind::TurnAppended(id) => Some(seen.turn(*id)?.created_at),
        EventKind::ContextCreated(id) => Some(seen.context(*id)?.created_at),
        EventKind::FsAttached(_) | EventKind::RegistryPut(_) => None,
    });
    let stamps: Vec<Timestamp> = stamps.chain([latest]).collect();
    match stamps.windows(2).find(|pair| pair[0] > pair[1]) {
        Some(pair) => Err(Violation::BadStamp(pair[1], pair[0])),
        None => Ok(()),
    }
}

/// Replay gives the same state as the live store had.
pub fn replay_equals_live(live: &Snapshot, replayed: &Snapshot) -> Result<(), Violation> {
    if live == replayed {
        return Ok(());
    }
    Err(Violation::ReplayDiffers {
        live: live.digest(),
        replayed: replayed.digest(),
    })
}

/// The visible state consists of complete commands: all acknowledged ones and some of the others.
/// Returns the model that explains it.
pub fn nothing_half_visible(
    model: &Model,
    sent: &[Sent],
    seen: &Snapshot,
) -> Result<Model, Violation> {
    linearize(model, sent, seen).ok_or_else(|| Violation::HalfVisible(sent.to_vec()))
}
