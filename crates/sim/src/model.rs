//! The reference model: the documented effect of each command, on plain vectors and maps.
//!
//! It holds a [`Snapshot`] of the visible state and the idempotency keys, which only a repeated
//! command reveals. It has no log, no groups and no index. If a command breaks several rules at
//! once, the store may name any of them, so the model returns all of them.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use turnkeep_store::command::AppendedTurn;
use turnkeep_store::{
    Append, AppendPart, Appended, Command, CreateContext, Created, EventKind, Labels, NewBlob,
    NewTurn, Outcome, Refusal,
};
use turnkeep_types::{BlobHash, ContextId, Timestamp, TurnId, TypeRef};

use crate::snapshot::{Snapshot, VisibleContext, VisibleTurn};

/// The reference model.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// The state that a reader sees.
    pub visible: Snapshot,
    append_keys: BTreeMap<(ContextId, Vec<u8>), (AppendRequest, Vec<AppendedTurn>)>,
    create_keys: BTreeMap<Vec<u8>, (CreateRequest, Created)>,
    types: BTreeSet<TypeRef>,
}

/// The parts of a creation that a repeat must have in common with it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CreateRequest {
    base: Option<TurnId>,
    labels: Labels,
}

/// The parts of an append that a repeat must have in common with it.
type AppendRequest = Vec<PartRequest>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct PartRequest {
    context: ContextId,
    parent: Option<TurnId>,
    turns: Vec<TurnRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TurnRequest {
    hash: BlobHash,
    declared: TypeRef,
    encoding: u32,
    fs_root: Option<BlobHash>,
}

/// The required result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It succeeds.
    Done(Outcome, Effect),
    /// It is rejected for one of these reasons.
    Refused(Vec<Refusal>),
    /// The bundle is rejected.
    BundleRefused,
}

/// Whether a command that succeeded changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It changed the state.
    Changed,
    /// It repeated an earlier command.
    Nothing,
}

impl Answer {
    /// Whether the store's reply is the required one.
    pub fn agrees_with(&self, given: &Result<Outcome, Refusal>) -> bool {
        match (self, given) {
            (Self::Done(expected, _), Ok(outcome)) => expected == outcome,
            (Self::Refused(reasons), Err(refusal)) => reasons.contains(refusal),
            (Self::BundleRefused, Err(Refusal::Bundle(_))) => true,
            _ => false,
        }
    }

    /// Whether the command changed something.
    pub fn changed(&self) -> bool {
        matches!(self, Self::Done(_, Effect::Changed))
    }
}

impl Model {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies a command. `stamp` is the time of its batch, which the writer chooses.
    pub fn apply(&mut self, stamp: Timestamp, command: &Command) -> Answer {
        match command {
            Command::CreateContext(create) => self.create_context(stamp, create),
            Command::Append(append) => self.append_turns(stamp, append),
            Command::AttachFs { turn, root } => self.attach_fs(*turn, *root),
            Command::PutBlob(blob) => self.put_blob(blob),
            Command::PutBundle { id, json } => self.put_bundle(id, json),
            Command::SetLabels { context, labels } => self.set_labels(*context, labels),
        }
    }

    fn create_context(&mut self, created_at: Timestamp, create: &CreateContext) -> Answer {
        let request = CreateRequest {
            base: create.base,
            labels: create.labels.clone(),
        };
        let key = create.key.as_ref().map(|key| key.as_bytes().to_vec());
        if let Some((before, created)) = key.as_ref().and_then(|key| self.create_keys.get(key)) {
            return if *before == request {
                done_before(Outcome::Created(Created {
                    replayed: true,
                    ..created.clone()
                }))
            } else {
                refused(Refusal::KeyReused)
            };
        }
        let head_depth = match create.base {
            None => 0,
            Some(turn) => match self.visible.turn(turn) {
                None => return refused(Refusal::UnknownTurn(turn)),
                Some(facts) => facts.depth,
            },
        };
        let context = context_id(self.visible.contexts.len() + 1);
        let CreateRequest { base: head, labels } = request.clone();
        self.visible.contexts.push(VisibleContext {
            head,
            head_depth,
            created_at,
            labels,
        });
        self.visible.events.push(EventKind::ContextCreated(context));
        let created = Created {
            context,
            head,
            head_depth,
            created_at,
            replayed: false,
        };
        if let Some(key) = key {
            self.create_keys.insert(key, (request, created.clone()));
        }
        done(Outcome::Created(created))
    }

