//! `turnkeep import`: fills an empty data directory from an export.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;
use turnkeep_journal::{FileStorage, Storage};
use turnkeep_store::Options;
use turnkeep_store::archive::{self, ImportError, Imported};

use super::App;
use crate::config::ServeFlags;
use crate::data_dir::DataDir;
use crate::failure::Failure;
use crate::fresh_dir::FreshDir;
use crate::output::bytes_text;
use crate::progress::StepBar;
use crate::session::input_name;

/// Read an export into an empty data directory
///
/// Every id, time and hash stays the same. An incomplete file is refused and leaves nothing behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep import backup.turnkeep --data ./restored
  zstd -dc backup.turnkeep.zst | turnkeep import - --data ./restored")]
pub(crate) struct ImportArgs {
    /// The export: a file, or - for standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
}

pub(crate) fn run_import(args: &ImportArgs, app: &mut App) -> Result<()> {
    let dir = DataDir::new(&app.config_of_files(&ServeFlags::default())?.data.value);
    // Before the directory is made: a missing file must not leave one behind.
    let mut input = open_input(&args.file)?;
    let fresh = FreshDir::prepare(dir)?;
    let imported = import_into(fresh.dir(), &mut *input, app);
    let Imported { frames, bytes } =
        imported.map_err(|error| explain_import_error(&error, &args.file))?;
    let path = fresh.dir().path().display().to_string();
    fresh.keep();
    if app.out.is_json() {
        return app.out.json(&json!({ "frames": frames, "bytes": bytes }));
    }
    let size = bytes_text(bytes);
    app.out
        .line(format!("imported {frames} frames, {size}, into {path}"))
}

fn import_into(dir: &DataDir, input: &mut dyn Read, app: &App) -> Result<Imported, ImportError> {
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(dir.path()));
    let segment_bytes = Options::default().segment_bytes;
    let bar = StepBar::new("importing", app.out.is_json());
    archive::import(&storage, segment_bytes, input, |done, all| {
        bar.show(done, all);
    })
}

fn open_input(path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

fn explain_import_error(error: &ImportError, file: &Path) -> Failure {
    match error {
        // Only here is the file itself at fault. The other errors are about the disk.
        ImportError::Malformed(_) => {
            Failure::new(format!("cannot import {}: {error}", input_name(file)))
                .hint("the file must be one that `turnkeep export` wrote, complete and unchanged")
        }
        _ => Failure::new(format!("cannot import {}: {error}", input_name(file))),
    }
}
