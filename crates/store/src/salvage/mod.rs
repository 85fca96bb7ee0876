//! Verify and repair: both walk a whole log, damaged or not, and report what can still be read.
//!
//! The walk applies sound frames to a state of its own and hashes every payload. It only reads the
//! directory. Worked example: frame 7 is damaged, and frame 8 is sound.
//!
//! 1. Each frame carries marks: how many turns and contexts there were before it. The state has 20
//!    turns after frame 6, and frame 8 says 23. So frame 7 held turns 21 to 23.
//! 2. The walk adds these ids as lost. Turn 24, the first turn of frame 8, keeps its id.
//! 3. Frame 8 appends to a context whose head was turn 23. Replayed against a damaged state,
//!    `decide` would choose another parent. The record holds the parent and the depth that the
//!    writer chose; the walk uses those.
//!
//! Ids that an earlier repair marked as lost stay lost: the report lists them as missing, though
//! the log itself is intact.

mod missing;
mod repair;

use std::ops::RangeInclusive;
use std::sync::Arc;

use turnkeep_journal::{
    Damage, Frame, Inspected, Inspection, InspectionProgress, Locator, Position, Storage, inspect,
};
use turnkeep_types::{BlobHash, Compression, Timestamp, TurnId};

use crate::acknowledged;
use crate::apply::Applier;
use crate::checkpoint::{self, LogMinimum};
use crate::decide::{Decision, KeyUse, Placement, Plan, StateView, decide};
use crate::record::{PartRecord, Record};
use crate::recovery::{blob_row, build_lost_records, decode_records};
use crate::state::State;
use crate::store::OpenError;
use crate::unfinished;

pub use missing::{Missing, MissingBlob};
pub use repair::{RepairError, repair};

/// The result of a walk.
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
    /// Places where frames are missing or do not belong to the log.
    pub damage: Vec<FrameDamage>,
    /// Payloads whose bytes are not what their hash says.
    pub bad_blobs: Vec<BadBlob>,
    /// Commands that cannot be applied without the lost frames, as text. A repair leaves them out.
    pub dropped: Vec<String>,
    /// The incomplete write that a crash left at the end of the log. The next start cuts it.
    pub torn: Option<Damage>,
    /// Everything that was acknowledged and cannot be read, including earlier losses.
    pub missing: Missing,
    /// Places at which frames are missing, now or when an earlier repair or start found them lost.
    /// Labels, filesystem roots, types and blobs of such frames leave no trace.
    pub lost_frames: u64,
}

impl Report {
    /// Whether everything that was ever acknowledged can be read.
    pub fn is_sound(&self) -> bool {
        self.is_intact() && self.missing.is_empty() && self.lost_frames == 0
    }

    /// Whether the log is as it was written. It may still record an earlier loss.
    pub fn is_intact(&self) -> bool {
        self.damage.is_empty() && self.bad_blobs.is_empty()
    }
}

/// Missing frames and what they held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameDamage {
    /// Where, and what is wrong.
    pub place: Damage,
    /// The turns of the missing frames, if the rest of the log reveals them.
    pub turns: Option<RangeInclusive<u64>>,
    /// The contexts whose creation was recorded there.
    pub contexts: Option<RangeInclusive<u64>>,
}

/// A damaged payload and the turns that use it.
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

/// Whether a server may write to the log during the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// The caller holds the directory's lock, or the directory is read-only.
    None,
    /// A server runs. The walk covers the frames that were durable when it began. `storage` must
    /// copy the bytes that it reads
    /// ([`FileStorage::copying`](turnkeep_journal::FileStorage::copying)).
    Running,
}

/// Checks a whole log: checksums, chain, every payload's hash, every turn's place. Calls `progress`
/// with the number of segments done and the total.
pub fn verify(
    storage: &Arc<dyn Storage>,
    writers: Writers,
    progress: impl FnMut(u64, u64),
) -> Result<Report, OpenError> {
    if unfinished::is_marked(&**storage) {
        return Err(OpenError::Unfinished);
    }
    let mut walk = LogWalk::new();
    walk.run(storage, writers, progress, |_, _| Ok::<(), OpenError>(()))?;
    Ok(walk.finish())
}

