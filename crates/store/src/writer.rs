//! The writer: decides what is logged, applies what is durable, answers whoever asked.
//!
//! It runs on the journal's committer thread, one group at a time. A command that the state plus
//! the batch so far accepts is logged. One that they refuse, or find done already, is answered at
//! once if the durable state alone says the same; otherwise the answer hangs on a batch that may
//! still fail, so the command waits for the next group, and with it every later command to the same
//! contexts.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use smallvec::smallvec;
use turnkeep_journal::{
    AppendError, Appended, Batch, BlobRecord, LogReader, Machine, Position, Stamp,
};
use turnkeep_types::{BlobHash, Clock, Timestamp};

use crate::acknowledged::{Acknowledged, Keeper};
use crate::apply::{Applier, answer};
use crate::blob::NewBlob;
use crate::checkpoint::Checkpointer;
use crate::command::{Append, AppendPart, Command, Outcome, Refusal};
use crate::decide::{Decision, Plan, decide};
use crate::overlay::{Overlay, Pending};
use crate::record::{BlobName, Few, Part, Record, TurnRecord};
use crate::registry::ParsedBundle;
use crate::state::BlobRow;

/// Called once with what came of a command.
pub(crate) type Reply = Box<dyn FnOnce(Result<Outcome, Refusal>) + Send>;

/// Called with the last event's position after every commit.
pub(crate) type CommitHook = Box<dyn Fn(u64) + Send + Sync>;

/// A command on its way to the log.
pub(crate) struct Submission {
    record: Record,
    /// The payloads of the record's turns in order, or the blob to put.
    blobs: Few<NewBlob>,
    reply: Reply,
}

