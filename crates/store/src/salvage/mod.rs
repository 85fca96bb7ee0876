//! Verify and repair: walking a whole log, damaged or not, and saying what it still amounts to.
//!
//! Both walk the same way. Sound frames are applied to a state of their own. Where frames are
//! missing, the next sound frame's marks tell how many turns and contexts they held: these ids are
//! kept as lost, so that every other turn keeps its own. A turn whose place would come out
//! differently after a loss is put where the log says that it was. Every payload is hashed. The
//! directory is only read.
//!
//! What an earlier repair kept as lost is lost still: it is named as missing, though the log is
//! intact.

mod missing;
mod repair;

use std::ops::RangeInclusive;
use std::sync::Arc;

use turnkeep_journal::{Damage, Frame, Inspected, Inspection, Locator, Position, Storage, inspect};
use turnkeep_types::{BlobHash, Compression, Timestamp, TurnId};

use crate::acknowledged;
use crate::apply::Applier;
use crate::checkpoint::{self, Known};
use crate::decide::{Decision, Place, Plan, View, decide};
use crate::record::{Part, Record};
use crate::recovery::{blob_row, lost_records, records};
use crate::state::{BlobRow, State};
use crate::store::OpenError;
use crate::unfinished;

pub use missing::{Missing, MissingBlob};
pub use repair::{RepairError, repair};

/// What a walk found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Sound frames.
    pub frames: u64,
    /// Commands in them.
    pub commands: u64,
    /// Turns, lost ones included.
    pub turns: u64,
    /// Contexts, lost ones included.
    pub contexts: u64,
    /// Distinct blobs whose hash holds.
    pub blobs: u64,
    /// Bytes of sound frames.
    pub bytes: u64,
    /// Places where frames are missing or do not belong.
    pub damage: Vec<FrameDamage>,
    /// Payloads whose bytes are not what their hash says.
    pub bad_blobs: Vec<BadBlob>,
    /// Commands that make no sense without what was lost, in words; a repair leaves them out.
    pub dropped: Vec<String>,
    /// What a crash left at the end of the log; the next start cuts it.
    pub torn: Option<Damage>,
    /// Everything that was acked and is gone, whether it was lost now or before an earlier repair.
    pub missing: Missing,
}

impl Report {
    /// Whether everything that was ever acked is there.
    pub fn is_sound(&self) -> bool {
        self.is_intact() && self.missing.is_empty()
    }

    /// Whether the log is as it was written, though it may tell of an earlier loss.
    pub fn is_intact(&self) -> bool {
        self.damage.is_empty() && self.bad_blobs.is_empty()
    }
}

/// Missing frames and what they held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameDamage {
    /// Where, and what is wrong.
    pub place: Damage,
    /// The turns that were in the missing frames, as far as the rest of the log tells.
    pub turns: Option<RangeInclusive<u64>>,
    /// The contexts whose creation was recorded there.
    pub contexts: Option<RangeInclusive<u64>>,
}

/// A damaged payload and what it touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadBlob {
    /// Its name.
    pub hash: BlobHash,
    /// The frame that holds it.
    pub frame: u64,
    /// The file, relative to the data directory.
    pub file: String,
    /// Turns whose payload or filesystem root it is.
    pub turns: Vec<TurnId>,
}

/// Whether somebody may write to the log while it is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// The caller holds the directory's lock, or nobody can write there.
    None,
    /// A server runs. Only what was durable when the walk began is looked at, and `storage` must
    /// copy what it reads ([`FileStorage::copying`](turnkeep_journal::FileStorage::copying)).
    Running,
}

/// Checks a whole log: checksums, chain, every payload's hash, every turn's place. `progress` hears
/// of segments done and in all.
pub fn verify(
    storage: &Arc<dyn Storage>,
    writers: Writers,
    progress: impl FnMut(u64, u64),
) -> Result<Report, OpenError> {
    if unfinished::is_marked(&**storage) {
        return Err(OpenError::Unfinished);
    }
    let mut walk = Walk::new();
    walk.run(storage, writers, progress, |_, _| Ok::<(), OpenError>(()))?;
    Ok(walk.finish())
}