/// The usable part of one frame, or the lost ids of missing frames.
pub(crate) struct Salvaged<'a> {
    /// The frame; `None` where frames are missing.
    pub(crate) frame: Option<&'a Frame>,
    /// Whether each of the frame's blobs is sound.
    pub(crate) sound: Vec<bool>,
    /// Its commands, adjusted to earlier losses.
    pub(crate) records: Vec<Record>,
}

impl Salvaged<'_> {
    /// Marks this many ids as lost.
    fn lost(turns: u64, contexts: u64) -> Self {
        Self {
            frame: None,
            sound: Vec::new(),
            records: build_lost_records(turns, contexts),
        }
    }
}

/// A sound frame and the damage before it, held until the walk reads the next frame.
struct HeldFrame {
    frame: Box<Frame>,
    file: String,
    offset: u64,
    damage: Vec<Damage>,
}

impl HeldFrame {
    /// Whether this last frame is an interrupted write: it is not known to be durable, and some of
    /// its payloads are incomplete.
    fn is_half_written(&self, minimum: &LogMinimum) -> bool {
        self.frame.position.0 > minimum.position && !self.frame.blobs_are_sound()
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

/// The state of a walk and its report so far.
pub(crate) struct LogWalk {
    applier: Applier,
    report: Report,
    /// Damage since the last sound frame. The next sound frame's marks reveal what it held.
    open_damage: Vec<Damage>,
    last: Position,
    stamp: Timestamp,
}

impl LogWalk {
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

    /// Walks the log and calls `each` for every frame and every loss, in log order.
    pub(crate) fn run<E: From<OpenError>>(
        &mut self,
        storage: &Arc<dyn Storage>,
        writers: Writers,
        mut progress: impl FnMut(u64, u64),
        mut each: impl FnMut(&Self, Salvaged<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let WalkStart {
            mut inspection,
            minimum,
        } = WalkStart::new(storage, writers).map_err(OpenError::from)?;
        // The walk handles each frame one step late, because only the last frame of a log may be
        // an interrupted write, and the last one is known when nothing follows it.
        let mut held = None;
        while let Some(inspected) = inspection.next() {
            let InspectionProgress {
                segments_done,
                segments,
            } = inspection.progress();
            progress(segments_done, segments);
            match inspected {
                Inspected::Damage(damage) => self.open_damage.push(damage),
                Inspected::Frame {
                    frame,
                    file,
                    offset,
                } => {
                    let damage = std::mem::take(&mut self.open_damage);
                    let before = held.replace(HeldFrame {
                        frame,
                        file,
                        offset,
                        damage,
                    });
                    self.release_frame(before, &mut each)?;
                }
            }
        }
        // A sound header with incomplete payloads: the write reached the header and not the rest.
        let torn = held.take_if(|last| last.is_half_written(&minimum));
        self.report.torn = torn.map(HeldFrame::into_torn);
        self.release_frame(held, &mut each)?;
        let lost = self.close_end(&minimum);
        if writers == Writers::Running {
            // The incomplete frame is one that the server is writing now.
            self.report.torn = None;
        }
        match lost {
            Some(lost) => each(self, lost),
            None => Ok(()),
        }
    }

    /// Salvages a held frame and passes it to `each`, after the loss before it.
    fn release_frame<E: From<OpenError>>(
        &mut self,
        held: Option<HeldFrame>,
        each: &mut impl FnMut(&Self, Salvaged<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(HeldFrame {
            frame,
            file,
            damage,
            ..
        }) = held
        else {
            return Ok(());
        };
        if let Some(lost) = self.add_lost_ids(damage, frame.stamp.marks) {
            each(self, lost)?;
        }
        let salvaged = self.salvage_frame(&frame, &file)?;
        each(self, salvaged)
    }

    /// Reports damage and adds the ids that are missing up to these marks to the state as lost.
    fn add_lost_ids<'a>(
        &mut self,
        damage: Vec<Damage>,
        [turns, contexts]: [u64; 2],
    ) -> Option<Salvaged<'a>> {
        let before_turns = self.state().turns.len();
        let before_contexts = self.state().contexts.len();
        let lost_turns = turns.saturating_sub(before_turns);
        let lost_contexts = contexts.saturating_sub(before_contexts);
        let range = |before: u64, lost: u64| (lost > 0).then(|| before + 1..=before + lost);
        let mut lost = Salvaged::lost(lost_turns, lost_contexts);
        if lost.records.is_empty() && !damage.is_empty() {
            // Without ids the record still tells a later `verify` that something was lost here.
            lost.records.push(Record::Lost {
                turns: 0,
                contexts: 0,
                in_feed: true,
            });
        }
        self.report.lost_frames += u64::from(!lost.records.is_empty());
        for place in damage {
            self.report.damage.push(FrameDamage {
                place,
                turns: range(before_turns, lost_turns),
                contexts: range(before_contexts, lost_contexts),
            });
        }
        // With the time of the last sound frame: the lost ones' times are unknown.
        self.applier.begin_frame(self.stamp, std::iter::empty());
        for record in &lost.records {
            self.applier.replay(self.stamp, record);
        }
        (!lost.records.is_empty()).then_some(lost)
    }

    /// Handles the end of the log: an interrupted write, or frames that are known to have been
    /// durable and are missing.
    fn close_end<'a>(&mut self, minimum: &LogMinimum) -> Option<Salvaged<'a>> {
        let last = self.last;
        let mut damage = std::mem::take(&mut self.open_damage);
        // Bytes behind the durable position are a write that never completed, not damage.
        let torn = damage.pop_if(|place| place.at_end && minimum.position < place.first.0);
        self.report.torn = torn.or(self.report.torn.take());
        if minimum.position > last.0 && damage.is_empty() {
            damage.push(describe_missing_end(last, minimum.position));
        }
        // Also without damage: `--durability os` acknowledges ids before they are durable.
        self.add_lost_ids(damage, [minimum.turns, minimum.contexts])
    }

    fn salvage_frame<'a>(
        &mut self,
        frame: &'a Frame,
        file: &str,
    ) -> Result<Salvaged<'a>, OpenError> {
        self.last = frame.position;
        self.stamp = frame.stamp.created_at;
        self.report.frames += 1;
        self.report.bytes += frame.raw().len() as u64;
        let sound = self.check_blobs(frame, file);
        let rows = frame.blobs.iter().zip(&sound).map(|(blob, &is_sound)| {
            let mut row = blob_row(blob);
            // The turns that use a damaged blob stay, and reading them reports the damage.
            if !is_sound {
                row.locator = Locator::NOWHERE;
            }
            row
        });
        self.applier.begin_frame(self.stamp, rows);
        let mut kept = Vec::new();
        for record in decode_records(frame) {
            let record = record?;
            self.report.commands += 1;
            self.report.lost_frames += u64::from(matches!(record, Record::Lost { .. }));
            if self.decides_as_logged(&record) {
                self.apply_record(frame, record, &mut kept);
                continue;
            }
            // Recorded places in place of decided ones: earlier losses moved heads and depths.
            self.report_deviation(frame, file);
            for record in self.adjust_record(record) {
                self.apply_record(frame, record, &mut kept);
            }
        }
        Ok(Salvaged {
            frame: Some(frame),
            sound,
            records: kept,
        })
    }

