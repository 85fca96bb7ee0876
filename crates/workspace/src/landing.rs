//! Writes the difference between two trees into a directory: all of it, or nothing.
//!
//! The new files are written to a staging directory inside the workspace, then moved into place one by
//! one. The old files move into the staging directory and stay there until the end:
//!
//! ```text
//!  .turnkeep-landing-1/
//!      journal.json      what each step expects and writes; exists from the first move to the last
//!      0.new  1.new      the new contents that are not in place yet
//!      0.old  2.old      the files that were in their place
//! ```
//!
//! 1. *Check*: every file on disk must be as the `from` tree says. Otherwise nothing is written.
//! 2. *Move*: each step compares the file once more after it took it out of the way. So an edit between
//!    check and move is seen, whenever it happens.
//! 3. A failure undoes all steps in reverse order. A file that someone has edited after its step stays
//!    as it is.
//! 4. Removing the journal completes the landing.
//!
//! After a crash [`recover_interrupted`] finds the journal and undoes the steps. Undoing looks at the
//! files alone, so it can itself be repeated. A lock on the directory keeps two landings apart.

mod journal;
mod undo;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use turnkeep_types::BlobHash;

use crate::error::WorkspaceError;
use crate::root_dir::{OnDisk, Place, RootDir};
use crate::tree::{
    ChangeContents, FileContent, FileMode, TreeChange, TreeName, Trees, read_changes,
};
use crate::tree_path::TreePath;

pub use undo::{Recovery, recover_interrupted};

/// How the names of staging directories begin. Snapshots leave such directories out.
pub(crate) const STAGING_PREFIX: &str = ".turnkeep-landing-";

/// How many staging directories may exist at a time. More than one is left over only if a rollback
/// could not put a file back.
const STAGING_DIRECTORIES_MAX: usize = 100;

/// How a landing ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "files may be as they were, because they had changed"]
pub enum LandOutcome {
    /// The directory has the new contents.
    Landed {
        /// The files that changed. Empty if there was nothing to change.
        paths: Vec<TreePath>,
        /// The files that had their new contents already, so that a repeated landing changes nothing.
        unchanged: Vec<TreePath>,
    },
    /// Files are not as expected. The directory is as it was.
    Conflicts { paths: Vec<TreePath> },
}

/// From which tree to which, and for which paths.
pub(crate) struct LandRequest<'a> {
    pub(crate) from: &'a TreeName,
    pub(crate) to: &'a TreeName,
    /// `None` means all paths.
    pub(crate) only: Option<&'a [TreePath]>,
}

/// Turns the files of one tree into those of another.
pub(crate) fn land_tree(
    directory: &Path,
    trees: &dyn Trees,
    request: &LandRequest<'_>,
) -> Result<LandOutcome, WorkspaceError> {
    let mut changes = trees.list_changes(request.from, request.to)?;
    if let Some(only) = request.only {
        changes.retain(|change| only.contains(&change.path));
    }
    land_changes(directory, trees, &changes, &mut |_| Ok(()))
}

/// Called before each move, so that tests can interfere.
type BeforeMove<'a> = dyn FnMut(&TreePath) -> io::Result<()> + 'a;

fn land_changes(
    directory: &Path,
    trees: &dyn Trees,
    changes: &[TreeChange],
    before_move: &mut BeforeMove<'_>,
) -> Result<LandOutcome, WorkspaceError> {
    if changes.is_empty() {
        return Ok(LandOutcome::Landed {
            paths: Vec::new(),
            unchanged: Vec::new(),
        });
    }
    let root = open_locked(directory)?;
    // Otherwise the check would compare files that an earlier landing left halfway.
    undo::recover_locked(&root)?;
    let mut landing = Landing::begin(&root)?;
    let staged = landing.stage_all(trees, changes);
    match staged {
        Ok(conflicts) if conflicts.is_empty() => landing.commit(before_move),
        Ok(paths) => {
            landing.staging.remove(landing.steps.len());
            Ok(LandOutcome::Conflicts { paths })
        }
        Err(error) => {
            landing.staging.remove(changes.len());
            Err(error)
        }
    }
}

