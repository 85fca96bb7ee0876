//! `apply`: the only code that changes the state, live and in replay.
//!
//! It takes records in log order, decides each against the state as it is and carries the decision
//! out. It cannot fail: a record that the rules refuse leaves no trace.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use turnkeep_journal::Locator;
use turnkeep_types::{BlobHash, ContextId, Timestamp, TurnId};

use crate::command::{Appended, AppendedTurn, Created, Labels, Outcome, Refusal};
use crate::decide::{Decision, Place, Plan, Settled, decide};
use crate::keys::KeyDigest;
use crate::record::{BlobName, Part, Record, TurnRecord};
use crate::state::{
    BlobRow, CREATION_LOST, Declared, EventRow, KeyEntry, State, TurnRow, turn_count,
};
use crate::walk;

/// The writer's hand on the state. There is one per store.
pub(crate) struct Applier {
    pub(crate) state: Arc<State>,
    interned: HashMap<Declared, u32>,
    /// Most turns are of the same type as the one before.
    last_interned: u32,
    /// The rows of the current frame's blobs.
    frame_blobs: Vec<u64>,
    /// What changed in place since the checkpoint file that is being filled began.
    pub(crate) touched: Touched,
}

/// Rows that were changed, not added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Touched {
    pub(crate) heads: BTreeSet<ContextId>,
    pub(crate) labels: BTreeSet<ContextId>,
    pub(crate) blobs: BTreeSet<u64>,
    pub(crate) lost_turns: BTreeSet<TurnId>,
}

impl Touched {
    pub(crate) fn add(&mut self, other: Self) {
        self.heads.extend(other.heads);
        self.labels.extend(other.labels);
        self.blobs.extend(other.blobs);
        self.lost_turns.extend(other.lost_turns);
    }
}

impl Applier {
    /// Goes on from a state that a checkpoint filled.
    pub(crate) fn new(state: Arc<State>) -> Self {
        let known = (0_u32..).map_while(|n| Some((state.declared.get(n.into())?.clone(), n)));
        let interned = known.collect();
        Self {
            state,
            interned,
            last_interned: 0,
            frame_blobs: Vec::new(),
            touched: Touched::default(),
        }
    }

    /// Begins a frame: takes in its stamp and its blobs.
    pub(crate) fn begin_frame(
        &mut self,
        created_at: Timestamp,
        blobs: impl Iterator<Item = BlobRow>,
    ) {
        self.state
            .last_stamp
            .fetch_max(created_at.0, Ordering::Relaxed);
        self.frame_blobs.clear();
        for blob in blobs {
            let row = self.take_blob(blob);
            self.frame_blobs.push(row);
        }
    }

    /// The same for a frame none of whose blobs is there already.
    pub(crate) fn begin_frame_of_new(
        &mut self,
        created_at: Timestamp,
        blobs: impl Iterator<Item = BlobRow>,
    ) {
        self.state
            .last_stamp
            .fetch_max(created_at.0, Ordering::Relaxed);
        self.frame_blobs.clear();
        self.frame_blobs
            .extend(blobs.map(|blob| self.state.add_blob(blob)));
    }

    /// A frame brings a blob that is there already only if the first copy is damaged.
    fn take_blob(&mut self, blob: BlobRow) -> u64 {
        let known = if blob.locator == Locator::NOWHERE {
            None
        } else {
            self.state.find_blob(&blob.hash)
        };
        let Some(row) = known else {
            return self.state.add_blob(blob);
        };
        self.state.move_blob(row, blob);
        self.touched.blobs.insert(row);
        row
    }

    /// Applies one record of the frame.
    pub(crate) fn apply(
        &mut self,
        created_at: Timestamp,
        record: &Record,
    ) -> Result<Outcome, Refusal> {
        match decide(&*self.state, record) {
            Decision::Settled(settled) => answer(&self.state, settled),
            Decision::Do(plan) => Ok(self.carry_out(created_at, record, plan)),
        }
    }

    /// Applies a record that was decided against this state and the batch before it: what `apply`
    /// would decide again.
    pub(crate) fn apply_decided(
        &mut self,
        created_at: Timestamp,
        record: &Record,
        plan: Plan,
    ) -> Outcome {
        debug_assert!(
            matches!(decide(&*self.state, record), Decision::Do(again) if again.agrees(&plan))
        );
        self.carry_out(created_at, record, plan)
    }

