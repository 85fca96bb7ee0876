//! `turnkeep verify`: is everything that was ever acknowledged there, and unchanged?
//!
//! It only reads. Beside a running server, and where nothing can be written, it takes no lock: then
//! it copies what it reads, because a server may cut its files at any moment.

use std::ops::RangeInclusive;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_journal::{DataDirLock, FileStorage, LockError, Storage};
use turnkeep_store::salvage::{self, Missing, MissingBlob, Report, Writers};

use super::App;
use crate::config::ServeFlags;
use crate::data_dir::{DENIED_HINT, DataDir};
use crate::failure::Failure;
use crate::local::ids_text;
use crate::output::{Style, bytes_text};
use crate::progress::count_bar;
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
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, app: &mut App) -> Result<()> {
    let dir = DataDir::new(&app.config_of_files(&ServeFlags::default())?.data.value);
    if !dir.is_store() {
        return Err(dir.missing());
    }
    dir.refuse_unfinished()?;
    dir.refuse_unreadable()?;
    let Reading {
        storage,
        writers,
        _lock,
    } = Reading::of(&dir)?;
    let bar = count_bar("verifying", app.out.is_json());
    let report = salvage::verify(&storage, writers, |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = report?;
    print(&report, app)?;
    if report.is_sound() {
        return Ok(());
    }
    let path = dir.path().display();
    if report.is_intact() {
        let failure = Failure::new(format!(
            "the log in {path} is intact, but not everything is in it"
        ));
        return Err(failure
            .hint("it was lost before: a backup may still have it")
            .into());
    }
    let failure = Failure::new(format!("the log in {path} is damaged"));
    Err(failure
        .hint("`turnkeep repair NEW_DIR` copies what is sound to a new directory")
        .into())
}

/// How the directory is read.
struct Reading {
    storage: Arc<dyn Storage>,
    writers: Writers,
    _lock: Option<DataDirLock>,
}

impl Reading {
    fn of(dir: &DataDir) -> Result<Self> {
        let copying = || Arc::new(FileStorage::copying(dir.path()));
        let path = dir.path().display();
        match DataDirLock::acquire(dir.path()) {
            Ok(lock) => {
                let storage = Arc::new(FileStorage::new(dir.path()));
                Ok(Self {
                    storage,
                    writers: Writers::None,
                    _lock: Some(lock),
                })
            }
            Err(LockError::Held { .. }) => {
                eprintln!("note: {path} is in use: this checks what was durable when it began");
                Ok(Self {
                    storage: copying(),
                    writers: Writers::Running,
                    _lock: None,
                })
            }
            Err(LockError::ReadOnly { .. }) => {
                eprintln!("note: {path} is read-only: it is read without its lock");
                Ok(Self {
                    storage: copying(),
                    writers: Writers::None,
                    _lock: None,
                })
            }
            Err(error @ LockError::Io { .. }) => {
                Err(Failure::new(error.to_string()).hint(DENIED_HINT).into())
            }
        }
    }
}

/// Shows what a walk over the log found.
pub(super) fn print(report: &Report, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.json(&report_json(report));
    }
    for damage in &report.damage {
        let place = &damage.place;
        let word = app.out.paint(Style::Bad, "damage");
        app.out.line(format!(
            "{word}  {} at byte {}, {}: {}",
            place.file,
            place.offset,
            bytes_text(place.bytes),
            place.what
        ))?;
        app.out.line(format!(
            "        lost: {}",
            lost_text(damage.turns.as_ref(), damage.contexts.as_ref())
        ))?;
    }
    for blob in &report.bad_blobs {
        let word = app.out.paint(Style::Bad, "damage");
        app.out.line(format!(
            "{word}  {} in frame {}: the bytes of blob:{} are not what it was",
            blob.file, blob.frame, blob.hash
        ))?;
        let turns: Vec<String> = blob
            .turns
            .iter()
            .map(|turn| format!("turn:{turn}"))
            .collect();
        app.out.line(format!(
            "        touches: {}",
            if turns.is_empty() {
                "no turn".to_owned()
            } else {
                turns.join(", ")
            }
        ))?;
    }
    for line in missing_lines(&report.missing) {
        let word = app.out.paint(Style::Bad, "missing");
        app.out.line(format!("{word} {line}"))?;
    }
    // Beside new damage this is said where the frame was lost.
    if report.damage.is_empty() && report.lost_frames > 0 {
        let word = app.out.paint(Style::Bad, "missing");
        app.out.line(format!(
            "{word} perhaps {} that were in frames which an earlier repair or start found lost",
            perhaps_missing_text()
        ))?;
    }
    for dropped in &report.dropped {
        let word = app.out.paint(Style::Bad, "dropped");
        app.out.line(format!("{word} {}", printable(dropped)))?;
    }
    if let Some(torn) = &report.torn {
        let word = app.out.paint(Style::Warning, "torn");
        app.out.line(format!(
            "{word}    {} at byte {}: {}",
            torn.file, torn.offset, torn.what
        ))?;
        app.out.line(
            "        an unfinished write that was never acknowledged; the next start cuts it off",
        )?;
    }
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

/// What may be missing besides where a frame was lost: nothing else in the log tells of it.
const PERHAPS_MISSING: [&str; 4] = ["labels", "filesystem roots", "types", "blobs"];

/// What missing frames held. Their turns and creations are counted by the frames that follow;
/// labels, roots and types are not.
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

/// Everything that is gone, one line each.
fn missing_lines(missing: &Missing) -> Vec<String> {
    let Missing {
        turns,
        creations,
        payloads,
        roots,
        blobs,
    } = missing;
    let blob_line = |what: &str, blob: &MissingBlob| {
        let turns: Vec<String> = blob
            .turns
            .iter()
            .map(|turn| format!("turn:{turn}"))
            .collect();
        format!("{what} of {}: blob:{}", turns.join(", "), blob.hash)
    };
    let turns = turns.iter().map(|ids| ids_text("turn", ids));
    let creations = creations.iter().map(|ids| {
        format!(
            "creation record of {} (its labels and its base turn)",
            ids_text("ctx", ids)
        )
    });
    let payloads = payloads.iter().map(|blob| blob_line("payload", blob));
    let roots = roots.iter().map(|blob| blob_line("filesystem root", blob));
    let blobs = blobs
        .iter()
        .map(|hash| format!("blob:{hash}, which no turn uses"));
    turns
        .chain(creations)
        .chain(payloads)
        .chain(roots)
        .chain(blobs)
        .collect()
}

fn missing_json(missing: &Missing) -> Value {
    let ranges = |ranges: &[RangeInclusive<u64>]| -> Vec<Value> {
        let ids = |ids: &RangeInclusive<u64>| json!({ "first": ids.start().to_string(), "last": ids.end().to_string() });
        ranges.iter().map(ids).collect()
    };
    let blobs = |blobs: &[MissingBlob]| -> Vec<Value> {
        let blob = |blob: &MissingBlob| {
            let turns: Vec<String> = blob.turns.iter().map(ToString::to_string).collect();
            json!({ "hash": blob.hash.to_string(), "turns": turns })
        };
        blobs.iter().map(blob).collect()
    };
    json!({
        "turns": ranges(&missing.turns),
        "creation_records": ranges(&missing.creations),
        "payloads": blobs(&missing.payloads),
        "fs_roots": blobs(&missing.roots),
        "blobs": missing.blobs.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

pub(super) fn report_json(report: &Report) -> Value {
    let ids = |ids: Option<&RangeInclusive<u64>>| {
        ids.map(|ids| json!({ "first": ids.start().to_string(), "last": ids.end().to_string() }))
    };
    let damage = report.damage.iter().map(|damage| {
        let place = &damage.place;
        json!({
            "file": place.file, "offset": place.offset, "bytes": place.bytes, "what": place.what,
            "first_frame": place.first.0, "next_sound_frame": place.resumes_at.0,
            "turns": ids(damage.turns.as_ref()), "contexts": ids(damage.contexts.as_ref()),
        })
    });
    let blobs = report.bad_blobs.iter().map(|blob| {
        let turns: Vec<String> = blob.turns.iter().map(ToString::to_string).collect();
        json!({ "hash": blob.hash.to_string(), "frame": blob.frame, "file": blob.file, "turns": turns })
    });
    let torn = report
        .torn
        .as_ref()
        .map(|torn| json!({ "file": torn.file, "offset": torn.offset, "what": torn.what }));
    let perhaps_missing = if report.lost_frames > 0 {
        &PERHAPS_MISSING[..]
    } else {
        &[]
    };
    json!({
        "sound": report.is_sound(), "intact": report.is_intact(), "perhaps_missing": perhaps_missing,
        "missing": missing_json(&report.missing), "frames": report.frames, "commands": report.commands, "turns": report.turns,
        "contexts": report.contexts, "blobs": report.blobs, "bytes": report.bytes,
        "damage": damage.collect::<Vec<_>>(), "bad_blobs": blobs.collect::<Vec<_>>(),
        "dropped": report.dropped, "torn": torn,
    })
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
