//! `apply`: the only code that changes the state, live and in replay.
//!
//! It takes the log's records in order, decides each one against the current state and carries out
//! the decision. It cannot fail: a record that the rules reject changes nothing. The writer decided
//! each record once before it logged it, but that decision is not used here: a live record takes
//! the same path as a replayed one, so both always have the same result.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use turnkeep_journal::Locator;
use turnkeep_types::{BlobHash, ContextId, Timestamp, TurnId};

use crate::command::{Appended, AppendedTurn, Created, Labels, Outcome, Refusal};
use crate::decide::{Decision, KeyUse, NoChange, Placement, Plan, decide};
use crate::record::{BlobName, PartRecord, Record, TurnRecord};
use crate::state::{
    BlobRow, CREATION_LOST, Declared, EventRow, KeyEntry, State, TurnRow, turn_count,
};
use crate::walk;

/// Changes the state. Each store has exactly one, on the writer's thread.
pub(crate) struct Applier {
    pub(crate) state: Arc<State>,
    /// The numbers of the declared types.
    type_numbers: HashMap<Declared, u32>,
    /// The number of the last turn's type. Most turns have the same type as the one before, and
    /// then no hash lookup is needed.
    last_type_number: u32,
    /// The rows of the current frame's blobs.
    frame_blobs: Vec<u64>,
    /// The rows that changed in place since the current checkpoint file began.
    pub(crate) changed: ChangedRows,
}

/// Rows that changed in place. New rows are not in here: table lengths tell them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangedRows {
    pub(crate) heads: BTreeSet<ContextId>,
    pub(crate) labels: BTreeSet<ContextId>,
    pub(crate) blobs: BTreeSet<u64>,
    pub(crate) lost_turns: BTreeSet<TurnId>,
}

impl ChangedRows {
    pub(crate) fn merge(&mut self, other: Self) {
        self.heads.extend(other.heads);
        self.labels.extend(other.labels);
        self.blobs.extend(other.blobs);
        self.lost_turns.extend(other.lost_turns);
    }
}

impl Applier {
    /// Continues from a state that the checkpoints filled.
    pub(crate) fn new(state: Arc<State>) -> Self {
        let known = (0_u32..).map_while(|n| Some((state.declared.get(n.into())?.clone(), n)));
        let type_numbers = known.collect();
        Self {
            state,
            type_numbers,
            last_type_number: 0,
            frame_blobs: Vec::new(),
            changed: ChangedRows::default(),
        }
    }

    /// Begins a frame: adds its blobs to the state and remembers its time.
    pub(crate) fn begin_frame(
        &mut self,
        created_at: Timestamp,
        blobs: impl Iterator<Item = BlobRow>,
    ) {
        // The maximum, so that no frame can move the time back for the frames after it.
        self.state
            .last_stamp
            .fetch_max(created_at.0, Ordering::Relaxed);
        self.frame_blobs.clear();
        for blob in blobs {
            let row = self.add_or_move_blob(blob);
            self.frame_blobs.push(row);
        }
    }

    /// Adds a blob, or moves its row to this copy if the blob is known. A frame repeats a known
    /// blob only if the first copy was found damaged.
    fn add_or_move_blob(&mut self, blob: BlobRow) -> u64 {
        // A copy whose own bytes are lost must not replace a copy that may be readable.
        let known = if blob.locator == Locator::NOWHERE {
            None
        } else {
            self.state.find_blob(&blob.hash)
        };
        let Some(row) = known else {
            return self.state.add_blob(blob);
        };
        self.state.move_blob(row, blob);
        self.changed.blobs.insert(row);
        row
    }

    /// Decides one record of the current frame and carries out the decision. `key` is the digest of
    /// the record's own key.
    pub(crate) fn apply(
        &mut self,
        created_at: Timestamp,
        record: &Record,
        key: Option<KeyUse>,
    ) -> Result<Outcome, Refusal> {
        match decide(&*self.state, record, key) {
            Decision::NoChange(reason) => answer_unchanged(&self.state, reason),
            Decision::Change(plan) => Ok(self.carry_out_plan(created_at, record, plan)),
        }
    }

