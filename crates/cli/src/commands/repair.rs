//! `turnkeep repair`: what is sound of a damaged log, in a new directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use turnkeep_journal::{FileStorage, Storage};
use turnkeep_ledger::log::{FoundWorld, WorldLog, find_worlds};
use turnkeep_store::{Options, salvage};

use super::{App, verify};
use crate::config::{Config, ServeFlags};
use crate::data_dir::DataDir;
use crate::failure::Failure;
use crate::fresh_dir::FreshDir;
use crate::local;
use crate::progress::count_bar;
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
pub(crate) struct Args {
    /// The new directory: empty, or not there yet
    #[arg(value_name = "NEW_DIR")]
    to: PathBuf,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<()> {
    let config = app.config_of_files(&ServeFlags::default())?;
    let from = DataDir::new(&config.data.value);
    if !from.has_log() {
        return Err(from.missing());
    }
    from.refuse_unfinished()?;
    from.refuse_unreadable()?;
    refuse_inside(&args.to, from.path())?;
    let access = block_on(local::lock_or_read_only(&from))?;
    let old: Arc<dyn Storage> = match access {
        local::Access::Locked(_) => Arc::new(FileStorage::new(from.path())),
        // Copied, not mapped: somebody else may be able to cut these files.
        local::Access::ReadOnly => Arc::new(FileStorage::copying(from.path())),
    };
    let fresh = FreshDir::take(DataDir::new(&args.to))?;
    let new: Arc<dyn Storage> = Arc::new(FileStorage::new(fresh.dir().path()));
    let segment_bytes = Options::default().segment_bytes;
    let bar = count_bar("repairing", app.out.is_json());
    let report = salvage::repair(&old, &new, segment_bytes, |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = report?;
    let broken = broken_worlds(&config, fresh.dir());
    fresh.keep();
    if app.out.is_json() {
        let mut json = verify::report_json(&report);
        let closed = broken?;
        let names = closed.iter().map(|world| world.name.as_str());
        json["closed_worlds"] = names.collect();
        return app.out.json(&json);
    }
    verify::print(&report, app)?;
    app.out.line(format!(
        "What is sound is in {}; {} is as it was.",
        args.to.display(),
        from.path().display()
    ))?;
    broken?.iter().try_for_each(|FoundWorld { name, contexts }| {
        let reality = contexts.reality;
        app.out.line(format!(
            "The world {name} stays closed, because a part of it is lost: `turnkeep log {reality}` reads the entries that are left; a backup of the data directory has it whole."
        ))
    })
}

/// The worlds that cannot be opened in the new directory: each is read whole or not at all.
fn broken_worlds(config: &Config, dir: &DataDir) -> Result<Vec<FoundWorld>> {
    let store = local::open(config, dir)?;
    let mut broken = find_worlds(&store);
    broken.retain(|world| {
        let mut log = WorldLog::new(world.contexts);
        log.read_new_facts(&store, |_, _| {}).is_err()
    });
    store.close();
    Ok(broken)
}

/// The old directory is only read, so the new one cannot be in it.
fn refuse_inside(to: &Path, from: &Path) -> Result<()> {
    let to = std::path::absolute(to).context("cannot name the new directory")?;
    let existing = to.ancestors().find_map(|path| path.canonicalize().ok());
    let from = from
        .canonicalize()
        .with_context(|| format!("cannot find {}", from.display()))?;
    if !existing.is_some_and(|path| path.starts_with(&from)) {
        return Ok(());
    }
    let failure = Failure::new(format!(
        "{} is inside the directory to repair",
        to.display()
    ));
    Err(failure.hint("name a new directory beside it").into())
}