    fn append_turns(&mut self, created_at: Timestamp, append: &Append) -> Answer {
        let request: AppendRequest = append.parts.iter().map(part_request).collect();
        let scope = append.parts.first().map(|part| part.context);
        let key = scope
            .zip(append.key.as_ref())
            .map(|(scope, key)| (scope, key.as_bytes().to_vec()));
        if let Some((before, turns)) = key.as_ref().and_then(|key| self.append_keys.get(key)) {
            return if *before == request {
                done_before(Outcome::Appended(Appended {
                    turns: turns.clone(),
                    replayed: true,
                }))
            } else {
                refused(Refusal::KeyReused)
            };
        }
        // On a copy, because an append of several parts takes effect completely or not at all, and a
        // later part may depend on an earlier one.
        let mut next = self.clone();
        let mut rejections = self.rejections_by_turns(append);
        let mut turns = Vec::new();
        for part in &append.parts {
            let misplaced = next.rejections_by_place(part);
            if misplaced.is_empty() {
                next.add_part(created_at, part, &mut turns);
            }
            rejections.extend(misplaced);
        }
        if !rejections.is_empty() {
            return Answer::Refused(rejections);
        }
        if let Some(key) = key {
            next.append_keys.insert(key, (request, turns.clone()));
        }
        *self = next;
        done(Outcome::Appended(Appended {
            turns,
            replayed: false,
        }))
    }

    fn rejections_by_turns(&self, append: &Append) -> Vec<Refusal> {
        let turns = || append.parts.iter().flat_map(|part| &part.turns);
        let roots = turns()
            .filter_map(|turn| turn.fs_root)
            .filter(|root| !self.visible.blobs.contains_key(root));
        let unknown = turns().filter(|turn| append.strict && !self.types.contains(&turn.declared));
        let unknown = unknown.map(|turn| Refusal::UnknownType(turn.declared.clone()));
        roots.map(Refusal::UnknownBlob).chain(unknown).collect()
    }

    fn rejections_by_place(&self, part: &AppendPart) -> Vec<Refusal> {
        let context = part.context;
        let Some(facts) = self.visible.context(context) else {
            return vec![Refusal::UnknownContext(context)];
        };
        let actual = facts.head;
        let moved = part.expected_head.filter(|&expected| expected != actual);
        let moved = moved.map(|expected| Refusal::HeadMoved {
            context,
            expected,
            actual,
        });
        let orphan = part
            .parent
            .filter(|&parent| self.visible.turn(parent).is_none())
            .map(Refusal::UnknownTurn);
        moved.into_iter().chain(orphan).collect()
    }

    fn add_part(&mut self, created_at: Timestamp, part: &AppendPart, made: &mut Vec<AppendedTurn>) {
        let head = self
            .visible
            .context(part.context)
            .and_then(|context| context.head);
        let mut parent = part.parent.or(head);
        for turn in &part.turns {
            let depth = parent
                .and_then(|parent| self.visible.turn(parent))
                .map_or(0, |parent| parent.depth + 1);
            let id = turn_id(self.visible.turns.len() + 1);
            self.add_turn(id, part.context, (parent, depth), created_at, turn);
            let hash = turn.payload.hash();
            made.push(AppendedTurn {
                context: part.context,
                turn: id,
                parent,
                depth,
                hash,
                created_at,
            });
            self.move_head(part.context, id, depth);
            parent = Some(id);
        }
    }

    fn add_turn(
        &mut self,
        id: TurnId,
        context: ContextId,
        (parent, depth): (Option<TurnId>, u32),
        created_at: Timestamp,
        turn: &NewTurn,
    ) {
        let (hash, raw_len) = (turn.payload.hash(), turn.payload.raw_len());
        self.visible.blobs.insert(hash, raw_len);
        self.visible.turns.push(VisibleTurn {
            parent,
            depth,
            context,
            declared: turn.declared.clone(),
            encoding: turn.encoding,
            hash,
            raw_len,
            created_at,
            fs_root: turn.fs_root,
        });
        self.visible.events.push(EventKind::TurnAppended(id));
    }