    /// Applies a record whose result is of no interest: the client got its reply when the record was
    /// live, and a rejected record changes nothing now either.
    pub(crate) fn replay(&mut self, created_at: Timestamp, record: &Record) {
        match self.apply(created_at, record, KeyUse::digest(record)) {
            Ok(_) | Err(_) => {}
        }
    }

    fn carry_out_plan(&mut self, now: Timestamp, record: &Record, plan: Plan) -> Outcome {
        match (record, plan) {
            (Record::Create { base, labels, .. }, Plan::Create { head_depth, key }) => {
                self.create_context(now, *base, head_depth, labels, key)
            }
            (Record::Append { parts, .. }, Plan::Append { placements, key }) => {
                self.append_turns(now, parts, &placements, key)
            }
            (Record::AttachFs { turn, root }, Plan::AttachFs) => self.attach_fs_root(*turn, *root),
            (Record::PutBundle { .. }, Plan::PutBundle(registry)) => self.put_bundle(registry),
            (Record::SetLabels { context, labels }, Plan::SetLabels) => {
                self.set_labels(*context, labels)
            }
            (
                Record::Lost {
                    turns,
                    contexts,
                    in_feed,
                },
                Plan::Lost,
            ) => self.add_lost_ids(now, *turns, *contexts, *in_feed),
            (
                Record::LostRoot {
                    turn,
                    root,
                    attached,
                },
                Plan::LostRoot,
            ) => self.add_lost_root(*turn, *root, *attached),
            (Record::PutBlob { blob }, Plan::PutBlob) => self.put_blob(*blob),
            // `decide` answers each record with the plan of its own kind.
            (record, plan) => unreachable!("{record:?} was decided as {plan:?}"),
        }
    }

    fn create_context(
        &mut self,
        now: Timestamp,
        base: Option<TurnId>,
        head_depth: u32,
        labels: &Labels,
        key: Option<KeyUse>,
    ) -> Outcome {
        let head = TurnId::to_wire(base);
        let number = self.state.push_context(now, head) + 1;
        let context = ContextId::new(number).expect("a row's number plus one is not zero");
        if !labels.is_empty() {
            self.set_labels(context, labels);
        }
        self.add_key(key, number, 1);
        // Last: a reader that meets the event looks up the context and its labels.
        self.state.add_event(EventRow::Context(context));
        Outcome::Created(Created {
            context,
            head: base,
            head_depth,
            created_at: now,
            replayed: false,
        })
    }

    fn append_turns(
        &mut self,
        now: Timestamp,
        parts: &[PartRecord],
        placements: &[Placement],
        key: Option<KeyUse>,
    ) -> Outcome {
        // All turns of a command get consecutive ids, so a key needs only the first and the count.
        let first = self.state.turns.len() + 1;
        let mut turns = Vec::with_capacity(parts.iter().map(|part| part.turns.len()).sum());
        for (part, placement) in parts.iter().zip(placements) {
            let mut placement = *placement;
            if part.placed {
                self.set_lost_parent_depth(placement);
            }
            for turn in &part.turns {
                let appended = self.add_turn(now, part.context, placement, turn);
                placement = Placement {
                    parent: Some(appended.turn),
                    depth: placement.depth.saturating_add(1),
                };
                turns.push(appended);
            }
            // Only after the last turn's row exists: a reader that follows the head finds it.
            if let Some(head) = placement.parent {
                self.state.set_head(part.context, head);
                self.changed.heads.insert(part.context);
            }
        }
        self.add_key(key, first, turn_count(turns.len()));
        Outcome::Appended(Appended {
            turns,
            replayed: false,
        })
    }

    /// Remembers the ids that a request with a key created, so that a repeat gets the same answer.
    fn add_key(&self, key: Option<KeyUse>, first: u64, count: u32) {
        if let Some(KeyUse { key, request }) = key {
            let entry = KeyEntry {
                request,
                first,
                count,
            };
            self.state.add_key(key, entry);
        }
    }

