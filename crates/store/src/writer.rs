//! The writer: decides which commands to log, applies the durable ones and sends every reply.
//!
//! It runs on the journal's committer thread and handles one group of commands at a time. All
//! commands of a group share one frame and one sync. `admit` decides a command against the durable
//! state plus the commands that the group already holds (the overlay), and adds it to the batch.
//!
//! A command that changes nothing (a rejection or a duplicate) is not logged. Its reply may depend
//! on the batch, and the batch may still fail. Worked example: context 1 is empty, and one group
//! receives
//!
//! 1. append A with key `k`: the writer adds it to the batch;
//! 2. the same append A with key `k`: only the overlay knows that `k` is used. If the writer
//!    replied now and the sync failed, the reply would name a turn that does not exist. The writer
//!    holds the command back for the next group, which decides it against a durable state;
//! 3. append B to context 1: it must stay behind command 2, so the writer holds it back as well;
//! 4. append C to the unknown context 9: the durable state alone rejects it, so the writer replies
//!    at once.
//!
//! A failed sync rejects every command of the group and poisons the log until the store is
//! reopened.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use smallvec::smallvec;
use turnkeep_journal::{
    AppendError, Appended, Batch, BlobRecord, LogReader, Position, Stamp, StateMachine,
};
use turnkeep_types::{BlobHash, Clock, Timestamp};

use crate::acknowledged::{Acknowledged, AcknowledgedFile};
use crate::apply::{Applier, answer_unchanged};
use crate::blob::NewBlob;
use crate::checkpoint::Checkpointer;
use crate::command::{Append, AppendPart, Command, Outcome, Refusal};
use crate::decide::{Decision, KeyUse, Plan, decide};
use crate::overlay::{Overlay, PendingState};
use crate::record::{BlobName, InlineVec, PartRecord, Record, TurnRecord};
use crate::registry::ParsedBundle;
use crate::state::BlobRow;

/// Receives the result of one command, exactly once.
pub(crate) type Reply = Box<dyn FnOnce(Result<Outcome, Refusal>) + Send>;

/// Called with the last event's position after every commit.
pub(crate) type CommitHook = Box<dyn Fn(u64) + Send + Sync>;

/// A command on its way to the log.
pub(crate) struct Submission {
    record: Record,
    /// Computed by the submitter: hashing on the writer's thread would delay everybody.
    key: Option<KeyUse>,
    /// The payloads of the record's turns in order, or the blob to put.
    blobs: InlineVec<NewBlob>,
    reply: Reply,
}

impl Submission {
    /// Prepares a command on the submitter's thread. If the command is invalid whatever the state
    /// holds, `new` calls `reply` itself and returns `None`.
    pub(crate) fn new(command: Command, reply: Reply) -> Option<Self> {
        match split_command(command) {
            Ok((record, blobs)) => Some(Self {
                key: KeyUse::digest(&record),
                record,
                blobs,
                reply,
            }),
            Err(refusal) => {
                reply(Err(refusal));
                None
            }
        }
    }
}

/// Counts the writer's work since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) groups: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) poisoned: AtomicBool,
}

/// The state machine behind the committer thread.
pub(crate) struct Writer {
    applier: Applier,
    clock: Arc<dyn Clock>,
    hook: Arc<OnceLock<CommitHook>>,
    counters: Arc<Counters>,
    checkpointer: Checkpointer,
    acknowledged: AcknowledgedFile,
    store_id: [u8; 16],
    log: LogReader,
    /// The time of the current group; all of its turns share it.
    group_time: Timestamp,
    /// The changes that the current group will make once it is durable.
    overlay: Overlay,
    /// The commands of the current group, in batch order.
    planned: Vec<PlannedCommand>,
    /// Reused for the encoded body of each record.
    body: Vec<u8>,
}

/// A command that was added to the batch and waits for the sync.
struct PlannedCommand {
    record: Record,
    key: Option<KeyUse>,
    reply: Reply,
}

/// The collaborators of a new writer.
pub(crate) struct WriterParts {
    pub(crate) applier: Applier,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hook: Arc<OnceLock<CommitHook>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) acknowledged: AcknowledgedFile,
    pub(crate) store_id: [u8; 16],
    pub(crate) log: LogReader,
}

impl StateMachine for Writer {
    type Input = Submission;

    fn begin_group(&mut self) -> Stamp {
        let state = &self.applier.state;
        let last = state.last_stamp.load(Relaxed);
        // The clock may have gone back since the last frame. Readers rely on times that ascend.
        self.group_time = self.clock.now().max(Timestamp(last));
        Stamp {
            created_at: self.group_time,
            marks: [state.turns.len(), state.contexts.len()],
        }
    }