    /// Hashes the payloads of a frame, reports the damaged ones and returns which are sound.
    fn check_blobs(&mut self, frame: &Frame, file: &str) -> Vec<bool> {
        let mut sound = Vec::with_capacity(frame.blobs.len());
        for (at, blob) in frame.blobs.iter().enumerate() {
            let is_sound = is_blob_sound(frame, at);
            if !is_sound {
                self.report.bad_blobs.push(BadBlob {
                    hash: blob.hash,
                    frame: frame.position.0,
                    file: file.to_owned(),
                    // `finish` fills them in: later frames may use the blob too.
                    turns: Vec::new(),
                });
            }
            sound.push(is_sound);
        }
        sound
    }

    /// Applies a record and adds it to `kept`, or reports it as dropped if it is rejected.
    fn apply_record(&mut self, frame: &Frame, record: Record, kept: &mut Vec<Record>) {
        let key = KeyUse::digest(&record);
        match self.applier.apply(self.stamp, &record, key) {
            Ok(_) => kept.push(record),
            Err(refusal) => {
                self.report.dropped.push(format!(
                    "a command of frame {}: {refusal}",
                    frame.position.0
                ));
            }
        }
    }

    /// Whether a command has the effect now that the log recorded when it was live.
    fn decides_as_logged(&self, record: &Record) -> bool {
        let as_logged = |(part, placement): (&PartRecord, &Placement)| {
            part.parent == placement.parent && part.depth == placement.depth
        };
        match (record, decide(self.state(), record, KeyUse::digest(record))) {
            (Record::Append { parts, .. }, Decision::Change(Plan::Append { placements, .. })) => {
                parts.iter().zip(&placements).all(as_logged)
            }
            (_, Decision::Change(_)) => true,
            // A logged command always changed something when it was live.
            (_, Decision::NoChange(_)) => false,
        }
    }

