//! Verify and repair: walking a whole log, damaged or not, and saying what it still amounts to.
//!
//! Both walk the same way. Sound frames are applied to a state of their own. Where frames are missing,
//! the next sound frame's marks tell how many turns and contexts they held: these ids are kept as lost,
//! so that every other turn keeps its own. A turn whose place would come out differently after a loss
//! is put where the log says that it was. Every payload is hashed. The directory is only read.

mod repair;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use turnkeep_journal::{Damage, Frame, Inspected, Position, Storage, inspect};
use turnkeep_types::{BlobHash, Compression, TurnId};

use crate::apply::Applier;
use crate::checkpoint;
use crate::decide::{Decision, Place, Plan, View, decide};
use crate::record::{Part, Record};
use crate::recovery::{blob_row, records};
use crate::state::State;
use crate::store::OpenError;

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
    let mut walk = Walk::new();
    walk.run(storage, progress, |_, _| Ok::<(), OpenError>(()))?;
    Ok(walk.finish(storage))
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

pub(crate) struct Walk {
    applier: Applier,
    report: Report,
    /// Damage that waits for the next sound frame to tell what it held.
    open_damage: Vec<Damage>,
    last: Position,
}

impl Walk {
    pub(crate) fn new() -> Self {
        let applier = Applier::new(Arc::new(State::new()));
        Self { applier, report: Report::default(), open_damage: Vec::new(), last: Position(0) }
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
        while let Some(inspected) = inspection.next() {
            let (done, all) = inspection.segments();
            progress(done, all);
            match inspected {
                Inspected::Damage(damage) => self.open_damage.push(damage),
                Inspected::Frame { frame, file, .. } => {
                    if let Some(lost) = self.close_damage(&frame) {
                        each(self, lost)?;
                    }
                    let salvaged = self.take(&frame, &file)?;
                    each(self, salvaged)?;
                }
            }
        }
        Ok(())
    }

    /// What the missing frames before a sound one held, by its marks.
    fn close_damage<'a>(&mut self, frame: &Frame) -> Option<Salvaged<'a>> {
        let damage = std::mem::take(&mut self.open_damage);
        let [turns, contexts] = frame.stamp.marks;
        let (before_turns, before_contexts) = (self.state().turns.len(), self.state().contexts.len());
        let lost_turns = turns.saturating_sub(before_turns);
        let lost_contexts = contexts.saturating_sub(before_contexts);
        for place in damage {
            let range = |before: u64, lost: u64| (lost > 0).then(|| before + 1..=before + lost);
            let (turns, contexts) = (range(before_turns, lost_turns), range(before_contexts, lost_contexts));
            self.report.damage.push(FrameDamage { place, turns, contexts });
        }
        if lost_turns + lost_contexts == 0 {
            return None;
        }
        let record = Record::Lost { turns: lost_turns, contexts: lost_contexts };
        self.applier.begin_frame(frame.stamp.created_at, std::iter::empty());
        drop(self.applier.apply(frame.stamp.created_at, &record));
        Some(Salvaged { frame: None, sound: Vec::new(), records: vec![record] })
    }

    fn take<'a>(&mut self, frame: &'a Frame, file: &str) -> Result<Salvaged<'a>, OpenError> {
        self.last = frame.position;
        self.report.frames += 1;
        self.report.bytes += frame.raw().len() as u64;
        let sound: Vec<bool> = (0..frame.blobs.len()).map(|at| is_sound(frame, at)).collect();
        for (blob, _) in frame.blobs.iter().zip(&sound).filter(|(_, sound)| !**sound) {
            let (hash, file) = (blob.hash, file.to_owned());
            self.report.bad_blobs.push(BadBlob { hash, frame: frame.position.0, file, turns: Vec::new() });
        }
        self.applier.begin_frame(frame.stamp.created_at, frame.blobs.iter().map(blob_row));
        let mut adjusted = Vec::new();
        for record in records(frame) {
            let mut record = record?;
            if !self.fits(&record) {
                self.note_misfit(frame, file);
                self.adjust(&mut record);
            }
            drop(self.applier.apply(frame.stamp.created_at, &record));
            self.report.commands += 1;
            adjusted.push(record);
        }
        Ok(Salvaged { frame: Some(frame), sound, records: adjusted })
    }

    /// Whether a command comes out as the log says that it did when it was live.
    fn fits(&self, record: &Record) -> bool {
        let Record::Append { parts, .. } = record else { return true };
        let as_logged =
            |(part, place): (&Part, &Place)| part.parent == place.parent && part.depth == place.depth;
        matches!(decide(self.state(), record), Decision::Do(Plan::Append { places, .. })
            if parts.iter().zip(&places).all(as_logged))
    }

    /// A misfit is what a loss leaves behind; without a loss, it is damage of its own.
    fn note_misfit(&mut self, frame: &Frame, file: &str) {
        if self.report.damage.is_empty() {
            let what = "a command does not follow from the log before it".to_owned();
            let (first, resumes_at) = (frame.position, frame.position);
            let place =
                Damage { file: file.to_owned(), offset: 0, bytes: 0, first, resumes_at, what, at_end: false };
            self.report.damage.push(FrameDamage { place, turns: None, contexts: None });
        }
    }

    /// Puts turns where the log says that they were, and drops roots that are gone.
    fn adjust(&self, record: &mut Record) {
        let Record::Append { parts, .. } = record else { return };
        for part in parts.iter_mut() {
            part.placed = true;
            for turn in &mut part.turns {
                turn.fs_root = turn.fs_root.filter(|root| self.state().has_blob(root));
            }
        }
    }

    /// Completes the report.
    pub(crate) fn finish(mut self, storage: &Arc<dyn Storage>) -> Report {
        let known = checkpoint::load(&**storage).last.map_or(0, |header| header.to.position);
        for place in std::mem::take(&mut self.open_damage) {
            if place.at_end && known < place.first.0 {
                self.report.torn = Some(place);
            } else {
                self.report.damage.push(FrameDamage { place, turns: None, contexts: None });
            }
        }
        if known > self.last.0 && self.report.damage.is_empty() {
            self.report.damage.push(FrameDamage {
                place: missing(self.last, known),
                turns: None,
                contexts: None,
            });
        }
        let state = self.applier.state.clone();
        self.report.turns = state.turns.len();
        self.report.contexts = state.contexts.len();
        self.report.blobs = state.blobs.len() - self.report.bad_blobs.len() as u64;
        name_turns(&state, &mut self.report.bad_blobs);
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
fn name_turns(state: &State, bad: &mut [BadBlob]) {
    if bad.is_empty() {
        return;
    }
    let mut touched: BTreeMap<u64, Vec<TurnId>> = BTreeMap::new();
    for turn in (1..=state.turns.len()).filter_map(TurnId::new) {
        let Some(row) = state.turn(turn).filter(|row| !row.lost) else { continue };
        touched.entry(row.blob).or_default().push(turn);
        let root = row.has_fs_root.then(|| state.fs_root(turn)).flatten();
        if let Some(blob) = root.and_then(|root| state.find_blob(&root)) {
            touched.entry(blob).or_default().push(turn);
        }
    }
    for blob in bad {
        let row = state.find_blob(&blob.hash);
        blob.turns = row.and_then(|row| touched.get(&row).cloned()).unwrap_or_default();
    }
}
