//! Snapshots of a workspace inside a repository.
//!
//! 1. Take the index of the last snapshot, or fill one from the current commit.
//! 2. Ask git which files differ from it and which are untracked and not ignored.
//! 3. Leave out files that are too large or unreadable; add the rest; write the tree.
//! 4. Save the index for the next time.
//!
//! An agent may write files meanwhile. A file that vanishes between steps 2 and 3 makes git fail, and
//! the snapshot begins again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::WorkspaceError;
use crate::git_index::{IndexEdit, PrivateIndex, os_text, parse_raw_record, split_records};
use crate::repository::{Repository, check_object_id};
use crate::tree::{FileMode, SkipReason, SkippedFile, Snapshot, SnapshotName, TreeName, check_id};
use crate::tree_path::TreePath;

/// How the reference to a worktree's first commit begins. No turn has such an id.
pub(crate) const WORKTREE_REF: &str = "worktree-";

/// How often a snapshot is tried while files vanish under it.
const ATTEMPTS_MAX: usize = 5;

/// The changes between the index and the disk.
#[derive(Default)]
struct DiskChanges {
    removed: Vec<Vec<u8>>,
    /// Changed and untracked files.
    present: Vec<Vec<u8>>,
    skipped: Vec<SkippedFile>,
}

/// Records the workspace as a tree.
pub(crate) fn take_snapshot(repository: &Repository) -> Result<Snapshot, WorkspaceError> {
    let mut last_error = None;
    for attempt in 0..ATTEMPTS_MAX {
        // After a second failure the saved index is suspect. Without it the snapshot takes longer.
        if attempt == 2 {
            PrivateIndex::discard_saved(repository);
        }
        match try_snapshot(repository) {
            Err(error @ WorkspaceError::GitFailed { .. }) => last_error = Some(error),
            other => return other,
        }
    }
    let unsteady = || WorkspaceError::Unsteady(repository.top.clone());
    Err(last_error.unwrap_or_else(unsteady))
}

fn try_snapshot(repository: &Repository) -> Result<Snapshot, WorkspaceError> {
    let head = repository.read_head()?;
    let index = PrivateIndex::from_last_snapshot(repository, &head)?;
    let changes = find_changes(repository, &index)?;
    index.edit(
        changes
            .removed
            .iter()
            .map(|path| IndexEdit { path, file: None }),
    )?;
    if !changes.present.is_empty() {
        // Names go through the standard input: the list may be longer than a command line.
        let mut input = changes.present.join(&0);
        input.push(0);
        index
            .git()
            .args([
                "update-index",
                "--add",
                "--remove",
                "--replace",
                "-z",
                "--stdin",
            ])
            .input(input)
            .run()?;
    }
    let tree = index.write_subtree(&repository.prefix)?;
    index.save(&head)?;
    Ok(Snapshot {
        tree,
        skipped: changes.skipped,
    })
}

fn find_changes(
    repository: &Repository,
    index: &PrivateIndex<'_>,
) -> Result<DiskChanges, WorkspaceError> {
    // Without this, git would compare a file whose times changed at every snapshot again.
    let refresh = ["update-index", "-q", "--refresh", "--ignore-submodules"];
    index.git().args(refresh).accept_code(1).run()?;
    let mut changes = DiskChanges::default();
    add_tracked(repository, index, &mut changes)?;
    add_untracked(repository, index, &mut changes)?;
    leave_out_unreadable(repository, &mut changes)?;
    Ok(changes)
}

fn add_tracked(
    repository: &Repository,
    index: &PrivateIndex<'_>,
    changes: &mut DiskChanges,
) -> Result<(), WorkspaceError> {
    let call = index
        .git()
        .args([
            "diff-files",
            "--raw",
            "-z",
            "--no-renames",
            "--ignore-submodules=all",
            "--",
        ])
        .arg(workspace_pathspec(repository));
    let output = call.run()?.stdout;
    let mut records = split_records(&output);
    while let (Some(record), Some(path)) = (records.next(), records.next()) {
        let record = parse_raw_record(record).ok_or(WorkspaceError::GitOutputUnexpected {
            command: "git diff-files".to_owned(),
            what: "record",
        })?;
        match record.after.map(|file| file.mode) {
            // Git says so too when a parent directory became a symbolic link.
            None => changes.removed.push(path.to_vec()),
            // A repository now lies where a file was. The file counts as unchanged.
            Some(FileMode::Submodule) => {
                changes.skip(repository, path, SkipReason::NestedRepository);
            }
            Some(_) => changes.present.push(path.to_vec()),
        }
    }
    Ok(())
}

fn add_untracked(
    repository: &Repository,
    index: &PrivateIndex<'_>,
    changes: &mut DiskChanges,
) -> Result<(), WorkspaceError> {
    let mut call = index
        .git()
        .args(["ls-files", "-z", "--others", "--exclude-standard"]);
    for own in repository.settings.own_directories() {
        if let Some(pattern) = exclude_pattern(&repository.top, own) {
            call = call.arg("--exclude").arg(pattern);
        }
    }
    let output = call.arg("--").arg(workspace_pathspec(repository)).run()?;
    for path in split_records(&output.stdout) {
        // Git lists a repository inside the repository as one directory.
        if path.ends_with(b"/") {
            changes.skip(repository, path, SkipReason::NestedRepository);
        } else if TreePath::new(path).is_err() {
            changes.skip(repository, path, SkipReason::UnsafeName);
        } else {
            changes.present.push(path.to_vec());
        }
    }
    Ok(())
}

