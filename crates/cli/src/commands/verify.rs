//! `turnkeep verify`: checks that everything that was ever acknowledged is present and unchanged.
//!
//! The command only reads. It takes no lock while a server runs, and none in a read-only directory.
//! Without the lock it copies what it reads, because a server may truncate its files at any moment.

use std::ops::RangeInclusive;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_journal::{Damage, DataDirLock, FileStorage, LockError, Storage};
use turnkeep_store::salvage::{self, BadBlob, FrameDamage, Missing, MissingBlob, Report, Writers};
use turnkeep_types::TurnId;

use super::App;
use crate::config::ServeFlags;
use crate::data_dir::{DENIED_HINT, DataDir};
use crate::failure::Failure;
use crate::local::ids_text;
use crate::output::{Style, bytes_text};
use crate::progress::StepBar;
use crate::render::printable;

/// Check the whole log of the data directory
///
/// Reads every frame and every payload: checksums, the chain from frame to frame, the payloads'
/// hashes. Lists every damaged place and everything that is missing, and changes nothing. Needs no
/// server; beside a running one it checks what was durable when it began.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep verify
  turnkeep verify --data ./backup --json")]
pub(crate) struct VerifyArgs {}

pub(crate) fn run_verify(_: &VerifyArgs, app: &mut App) -> Result<()> {
    let dir = DataDir::new(&app.config_of_files(&ServeFlags::default())?.data.value);
    if !dir.is_store() {
        return Err(dir.missing_store_error());
    }
    dir.refuse_unusable()?;
    let report = LogAccess::open(&dir)?.walk_log(app)?;
    print_report(&report, app)?;
    check_verdict(&report, &dir)
}

/// Fails unless the log is sound. An intact log can still lack turns: a repair leaves them out.
fn check_verdict(report: &Report, dir: &DataDir) -> Result<()> {
    let path = dir.path().display();
    let failure = match (report.is_sound(), report.is_intact()) {
        (true, _) => return Ok(()),
        (false, true) => Failure::new(format!(
            "the log in {path} is intact, but not everything is in it"
        ))
        .hint("it was lost before: a backup may still have it"),
        (false, false) => Failure::new(format!("the log in {path} is damaged"))
            .hint("`turnkeep repair NEW_DIR` copies what is sound to a new directory"),
    };
    failure.fail()
}

/// How the command reads the directory.
struct LogAccess {
    storage: Arc<dyn Storage>,
    writers: Writers,
    /// Held until the log is checked.
    _lock: Option<DataDirLock>,
}

impl LogAccess {
    fn open(dir: &DataDir) -> Result<Self> {
        let path = dir.path().display();
        match DataDirLock::acquire(dir.path()) {
            Ok(lock) => Ok(Self {
                storage: Arc::new(FileStorage::new(dir.path())),
                writers: Writers::None,
                _lock: Some(lock),
            }),
            // A server runs here. It may append while this command reads, so only the log up to its
            // present end is checked.
            Err(LockError::Held { .. }) => {
                eprintln!("note: {path} is in use: this checks what was durable when it began");
                Ok(Self::without_lock(dir, Writers::Running))
            }
            Err(LockError::ReadOnly { .. }) => {
                eprintln!("note: {path} is read-only: it is read without its lock");
                Ok(Self::without_lock(dir, Writers::None))
            }
            Err(error @ LockError::Io { .. }) => {
                Failure::new(error.to_string()).hint(DENIED_HINT).fail()
            }
        }
    }

    fn without_lock(dir: &DataDir, writers: Writers) -> Self {
        Self {
            storage: Arc::new(FileStorage::copying(dir.path())),
            writers,
            _lock: None,
        }
    }

    fn walk_log(self, app: &App) -> Result<Report> {
        let bar = StepBar::new("verifying", app.out.is_json());
        let show = |done, all| bar.show(done, all);
        Ok(salvage::verify(&self.storage, self.writers, show)?)
    }
}

