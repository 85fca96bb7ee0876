//! The named checkers: what must hold of a store whatever was done to it.
//!
//! Each reads the store through its door only and says what is wrong as a [`Violation`].

use std::collections::BTreeSet;

use turnkeep_store::command::AppendedTurn;
use turnkeep_store::{Appended, Command, EventKind, Outcome, ReadError, Store, Turn};
use turnkeep_types::{BlobHash, ContextId, Timestamp, TurnId};

use crate::linearize::{Sent, linearize};
use crate::model::Model;
use crate::snapshot::{Snapshot, check_bytes};

/// What a store did that it must never do.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Violation {
    /// Something that must be there cannot be read.
    #[error("what must be there cannot be read: {0}")]
    Unreadable(ReadError),
    /// Bytes were served under a name that is not theirs.
    #[error("blob {hash} was served as bytes that hash to {served}")]
    WrongBytes {
        /// The name.
        hash: BlobHash,
        /// The hash of what was served.
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
    /// An acked command is not in the store as it was acked.
    #[error("acked_survives: this was acked and is not there like that: {0:?}")]
    AckedLost(Box<Sent>),
    /// A head that does not lead to a root, a depth at a time.
    #[error("heads_reachable: the path of context {0} is broken at depth {1}")]
    BrokenPath(ContextId, u32),
    /// Ids with a gap, or one id for two things.
    #[error("ids_dense_and_never_reused: {0}")]
    BadId(String),
    /// A stamp below the one before it, or later than the clock ever was.
    #[error("stamps_never_fall: {0:?} after {1:?}")]
    BadStamp(Timestamp, Timestamp),
    /// The rebuilt state is not the one that was served.
    #[error("replay_equals_live: the state was {live} and is {replayed} after replay")]
    ReplayDiffers {
        /// The digest before.
        live: BlobHash,
        /// The digest after.
        replayed: BlobHash,
    },
    /// No order of whole commands explains what can be read.
    #[error("nothing_half_visible: no order of these as whole commands gives this state: {0:?}")]
    HalfVisible(Vec<Sent>),
}

fn unreadable(error: ReadError) -> Violation {
    Violation::Unreadable(error)
}

/// Everything that was acked is there, bit for bit.
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

/// Every head leads to a root, and every way of reading the path gives the same turns.
pub fn heads_reachable(store: &Store) -> Result<(), Violation> {
    for context in store.contexts(None) {
        let path = store.last(context.id, usize::MAX).map_err(unreadable)?;
        let mut parent = None;
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

/// Reading from the middle of a path gives the path's turns.
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

/// Ids are dense from 1, the feed has each once, and no two acks share one unless a key joins them.
pub fn ids_dense_and_never_reused<'a>(
    store: &Store,
    sent: impl IntoIterator<Item = &'a Sent>,
) -> Result<(), Violation> {
    let stats = store.stats();
    let bad = |what: String| Err(Violation::BadId(what));
    if TurnId::new(stats.turns + 1).is_some_and(|id| store.turn(id).is_ok()) {
        return bad(format!(
            "there is a turn after the last one, {}",
            stats.turns
        ));
    }
    let events =
        (1..=store.last_position()).map(|n| store.event(n).ok_or(Violation::MissingEvent(n)));
    let (mut turns, mut contexts) = (0, 0);
    for event in events {
        match event?.kind {
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
    let mut seen = BTreeSet::new();
    for id in sent.into_iter().filter_map(Sent::acked).flat_map(new_ids) {
        if id.1 > [turns, contexts][id.0] || !seen.insert(id) {
            return bad(format!("{id:?} was acked twice as new, or is not there"));
        }
    }
    Ok(())
}

/// The ids that an ack gave out for the first time: turns as 0, contexts as 1.
fn new_ids(outcome: &Outcome) -> Vec<(usize, u64)> {
    match outcome {
        Outcome::Appended(appended) if !appended.replayed => appended
            .turns
            .iter()
            .map(|turn| (0, turn.turn.get()))
            .collect(),
        Outcome::Created(created) if !created.replayed => vec![(1, created.context.get())],
        _ => Vec::new(),
    }
}

/// Stamps follow the order of the log and come from a clock that never was later than `latest`.
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

/// What was rebuilt from the log is what was served before.
pub fn replay_equals_live(live: &Snapshot, replayed: &Snapshot) -> Result<(), Violation> {
    if live == replayed {
        return Ok(());
    }
    Err(Violation::ReplayDiffers {
        live: live.digest(),
        replayed: replayed.digest(),
    })
}

/// What can be read is what whole commands make of what was there: all that were acked, and of the
/// others some. Returns the model that explains it.
pub fn nothing_half_visible(
    model: &Model,
    sent: &[Sent],
    seen: &Snapshot,
) -> Result<Model, Violation> {
    linearize(model, sent, seen).ok_or_else(|| Violation::HalfVisible(sent.to_vec()))
}