/// Opens a directory and waits until no other landing works in it.
fn open_locked(directory: &Path) -> Result<RootDir, WorkspaceError> {
    let root = RootDir::open(directory).map_err(WorkspaceError::file("open", directory))?;
    // The kernel releases the lock when the process ends, however it ends.
    rustix::fs::flock(root.fd(), FlockOperation::LockExclusive)
        .map_err(WorkspaceError::file("lock", directory))?;
    Ok(root)
}

/// What a file is, in short. Files with equal fingerprints are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    mode: FileMode,
    hash: BlobHash,
}

/// One file of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    path: TreePath,
    before: Option<Fingerprint>,
    after: Option<Fingerprint>,
}

/// Which of a step's files in the staging directory.
#[derive(Debug, Clone, Copy)]
enum Role {
    New,
    Old,
    /// A new file that was taken back.
    Undone,
}

/// What a comparison of one file with its expected content found.
enum Staged {
    /// It is as expected, and its new content waits in the staging directory.
    Ready,
    /// It has its new content already.
    Unchanged,
    /// It is something else.
    Conflict,
}

/// The staging directory.
struct Staging {
    path: PathBuf,
    fd: OwnedFd,
}

struct Landing<'a> {
    root: &'a RootDir,
    staging: Staging,
    steps: Vec<Step>,
    /// The files that need no step: somebody, or an earlier landing, has written them.
    unchanged: Vec<TreePath>,
    /// The directories that the landing creates, so that a rollback can remove them.
    new_directories: BTreeSet<TreePath>,
}

/// Why a step failed.
enum StepError {
    /// The file is not as expected.
    Conflict,
    Failed(io::Error),
}

impl From<io::Error> for StepError {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            // Someone removed, created or replaced the file or a directory around it.
            Some(
                Errno::NOENT
                | Errno::EXIST
                | Errno::NOTDIR
                | Errno::ISDIR
                | Errno::LOOP
                | Errno::NOTEMPTY,
            ) => Self::Conflict,
            _ => Self::Failed(error),
        }
    }
}

impl<'a> Landing<'a> {
    fn begin(root: &'a RootDir) -> Result<Self, WorkspaceError> {
        Ok(Self {
            root,
            staging: Staging::create(root)?,
            steps: Vec::new(),
            unchanged: Vec::new(),
            new_directories: BTreeSet::new(),
        })
    }

    /// Compares all files and writes the new contents. Returns the paths that are not as expected.
    fn stage_all(
        &mut self,
        trees: &dyn Trees,
        changes: &[TreeChange],
    ) -> Result<Vec<TreePath>, WorkspaceError> {
        // A submodule is a repository of its own, and its files are not in the tree.
        let submodules = changes.iter().filter(|change| has_submodule(change));
        let mut conflicts: Vec<TreePath> = submodules.map(|change| change.path.clone()).collect();
        if !conflicts.is_empty() {
            return Ok(conflicts);
        }
        let removed: Vec<&TreePath> = changes
            .iter()
            .filter(|change| change.after.is_none())
            .map(|change| &change.path)
            .collect();
        read_changes(trees, changes, &mut |contents| {
            let path = &contents.change.path;
            match self.stage(contents, &removed)? {
                Staged::Ready => {}
                Staged::Unchanged => self.unchanged.push(path.clone()),
                Staged::Conflict => conflicts.push(path.clone()),
            }
            Ok(())
        })?;
        Ok(conflicts)
    }