/// Prints what a walk over the log found.
pub(super) fn print_report(report: &Report, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.json(&report_json(report));
    }
    for damage in &report.damage {
        print_damage(damage, app)?;
    }
    for blob in &report.bad_blobs {
        print_bad_blob(blob, app)?;
    }
    print_missing(report, app)?;
    let dropped = app.out.paint(Style::Bad, "dropped");
    for command in &report.dropped {
        app.out.line(format!("{dropped} {}", printable(command)))?;
    }
    if let Some(torn) = &report.torn {
        print_torn(torn, app)?;
    }
    print_totals(report, app)
}

fn print_missing(report: &Report, app: &mut App) -> Result<()> {
    let missing = app.out.paint(Style::Bad, "missing");
    for line in missing_lines(&report.missing) {
        app.out.line(format!("{missing} {line}"))?;
    }
    // With new damage, the line of the lost frame names this.
    if report.damage.is_empty() && report.lost_frames > 0 {
        app.out.line(format!(
            "{missing} perhaps {} that were in frames which an earlier repair or start found lost",
            perhaps_missing_text()
        ))?;
    }
    Ok(())
}

fn print_damage(damage: &FrameDamage, app: &mut App) -> Result<()> {
    let place = &damage.place;
    let word = app.out.paint(Style::Bad, "damage");
    let size = bytes_text(place.bytes);
    app.out.line(format!(
        "{word}  {} at byte {}, {size}: {}",
        place.file, place.offset, place.what
    ))?;
    let lost = lost_text(damage.turns.as_ref(), damage.contexts.as_ref());
    app.out.line(format!("        lost: {lost}"))
}

fn print_bad_blob(blob: &BadBlob, app: &mut App) -> Result<()> {
    let word = app.out.paint(Style::Bad, "damage");
    app.out.line(format!(
        "{word}  {} in frame {}: the bytes of blob:{} are not what it was",
        blob.file, blob.frame, blob.hash
    ))?;
    let turns = match &blob.turns[..] {
        [] => "no turn".to_owned(),
        turns => turn_names(turns),
    };
    app.out.line(format!("        touches: {turns}"))
}

fn print_torn(torn: &Damage, app: &mut App) -> Result<()> {
    let word = app.out.paint(Style::Warning, "torn");
    app.out.line(format!(
        "{word}    {} at byte {}: {}",
        torn.file, torn.offset, torn.what
    ))?;
    app.out
        .line("        an unfinished write that was never acknowledged; the next start cuts it off")
}

fn print_totals(report: &Report, app: &mut App) -> Result<()> {
    let verdict = match (report.is_sound(), report.is_intact()) {
        (true, _) => app.out.paint(Style::Good, "sound"),
        (false, true) => app.out.paint(Style::Bad, "incomplete"),
        (false, false) => app.out.paint(Style::Bad, "damaged"),
    };
    app.out.line(format!(
        "{verdict}: {} turns, {} contexts, {} blobs in {} frames, {}",
        report.turns,
        report.contexts,
        report.blobs,
        report.frames,
        bytes_text(report.bytes)
    ))
}

/// Turns as a list of their names, such as `turn:3, turn:7`.
fn turn_names(turns: &[TurnId]) -> String {
    let names: Vec<String> = turns.iter().map(|turn| format!("turn:{turn}")).collect();
    names.join(", ")
}

/// What else a lost frame may have held. Nothing else in the log mentions it.
const PERHAPS_MISSING: [&str; 4] = ["labels", "filesystem roots", "types", "blobs"];

/// What the missing frames held, in words. The frames after a gap tell how many turns and contexts
/// it held. They do not tell its labels, roots and types.
fn lost_text(
    turns: Option<&RangeInclusive<u64>>,
    contexts: Option<&RangeInclusive<u64>>,
) -> String {
    let turns = turns.map(|ids| ids_text("turn", ids));
    let creations = contexts.map(|ids| format!("the creation of {}", ids_text("ctx", ids)));
    let lost: Vec<String> = [turns, creations].into_iter().flatten().collect();
    let known = if lost.is_empty() {
        "no turn and no context that is known of".to_owned()
    } else {
        lost.join(", ")
    };
    format!("{known}; perhaps {}", perhaps_missing_text())
}

fn perhaps_missing_text() -> String {
    let [first @ .., last] = PERHAPS_MISSING;
    format!("{} or {last}", first.join(", "))
}