    fn admit(&mut self, mut submission: Submission, batch: &mut Batch) -> Option<Submission> {
        // An earlier command to the same context waits for the next group. This one must not
        // overtake it: a client that pipelines two appends expects them in order.
        if self.overlay.is_held_back(&submission.record) {
            self.overlay.hold_back(&submission.record);
            return Some(submission);
        }
        if let Record::PutBlob { blob } = &mut submission.record
            && self.is_damaged(&blob.hash)
        {
            // `decide` would answer "the store has it". A place in the frame makes it decide to
            // write the blob again; `add_blob` sets the real place.
            blob.in_frame = Some(0);
        }
        let state = &*self.applier.state;
        match decide(
            &PendingState {
                state,
                overlay: &self.overlay,
            },
            &submission.record,
            submission.key,
        ) {
            Decision::Change(plan) => self.add_to_batch(submission, &plan, batch),
            Decision::NoChange(reason) => {
                // With an empty batch the overlay adds nothing. Otherwise the reply is safe only if
                // the durable state alone gives the same one: the batch may still fail.
                let is_final = batch.is_empty()
                    || matches!(
                        decide(state, &submission.record, submission.key),
                        Decision::NoChange(again) if again == reason
                    );
                if !is_final {
                    self.overlay.hold_back(&submission.record);
                    return Some(submission);
                }
                (submission.reply)(answer_unchanged(state, reason));
            }
        }
        None
    }

    fn commit_group(&mut self, appended: &Appended, batch: &Batch) {
        self.begin_frame(appended, batch);
        let mut answers = Vec::with_capacity(self.planned.len());
        for planned in self.planned.drain(..) {
            let outcome = self
                .applier
                .apply(self.group_time, &planned.record, planned.key);
            answers.push((planned.reply, outcome));
        }
        // Before the first reply: a crash in between must not leave an acknowledged turn that the
        // next start does not know about.
        self.write_acknowledged(appended.position);
        self.overlay.clear();
        self.counters.groups.fetch_add(1, Relaxed);
        self.counters
            .commands
            .fetch_add(answers.len() as u64, Relaxed);
        if let Some(hook) = self.hook.get() {
            hook(self.applier.state.events.len());
        }
        // Newest first: a client that waits for its oldest reply then wakes once and finds all of
        // its replies.
        for (reply, outcome) in answers.into_iter().rev() {
            reply(outcome);
        }
    }

    fn abort_group(&mut self, error: &AppendError) {
        self.counters
            .poisoned
            .fetch_or(matches!(error, AppendError::Poisoned(_)), Relaxed);
        self.overlay.clear();
        for planned in self.planned.drain(..).rev() {
            // In the same order as the replies of a commit.
            (planned.reply)(Err(match error {
                AppendError::NoSpace { needed_bytes } => Refusal::NoSpace {
                    needed_bytes: *needed_bytes,
                },
                AppendError::Poisoned(why) => Refusal::Poisoned(why.clone()),
            }));
        }
    }

    fn note_failed_sync(&mut self, _error: &AppendError) {
        // The commands of that group have their replies. Only later ones can be rejected.
        self.counters.poisoned.store(true, Relaxed);
    }

    fn run_between_groups(&mut self) {
        self.checkpointer.write_if_due(&mut self.applier);
    }

    fn finish(&mut self) {
        self.checkpointer.finish(&mut self.applier);
    }
}