    /// Compares one file and writes its new content.
    fn stage(
        &mut self,
        contents: &ChangeContents<'_>,
        removed: &[&TreePath],
    ) -> Result<Staged, WorkspaceError> {
        let path = &contents.change.path;
        let file_error = |error: io::Error| {
            WorkspaceError::file("stage", &self.root.path.join(path.as_path()))(error)
        };
        let on_disk = self.root.read(path).map_err(file_error)?;
        let is_expected = match (&contents.before, &on_disk) {
            (Some(expected), OnDisk::File(found)) => expected == found,
            (None, OnDisk::Nothing) => true,
            // A directory becomes a file, or a file becomes a directory. Whether other files are in
            // the way shows when the file moves.
            (None, OnDisk::Other) => removed
                .iter()
                .any(|other| is_above(other, path) || is_above(path, other)),
            _ => false,
        };
        if !is_expected && has_new_content(&on_disk, contents) {
            return Ok(Staged::Unchanged);
        }
        if let (true, Some(content)) = (is_expected, &contents.after) {
            let place = self.staging.place(self.steps.len(), Role::New);
            let permissions = self.find_permissions(contents);
            place
                .and_then(|place| place.create(content, permissions))
                .map_err(file_error)?;
        }
        self.note_new_directories(path);
        self.steps.push(Step {
            path: path.clone(),
            before: contents.before.as_ref().map(fingerprint),
            after: contents.after.as_ref().map(fingerprint),
        });
        Ok(if is_expected {
            Staged::Ready
        } else {
            Staged::Conflict
        })
    }

    /// The permissions of a file that the landing replaces. A tree knows only the executable bit, and
    /// the others are the user's.
    fn find_permissions(&self, contents: &ChangeContents<'_>) -> Option<u32> {
        // Those of a link mean nothing.
        let before = contents.before.as_ref()?;
        if before.mode == FileMode::Symlink {
            return None;
        }
        self.root.locate(&contents.change.path).ok()?.permissions()
    }

    fn note_new_directories(&mut self, path: &TreePath) {
        for ancestor in path
            .ancestors()
            .filter_map(|above| TreePath::new(above).ok())
        {
            if !self.root.has_directory(&ancestor) {
                self.new_directories.insert(ancestor);
            }
        }
    }

    /// Moves all files into place.
    fn commit(self, before_move: &mut BeforeMove<'_>) -> Result<LandOutcome, WorkspaceError> {
        // Before the first move: after a crash only the journal says what to undo.
        journal::write(&self.staging, &self.steps, &self.new_directories)?;
        for number in move_order(&self.steps) {
            let Some(step) = self.steps.get(number) else {
                continue;
            };
            let moved = before_move(&step.path)
                .map_err(StepError::Failed)
                .and_then(|()| self.move_into_place(number, step));
            match moved {
                Ok(()) => {}
                Err(StepError::Conflict) => {
                    let paths = vec![step.path.clone()];
                    self.roll_back()?;
                    return Ok(LandOutcome::Conflicts { paths });
                }
                Err(StepError::Failed(error)) => {
                    let path = self.root.path.join(step.path.as_path());
                    self.roll_back()?;
                    return Err(WorkspaceError::file("write", &path)(error));
                }
            }
        }
        self.complete()
    }

    fn roll_back(self) -> Result<(), WorkspaceError> {
        undo::undo_all(self.root, &self.staging, &self.steps, &self.new_directories)
    }

    fn complete(self) -> Result<LandOutcome, WorkspaceError> {
        // From here on a crash leaves a complete landing and a directory to clean up.
        journal::remove(&self.staging)?;
        self.staging.remove(self.steps.len());
        // As git does: a directory without files is not part of a tree.
        for step in self.steps.iter().filter(|step| step.after.is_none()) {
            self.root.remove_empty_parents(&step.path);
        }
        Ok(LandOutcome::Landed {
            paths: self.steps.into_iter().map(|step| step.path).collect(),
            unchanged: self.unchanged,
        })
    }

    fn move_into_place(&self, number: usize, step: &Step) -> Result<(), StepError> {
        let new = self.staging.place(number, Role::New)?;
        match (step.before, step.after) {
            (Some(before), Some(_)) => {
                let target = self.root.locate(&step.path)?;
                let old = self.staging.place(number, Role::Old)?;
                // An exchange leaves no moment at which the file is missing.
                if new.exchange_with(&target)? {
                    new.move_to(&old)?;
                    return check_taken(&old, before);
                }
                target.move_to(&old)?;
                check_taken(&old, before)?;
                Ok(new.move_to(&target)?)
            }
            (Some(before), None) => {
                let old = self.staging.place(number, Role::Old)?;
                self.root.locate(&step.path)?.move_to(&old)?;
                check_taken(&old, before)
            }
            (None, Some(_)) => {
                self.clear_directories_below(&step.path);
                let target = self.root.locate_or_create(&step.path)?;
                Ok(new.move_to(&target)?)
            }
            (None, None) => Ok(()),
        }
    }

