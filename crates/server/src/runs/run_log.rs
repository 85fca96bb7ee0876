//! The records of one run in the store.
//!
//! A run owns one context for its events, and one for the transcript of each node. The event with
//! the number `seq` is the turn at depth `seq - 1`, so a page of events is one range read. Labels
//! name the run and the node, and the server finds its runs by them.

use std::cell::Cell;
use std::collections::BTreeMap;

use bytes::Bytes;
use turnkeep_runtime::ids::{NodeId, RunId};
use turnkeep_runtime::{Event, Fact, Run, record};
use turnkeep_store::{
    Append, AppendPart, Appended, Command, Context, CreateContext, Key, Labels, NewBlob, NewTurn,
    Outcome, Store, Turn,
};
use turnkeep_types::{BlobHash, ContextId, TurnId, TypeRef};
use turnkeep_wire::transcript;

use super::error::RunError;
use super::transcript_records;
use crate::durable_state::RecordLog;

/// The label of every context of a run; its value is the run's id.
pub(crate) const RUN_LABEL: &str = "turnkeep.run";
/// The label of a transcript; its value is the node's id.
pub(crate) const NODE_LABEL: &str = "turnkeep.node";
/// The label of a run that was deleted. Its records stay, but nothing loads them.
pub(crate) const DELETED_LABEL: &str = "turnkeep.run.deleted";
/// The label of a fork or an import; its value is the number of events that it has from its origin.
pub(crate) const COPIED_LABEL: &str = "turnkeep.run.copied";
/// The encoding of all records.
const MSGPACK: u32 = 1;
/// The longest record. Long texts are blobs of their own, so only a list can be long.
pub(super) const RECORD_BYTES_MAX: usize = 4 << 20;
/// How many turns are read at once.
const PAGE_TURNS: u32 = 512;
/// About how many bytes of records a reader gets at once.
const READ_BYTES_MAX: usize = 4 << 20;

/// The contexts of a run, and how far its events were read.
#[derive(Debug, Clone)]
pub(crate) struct RunLog {
    events: ContextId,
    head: Option<TurnId>,
    /// How many events were read or appended.
    count: u32,
    transcripts: BTreeMap<NodeId, ContextId>,
}

/// The contexts of a run in the store.
#[derive(Debug, Clone)]
pub(crate) struct FoundRun {
    pub(crate) id: RunId,
    pub(crate) log: RunLog,
    pub(crate) is_deleted: bool,
    /// How many of its events are another run's, which it is a copy of.
    pub(crate) copied_events: usize,
}

/// The command that creates the context of a run's events. The id makes a repeat harmless.
pub(crate) fn create_events(run: RunId) -> Command {
    let mut labels = Labels::new();
    labels.insert(RUN_LABEL.to_owned(), run.to_string());
    create(labels, format!("turnkeep.run:{run}"))
}

/// The command that creates the transcript of a node.
pub(crate) fn create_transcript(run: RunId, node: NodeId) -> Command {
    let mut labels = Labels::new();
    labels.insert(RUN_LABEL.to_owned(), run.to_string());
    labels.insert(NODE_LABEL.to_owned(), node.to_string());
    create(labels, format!("turnkeep.run:{run}:{node}"))
}

/// The command that marks a run as deleted, so that the next start does not read it.
pub(crate) fn label_deleted(run: RunId, events: ContextId) -> Command {
    let mut labels = Labels::new();
    labels.insert(RUN_LABEL.to_owned(), run.to_string());
    labels.insert(DELETED_LABEL.to_owned(), "true".to_owned());
    Command::SetLabels {
        context: events,
        labels,
    }
}

fn create(labels: Labels, key: String) -> Command {
    Command::CreateContext(CreateContext {
        base: None,
        labels,
        key: Key::new(Bytes::from(key)),
    })
}