    fn carry_out(&mut self, now: Timestamp, record: &Record, plan: Plan) -> Outcome {
        match (record, plan) {
            (Record::Create { base, labels, .. }, Plan::Create { head_depth, key }) => {
                self.create(now, (*base, head_depth), labels, key)
            }
            (Record::Append { parts, .. }, Plan::Append { places, key }) => {
                self.append(now, parts, &places, key)
            }
            (Record::AttachFs { turn, root }, Plan::AttachFs) => self.attach(
                *turn,
                BlobName {
                    hash: *root,
                    in_frame: None,
                },
            ),
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
            ) => self.lose(now, *turns, *contexts, *in_feed),
            (
                Record::LostRoot {
                    turn,
                    root,
                    attached,
                },
                Plan::LostRoot,
            ) => self.lose_root(*turn, *root, *attached),
            (Record::PutBlob { blob }, Plan::PutBlob) => self.put_blob(*blob),
            (record, plan) => unreachable!("{record:?} was decided as {plan:?}"),
        }
    }

    fn create(
        &mut self,
        now: Timestamp,
        (base, head_depth): (Option<TurnId>, u32),
        labels: &Labels,
        key: Option<(KeyDigest, u64)>,
    ) -> Outcome {
        let head = TurnId::to_wire(base);
        let number = self.state.push_context(now, head) + 1;
        let context = ContextId::new(number).expect("a row's number plus one is not zero");
        if !labels.is_empty() {
            self.set_labels(context, labels);
        }
        if let Some((digest, request)) = key {
            self.state.add_key(
                digest,
                KeyEntry {
                    request,
                    first: number,
                    count: 1,
                },
            );
        }
        self.state.add_event(EventRow::Context(context));
        Outcome::Created(Created {
            context,
            head: base,
            head_depth,
            created_at: now,
            replayed: false,
        })
    }

    fn append(
        &mut self,
        now: Timestamp,
        parts: &[Part],
        places: &[Place],
        key: Option<(KeyDigest, u64)>,
    ) -> Outcome {
        let first = self.state.turns.len() + 1;
        let mut turns = Vec::with_capacity(parts.iter().map(|part| part.turns.len()).sum());
        for (part, place) in parts.iter().zip(places) {
            let mut place = *place;
            if part.placed {
                self.learn_depth(place);
            }
            for turn in &part.turns {
                let appended = self.add_turn(now, part.context, place, turn);
                place = Place {
                    parent: Some(appended.turn),
                    depth: place.depth.saturating_add(1),
                };
                turns.push(appended);
            }
            if let Some(head) = place.parent {
                self.state.set_head(part.context, head);
                self.touched.heads.insert(part.context);
            }
        }
        if let Some((digest, request)) = key {
            self.state.add_key(
                digest,
                KeyEntry {
                    request,
                    first,
                    count: turn_count(turns.len()),
                },
            );
        }
        Outcome::Appended(Appended {
            turns,
            replayed: false,
        })
    }

    /// A turn that was put under a lost one tells how deep that one was.
    fn learn_depth(&mut self, place: Place) {
        if let (Some(parent), Some(depth)) = (place.parent, place.depth.checked_sub(1))
            && let Some(row) = self.state.turn(parent).filter(|row| row.lost)
        {
            self.state.set_turn(parent, TurnRow { depth, ..row });
            self.touched.lost_turns.insert(parent);
        }
    }

    fn add_turn(
        &mut self,
        now: Timestamp,
        context: ContextId,
        place: Place,
        turn: &TurnRecord,
    ) -> AppendedTurn {
        let id = TurnId::new(self.state.turns.len() + 1).expect("a length plus one is not zero");
        let declared = self.intern(&turn.declared, turn.encoding);
        self.state.push_turn(TurnRow {
            parent: place.parent,
            context: context.get(),
            depth: place.depth,
            declared,
            blob: self.blob_row(turn.payload),
            has_fs_root: false,
            lost: false,
            created_at: now,
            jump: walk::jump_of(&self.state, id, place.parent),
        });
        if let Some(root) = turn.fs_root {
            let row = self.blob_row(BlobName {
                hash: root,
                in_frame: None,
            });
            self.state.add_fs_root(id, row);
        }
        self.state.add_event(EventRow::Turn(id));
        let (parent, depth, hash) = (place.parent, place.depth, turn.payload.hash);
        AppendedTurn {
            context,
            turn: id,
            parent,
            depth,
            hash,
            created_at: now,
        }
    }

    fn blob_row(&self, name: BlobName) -> u64 {
        let in_frame = name
            .in_frame
            .and_then(|at| self.frame_blobs.get(at as usize).copied());
        let row = in_frame.or_else(|| self.state.find_blob(&name.hash));
        // A blob that only a damaged frame held: its turns stay, and reading them names the loss.
        row.unwrap_or_else(|| self.state.add_missing_blob(name.hash))
    }

    fn intern(&mut self, turn_type: &turnkeep_types::TypeRef, encoding: u32) -> u32 {
        let is_it =
            |declared: &Declared| declared.turn_type == *turn_type && declared.encoding == encoding;
        if self
            .state
            .declared
            .get(self.last_interned.into())
            .is_some_and(is_it)
        {
            return self.last_interned;
        }
        self.last_interned = self.look_up_type(turn_type, encoding);
        self.last_interned
    }

    fn look_up_type(&mut self, turn_type: &turnkeep_types::TypeRef, encoding: u32) -> u32 {
        let declared = Declared {
            turn_type: turn_type.clone(),
            encoding,
        };
        if let Some(&number) = self.interned.get(&declared) {
            return number;
        }
        let number = self.state.declared.push(declared.clone());
        let number = u32::try_from(number).expect("lists are shorter than 2^32");
        self.interned.insert(declared, number);
        number
    }

    fn attach(&mut self, turn: TurnId, root: BlobName) -> Outcome {
        self.state.add_fs_root(turn, self.blob_row(root));
        self.state.add_event(EventRow::Fs(turn));
        Outcome::FsAttached
    }

    /// A frame brings the blob that it puts. After a repair it may not: then the blob is known as
    /// lost.
    fn put_blob(&mut self, blob: BlobName) -> Outcome {
        if blob.in_frame.is_none() {
            self.blob_row(blob);
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
        self.touched.labels.insert(context);
        Outcome::LabelsSet
    }

    /// Keeps the ids of what was lost, so that all others keep theirs and none is given twice. With
    /// `in_feed` each has its place in the feed as well, where readers are told of the loss.
    fn lose(&mut self, now: Timestamp, turns: u64, contexts: u64, in_feed: bool) -> Outcome {
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
                jump: self.state.turns.len() + 1,
            };
            self.state.push_turn(row);
            if let Some(turn) = TurnId::new(self.state.turns.len()).filter(|_| in_feed) {
                self.state.add_event(EventRow::Turn(turn));
            }
        }
        Outcome::Lost
    }

    /// Keeps the name of a filesystem root whose tree is gone, so that reading it tells the loss.
    fn lose_root(&mut self, turn: TurnId, root: BlobHash, attached: bool) -> Outcome {
        let row = self.blob_row(BlobName {
            hash: root,
            in_frame: None,
        });
        self.state.add_fs_root(turn, row);
        if attached {
            self.state.add_event(EventRow::Fs(turn));
        }
        Outcome::FsAttached
    }
}

/// The answer to a command that changes nothing.
pub(crate) fn answer(state: &State, settled: Settled) -> Result<Outcome, Refusal> {
    match settled {
        Settled::Refused(refusal) => Err(refusal),
        Settled::CreatedBefore(entry) => Ok(created_before(state, entry)),
        Settled::AppendedBefore(entry) => Ok(appended_before(state, entry)),
        Settled::BlobThere => Ok(Outcome::BlobPut { was_new: false }),
        Settled::FsRootThere => Ok(Outcome::FsAttached),
        Settled::BundleThere => Ok(Outcome::BundlePut { was_new: false }),
    }
}

fn created_before(state: &State, entry: KeyEntry) -> Outcome {
    let context = ContextId::new(entry.first).expect("a key stands for a real context");
    let [_, created_at, base] = state.contexts.get(entry.first - 1).unwrap_or_default();
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

fn appended_before(state: &State, entry: KeyEntry) -> Outcome {
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
