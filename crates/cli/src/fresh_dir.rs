//! The directory that an import or a repair fills.
//!
//! It must be empty, apart from the files that a server makes before its first write. If the import
//! or the repair fails, the directory is left as it was: everything that was made here is removed.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use turnkeep_journal::DataDirLock;

use crate::data_dir::DataDir;
use crate::failure::Failure;
use crate::local;
use crate::runtime::block_on;

const EMPTY_HINT: &str = "name a directory that is empty or not there yet";

/// A locked, empty data directory. Dropping it removes the files and directories that it created,
/// unless the caller has kept it.
pub(crate) struct FreshDir {
    dir: DataDir,
    /// The files and directories that did not exist before, in the order of their removal.
    made: Vec<PathBuf>,
    keep: bool,
    _lock: DataDirLock,
}

impl FreshDir {
    /// Makes the directory if it does not exist, and locks it. Refuses a directory with content.
    pub(crate) fn prepare(dir: DataDir) -> Result<Self> {
        refuse_content(&dir)?;
        let path = std::path::absolute(dir.path()).context("cannot name the data directory")?;
        // The order matters for the removal: first the content, then the directories around it.
        let content = ["log", "LOCK"].map(|name| path.join(name)).into_iter();
        let folders = path.ancestors().map(Path::to_owned);
        let all = content.chain(folders);
        let made: Vec<_> = all.filter(|path| !path.exists()).collect();
        match dir.create().and_then(|()| block_on(local::lock_dir(&dir))) {
            Ok(lock) => Ok(Self {
                dir,
                made,
                keep: false,
                _lock: lock,
            }),
            Err(error) => {
                remove_made(&made);
                Err(error)
            }
        }
    }

    pub(crate) fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// Keeps the directory, because it is complete.
    pub(crate) fn keep(mut self) {
        self.keep = true;
    }
}

impl Drop for FreshDir {
    fn drop(&mut self) {
        if !self.keep {
            remove_made(&self.made);
        }
    }
}

/// Removes what was made. Only the log is removed with its content. Every other directory must be
/// empty: if another program has started to use it, it stays.
fn remove_made(made: &[PathBuf]) {
    for path in made.iter().filter(|path| path.exists()) {
        let removed = match path.file_name().and_then(|name| name.to_str()) {
            Some("log") if path.is_dir() => fs::remove_dir_all(path),
            Some("LOCK") if path.is_file() => fs::remove_file(path),
            _ => fs::remove_dir(path),
        };
        if let Err(error) = removed {
            tracing::warn!(path = %path.display(), %error, "cannot be removed again");
        }
    }
}

fn refuse_content(dir: &DataDir) -> Result<()> {
    let path = dir.path().display();
    dir.refuse_unfinished()?;
    if dir.has_log() {
        return Failure::new(format!("{path} holds a store already"))
            .hint(EMPTY_HINT)
            .fail();
    }
    let names = match names_in(dir.path()) {
        Ok(names) => names,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
    };
    // A server that stopped before its first write leaves these.
    let is_foreign = |name: &&OsString| !["LOCK", "token", "run"].iter().any(|own| *name == own);
    let Some(name) = names.iter().find(is_foreign) else {
        return Ok(());
    };
    let name = name.to_string_lossy();
    Failure::new(format!("{path} is not empty: it holds {name}"))
        .hint(EMPTY_HINT)
        .fail()
}

fn names_in(dir: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(dir)?
        .map(|entry| Ok(entry?.file_name()))
        .collect()
}