/// Everything that is missing, one line each.
fn missing_lines(missing: &Missing) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    lines.extend(missing.turns.iter().map(|ids| ids_text("turn", ids)));
    for ids in &missing.creations {
        let contexts = ids_text("ctx", ids);
        lines.push(format!(
            "creation record of {contexts} (its labels and its base turn)"
        ));
    }
    let blob_line = |what: &str, MissingBlob { hash, turns }: &MissingBlob| {
        format!("{what} of {}: blob:{hash}", turn_names(turns))
    };
    lines.extend(
        missing
            .payloads
            .iter()
            .map(|blob| blob_line("payload", blob)),
    );
    lines.extend(
        missing
            .roots
            .iter()
            .map(|blob| blob_line("filesystem root", blob)),
    );
    for hash in &missing.blobs {
        lines.push(format!("blob:{hash}, which no turn uses"));
    }
    lines
}

pub(super) fn report_json(report: &Report) -> Value {
    let damage: Vec<Value> = report.damage.iter().map(damage_json).collect();
    let bad_blobs: Vec<Value> = report.bad_blobs.iter().map(bad_blob_json).collect();
    let perhaps_missing = if report.lost_frames > 0 {
        &PERHAPS_MISSING[..]
    } else {
        &[]
    };
    json!({
        "sound": report.is_sound(),
        "intact": report.is_intact(),
        "perhaps_missing": perhaps_missing,
        "missing": missing_json(&report.missing),
        "frames": report.frames,
        "commands": report.commands,
        "turns": report.turns,
        "contexts": report.contexts,
        "blobs": report.blobs,
        "bytes": report.bytes,
        "damage": damage,
        "bad_blobs": bad_blobs,
        "dropped": report.dropped,
        "torn": report.torn.as_ref().map(torn_json),
    })
}

fn damage_json(damage: &FrameDamage) -> Value {
    let place = &damage.place;
    json!({
        "file": place.file,
        "offset": place.offset,
        "bytes": place.bytes,
        "what": place.what,
        "first_frame": place.first.0,
        "next_sound_frame": place.resumes_at.0,
        "turns": damage.turns.as_ref().map(ids_json),
        "contexts": damage.contexts.as_ref().map(ids_json),
    })
}

fn torn_json(torn: &Damage) -> Value {
    json!({ "file": torn.file, "offset": torn.offset, "what": torn.what })
}

fn bad_blob_json(blob: &BadBlob) -> Value {
    json!({
        "hash": blob.hash.to_string(),
        "frame": blob.frame,
        "file": blob.file,
        "turns": turn_ids(&blob.turns),
    })
}

fn missing_json(missing: &Missing) -> Value {
    let ranges = |ranges: &[RangeInclusive<u64>]| ranges.iter().map(ids_json).collect::<Vec<_>>();
    let blobs = |blobs: &[MissingBlob]| blobs.iter().map(missing_blob_json).collect::<Vec<_>>();
    let unused: Vec<String> = missing.blobs.iter().map(ToString::to_string).collect();
    json!({
        "turns": ranges(&missing.turns),
        "creation_records": ranges(&missing.creations),
        "payloads": blobs(&missing.payloads),
        "fs_roots": blobs(&missing.roots),
        "blobs": unused,
    })
}

fn missing_blob_json(blob: &MissingBlob) -> Value {
    json!({ "hash": blob.hash.to_string(), "turns": turn_ids(&blob.turns) })
}

/// A range of ids. Ids are texts in JSON: not every reader of JSON has 64-bit numbers.
fn ids_json(ids: &RangeInclusive<u64>) -> Value {
    json!({ "first": ids.start().to_string(), "last": ids.end().to_string() })
}

fn turn_ids(turns: &[TurnId]) -> Vec<String> {
    turns.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_named_as_far_as_it_is_known() {
        let perhaps = "; perhaps labels, filesystem roots, types or blobs";
        let check = |text: String, known: &str| assert_eq!(text, format!("{known}{perhaps}"));
        check(
            lost_text(None, None),
            "no turn and no context that is known of",
        );
        check(lost_text(Some(&(3..=3)), None), "turn:3");
        check(
            lost_text(Some(&(3..=5)), Some(&(2..=2))),
            "turn:3 to turn:5, the creation of ctx:2",
        );
    }
}