/// One frame of a walk, as it stands after salvage.
pub(crate) struct Salvaged<'a> {
    /// The frame, or none where frames are missing.
    pub(crate) frame: Option<&'a Frame>,
    /// Which of the frame's blobs are sound.
    pub(crate) sound: Vec<bool>,
    /// Its commands, adjusted to what was lost before.
    pub(crate) records: Vec<Record>,
}

impl Salvaged<'_> {
    /// The ids of what is gone, kept.
    fn lost(turns: u64, contexts: u64) -> Self {
        Self {
            frame: None,
            sound: Vec::new(),
            records: lost_records(turns, contexts),
        }
    }
}

/// A sound frame, with the damage before it, until the next one comes.
struct Held {
    frame: Box<Frame>,
    file: String,
    offset: u64,
    damage: Vec<Damage>,
}

impl Held {
    /// Whether this, as the last frame, is what a crash left of a write: not known to be durable,
    /// and not all of its payloads there.
    fn is_half_written(&self, known: &Known) -> bool {
        self.frame.position.0 > known.position && !self.frame.blobs_are_sound()
    }

    fn into_torn(self) -> Damage {
        Damage {
            file: self.file,
            offset: self.offset,
            bytes: self.frame.raw().len() as u64,
            first: self.frame.position,
            resumes_at: Position(0),
            what: "not all of the frame was written".to_owned(),
            at_end: true,
        }
    }
}

pub(crate) struct Walk {
    applier: Applier,
    report: Report,
    /// Damage that waits for the next sound frame to tell what it held.
    open_damage: Vec<Damage>,
    last: Position,
    stamp: Timestamp,
}

impl Walk {
    pub(crate) fn new() -> Self {
        Self {
            applier: Applier::new(Arc::new(State::new())),
            report: Report::default(),
            open_damage: Vec::new(),
            last: Position(0),
            stamp: Timestamp(0),
        }
    }

    pub(crate) fn state(&self) -> &State {
        &self.applier.state
    }

    /// Walks the log and hands every frame on.
    pub(crate) fn run<E: From<OpenError>>(
        &mut self,
        storage: &Arc<dyn Storage>,
        writers: Writers,
        mut progress: impl FnMut(u64, u64),
        mut each: impl FnMut(&Self, Salvaged<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Start {
            mut inspection,
            known,
        } = Start::new(storage, writers).map_err(OpenError::from)?;
        // One frame is held back: whether the last one counts is known only when nothing follows
        // it.
        let mut held = None;
        while let Some(inspected) = inspection.next() {
            let (done, all) = inspection.segments();
            progress(done, all);
            match inspected {
                Inspected::Damage(damage) => self.open_damage.push(damage),
                Inspected::Frame {
                    frame,
                    file,
                    offset,
                } => {
                    let damage = std::mem::take(&mut self.open_damage);
                    let before = held.replace(Held {
                        frame,
                        file,
                        offset,
                        damage,
                    });
                    self.pass(before, &mut each)?;
                }
            }
        }
        let torn = held.take_if(|last| last.is_half_written(&known));
        self.report.torn = torn.map(Held::into_torn);
        self.pass(held, &mut each)?;
        let lost = self.close_end(&known);
        if writers == Writers::Running {
            // Not a crash but the server left it there: a frame that it is writing.
            self.report.torn = None;
        }
        match lost {
            Some(lost) => each(self, lost),
            None => Ok(()),
        }
    }

    /// Hands on a frame that was held back, and before it what is missing there.
    fn pass<E: From<OpenError>>(
        &mut self,
        held: Option<Held>,
        each: &mut impl FnMut(&Self, Salvaged<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(Held {
            frame,
            file,
            damage,
            ..
        }) = held
        else {
            return Ok(());
        };
        if let Some(lost) = self.close_damage(damage, frame.stamp.marks) {
            each(self, lost)?;
        }
        let salvaged = self.take(&frame, &file)?;
        each(self, salvaged)
    }

    /// What the missing frames before a sound one held, by its marks.
    fn close_damage<'a>(
        &mut self,
        damage: Vec<Damage>,
        [turns, contexts]: [u64; 2],
    ) -> Option<Salvaged<'a>> {
        let (before_turns, before_contexts) =
            (self.state().turns.len(), self.state().contexts.len());
        let lost_turns = turns.saturating_sub(before_turns);
        let lost_contexts = contexts.saturating_sub(before_contexts);
        for place in damage {
            let range = |before: u64, lost: u64| (lost > 0).then(|| before + 1..=before + lost);
            let (turns, contexts) = (
                range(before_turns, lost_turns),
                range(before_contexts, lost_contexts),
            );
            self.report.damage.push(FrameDamage {
                place,
                turns,
                contexts,
            });
        }
        let lost = Salvaged::lost(lost_turns, lost_contexts);
        self.applier.begin_frame(self.stamp, std::iter::empty());
        for record in &lost.records {
            drop(self.applier.apply(self.stamp, record));
        }
        (!lost.records.is_empty()).then_some(lost)
    }