/// The runs whose contexts are in the store.
pub(crate) fn find_runs(store: &Store) -> Vec<FoundRun> {
    let mut transcripts: BTreeMap<RunId, BTreeMap<NodeId, ContextId>> = BTreeMap::new();
    let mut found = Vec::new();
    for context in store.contexts(None) {
        let Some(run) = label_id(&context, RUN_LABEL) else {
            continue;
        };
        match label_id(&context, NODE_LABEL) {
            Some(node) => {
                let of_run = transcripts.entry(run).or_default();
                // The newest comes first. An older one is left from an import that was cut off.
                of_run.entry(node).or_insert(context.id);
            }
            None => found.push(FoundRun {
                id: run,
                log: RunLog::new(context.id),
                is_deleted: context.labels.contains_key(DELETED_LABEL),
                copied_events: label_id(&context, COPIED_LABEL).unwrap_or(0),
            }),
        }
    }
    for run in &mut found {
        run.log.transcripts = transcripts.remove(&run.id).unwrap_or_default();
    }
    found
}

fn label_id<T: std::str::FromStr>(context: &Context, label: &str) -> Option<T> {
    context.labels.get(label)?.parse().ok()
}

impl RunLog {
    /// Makes a log of which nothing is read yet.
    pub(crate) fn new(events: ContextId) -> Self {
        Self {
            events,
            head: None,
            count: 0,
            transcripts: BTreeMap::new(),
        }
    }

    /// The context of the events.
    pub(crate) fn events(&self) -> ContextId {
        self.events
    }

    /// All contexts of the run.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = ContextId> {
        std::iter::once(self.events).chain(self.transcripts.values().copied())
    }

    /// The transcripts of all nodes that have one.
    pub(super) fn transcripts(&self) -> impl Iterator<Item = (NodeId, ContextId)> {
        let rows = self.transcripts.iter();
        rows.map(|(node, context)| (*node, *context))
    }

    /// The transcript of a node, once something was recorded there.
    pub(crate) fn transcript(&self, node: NodeId) -> Option<ContextId> {
        self.transcripts.get(&node).copied()
    }

    pub(crate) fn add_transcript(&mut self, node: NodeId, context: ContextId) {
        self.transcripts.insert(node, context);
    }

    /// The nodes that these events write transcripts of and that have none yet.
    pub(crate) fn missing_transcripts(&self, events: &[Event]) -> Vec<NodeId> {
        let mut missing: Vec<NodeId> = events
            .iter()
            .flat_map(transcript_records::lines_of)
            .map(|line| line.node)
            .filter(|node| !self.transcripts.contains_key(node))
            .collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    fn event_part(&self, store: &Store, events: &[Event]) -> Result<AppendPart, RunError> {
        let mut turns = Vec::with_capacity(events.len());
        for event in events {
            let payload = record::encode(event).payload;
            turns.push(NewTurn {
                fs_root: filesystem_root(store, event),
                ..new_turn(record::event_type(), payload)?
            });
        }
        Ok(AppendPart {
            context: self.events,
            parent: None,
            // Every decision was made at this head. Transcripts are written only beside events, so
            // their heads need no guard.
            expected_head: Some(self.head),
            turns,
        })
    }

    fn transcript_parts(&self, events: &[Event]) -> Result<Vec<AppendPart>, RunError> {
        let mut by_context: BTreeMap<ContextId, Vec<NewTurn>> = BTreeMap::new();
        for line in events.iter().flat_map(transcript_records::lines_of) {
            if let Some(context) = self.transcript(line.node) {
                let encoded = transcript::encode_item(&line.item);
                let turns = by_context.entry(context).or_default();
                turns.push(new_turn(encoded.declared, encoded.payload)?);
            }
        }
        let part = |(context, turns)| AppendPart {
            context,
            parent: None,
            expected_head: None,
            turns,
        };
        Ok(by_context.into_iter().map(part).collect())
    }
}

/// The files of a workspace outside git after the turn whose diff this is. In a repository the tree is
/// git's, and the store does not have it.
fn filesystem_root(store: &Store, event: &Event) -> Option<BlobHash> {
    let Fact::ArtifactCreated(artifact) = &event.fact else {
        return None;
    };
    let tree = artifact.diff.as_ref()?.head_tree.parse().ok()?;
    store.has_blob(tree).map(|_| tree)
}

