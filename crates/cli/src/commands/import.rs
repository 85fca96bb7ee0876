//! `turnkeep import`: a whole store from one file.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;
use turnkeep_journal::{FileStorage, Storage};
use turnkeep_store::Options;
use turnkeep_store::archive::{self, ImportError};

use super::App;
use crate::data_dir::DataDir;
use crate::failure::Failure;
use crate::local;
use crate::output::bytes_text;
use crate::progress::count_bar;
use crate::runtime::block_on;

/// Read an export into an empty data directory
///
/// Every id, stamp and hash is what it was. A file that is not whole is refused and leaves nothing
/// behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep import backup.turnkeep --data ./restored
  zstd -dc backup.turnkeep.zst | turnkeep import - --data ./restored")]
pub(crate) struct Args {
    /// The export: a file, or - for standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<()> {
    let dir = DataDir::new(&app.config()?.data.value);
    let mut input = open(&args.file)?;
    dir.create()?;
    let _lock = block_on(local::lock(&dir))?;
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(dir.path()));
    let segment_bytes = Options::default().segment_bytes;
    let bar = count_bar("importing", app.out.is_json());
    let imported = archive::import(&storage, segment_bytes, &mut input, |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let imported = imported.map_err(|error| explain(&error, &args.file, &dir))?;
    if app.out.is_json() {
        return app.out.json(&json!({ "frames": imported.frames, "bytes": imported.bytes }));
    }
    let size = bytes_text(imported.bytes);
    app.out.line(format!("imported {} frames, {size}, into {}", imported.frames, dir.path().display()))
}

fn open(path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

fn explain(error: &ImportError, file: &Path, dir: &DataDir) -> Failure {
    match error {
        ImportError::NotEmpty => Failure::new(format!("{} holds a store already", dir.path().display()))
            .hint("an import needs an empty directory: name one with --data DIR"),
        ImportError::Malformed(_) => Failure::new(format!("cannot import {}: {error}", file.display()))
            .hint("the file must be one that `turnkeep export` wrote, complete and unchanged"),
        _ => Failure::new(format!("cannot import {}: {error}", file.display())),
    }
}
