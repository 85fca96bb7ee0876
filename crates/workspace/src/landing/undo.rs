//! Undoes the steps of a landing that did not come to its end.
//!
//! Each step is undone from what is on disk, not from what the process remembers, so the same code
//! serves a failed landing and one that a crash interrupted, at any point. A file that is neither the
//! old nor the new content was written by someone else in the meantime, and stays.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::journal::{self, Found, Journal};
use super::{
    Role, STAGING_DIRECTORIES_MAX, STAGING_PREFIX, Staging, Step, fingerprint_at, move_order,
    open_locked,
};
use crate::error::WorkspaceError;
use crate::root_dir::{OnDisk, RootDir};
use crate::tree_path::TreePath;

/// What was done about interrupted landings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The paths of the landings that were undone.
    pub undone: Vec<TreePath>,
}

/// Undoes what an interrupted landing left behind in a directory. Call it before the first use of the
/// directory after a start.
pub fn recover_interrupted(directory: &Path) -> Result<Recovery, WorkspaceError> {
    recover_locked(&open_locked(directory)?)
}

/// The same for a directory that is already locked.
pub(super) fn recover_locked(root: &RootDir) -> Result<Recovery, WorkspaceError> {
    let mut recovery = Recovery::default();
    for path in find_staging(&root.path)? {
        let staging = Staging::open(path)?;
        match journal::read(&staging) {
            Found::Journal(journal) => {
                let Journal {
                    steps,
                    new_directories,
                } = journal;
                undo_all(root, &staging, &steps, &new_directories)?;
                recovery
                    .undone
                    .extend(steps.into_iter().map(|step| step.path));
            }
            // Without a journal no step needs to be undone.
            Found::Nothing => remove_rest(&staging)?,
            Found::Damaged => return Err(WorkspaceError::RollbackIncomplete(staging.path)),
        }
    }
    recovery.undone.sort();
    Ok(recovery)
}