pub(super) fn new_turn(declared: TypeRef, payload: Bytes) -> Result<NewTurn, RunError> {
    let bytes = payload.len();
    let payload =
        NewBlob::from_raw(payload, RECORD_BYTES_MAX).map_err(|_| RunError::TooLarge { bytes })?;
    Ok(NewTurn {
        declared,
        encoding: MSGPACK,
        payload,
        fs_root: None,
    })
}

/// Reads events by their numbers, from `first` on, at most `limit` of them.
pub(crate) fn read_events(
    store: &Store,
    context: ContextId,
    first: u64,
    limit: usize,
) -> Result<Vec<Event>, RunError> {
    let turns = find_turns(store, context, first, limit)?;
    turns.iter().map(|turn| read_event(store, turn)).collect()
}

/// Like [`read_events`], but stops after about [`READ_BYTES_MAX`], so that long texts do not fill the
/// memory. At least one event is read if there is one.
pub(crate) fn read_some_events(
    store: &Store,
    context: ContextId,
    first: u64,
    limit: usize,
) -> Result<Vec<Event>, RunError> {
    let mut events = Vec::new();
    let mut bytes = 0;
    for turn in &find_turns(store, context, first, limit)? {
        let mut text_bytes = 0;
        events.push(read_counted_event(store, turn, &mut text_bytes)?);
        bytes += turn.raw_len as usize + text_bytes;
        if bytes >= READ_BYTES_MAX {
            break;
        }
    }
    Ok(events)
}

fn find_turns(
    store: &Store,
    context: ContextId,
    first: u64,
    limit: usize,
) -> Result<Vec<Turn>, RunError> {
    match u32::try_from(first.saturating_sub(1)) {
        Ok(depth) => Ok(store.range(context, depth, limit)?),
        // A context cannot have so many turns.
        Err(_) => Ok(Vec::new()),
    }
}

fn read_event(store: &Store, turn: &Turn) -> Result<Event, RunError> {
    read_counted_event(store, turn, &mut 0)
}

/// Reads an event and adds the length of its long texts.
fn read_counted_event(
    store: &Store,
    turn: &Turn,
    text_bytes: &mut usize,
) -> Result<Event, RunError> {
    let payload = store.payload(turn)?;
    let raw = payload.raw()?;
    let found_bytes = Cell::new(0);
    let blob = |hash: &BlobHash| {
        let text = store.blob(*hash).ok()?.into_raw_bytes().ok()?;
        found_bytes.set(found_bytes.get() + text.len());
        Some(text)
    };
    let event = record::decode(&raw, &blob).map_err(|error| RunError::Record {
        turn: turn.id,
        error,
    })?;
    *text_bytes += found_bytes.get();
    Ok(event)
}

impl RecordLog for RunLog {
    type State = Run;
    type Fact = Event;
    type Error = RunError;

    fn append_command(&self, store: &Store, events: &[Event]) -> Result<Option<Command>, RunError> {
        if events.is_empty() {
            return Ok(None);
        }
        let mut parts = vec![self.event_part(store, events)?];
        parts.extend(self.transcript_parts(events)?);
        Ok(Some(Command::Append(Append {
            parts,
            // A repeated request is recognized by the key in its first event.
            key: None,
            strict: false,
        })))
    }

    fn record_appended(&mut self, appended: &Appended) {
        for row in &appended.turns {
            if row.context == self.events {
                self.head = Some(row.turn);
                self.count = row.depth + 1;
            }
        }
    }

    fn read_new_facts(&mut self, store: &Store) -> Result<Vec<Event>, RunError> {
        let context = store.context(self.events)?;
        let Some(head) = context.head else {
            return Ok(Vec::new());
        };
        let end = context.head_depth + 1;
        let mut events = Vec::new();
        while self.count < end {
            let limit = PAGE_TURNS.min(end - self.count);
            let first = u64::from(self.count) + 1;
            events.append(&mut read_events(store, self.events, first, limit as usize)?);
            self.count += limit;
        }
        self.head = Some(head);
        Ok(events)
    }

    fn apply(run: &mut Run, event: Event) {
        run.apply(&event);
    }

    fn unexpected_outcome(outcome: &Outcome) -> RunError {
        RunError::Abandoned(format!("an append ended as {outcome:?}"))
    }
}
