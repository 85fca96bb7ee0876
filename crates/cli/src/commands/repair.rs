//! `turnkeep repair`: copies the sound part of a damaged store to a new directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::Value;
use turnkeep_journal::{FileStorage, Storage};
use turnkeep_ledger::log::{FoundWorld, WorldLog, find_worlds};
use turnkeep_store::Options;
use turnkeep_store::salvage::{self, Report};

use super::{App, verify};
use crate::config::{Config, ServeFlags};
use crate::data_dir::DataDir;
use crate::failure::Failure;
use crate::fresh_dir::FreshDir;
use crate::local;
use crate::progress::StepBar;
use crate::runtime::block_on;

/// Copy what is sound of a damaged store into a new directory
///
/// The old directory is only read. Turns keep their ids; those that are lost are named, and reading
/// them says so. The new directory gets a token of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep repair ./repaired
  turnkeep repair ./repaired --data ./damaged
  turnkeep up --data ./repaired")]
pub(crate) struct RepairArgs {
    /// The new directory: empty, or not there yet
    #[arg(value_name = "NEW_DIR")]
    to: PathBuf,
}

pub(crate) fn run_repair(args: &RepairArgs, app: &mut App) -> Result<()> {
    let config = app.config_of_files(&ServeFlags::default())?;
    let from = DataDir::new(&config.data.value);
    // All checks of the old directory come before the new one is made.
    check_old_dir(&from)?;
    refuse_inside(&args.to, from.path())?;
    // The lock is held until the command ends, so that the old directory cannot change meanwhile.
    let access = block_on(local::lock_or_read_only(&from))?;
    let fresh = FreshDir::prepare(DataDir::new(&args.to))?;
    let new: Arc<dyn Storage> = Arc::new(FileStorage::new(fresh.dir().path()));
    let report = copy_sound(&old_storage(&from, &access), &new, app)?;
    let broken = broken_worlds(&config, fresh.dir());
    fresh.keep();
    if app.out.is_json() {
        return app.out.json(&repair_json(&report, &broken?));
    }
    // The report comes before a failure to read the worlds: the copy is complete without them.
    verify::print_report(&report, app)?;
    print_directories(args, &from, app)?;
    for world in broken? {
        print_broken_world(&world, app)?;
    }
    Ok(())
}

fn old_storage(dir: &DataDir, access: &local::Access) -> Arc<dyn Storage> {
    Arc::new(match access {
        local::Access::Locked(_) => FileStorage::new(dir.path()),
        // Copied, not mapped: another user may be able to shorten these files.
        local::Access::ReadOnly => FileStorage::copying(dir.path()),
    })
}

fn print_directories(args: &RepairArgs, from: &DataDir, app: &mut App) -> Result<()> {
    let (new, old) = (args.to.display(), from.path().display());
    app.out
        .line(format!("What is sound is in {new}; {old} is as it was."))
}

fn check_old_dir(dir: &DataDir) -> Result<()> {
    if !dir.has_log() {
        return Err(dir.missing_store_error());
    }
    dir.refuse_unusable()
}

fn repair_json(report: &Report, closed: &[FoundWorld]) -> Value {
    let mut json = verify::report_json(report);
    json["closed_worlds"] = closed.iter().map(|world| world.name.as_str()).collect();
    json
}

fn copy_sound(from: &Arc<dyn Storage>, to: &Arc<dyn Storage>, app: &App) -> Result<Report> {
    let bar = StepBar::new("repairing", app.out.is_json());
    let segment_bytes = Options::default().segment_bytes;
    Ok(salvage::repair(from, to, segment_bytes, |done, all| {
        bar.show(done, all);
    })?)
}

fn print_broken_world(world: &FoundWorld, app: &mut App) -> Result<()> {
    let (name, reality) = (&world.name, world.contexts.reality);
    app.out.line(format!(
        "The world {name} stays closed, because a part of it is lost: `turnkeep log {reality}` reads \
         the entries that are left; a backup of the data directory has it whole."
    ))
}

/// The worlds that cannot be opened in the new directory. A world is read completely or not at all,
/// so one lost record closes it.
fn broken_worlds(config: &Config, dir: &DataDir) -> Result<Vec<FoundWorld>> {
    let store = local::open_store(config, dir)?;
    let mut broken = find_worlds(&store);
    broken.retain(|world| {
        let mut log = WorldLog::new(world.contexts);
        log.read_new_facts(&store, |_, _| {}).is_err()
    });
    store.close();
    Ok(broken)
}

/// Refuses a new directory inside the old one, because the old one must not change.
fn refuse_inside(to: &Path, from: &Path) -> Result<()> {
    let to = std::path::absolute(to).context("cannot name the new directory")?;
    // The new directory may not exist yet, so its nearest existing parent is compared.
    let existing = to.ancestors().find_map(|path| path.canonicalize().ok());
    let from = from
        .canonicalize()
        .with_context(|| format!("cannot find {}", from.display()))?;
    if !existing.is_some_and(|path| path.starts_with(&from)) {
        return Ok(());
    }
    let to = to.display();
    Failure::new(format!("{to} is inside the directory to repair"))
        .hint("name a new directory beside it")
        .fail()
}
