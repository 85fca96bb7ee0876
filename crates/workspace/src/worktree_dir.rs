//! The directory of one worktree: `<worktrees>/<run>/<name>`.
//!
//! Git connects a worktree in both directions: the file `.git` in it names git's own directory about it
//! (the *admin directory*), and the file `gitdir` there names the worktree. A program in the worktree
//! can change the first one. So the connection counts only if both directions agree.
//!
//! Beside the worktree, the file `<name>.complete` names the admin directory. It is written when all
//! files are in place. A directory without it was never handed to a program and may be made again. A
//! directory with it is never deleted without a look at its content, whatever happened to its `.git`.
//!
//! Directories are deleted only here, and only after resolving all links.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::WorkspaceError;
use crate::repository::{Repository, replace_file};
use crate::tree::check_id;

/// The directory of a worktree, which need not exist.
pub(crate) struct WorktreeDir<'a> {
    repository: &'a Repository,
    pub(crate) root: PathBuf,
}

impl<'a> WorktreeDir<'a> {
    /// Finds the place of a worktree and makes sure that its parent exists.
    pub(crate) fn locate(
        repository: &'a Repository,
        run: &str,
        name: &str,
    ) -> Result<Self, WorkspaceError> {
        let run = check_id(run, "run")?;
        let parent = repository.settings.worktrees_dir.join(run);
        let error = || WorkspaceError::file("create", &parent);
        fs::create_dir_all(&parent).map_err(error())?;
        // Resolved here, so that later comparisons see the real place.
        let root = parent.canonicalize().map_err(error())?.join(name);
        Ok(Self { repository, root })
    }

    /// Git's directory about this worktree, if both directions of the connection agree.
    pub(crate) fn find_admin_dir(&self) -> Option<PathBuf> {
        let link = read_path_file(&self.root.join(".git"), b"gitdir: ").ok()??;
        let admin = self.root.join(link);
        self.is_admin_dir(&admin).then_some(admin)
    }

    /// Whether a directory is git's directory about this worktree, and not about another one.
    fn is_admin_dir(&self, admin: &Path) -> bool {
        let worktrees = self.repository.common_dir.join("worktrees");
        let (Ok(worktrees), Ok(resolved)) = (worktrees.canonicalize(), admin.canonicalize()) else {
            return false;
        };
        let back = read_path_file(&admin.join("gitdir"), b"").ok().flatten();
        // The link names the file `.git`, which may be missing; its directory is not.
        let points_here = back
            .and_then(|link| admin.join(link).parent()?.canonicalize().ok())
            .is_some_and(|directory| directory == self.root);
        resolved.parent() == Some(worktrees.as_path()) && points_here
    }

    /// Git's directory about a complete worktree. `None` if the worktree is to be made. A broken link
    /// from the worktree to git is repaired.
    pub(crate) fn find_complete(&self) -> Result<Option<PathBuf>, WorkspaceError> {
        let mark = read_path_file(&self.complete_mark(), b"").ok().flatten();
        let Some(admin) = mark.filter(|_| fs::symlink_metadata(&self.root).is_ok()) else {
            return Ok(None);
        };
        self.check_is_ours()?;
        if !self.is_admin_dir(&admin) {
            return Err(WorkspaceError::Disconnected(self.root.clone()));
        }
        if self.find_admin_dir().as_ref() != Some(&admin) {
            self.repair_link(&admin)?;
        }
        Ok(Some(admin))
    }

    /// Marks the worktree as complete.
    pub(crate) fn mark_complete(&self, admin: &Path) -> Result<(), WorkspaceError> {
        replace_file(&self.complete_mark(), admin.as_os_str().as_bytes())
    }

    fn complete_mark(&self) -> PathBuf {
        self.root.with_extension("complete")
    }

    fn repair_link(&self, admin: &Path) -> Result<(), WorkspaceError> {
        let link = self.root.join(".git");
        if link.is_dir() {
            // A repository of its own in place of the link: someone's work.
            return Err(WorkspaceError::Disconnected(self.root.clone()));
        }
        let content = [b"gitdir: ", admin.as_os_str().as_bytes(), b"\n"].concat();
        replace_file(&link, &content)
    }

    /// Deletes the directory, git's directory about it, and the mark.
    pub(crate) fn delete(&self) -> Result<(), WorkspaceError> {
        if fs::symlink_metadata(&self.root).is_ok() {
            self.check_is_ours()?;
            let admin = self.find_admin_dir();
            remove_all(&self.root)?;
            admin.as_deref().map_or(Ok(()), remove_all)?;
        }
        match fs::remove_file(self.complete_mark()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(WorkspaceError::file("remove", &self.complete_mark())(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes the directory of the run if no worktree is left in it.
    pub(crate) fn remove_empty_parent(&self) {
        if let Some(parent) = self.root.parent() {
            // It stays if it is not empty.
            fs::remove_dir(parent).unwrap_or_default();
        }
    }

    /// Checks that the directory is `<worktrees>/<run>/<name>` and no link.
    fn check_is_ours(&self) -> Result<(), WorkspaceError> {
        let not_ours = || WorkspaceError::NotOurs(self.root.clone());
        let resolve = |path: &Path| path.canonicalize().map_err(|_| not_ours());
        let ours = resolve(&self.repository.settings.worktrees_dir)?;
        let resolved = resolve(&self.root)?;
        let below = resolved.strip_prefix(&ours).map_err(|_| not_ours())?;
        let is_two_below = below.components().count() == 2;
        if is_two_below && resolved == self.root && self.root.is_dir() {
            Ok(())
        } else {
            Err(not_ours())
        }
    }
}

fn remove_all(directory: &Path) -> Result<(), WorkspaceError> {
    fs::remove_dir_all(directory).map_err(WorkspaceError::file("remove", directory))
}

/// Reads a small file that holds a path behind some fixed text. `None` if it holds something else.
fn read_path_file(file: &Path, before: &[u8]) -> io::Result<Option<PathBuf>> {
    const BYTES_MAX: u64 = 16 << 10;
    let mut bytes = Vec::new();
    fs::File::open(file)?
        .take(BYTES_MAX)
        .read_to_end(&mut bytes)?;
    let path = bytes.strip_prefix(before);
    Ok(path.map(|path| {
        let path = path.strip_suffix(b"\n").unwrap_or(path);
        PathBuf::from(OsStr::from_bytes(path))
    }))
}