    /// Removes the directories that earlier steps emptied and that are where a file goes.
    fn clear_directories_below(&self, path: &TreePath) {
        if !self.root.has_directory(path) {
            return;
        }
        for step in self.steps.iter().filter(|step| is_above(path, &step.path)) {
            self.root.remove_empty_parents(&step.path);
        }
    }
}

/// Whether a file is as the landing would leave it.
fn has_new_content(on_disk: &OnDisk, contents: &ChangeContents<'_>) -> bool {
    match (&contents.after, on_disk) {
        (Some(wanted), OnDisk::File(found)) => wanted == found,
        (None, OnDisk::Nothing) => true,
        _ => false,
    }
}

/// Compares a file after it was taken out of the way.
fn check_taken(old: &Place, before: Fingerprint) -> Result<(), StepError> {
    if fingerprint_at(old)? == Some(before) {
        Ok(())
    } else {
        Err(StepError::Conflict)
    }
}

/// Removals first: a file may take the place of a directory, and the other way round.
fn move_order(steps: &[Step]) -> Vec<usize> {
    let is_removal = |number: &usize| steps.get(*number).is_some_and(|step| step.after.is_none());
    let (removals, others): (Vec<usize>, Vec<usize>) = (0..steps.len()).partition(is_removal);
    [removals, others].concat()
}

/// Whether a path is a directory around another path.
fn is_above(above: &TreePath, below: &TreePath) -> bool {
    below
        .ancestors()
        .any(|ancestor| ancestor == above.as_bytes())
}

fn has_submodule(change: &TreeChange) -> bool {
    let mut files = [&change.before, &change.after].into_iter().flatten();
    files.any(|file| file.mode == FileMode::Submodule)
}

fn fingerprint(content: &FileContent) -> Fingerprint {
    Fingerprint {
        mode: content.mode,
        hash: BlobHash::of(&content.bytes),
    }
}

/// The fingerprint of the file at a place. `None` if there is no file.
fn fingerprint_at(place: &Place) -> io::Result<Option<Fingerprint>> {
    match place.read()? {
        OnDisk::File(content) => Ok(Some(fingerprint(&content))),
        OnDisk::Nothing | OnDisk::Other => Ok(None),
    }
}

impl Staging {
    fn create(root: &RootDir) -> Result<Self, WorkspaceError> {
        for number in 1..=STAGING_DIRECTORIES_MAX {
            let path = root.path.join(format!("{STAGING_PREFIX}{number}"));
            match fs::create_dir(&path) {
                Ok(()) => return Self::open(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(WorkspaceError::file("create", &path)(error)),
            }
        }
        Err(WorkspaceError::RollbackIncomplete(root.path.clone()))
    }

    fn open(path: PathBuf) -> Result<Self, WorkspaceError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(WorkspaceError::file("open", &path))?;
        Ok(Self { path, fd })
    }

    fn place(&self, number: usize, role: Role) -> io::Result<Place> {
        let ending = match role {
            Role::New => "new",
            Role::Old => "old",
            Role::Undone => "undone",
        };
        Ok(Place {
            directory: self.fd.try_clone()?,
            name: OsString::from(format!("{number}.{ending}")),
        })
    }

    /// Removes the directory with the files of that many steps. A rest that cannot be removed has no
    /// journal, and the next landing tries again.
    fn remove(&self, steps: usize) {
        for number in 0..steps {
            for role in [Role::New, Role::Old, Role::Undone] {
                let removed = self.place(number, role).and_then(|place| place.remove());
                removed.unwrap_or_default();
            }
        }
        fs::remove_dir(&self.path).unwrap_or_default();
    }
}