    /// Derives the depth of a lost parent from the depth that repair recorded for its child.
    fn set_lost_parent_depth(&mut self, placement: Placement) {
        if let (Some(parent), Some(depth)) = (placement.parent, placement.depth.checked_sub(1))
            && let Some(row) = self.state.turn(parent).filter(|row| row.lost)
        {
            self.state.set_turn(parent, TurnRow { depth, ..row });
            self.changed.lost_turns.insert(parent);
        }
    }

    fn add_turn(
        &mut self,
        now: Timestamp,
        context: ContextId,
        placement: Placement,
        turn: &TurnRecord,
    ) -> AppendedTurn {
        let id = TurnId::new(self.state.turns.len() + 1).expect("a length plus one is not zero");
        let declared = self.type_number(&turn.declared, turn.encoding);
        self.state.push_turn(TurnRow {
            parent: placement.parent,
            context: context.get(),
            depth: placement.depth,
            declared,
            blob: self.find_or_add_blob_row(turn.payload),
            has_fs_root: false,
            lost: false,
            created_at: now,
            jump: walk::choose_jump(&self.state, id, placement.parent),
        });
        if let Some(root) = turn.fs_root {
            let row = self.find_or_add_blob_row(BlobName::by_hash(root));
            self.state.add_fs_root(id, row);
        }
        // After the row: a reader that sees the event finds the turn.
        self.state.add_event(EventRow::Turn(id));
        AppendedTurn {
            context,
            turn: id,
            parent: placement.parent,
            depth: placement.depth,
            hash: turn.payload.hash,
            created_at: now,
        }
    }

    fn find_or_add_blob_row(&self, name: BlobName) -> u64 {
        // The place first: it needs no hash lookup, and almost every payload is new in its frame.
        let in_frame = name
            .in_frame
            .and_then(|at| self.frame_blobs.get(at as usize).copied());
        let row = in_frame.or_else(|| self.state.find_blob(&name.hash));
        // Only a lost frame held this blob. Its turns stay, and reading them reports the loss.
        row.unwrap_or_else(|| self.state.add_missing_blob(name.hash))
    }

    /// The number of a declared type and encoding. Equal pairs share one number.
    fn type_number(&mut self, turn_type: &turnkeep_types::TypeRef, encoding: u32) -> u32 {
        let last = self.state.declared.get(self.last_type_number.into());
        let is_last =
            last.is_some_and(|last| last.turn_type == *turn_type && last.encoding == encoding);
        if !is_last {
            self.last_type_number = self.find_or_add_type(turn_type, encoding);
        }
        self.last_type_number
    }

    fn find_or_add_type(&mut self, turn_type: &turnkeep_types::TypeRef, encoding: u32) -> u32 {
        let declared = Declared {
            turn_type: turn_type.clone(),
            encoding,
        };
        if let Some(&number) = self.type_numbers.get(&declared) {
            return number;
        }
        let number = self.state.declared.push(declared.clone());
        let number = u32::try_from(number).expect("lists are shorter than 2^32");
        self.type_numbers.insert(declared, number);
        number
    }

    fn attach_fs_root(&mut self, turn: TurnId, root: BlobHash) -> Outcome {
        let row = self.find_or_add_blob_row(BlobName::by_hash(root));
        self.state.add_fs_root(turn, row);
        self.state.add_event(EventRow::Fs(turn));
        Outcome::FsAttached
    }

    fn put_blob(&mut self, blob: BlobName) -> Outcome {
        // `begin_frame` added the blob. Repair leaves a damaged blob out of the frame; then only
        // its name is kept, and reads report it as lost.
        if blob.in_frame.is_none() {
            self.find_or_add_blob_row(blob);
        }
        Outcome::BlobPut { was_new: true }
    }

    fn put_bundle(&mut self, registry: Arc<crate::registry::Registry>) -> Outcome {
        let number = registry.bundles().len() as u64 - 1;
        self.state.registry.store(registry);
        self.state.add_event(EventRow::Bundle(number));
        Outcome::BundlePut { was_new: true }
    }

