//! `turnkeep verify`: is everything that was ever acknowledged there, and unchanged?

use std::ops::RangeInclusive;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_journal::{FileStorage, Storage};
use turnkeep_store::salvage::{self, Report};

use super::App;
use crate::config::ServeFlags;
use crate::data_dir::DataDir;
use crate::failure::Failure;
use crate::local;
use crate::output::{Style, bytes_text};
use crate::progress::count_bar;
use crate::render::printable;
use crate::runtime::block_on;

/// Check the whole log of the data directory
///
/// Reads every frame and every payload: checksums, the chain from frame to frame, the payloads'
/// hashes. Lists every damaged place and which turns it touches, and changes nothing. Needs no server;
/// a running one must be stopped first.
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
    let _lock = block_on(local::lock(&dir))?;
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(dir.path()));
    let bar = count_bar("verifying", app.out.is_json());
    let report = salvage::verify(&storage, |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = report?;
    print(&report, app)?;
    if report.is_sound() {
        return Ok(());
    }
    let failure = Failure::new(format!("the log in {} is damaged", dir.path().display()));
    Err(failure.hint("`turnkeep repair NEW_DIR` copies what is sound to a new directory").into())
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
        app.out
            .line(format!("        lost: {}", lost_text(damage.turns.as_ref(), damage.contexts.as_ref())))?;
    }
    for blob in &report.bad_blobs {
        let word = app.out.paint(Style::Bad, "damage");
        app.out.line(format!(
            "{word}  {} in frame {}: the bytes of blob:{} are not what it was",
            blob.file, blob.frame, blob.hash
        ))?;
        let turns: Vec<String> = blob.turns.iter().map(|turn| format!("turn:{turn}")).collect();
        app.out.line(format!(
            "        touches: {}",
            if turns.is_empty() { "no turn".to_owned() } else { turns.join(", ") }
        ))?;
    }
    for dropped in &report.dropped {
        let word = app.out.paint(Style::Bad, "dropped");
        app.out.line(format!("{word} {}", printable(dropped)))?;
    }
    if let Some(torn) = &report.torn {
        let word = app.out.paint(Style::Warning, "torn");
        app.out.line(format!("{word}    {} at byte {}: {}", torn.file, torn.offset, torn.what))?;
        app.out
            .line("        an unfinished write that was never acknowledged; the next start cuts it off")?;
    }
    let verdict = if report.is_sound() {
        app.out.paint(Style::Good, "sound")
    } else {
        app.out.paint(Style::Bad, "damaged")
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

fn lost_text(turns: Option<&RangeInclusive<u64>>, contexts: Option<&RangeInclusive<u64>>) -> String {
    let named = |kind: &str, ids: Option<&RangeInclusive<u64>>| {
        ids.map(|ids| match (ids.start(), ids.end()) {
            (first, last) if first == last => format!("{kind}:{first}"),
            (first, last) => format!("{kind}:{first} to {kind}:{last}"),
        })
    };
    let lost: Vec<String> = [named("turn", turns), named("ctx", contexts)].into_iter().flatten().collect();
    if lost.is_empty() { "unknown, perhaps nothing".to_owned() } else { lost.join(", ") }
}

fn report_json(report: &Report) -> Value {
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
    json!({
        "sound": report.is_sound(), "frames": report.frames, "commands": report.commands, "turns": report.turns,
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
        assert_eq!(lost_text(None, None), "unknown, perhaps nothing");
        assert_eq!(lost_text(Some(&(3..=3)), None), "turn:3");
        assert_eq!(lost_text(Some(&(3..=5)), Some(&(2..=2))), "turn:3 to turn:5, ctx:2");
    }
}