    fn move_head(&mut self, context: ContextId, head: TurnId, depth: u32) {
        let row = usize::try_from(context.get() - 1).ok();
        if let Some(facts) = row.and_then(|row| self.visible.contexts.get_mut(row)) {
            facts.head = Some(head);
            facts.head_depth = depth;
        }
    }

    fn attach_fs(&mut self, turn: TurnId, root: BlobHash) -> Answer {
        let known = self.visible.blobs.contains_key(&root);
        let row = usize::try_from(turn.get() - 1).ok();
        let facts = row.and_then(|row| self.visible.turns.get_mut(row));
        let mut rejections = Vec::new();
        rejections.extend(facts.is_none().then_some(Refusal::UnknownTurn(turn)));
        rejections.extend((!known).then_some(Refusal::UnknownBlob(root)));
        let Some(facts) = facts.filter(|_| rejections.is_empty()) else {
            return Answer::Refused(rejections);
        };
        match facts.fs_root {
            Some(actual) if actual == root => done_before(Outcome::FsAttached),
            Some(actual) => refused(Refusal::FsRootSet { turn, actual }),
            None => {
                facts.fs_root = Some(root);
                self.visible.events.push(EventKind::FsAttached(turn));
                done(Outcome::FsAttached)
            }
        }
    }

    fn put_blob(&mut self, blob: &NewBlob) -> Answer {
        if self
            .visible
            .blobs
            .insert(blob.hash(), blob.raw_len())
            .is_some()
        {
            return done_before(Outcome::BlobPut { was_new: false });
        }
        done(Outcome::BlobPut { was_new: true })
    }

    /// Applies a bundle. The registry's rules have tests of their own; here only ids conflict.
    fn put_bundle(&mut self, id: &str, json: &Bytes) -> Answer {
        let content = |json: &Bytes| serde_json::from_slice::<serde_json::Value>(json).ok();
        if let Some(before) = self.visible.bundles.get(id) {
            let same = content(before) == content(json);
            return if same {
                done_before(Outcome::BundlePut { was_new: false })
            } else {
                Answer::BundleRefused
            };
        }
        self.types
            .extend(content(json).iter().flat_map(bundle_types));
        self.visible.bundles.insert(id.to_owned(), json.clone());
        self.visible.events.push(EventKind::RegistryPut(id.into()));
        done(Outcome::BundlePut { was_new: true })
    }

    fn set_labels(&mut self, context: ContextId, labels: &Labels) -> Answer {
        let row = usize::try_from(context.get() - 1).ok();
        match row.and_then(|row| self.visible.contexts.get_mut(row)) {
            None => refused(Refusal::UnknownContext(context)),
            Some(facts) => {
                facts.labels.clone_from(labels);
                done(Outcome::LabelsSet)
            }
        }
    }
}

fn done(outcome: Outcome) -> Answer {
    Answer::Done(outcome, Effect::Changed)
}

fn done_before(outcome: Outcome) -> Answer {
    Answer::Done(outcome, Effect::Nothing)
}

fn refused(refusal: Refusal) -> Answer {
    Answer::Refused(vec![refusal])
}

fn part_request(part: &AppendPart) -> PartRequest {
    let turn = |turn: &NewTurn| TurnRequest {
        hash: turn.payload.hash(),
        declared: turn.declared.clone(),
        encoding: turn.encoding,
        fs_root: turn.fs_root,
    };
    PartRequest {
        context: part.context,
        parent: part.parent,
        turns: part.turns.iter().map(turn).collect(),
    }
}

fn bundle_types(bundle: &serde_json::Value) -> Vec<TypeRef> {
    let types = bundle["types"].as_object().into_iter().flatten();
    let versions = types.flat_map(|(id, body)| {
        let versions = body["versions"].as_object().into_iter().flatten();
        versions.filter_map(|(version, _)| Some(TypeRef::new(id.as_str(), version.parse().ok()?)))
    });
    versions.collect()
}

fn turn_id(number: usize) -> TurnId {
    TurnId::new(number as u64).expect("a length plus one is not zero")
}

fn context_id(number: usize) -> ContextId {
    ContextId::new(number as u64).expect("a length plus one is not zero")
}
