//! Verify and repair: walking a whole log, damaged or not, and saying what it still amounts to.
//!
//! Both walk the same way. Sound frames are applied to a state of their own. Where frames are missing,
//! the next sound frame's marks tell how many turns and contexts they held: these ids are kept as lost,
//! so that every other turn keeps its own. A turn whose place would come out differently after a loss
//! is put where the log says that it was. Every payload is hashed. The directory is only read.

mod repair;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use turnkeep_journal::{Damage, Frame, Inspected, Locator, Position, Storage, inspect};
use turnkeep_types::{BlobHash, Compression, Timestamp, TurnId};

use crate::apply::Applier;
use crate::checkpoint::{self, Mark};
use crate::decide::{Decision, Place, Plan, View, decide};
use crate::record::{LOST_MAX, Part, Record};
use crate::recovery::{blob_row, records};
use crate::state::{BlobRow, State};
use crate::store::OpenError;
use crate::unfinished;

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
}

impl Report {
    /// Whether everything that was ever acked is there.
    pub fn is_sound(&self) -> bool {
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
    /// The contexts that were created there.
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

/// Checks a whole log: checksums, chain, every payload's hash, every turn's place. The directory must
/// be locked by the caller. `progress` hears of segments done and in all.
pub fn verify(storage: &Arc<dyn Storage>, progress: impl FnMut(u64, u64)) -> Result<Report, OpenError> {
    if unfinished::is_marked(&**storage) {
        return Err(OpenError::Unfinished);
    }
    let mut walk = Walk::new();
    walk.run(storage, progress, |_, _| Ok::<(), OpenError>(()))?;
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
        let mut records = Vec::new();
        let (mut turns, mut contexts) = (turns, contexts);
        while turns + contexts > 0 {
            let record = Record::Lost { turns: turns.min(LOST_MAX), contexts: contexts.min(LOST_MAX) };
            (turns, contexts) = (turns.saturating_sub(LOST_MAX), contexts.saturating_sub(LOST_MAX));
            records.push(record);
        }
        Self { frame: None, sound: Vec::new(), records }
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
    /// Whether this, as the last frame, is what a crash left of a write: not known to be durable, and
    /// not all of its payloads there.
    fn is_half_written(&self, known: &Mark) -> bool {
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
    /// Filesystem roots that are gone, with the turns that had them.
    lost_roots: Vec<(BlobHash, TurnId)>,
}

impl Walk {
    pub(crate) fn new() -> Self {
        Self {
            applier: Applier::new(Arc::new(State::new())),
            report: Report::default(),
            open_damage: Vec::new(),
            last: Position(0),
            stamp: Timestamp(0),
            lost_roots: Vec::new(),
        }
    }

    pub(crate) fn state(&self) -> &State {
        &self.applier.state
    }

    /// Walks the log and hands every frame on.
    pub(crate) fn run<E: From<OpenError>>(
        &mut self,
        storage: &Arc<dyn Storage>,
        mut progress: impl FnMut(u64, u64),
        mut each: impl FnMut(&Self, Salvaged<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut inspection = inspect(storage.clone()).map_err(OpenError::from)?;
        let known = checkpoint::known(&**storage, inspection.store_id());
        // One frame is held back: whether the last one counts is known only when nothing follows it.
        let mut held = None;
        while let Some(inspected) = inspection.next() {
            let (done, all) = inspection.segments();
            progress(done, all);
            match inspected {
                Inspected::Damage(damage) => self.open_damage.push(damage),
                Inspected::Frame { frame, file, offset } => {
                    let damage = std::mem::take(&mut self.open_damage);
                    let before = held.replace(Held { frame, file, offset, damage });
                    self.pass(before, &mut each)?;
                }
            }
        }
        let torn = held.take_if(|last| last.is_half_written(&known));
        self.report.torn = torn.map(Held::into_torn);
        self.pass(held, &mut each)?;
        match self.close_end(&known) {
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
        let Some(Held { frame, file, damage, .. }) = held else { return Ok(()) };
        if let Some(lost) = self.close_damage(damage, frame.stamp.marks) {
            each(self, lost)?;
        }
        let salvaged = self.take(&frame, &file)?;
        each(self, salvaged)
    }

    /// What the missing frames before a sound one held, by its marks.
    fn close_damage<'a>(&mut self, damage: Vec<Damage>, [turns, contexts]: [u64; 2]) -> Option<Salvaged<'a>> {
        let (before_turns, before_contexts) = (self.state().turns.len(), self.state().contexts.len());
        let lost_turns = turns.saturating_sub(before_turns);
        let lost_contexts = contexts.saturating_sub(before_contexts);
        for place in damage {
            let range = |before: u64, lost: u64| (lost > 0).then(|| before + 1..=before + lost);
            let (turns, contexts) = (range(before_turns, lost_turns), range(before_contexts, lost_contexts));
            self.report.damage.push(FrameDamage { place, turns, contexts });
        }
        let lost = Salvaged::lost(lost_turns, lost_contexts);
        self.applier.begin_frame(self.stamp, std::iter::empty());
        for record in &lost.records {
            drop(self.applier.apply(self.stamp, record));
        }
        (!lost.records.is_empty()).then_some(lost)
    }

    /// What is missing at the end: a torn tail, or what the index knows to have been durable.
    fn close_end<'a>(&mut self, known: &Mark) -> Option<Salvaged<'a>> {
        let last = self.last;
        let mut damage = std::mem::take(&mut self.open_damage);
        let torn = damage.pop_if(|place| place.at_end && known.position < place.first.0);
        self.report.torn = torn.or(self.report.torn.take());
        if known.position > last.0 && damage.is_empty() {
            damage.push(missing(last, known.position));
        }
        if damage.is_empty() { None } else { self.close_damage(damage, [known.turns, known.contexts]) }
    }

    fn take<'a>(&mut self, frame: &'a Frame, file: &str) -> Result<Salvaged<'a>, OpenError> {
        self.last = frame.position;
        self.stamp = frame.stamp.created_at;
        self.report.frames += 1;
        self.report.bytes += frame.raw().len() as u64;
        let sound: Vec<bool> = (0..frame.blobs.len()).map(|at| is_sound(frame, at)).collect();
        for (blob, _) in frame.blobs.iter().zip(&sound).filter(|(_, sound)| !**sound) {
            let (hash, file) = (blob.hash, file.to_owned());
            self.report.bad_blobs.push(BadBlob { hash, frame: frame.position.0, file, turns: Vec::new() });
        }
        let rows = frame.blobs.iter().zip(&sound).map(|(blob, &sound)| match blob_row(blob) {
            row if sound => row,
            row => BlobRow { locator: Locator::NOWHERE, ..row },
        });
        self.applier.begin_frame(self.stamp, rows);
        let mut adjusted = Vec::new();
        for record in records(frame) {
            let mut record = record?;
            if !self.fits(&record) {
                self.note_misfit(frame, file);
                self.adjust(&mut record);
            }
            if let Err(refusal) = self.applier.apply(self.stamp, &record) {
                self.report.dropped.push(format!("a command of frame {}: {refusal}", frame.position.0));
            }
            self.report.commands += 1;
            adjusted.push(record);
        }
        Ok(Salvaged { frame: Some(frame), sound, records: adjusted })
    }

    /// Whether a command comes out as the log says that it did when it was live.
    fn fits(&self, record: &Record) -> bool {
        let as_logged =
            |(part, place): (&Part, &Place)| part.parent == place.parent && part.depth == place.depth;
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
        if self.report.is_sound() {
            let what = "a command does not follow from the log before it".to_owned();
            let (first, resumes_at) = (frame.position, frame.position);
            let file = file.to_owned();
            let place = Damage { file, offset: 0, bytes: 0, first, resumes_at, what, at_end: false };
            self.report.damage.push(FrameDamage { place, turns: None, contexts: None });
        }
    }

    /// Puts turns where the log says that they were, and drops roots that are gone.
    fn adjust(&mut self, record: &mut Record) {
        match record {
            Record::Append { parts, strict, .. } => {
                *strict = false;
                let mut id = self.state().turns.len();
                for part in parts.iter_mut() {
                    part.placed = true;
                    for turn in &mut part.turns {
                        id += 1;
                        self.drop_lost_root(&mut turn.fs_root, TurnId::new(id));
                    }
                }
            }
            Record::AttachFs { turn, root } => self.drop_lost_root(&mut Some(*root), Some(*turn)),
            _ => {}
        }
    }

    fn drop_lost_root(&mut self, root: &mut Option<BlobHash>, turn: Option<TurnId>) {
        if let (Some(lost), Some(turn)) = (*root, turn)
            && !self.state().has_blob(&lost)
        {
            self.lost_roots.push((lost, turn));
            *root = None;
        }
    }

    /// Completes the report.
    pub(crate) fn finish(mut self) -> Report {
        let state = self.applier.state.clone();
        self.report.turns = state.turns.len();
        self.report.contexts = state.contexts.len();
        self.report.blobs = state.blobs.len() - self.report.bad_blobs.len() as u64;
        name_turns(&state, &self.lost_roots, &mut self.report.bad_blobs);
        self.report
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
        what: format!("the log ends at frame {}, but frame {known} was durable", last.0),
        at_end: true,
    }
}

/// Whether a blob's bytes hold their checksum and hash to their name.
fn is_sound(frame: &Frame, at: usize) -> bool {
    let Some(bytes) = frame.blob_bytes(at) else { return false };
    let blob = &frame.blobs[at];
    match blob.form {
        Compression::None => BlobHash::of(&bytes) == blob.hash,
        Compression::Zstd => {
            let raw = zstd::bulk::decompress(&bytes, blob.raw_len as usize);
            raw.is_ok_and(|raw| BlobHash::of(&raw) == blob.hash)
        }
    }
}

/// Finds the turns that damaged payloads touch.
fn name_turns(state: &State, lost_roots: &[(BlobHash, TurnId)], bad: &mut [BadBlob]) {
    if bad.is_empty() {
        return;
    }
    let mut touched: BTreeMap<BlobHash, BTreeSet<TurnId>> = BTreeMap::new();
    for turn in (1..=state.turns.len()).filter_map(TurnId::new) {
        let row = state.turn(turn).filter(|row| !row.lost);
        if let Some(blob) = row.and_then(|row| state.blob(row.blob)) {
            touched.entry(blob.hash).or_default().insert(turn);
        }
    }
    for &(root, turn) in lost_roots {
        touched.entry(root).or_default().insert(turn);
    }
    for blob in bad {
        blob.turns = touched.get(&blob.hash).into_iter().flatten().copied().collect();
    }
}