    /// What is missing at the end: a torn tail, or what the index knows to have been durable.
    fn close_end<'a>(&mut self, known: &Known) -> Option<Salvaged<'a>> {
        let last = self.last;
        let mut damage = std::mem::take(&mut self.open_damage);
        let torn = damage.pop_if(|place| place.at_end && known.position < place.first.0);
        self.report.torn = torn.or(self.report.torn.take());
        if known.position > last.0 && damage.is_empty() {
            damage.push(missing(last, known.position));
        }
        // Ids that were acked and never became durable are lost without damage.
        self.close_damage(damage, [known.turns, known.contexts])
    }

    fn take<'a>(&mut self, frame: &'a Frame, file: &str) -> Result<Salvaged<'a>, OpenError> {
        self.last = frame.position;
        self.stamp = frame.stamp.created_at;
        self.report.frames += 1;
        self.report.bytes += frame.raw().len() as u64;
        let sound: Vec<bool> = (0..frame.blobs.len())
            .map(|at| is_sound(frame, at))
            .collect();
        for (blob, _) in frame.blobs.iter().zip(&sound).filter(|(_, sound)| !**sound) {
            let (hash, file) = (blob.hash, file.to_owned());
            self.report.bad_blobs.push(BadBlob {
                hash,
                frame: frame.position.0,
                file,
                turns: Vec::new(),
            });
        }
        let rows = frame
            .blobs
            .iter()
            .zip(&sound)
            .map(|(blob, &sound)| match blob_row(blob) {
                row if sound => row,
                row => BlobRow {
                    locator: Locator::NOWHERE,
                    ..row
                },
            });
        self.applier.begin_frame(self.stamp, rows);
        let mut kept = Vec::new();
        for record in records(frame) {
            let record = record?;
            self.report.commands += 1;
            if self.fits(&record) {
                self.keep(frame, record, &mut kept);
                continue;
            }
            self.note_misfit(frame, file);
            for record in self.adjust(record) {
                self.keep(frame, record, &mut kept);
            }
        }
        Ok(Salvaged {
            frame: Some(frame),
            sound,
            records: kept,
        })
    }

    /// Applies a record; one that makes no sense any more is left out.
    fn keep(&mut self, frame: &Frame, record: Record, kept: &mut Vec<Record>) {
        match self.applier.apply(self.stamp, &record) {
            Ok(_) => kept.push(record),
            Err(refusal) => {
                self.report.dropped.push(format!(
                    "a command of frame {}: {refusal}",
                    frame.position.0
                ));
            }
        }
    }

    /// Whether a command comes out as the log says that it did when it was live.
    fn fits(&self, record: &Record) -> bool {
        let as_logged = |(part, place): (&Part, &Place)| {
            part.parent == place.parent && part.depth == place.depth
        };
        match (record, decide(self.state(), record)) {
            (Record::Append { parts, .. }, Decision::Do(Plan::Append { places, .. })) => {
                parts.iter().zip(&places).all(as_logged)
            }
            (_, Decision::Do(_)) => true,
            (_, Decision::Settled(_)) => false,
        }
    }

    /// A misfit is what a loss leaves behind; without a loss, it is damage of its own.
    fn note_misfit(&mut self, frame: &Frame, file: &str) {
        if self.report.is_intact() {
            let what = "a command does not follow from the log before it".to_owned();
            let (first, resumes_at) = (frame.position, frame.position);
            let file = file.to_owned();
            let place = Damage {
                file,
                offset: 0,
                bytes: 0,
                first,
                resumes_at,
                what,
                at_end: false,
            };
            self.report.damage.push(FrameDamage {
                place,
                turns: None,
                contexts: None,
            });
        }
    }

    /// Puts turns where the log says that they were, and keeps the names of roots that are gone.
    fn adjust(&self, record: Record) -> Vec<Record> {
        match record {
            Record::Append { mut parts, key, .. } => {
                let lost_roots = self.take_lost_roots(&mut parts);
                parts.iter_mut().for_each(|part| part.placed = true);
                let append = Record::Append {
                    parts,
                    key,
                    strict: false,
                };
                std::iter::once(append).chain(lost_roots).collect()
            }
            Record::AttachFs { turn, root } if !self.state().has_blob(&root) => {
                vec![Record::LostRoot {
                    turn,
                    root,
                    attached: true,
                }]
            }
            other => vec![other],
        }
    }

    /// Takes roots that are gone out of an append; the records that name them instead.
    fn take_lost_roots(&self, parts: &mut [Part]) -> Vec<Record> {
        let turns = parts.iter_mut().flat_map(|part| &mut part.turns);
        let ids = (self.state().turns.len() + 1..).filter_map(TurnId::new);
        let mut lost = Vec::new();
        for (turn, id) in turns.zip(ids) {
            if let Some(root) = turn.fs_root.take_if(|root| !self.state().has_blob(root)) {
                lost.push(Record::LostRoot {
                    turn: id,
                    root,
                    attached: false,
                });
            }
        }
        lost
    }

    /// Completes the report.
    pub(crate) fn finish(mut self) -> Report {
        let state = self.applier.state.clone();
        self.report.turns = state.turns.len();
        self.report.contexts = state.contexts.len();
        self.report.blobs = state.blobs.len() - state.lost_blob_rows();
        self.report.missing = Missing::of(&state);
        for blob in &mut self.report.bad_blobs {
            blob.turns = self.report.missing.users_of(&blob.hash);
        }
        self.report
    }
}