    /// Reports a command that no longer has its recorded effect. After a loss that is expected; in
    /// an intact log it is damage of its own.
    fn report_deviation(&mut self, frame: &Frame, file: &str) {
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

    /// Fixes turns to the places that the log recorded, and keeps the names of lost roots.
    fn adjust_record(&self, record: Record) -> Vec<Record> {
        match record {
            Record::Append { mut parts, key, .. } => {
                let lost_roots = self.take_lost_roots(&mut parts);
                // With the recorded places, and without the head check that the loss may have
                // broken.
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

    /// Removes lost roots from an append and returns the records that name them instead.
    fn take_lost_roots(&self, parts: &mut [PartRecord]) -> Vec<Record> {
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

    /// Completes the report from the final state.
    pub(crate) fn finish(mut self) -> Report {
        let state = self.applier.state.clone();
        self.report.turns = state.turns.len();
        self.report.contexts = state.contexts.len();
        self.report.blobs = state.blobs.len() - state.lost_blob_rows();
        self.report.missing = Missing::from_state(&state);
        for blob in &mut self.report.bad_blobs {
            blob.turns = self.report.missing.users_of(&blob.hash);
        }
        self.report
    }
}

/// The log to walk and what it must hold at least.
struct WalkStart {
    inspection: Inspection,
    minimum: LogMinimum,
}

impl WalkStart {
    fn new(storage: &Arc<dyn Storage>, writers: Writers) -> std::io::Result<Self> {
        if writers == Writers::None {
            let inspection = inspect(storage.clone())?;
            let minimum = checkpoint::read_log_minimum(&**storage, inspection.store_id());
            return Ok(Self {
                inspection,
                minimum,
            });
        }
        // Before the segments are listed: the server goes on, and the log must hold everything
        // that this file names.
        let acknowledged = acknowledged::read(&**storage);
        let inspection = inspect(storage.clone())?;
        let Some(acknowledged) = acknowledged else {
            return Ok(Self {
                inspection,
                minimum: LogMinimum::default(),
            });
        };
        // The server may have acknowledged further ids since. Only the position counts here.
        let minimum = LogMinimum {
            position: acknowledged.durable.0,
            ..LogMinimum::default()
        };
        Ok(Self {
            inspection: inspection.up_to(acknowledged.durable),
            minimum,
        })
    }
}

/// Describes a log that ends before a position which is known to have been durable.
fn describe_missing_end(last: Position, known: u64) -> Damage {
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

/// Whether a blob's bytes match their checksum and their hash.
fn is_blob_sound(frame: &Frame, at: usize) -> bool {
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