/// The pattern that excludes a directory of ours, if it is inside the working tree.
fn exclude_pattern(top: &Path, own: &Path) -> Option<String> {
    let own = own.canonicalize().ok()?;
    let below = own.strip_prefix(top).ok()?.to_str()?;
    // The whole working tree is the caller's own, and then nothing of it can be told apart.
    if below.is_empty() {
        return None;
    }
    let mut pattern = String::from("/");
    for letter in below.chars() {
        if matches!(letter, '*' | '?' | '[' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    Some(pattern)
}

fn workspace_pathspec(repository: &Repository) -> &std::ffi::OsStr {
    if repository.prefix.is_empty() {
        os_text(b".")
    } else {
        os_text(&repository.prefix)
    }
}

/// Removes the files from the list that git must not read, and checks the limits.
fn leave_out_unreadable(
    repository: &Repository,
    changes: &mut DiskChanges,
) -> Result<(), WorkspaceError> {
    let limits = repository.settings.limits;
    if changes.present.len() > limits.files_max {
        return Err(WorkspaceError::TooManyFiles {
            max: limits.files_max,
        });
    }
    let mut bytes = 0_u64;
    for path in std::mem::take(&mut changes.present) {
        let file = repository.top.join(os_text(&path));
        match fs::symlink_metadata(&file) {
            // A pipe or a device in the place of a tracked file: git would fail on it.
            Ok(found) if !found.is_file() && !found.is_symlink() => {
                changes.skip(repository, &path, SkipReason::Unreadable);
            }
            Ok(found) if found.is_file() && found.size() > limits.file_bytes_max => {
                changes.skip(repository, &path, SkipReason::TooLarge);
            }
            Ok(found) if found.is_file() && !is_readable(&file) => {
                changes.skip(repository, &path, SkipReason::Unreadable);
            }
            Ok(found) => {
                bytes = bytes.saturating_add(found.size());
                changes.present.push(path);
            }
            // It vanished: git takes it as removed.
            Err(_) => changes.present.push(path),
        }
    }
    if bytes > limits.total_bytes_max {
        return Err(WorkspaceError::TooManyBytes {
            max: limits.total_bytes_max,
        });
    }
    Ok(())
}

fn is_readable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::READ_OK).is_ok()
}

impl DiskChanges {
    fn skip(&mut self, repository: &Repository, path: &[u8], reason: SkipReason) {
        let path = path
            .strip_prefix(repository.prefix.as_slice())
            .unwrap_or(path);
        let path = String::from_utf8_lossy(path).into_owned();
        self.skipped.push(SkippedFile { path, reason });
    }
}

/// Keeps a tree from garbage collection. The reference points to a commit of the tree, whose parent
/// is the commit that the reference had before.
pub(crate) fn keep_tree(
    repository: &Repository,
    name: SnapshotName<'_>,
    tree: &TreeName,
) -> Result<(), WorkspaceError> {
    let run = check_id(name.run, "run")?;
    let turn = check_id(name.turn, "turn")?;
    let reference = format!("refs/turnkeep/{run}/{turn}");
    let parent = repository.read_ref(&reference)?;
    if let Some(parent) = &parent
        && repository
            .read_ref(&format!("{parent}^{{tree}}"))?
            .as_deref()
            == Some(tree.as_str())
    {
        return Ok(());
    }
    let commit = NewCommit {
        tree,
        parent: parent.as_deref(),
        message: "Workspace recorded by Turnkeep",
        date: Some(FIXED_DATE),
    };
    let commit = commit_tree(repository, &commit)?;
    // The zero id means that the reference must not exist yet.
    let old = parent.unwrap_or_else(|| repository.zero_id());
    update_ref(repository, &reference, &commit, &old)
}

/// A commit to make.
pub(crate) struct NewCommit<'a> {
    pub(crate) tree: &'a TreeName,
    pub(crate) parent: Option<&'a str>,
    pub(crate) message: &'a str,
    /// `None` for the present time.
    pub(crate) date: Option<&'a str>,
}

/// The time of commits that should be the same commit whenever they are made.
pub(crate) const FIXED_DATE: &str = "@946684800 +0000";

/// Makes a commit of a tree. No branch points to it.
pub(crate) fn commit_tree(
    repository: &Repository,
    commit: &NewCommit<'_>,
) -> Result<String, WorkspaceError> {
    let mut call = repository.user_git();
    if let Some(date) = commit.date {
        call = call
            .env("GIT_AUTHOR_DATE", date)
            .env("GIT_COMMITTER_DATE", date);
    }
    call = call.args(["commit-tree", "-m", commit.message]);
    if let Some(parent) = commit.parent {
        call = call.args(["-p", parent]);
    }
    let id = call.arg(commit.tree.as_str()).run_for_line()?;
    check_object_id(id, "git commit-tree")
}

/// Sets a reference if it still has the old value.
pub(crate) fn update_ref(
    repository: &Repository,
    name: &str,
    new: &str,
    old: &str,
) -> Result<(), WorkspaceError> {
    let call = repository.user_git().args(["update-ref", "--no-deref"]);
    call.args([name, new, old]).run().map(drop)
}

/// Deletes the references that keep the snapshots of a run. Those of its worktrees stay as long as the
/// worktrees do.
pub(crate) fn forget_snapshots(repository: &Repository, run: &str) -> Result<(), WorkspaceError> {
    let pattern = format!("refs/turnkeep/{}", check_id(run, "run")?);
    let list = ["for-each-ref", "--format=delete %(refname)"];
    let all = repository.user_git().args(list).arg(&pattern).run()?.stdout;
    let of_worktree = format!("delete {pattern}/{WORKTREE_REF}").into_bytes();
    let deletions: Vec<u8> = all
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !line.starts_with(&of_worktree))
        .collect::<Vec<_>>()
        .concat();
    if deletions.is_empty() {
        return Ok(());
    }
    let call = repository.user_git().args(["update-ref", "--stdin"]);
    call.input(deletions).run().map(drop)
}