/// Where a walk begins.
struct Start {
    inspection: Inspection,
    known: Known,
}

impl Start {
    fn new(storage: &Arc<dyn Storage>, writers: Writers) -> std::io::Result<Self> {
        if writers == Writers::None {
            let inspection = inspect(storage.clone())?;
            let known = checkpoint::known(&**storage, inspection.store_id());
            return Ok(Self { inspection, known });
        }
        // Read before the segments are: then all that it says is in them.
        let acknowledged = acknowledged::read(&**storage);
        let inspection = inspect(storage.clone())?;
        let Some(acknowledged) = acknowledged else {
            return Ok(Self {
                inspection,
                known: Known::default(),
            });
        };
        // Ids that were given since are no loss, so only the position counts here.
        let known = Known {
            position: acknowledged.durable.0,
            ..Known::default()
        };
        Ok(Self {
            inspection: inspection.up_to(acknowledged.durable),
            known,
        })
    }
}

/// The log ends before what the index knows to have been durable.
fn missing(last: Position, known: u64) -> Damage {
    Damage {
        file: "log".into(),
        offset: 0,
        bytes: 0,
        first: Position(last.0 + 1),
        resumes_at: Position(0),
        what: format!(
            "the log went back: it ends at frame {}, but frame {known} was acknowledged",
            last.0
        ),
        at_end: true,
    }
}

/// Whether a blob's bytes hold their checksum and hash to their name.
fn is_sound(frame: &Frame, at: usize) -> bool {
    let Some(bytes) = frame.blob_bytes(at) else {
        return false;
    };
    let blob = &frame.blobs[at];
    match blob.form {
        Compression::None => BlobHash::of(&bytes) == blob.hash,
        Compression::Zstd => {
            let raw = zstd::bulk::decompress(&bytes, blob.raw_len as usize);
            raw.is_ok_and(|raw| BlobHash::of(&raw) == blob.hash)
        }
    }
}
