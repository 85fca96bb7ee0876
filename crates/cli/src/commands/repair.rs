//! `turnkeep repair`: what is sound of a damaged log, in a new directory.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use turnkeep_journal::{FileStorage, Storage};
use turnkeep_store::{Options, salvage};

use super::{App, verify};
use crate::data_dir::DataDir;
use crate::failure::Failure;
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
    let from = DataDir::new(&app.config()?.data.value);
    let to = DataDir::new(&args.to);
    if !from.has_log() {
        return Err(from.missing());
    }
    if to.has_log() {
        let failure = Failure::new(format!("{} holds a store already", args.to.display()));
        return Err(failure.hint("name a directory that is empty or not there yet").into());
    }
    to.create()?;
    let _locks = (block_on(local::lock(&from))?, block_on(local::lock(&to))?);
    let segment_bytes = Options::default().segment_bytes;
    let bar = count_bar("repairing", app.out.is_json());
    let report = salvage::repair(&storage(&from), &storage(&to), segment_bytes, |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    verify::print(&report?, app)?;
    if app.out.is_json() {
        return Ok(());
    }
    app.out.line(format!(
        "What is sound is in {}; {} is as it was.",
        args.to.display(),
        from.path().display()
    ))
}

fn storage(dir: &DataDir) -> Arc<dyn Storage> {
    Arc::new(FileStorage::new(dir.path()))
}
