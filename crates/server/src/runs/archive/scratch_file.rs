//! A file that lives as long as it is open.
//!
//! It has no name, so a killed server leaves nothing behind.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use turnkeep_runtime::ids::{IdSource, RunId};

use super::ArchiveError;
use crate::runs::{RunServices, Runs};

/// Makes an empty file that can be read and written.
pub(crate) async fn create_scratch_file(runs: &Runs) -> Result<File, ArchiveError> {
    let services = Arc::clone(&runs.services);
    let create = move || create_blocking(&services);
    Ok(runs.services.run_blocking(create).await??)
}

/// Makes an empty file that can be read and written. It blocks.
pub(super) fn create_blocking(services: &RunServices) -> io::Result<File> {
    let name: RunId = IdSource::draw(&mut services.new_ids());
    create_in(&services.scratch_dir(), &format!("scratch-{name}"))
}

fn create_in(dir: &Path, name: &str) -> io::Result<File> {
    fs::create_dir_all(dir)?;
    let path = dir.join(name);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