    fn set_labels(&mut self, context: ContextId, labels: &Labels) -> Outcome {
        self.state.set_labels(context, Arc::new(labels.clone()));
        self.changed.labels.insert(context);
        Outcome::LabelsSet
    }

    /// Adds rows for turns and contexts that were lost to damage. All later rows keep their ids,
    /// and no id is assigned twice. With `in_feed`, each lost id also gets an event, so readers of
    /// the feed learn of the loss.
    fn add_lost_ids(
        &mut self,
        now: Timestamp,
        turns: u64,
        contexts: u64,
        in_feed: bool,
    ) -> Outcome {
        for _ in 0..contexts {
            let context = ContextId::new(self.state.push_context(now, CREATION_LOST) + 1);
            if let Some(context) = context.filter(|_| in_feed) {
                self.state.add_event(EventRow::Context(context));
            }
        }
        for _ in 0..turns {
            let row = TurnRow {
                parent: None,
                context: 0,
                depth: 0,
                declared: 0,
                blob: 0,
                has_fs_root: false,
                lost: true,
                created_at: now,
                // The turn's own id: walks must stop here.
                jump: self.state.turns.len() + 1,
            };
            self.state.push_turn(row);
            if let Some(turn) = TurnId::new(self.state.turns.len()).filter(|_| in_feed) {
                self.state.add_event(EventRow::Turn(turn));
            }
        }
        Outcome::Lost
    }

    /// Keeps the name of a filesystem root whose tree blob is lost. Reading it reports the loss.
    fn add_lost_root(&mut self, turn: TurnId, root: BlobHash, attached: bool) -> Outcome {
        let row = self.find_or_add_blob_row(BlobName::by_hash(root));
        self.state.add_fs_root(turn, row);
        // A root that came with its append has no event of its own.
        if attached {
            self.state.add_event(EventRow::Fs(turn));
        }
        Outcome::FsAttached
    }
}

/// Builds the reply to a command that changes nothing.
pub(crate) fn answer_unchanged(state: &State, reason: NoChange) -> Result<Outcome, Refusal> {
    match reason {
        NoChange::Refused(refusal) => Err(refusal),
        NoChange::AlreadyCreated(entry) => Ok(repeat_created(state, entry)),
        NoChange::AlreadyAppended(entry) => Ok(repeat_appended(state, entry)),
        NoChange::BlobExists => Ok(Outcome::BlobPut { was_new: false }),
        NoChange::FsRootExists => Ok(Outcome::FsAttached),
        NoChange::BundleExists => Ok(Outcome::BundlePut { was_new: false }),
    }
}

/// Rebuilds the reply to the request that created a context, for a repeat of it.
fn repeat_created(state: &State, entry: KeyEntry) -> Outcome {
    let context = ContextId::new(entry.first).expect("a key stands for a real context");
    // The base, not the head: the head may have moved since, and a repeat gets the first answer.
    let [_, created_at, base, ..] = state.contexts.get(entry.first - 1).unwrap_or_default();
    let head = TurnId::new(base);
    let head_depth = head
        .and_then(|turn| state.turn(turn))
        .map_or(0, |row| row.depth);
    let created_at = Timestamp(created_at);
    Outcome::Created(Created {
        context,
        head,
        head_depth,
        created_at,
        replayed: true,
    })
}

/// Rebuilds the reply to an append, for a repeat of it.
fn repeat_appended(state: &State, entry: KeyEntry) -> Outcome {
    // The turns of one append have consecutive ids, so the key needs only the first and their number.
    let ids = (entry.first..entry.first + u64::from(entry.count)).filter_map(TurnId::new);
    let turns = ids.filter_map(|turn| {
        let row = state.turn(turn)?;
        Some(AppendedTurn {
            context: ContextId::new(row.context)?,
            turn,
            parent: row.parent,
            depth: row.depth,
            hash: state.blob(row.blob)?.hash,
            created_at: row.created_at,
        })
    });
    Outcome::Appended(Appended {
        turns: turns.collect(),
        replayed: true,
    })
}