fn find_staging(root: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
    let mut found = Vec::new();
    let entries = fs::read_dir(root).map_err(WorkspaceError::file("list", root))?;
    for entry in entries {
        let entry = entry.map_err(WorkspaceError::file("list", root))?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name();
        if is_directory
            && name
                .as_encoded_bytes()
                .starts_with(STAGING_PREFIX.as_bytes())
        {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Removes a staging directory whose landing is complete or never moved a file. Its old files are
/// those that the landing replaced as asked. A landing puts no directory there, so one that is there
/// stays.
fn remove_rest(staging: &Staging) -> Result<(), WorkspaceError> {
    let error = || WorkspaceError::file("remove", &staging.path);
    for entry in fs::read_dir(&staging.path).map_err(error())? {
        let entry = entry.map_err(error())?;
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            fs::remove_file(entry.path()).map_err(error())?;
        }
    }
    // A rest that stays is no error: the next landing takes another name.
    fs::remove_dir(&staging.path).unwrap_or_default();
    Ok(())
}

/// Undoes all steps, then removes the staging directory.
///
/// If a step cannot be undone now, for example because a directory is read-only, the journal stays and
/// the next landing or start tries again. If a file of someone else's is in the staging directory and
/// another one has its place, the directory gets another name and stays.
pub(super) fn undo_all(
    root: &RootDir,
    staging: &Staging,
    steps: &[Step],
    new_directories: &BTreeSet<TreePath>,
) -> Result<(), WorkspaceError> {
    let order = move_order(steps);
    let is_addition = |number: &usize| steps.get(*number).is_some_and(|step| step.after.is_some());
    let (additions, removals): (Vec<usize>, Vec<usize>) = order.into_iter().partition(is_addition);
    let undo = |numbers: &[usize]| undo_steps(root, staging, steps, numbers);
    let mut has_leftovers = undo(&additions)?;
    // Before the removed files return: one of them may be where a new directory is.
    remove_new_directories(root, new_directories);
    has_leftovers |= undo(&removals)?;
    if has_leftovers {
        return Err(WorkspaceError::RollbackIncomplete(set_aside(staging)?));
    }
    journal::remove(staging)?;
    staging.remove(steps.len());
    Ok(())
}

/// Undoes these steps, the last one first. Returns whether a file of someone else's stays in the
/// staging directory.
fn undo_steps(
    root: &RootDir,
    staging: &Staging,
    steps: &[Step],
    numbers: &[usize],
) -> Result<bool, WorkspaceError> {
    let mut has_leftovers = false;
    for number in numbers.iter().rev() {
        let Some(step) = steps.get(*number) else {
            continue;
        };
        let undone = undo_step(root, staging, *number, step);
        let incomplete = |_| WorkspaceError::RollbackIncomplete(staging.path.clone());
        has_leftovers |= undone.map_err(incomplete)? == Undone::LeftAside;
    }
    Ok(has_leftovers)
}

/// Removes the directories that the landing made, the deepest first.
fn remove_new_directories(root: &RootDir, new_directories: &BTreeSet<TreePath>) {
    let mut directories: Vec<&TreePath> = new_directories.iter().collect();
    directories.sort_by_key(|path| std::cmp::Reverse(path.as_bytes().len()));
    for directory in directories {
        // It does not exist, or someone else put a file into it.
        root.remove_directory(directory).unwrap_or_default();
    }
}

/// What became of a step's old file.
#[derive(PartialEq, Eq)]
enum Undone {
    /// It is back, or its content is in the tree.
    Complete,
    /// It is someone else's and stays in the staging directory.
    LeftAside,
}

/// Renames a staging directory so that it is not taken for a landing any more.
fn set_aside(staging: &Staging) -> Result<PathBuf, WorkspaceError> {
    let parent = staging.path.parent().unwrap_or(&staging.path);
    let free =
        (1..=STAGING_DIRECTORIES_MAX).map(|number| parent.join(format!("turnkeep-saved-{number}")));
    let target = free
        .into_iter()
        .find(|path| fs::symlink_metadata(path).is_err());
    let target = target.unwrap_or_else(|| staging.path.clone());
    fs::rename(&staging.path, &target).map_err(WorkspaceError::file("rename", &target))?;
    Ok(target)
}

/// Undoes one step.
fn undo_step(root: &RootDir, staging: &Staging, number: usize, step: &Step) -> io::Result<Undone> {
    let old = staging.place(number, Role::Old)?;
    let new = staging.place(number, Role::New)?;
    // Between an exchange and the rename after it, the old file has the new file's name.
    let is_staged = new.read()? != OnDisk::Nothing;
    if step.before.is_some() && is_staged && fingerprint_at(&new)? != step.after {
        new.move_to(&old)?;
    }
    if old.read()? == OnDisk::Nothing {
        if step.before.is_none() && new.read()? == OnDisk::Nothing {
            take_back(root, staging, number, step)?;
        }
        return Ok(Undone::Complete);
    }
    take_back(root, staging, number, step)?;
    let target = root.locate_or_create(&step.path)?;
    match old.move_to(&target) {
        Ok(()) => Ok(Undone::Complete),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::EXIST) => {
            // Someone wrote the file again. The old content may go only if it is in the tree.
            let is_known = fingerprint_at(&old)? == step.before;
            Ok(if is_known {
                Undone::Complete
            } else {
                Undone::LeftAside
            })
        }
        Err(error) => Err(error),
    }
}

/// Takes the new file away, if it is still as the landing wrote it.
fn take_back(root: &RootDir, staging: &Staging, number: usize, step: &Step) -> io::Result<()> {
    let Ok(target) = root.locate(&step.path) else {
        return Ok(());
    };
    if step.after.is_none() || fingerprint_at(&target)? != step.after {
        return Ok(());
    }
    let undone = staging.place(number, Role::Undone)?;
    target.move_to(&undone)?;
    // Someone may have written the file between the comparison and the move.
    if fingerprint_at(&undone)? == step.after {
        undone.remove()
    } else {
        undone.move_to(&target)
    }
}