impl Submission {
    /// Prepares a command on the submitter's thread. One that can be refused without the state is
    /// answered here.
    pub(crate) fn new(command: Command, reply: Reply) -> Option<Self> {
        match split(command) {
            Ok((record, blobs)) => Some(Self {
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

/// What the writer has done since it started.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) groups: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) poisoned: AtomicBool,
}

/// See the module.
pub(crate) struct Writer {
    applier: Applier,
    clock: Arc<dyn Clock>,
    hook: Arc<OnceLock<CommitHook>>,
    counters: Arc<Counters>,
    checkpointer: Checkpointer,
    acknowledged: Keeper,
    store_id: [u8; 16],
    log: LogReader,
    /// The current group: its stamp, what it will add, and who waits for it.
    stamp: Timestamp,
    overlay: Overlay,
    pending: Vec<(Record, Plan, Reply)>,
    /// Whether the group brings a blob that the state has: in place of a damaged copy.
    replaces: bool,
    body: Vec<u8>,
}

/// What a writer works with.
pub(crate) struct Parts {
    pub(crate) applier: Applier,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hook: Arc<OnceLock<CommitHook>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) acknowledged: Keeper,
    pub(crate) store_id: [u8; 16],
    pub(crate) log: LogReader,
}

impl Machine for Writer {
    type Input = Submission;

    fn begin(&mut self) -> Stamp {
        let state = &self.applier.state;
        let last = state.last_stamp.load(Relaxed);
        self.stamp = self.clock.now().max(Timestamp(last));
        Stamp {
            created_at: self.stamp,
            marks: [state.turns.len(), state.contexts.len()],
        }
    }

    fn admit(&mut self, mut submission: Submission, batch: &mut Batch) -> Option<Submission> {
        if self.overlay.holds(&submission.record) {
            self.overlay.hold(&submission.record);
            return Some(submission);
        }
        if let Record::PutBlob { blob } = &mut submission.record
            && self.is_damaged(&blob.hash)
        {
            // As if the frame brought a new blob, which it will.
            blob.in_frame = Some(0);
        }
        let state = &*self.applier.state;
        match decide(
            &Pending {
                state,
                overlay: &self.overlay,
            },
            &submission.record,
        ) {
            Decision::Do(plan) => self.log(submission, plan, batch),
            Decision::Settled(settled) => {
                let certain = batch.is_empty()
                    || matches!(decide(state, &submission.record), Decision::Settled(s) if s == settled);
                if !certain {
                    self.overlay.hold(&submission.record);
                    return Some(submission);
                }
                (submission.reply)(answer(state, settled));
            }
        }
        None
    }

    fn commit(&mut self, appended: &Appended, batch: &Batch) {
        let blobs = batch
            .blobs()
            .iter()
            .zip(&appended.locators)
            .map(|(blob, &locator)| BlobRow {
                hash: blob.hash,
                locator,
                raw_len: blob.raw_len,
                crc: blob.crc,
                stored_len: blob.stored_len(),
                form: blob.form,
            });
        if std::mem::take(&mut self.replaces) {
            self.applier.begin_frame(self.stamp, blobs);
        } else {
            self.applier.begin_frame_of_new(self.stamp, blobs);
        }
        let mut answers = Vec::with_capacity(self.pending.len());
        for (record, plan, reply) in self.pending.drain(..) {
            answers.push((reply, self.applier.apply_decided(self.stamp, &record, plan)));
        }
        self.note_acknowledged(appended.position);
        self.overlay.clear();
        self.counters.groups.fetch_add(1, Relaxed);
        self.counters
            .commands
            .fetch_add(answers.len() as u64, Relaxed);
        if let Some(hook) = self.hook.get() {
            hook(self.applier.state.events.len());
        }
        // Newest first: whoever waits for the oldest of its answers finds all of them when it
        // wakes.
        for (reply, outcome) in answers.into_iter().rev() {
            reply(Ok(outcome));
        }
    }

    fn abort(&mut self, error: &AppendError) {
        self.counters
            .poisoned
            .fetch_or(matches!(error, AppendError::Poisoned(_)), Relaxed);
        self.overlay.clear();
        self.replaces = false;
        for (.., reply) in self.pending.drain(..).rev() {
            reply(Err(match error {
                AppendError::NoSpace { needed_bytes } => Refusal::NoSpace {
                    needed_bytes: *needed_bytes,
                },
                AppendError::Poisoned(why) => Refusal::Poisoned(why.clone()),
            }));
        }
    }

    fn poisoned(&mut self, _error: &AppendError) {
        self.counters.poisoned.store(true, Relaxed);
    }

    fn idle(&mut self) {
        self.checkpointer.consider(&mut self.applier);
    }

    fn finish(&mut self) {
        self.checkpointer.finish(&mut self.applier);
    }
}

impl Writer {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
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
            stamp: Timestamp::default(),
            overlay: Overlay::default(),
            pending: Vec::new(),
            replaces: false,
            body: Vec::new(),
        }
    }

    /// Writes down what the answers will say, before any of them is given.
    fn note_acknowledged(&mut self, position: Position) {
        let durable = self.log.last_durable().min(position);
        self.acknowledged.note(&Acknowledged::now(
            self.store_id,
            &self.applier.state,
            position,
            durable,
        ));
    }

    fn log(&mut self, submission: Submission, plan: Plan, batch: &mut Batch) {
        let Submission {
            mut record,
            blobs,
            reply,
        } = submission;
        resolve(&mut record, &plan);
        self.bring_all(&mut record, blobs, batch);
        self.overlay.absorb(&self.applier.state, &record, &plan);
        self.body.clear();
        let tag = record.encode(&mut self.body);
        batch.push_command(tag.kind, tag.version, &self.body);
        self.pending.push((record, plan, reply));
    }

    /// Adds to the batch what it needs of the blobs that the record names, in the record's order.
    fn bring_all(&mut self, record: &mut Record, blobs: Few<NewBlob>, batch: &mut Batch) {
        let mut blobs = blobs.into_iter();
        let mut bring = |name: &mut BlobName| {
            if let Some(blob) = blobs.next() {
                name.in_frame = self.bring(blob, batch);
            }
        };
        match record {
            Record::Append { parts, .. } => {
                let turns = parts.iter_mut().flat_map(|part| &mut part.turns);
                turns.for_each(|turn| bring(&mut turn.payload));
            }
            Record::PutBlob { blob } => bring(blob),
            _ => {}
        }
    }

    /// Whether the store holds a blob, but not its bytes any more: then they are kept anew.
    fn is_damaged(&self, hash: &BlobHash) -> bool {
        let state = &self.applier.state;
        let blob = state.find_blob(hash).and_then(|row| state.blob(row));
        blob.is_some_and(|blob| {
            self.log
                .blob(blob.locator, blob.stored_len, blob.crc)
                .is_err()
        })
    }

    /// Adds a blob to the batch unless the store or the batch has it; its place in the batch if it
    /// is there.
    fn bring(&mut self, blob: NewBlob, batch: &mut Batch) -> Option<u32> {
        if let Some(at) = self.overlay.blob(&blob.hash) {
            return Some(at);
        }
        if self.applier.state.find_blob(&blob.hash).is_some() {
            if !self.is_damaged(&blob.hash) {
                return None;
            }
            self.replaces = true;
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

/// Notes in the record what the plan says about places.
fn resolve(record: &mut Record, plan: &Plan) {
    if let (Record::Append { parts, .. }, Plan::Append { places, .. }) = (record, plan) {
        for (part, place) in parts.iter_mut().zip(places) {
            part.parent = place.parent;
            part.depth = place.depth;
        }
    }
}

/// Parts what is logged as a command from what is logged as blobs.
fn split(command: Command) -> Result<(Record, Few<NewBlob>), Refusal> {
    Ok(match command {
        Command::CreateContext(new) => (
            Record::Create {
                base: new.base,
                labels: new.labels,
                key: new.key,
            },
            Few::new(),
        ),
        Command::Append(append) => split_append(append),
        Command::AttachFs { turn, root } => (Record::AttachFs { turn, root }, Few::new()),
        Command::PutBlob(blob) => (
            Record::PutBlob {
                blob: name_of(&blob),
            },
            smallvec![blob],
        ),
        Command::PutBundle { id, json } => (parse_bundle(&id, &json)?, Few::new()),
        Command::SetLabels { context, labels } => {
            (Record::SetLabels { context, labels }, Few::new())
        }
    })
}

fn parse_bundle(id: &str, json: &[u8]) -> Result<Record, Refusal> {
    let bundle = ParsedBundle::parse(id, json).map_err(|error| Refusal::Bundle(Arc::new(error)))?;
    Ok(Record::PutBundle { bundle })
}

fn split_append(append: Append) -> (Record, Few<NewBlob>) {
    let mut blobs = Few::new();
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

fn split_part(part: AppendPart, blobs: &mut Few<NewBlob>) -> Part {
    let turns = part.turns.into_iter().map(|turn| {
        let payload = name_of(&turn.payload);
        blobs.push(turn.payload);
        TurnRecord {
            declared: turn.declared,
            encoding: turn.encoding,
            payload,
            fs_root: turn.fs_root,
        }
    });
    Part {
        context: part.context,
        sent_parent: part.parent,
        expected_head: part.expected_head,
        parent: None,
        depth: 0,
        placed: false,
        turns: turns.collect(),
    }
}

fn name_of(blob: &NewBlob) -> BlobName {
    BlobName {
        hash: blob.hash,
        in_frame: None,
    }
}