impl Writer {
    pub(crate) fn new(parts: WriterParts) -> Self {
        let WriterParts {
            applier,
            clock,
            hook,
            counters,
            checkpointer,
            acknowledged,
            store_id,
            log,
        } = parts;
        Self {
            applier,
            clock,
            hook,
            counters,
            checkpointer,
            acknowledged,
            store_id,
            log,
            group_time: Timestamp::default(),
            overlay: Overlay::default(),
            planned: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Adds the blobs of a durable batch to the state.
    fn begin_frame(&mut self, appended: &Appended, batch: &Batch) {
        let placed = batch.blobs().iter().zip(&appended.locators);
        let rows = placed.map(|(blob, &locator)| BlobRow {
            hash: blob.hash,
            locator,
            raw_len: blob.raw_len,
            crc: blob.crc,
            stored_len: blob.stored_len(),
            form: blob.form,
        });
        self.applier.begin_frame(self.group_time, rows);
    }

    /// Writes the position and the ids that the replies of this group will acknowledge.
    fn write_acknowledged(&mut self, position: Position) {
        // Under `--durability os` the log is durable only up to an earlier frame.
        let durable = self.log.last_durable().min(position);
        self.acknowledged.write(&Acknowledged::from_state(
            self.store_id,
            &self.applier.state,
            position,
            durable,
        ));
    }

    fn add_to_batch(&mut self, submission: Submission, plan: &Plan, batch: &mut Batch) {
        let Submission {
            mut record,
            key,
            blobs,
            reply,
        } = submission;
        set_placements(&mut record, plan);
        // Before the record is encoded: it names each blob by its place in the batch.
        self.add_blobs(&mut record, blobs, batch);
        self.overlay.add_planned(&self.applier.state, &record, plan);
        self.body.clear();
        let tag = record.encode(&mut self.body);
        batch.push_command(tag.kind, tag.version, &self.body);
        self.planned.push(PlannedCommand { record, key, reply });
    }

    /// Adds the blobs that the store lacks to the batch and notes their places in the record.
    /// `blobs` has one blob for each blob name of the record, in the record's order.
    fn add_blobs(&mut self, record: &mut Record, blobs: InlineVec<NewBlob>, batch: &mut Batch) {
        let mut names: InlineVec<&mut BlobName> = InlineVec::new();
        match record {
            Record::Append { parts, .. } => {
                for part in parts {
                    names.extend(part.turns.iter_mut().map(|turn| &mut turn.payload));
                }
            }
            Record::PutBlob { blob } => names.push(blob),
            _ => {}
        }
        for (name, blob) in names.into_iter().zip(blobs) {
            name.in_frame = self.add_blob(blob, batch);
        }
    }

    /// Whether the store knows a blob but can no longer read its bytes.
    fn is_damaged(&self, hash: &BlobHash) -> bool {
        let state = &self.applier.state;
        let blob = state.find_blob(hash).and_then(|row| state.blob(row));
        blob.is_some_and(|blob| {
            self.log
                .read_blob(blob.locator, blob.stored_len, blob.crc)
                .is_err()
        })
    }

    /// Adds a blob to the batch unless the store or the batch has it. Returns its place in the
    /// batch, or `None` if the store has it.
    fn add_blob(&mut self, blob: NewBlob, batch: &mut Batch) -> Option<u32> {
        if let Some(at) = self.overlay.blob_place(&blob.hash) {
            return Some(at);
        }
        // A blob that can no longer be read is written again: nothing else heals it.
        if self.applier.state.find_blob(&blob.hash).is_some() && !self.is_damaged(&blob.hash) {
            return None;
        }
        let at = u32::try_from(batch.blobs().len()).expect("a batch is bounded");
        self.overlay.add_blob(blob.hash, at);
        let NewBlob {
            hash,
            raw_len,
            form,
            bytes,
            crc,
            ..
        } = blob;
        batch.push_blob(BlobRecord {
            hash,
            raw_len,
            form,
            crc,
            bytes,
        });
        Some(at)
    }
}

/// Copies the parents and depths of the plan into the record, where `verify` can compare them.
fn set_placements(record: &mut Record, plan: &Plan) {
    if let (Record::Append { parts, .. }, Plan::Append { placements, .. }) = (record, plan) {
        for (part, placement) in parts.iter_mut().zip(placements) {
            part.parent = placement.parent;
            part.depth = placement.depth;
        }
    }
}

/// Separates a command into its log record and its payloads, which the log stores as blobs.
fn split_command(command: Command) -> Result<(Record, InlineVec<NewBlob>), Refusal> {
    Ok(match command {
        Command::CreateContext(new) => (
            Record::Create {
                base: new.base,
                labels: new.labels,
                key: new.key,
            },
            InlineVec::new(),
        ),
        Command::Append(append) => split_append(append),
        Command::AttachFs { turn, root } => (Record::AttachFs { turn, root }, InlineVec::new()),
        Command::PutBlob(blob) => (
            Record::PutBlob {
                blob: BlobName::by_hash(blob.hash),
            },
            smallvec![blob],
        ),
        Command::PutBundle { id, json } => (parse_bundle(&id, &json)?, InlineVec::new()),
        Command::SetLabels { context, labels } => {
            (Record::SetLabels { context, labels }, InlineVec::new())
        }
    })
}

fn parse_bundle(id: &str, json: &[u8]) -> Result<Record, Refusal> {
    let bundle = ParsedBundle::parse(id, json).map_err(|error| Refusal::Bundle(Arc::new(error)))?;
    Ok(Record::PutBundle { bundle })
}

fn split_append(append: Append) -> (Record, InlineVec<NewBlob>) {
    let mut blobs = InlineVec::new();
    let parts = append
        .parts
        .into_iter()
        .map(|part| split_part(part, &mut blobs))
        .collect();
    (
        Record::Append {
            parts,
            key: append.key,
            strict: append.strict,
        },
        blobs,
    )
}

fn split_part(part: AppendPart, blobs: &mut InlineVec<NewBlob>) -> PartRecord {
    let turns = part.turns.into_iter().map(|turn| {
        let payload = BlobName::by_hash(turn.payload.hash);
        blobs.push(turn.payload);
        TurnRecord {
            declared: turn.declared,
            encoding: turn.encoding,
            payload,
            fs_root: turn.fs_root,
        }
    });
    PartRecord {
        context: part.context,
        sent_parent: part.parent,
        expected_head: part.expected_head,
        // `set_placements` fills these in once the writer has decided the command.
        parent: None,
        depth: 0,
        placed: false,
        turns: turns.collect(),
    }
}
