//! The difference between two trees: a patch, the changed files, and the counts of lines.

use std::iter::Peekable;

use crate::error::WorkspaceError;
use crate::git_index::{parse_raw_record, split_records};
use crate::repository::Repository;
use crate::tree::TreeName;
use crate::tree_path::TreePath;

/// The longest patch. A longer one leaves out binary contents, then all contents. The store accepts
/// blobs of this size.
pub(crate) const PATCH_BYTES_MAX: usize = 24 << 20;

/// The difference between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// In git's format; empty if nothing changed.
    pub patch: Vec<u8>,
    pub files: Vec<FileChange>,
    pub lines_added: u64,
    pub lines_removed: u64,
    /// One line, such as `2 files changed, +10 -3`.
    pub summary: String,
    /// Whether the patch has all contents. Large files are only mentioned.
    pub is_complete: bool,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: TreePath,
    pub kind: ChangeKind,
}

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// The file is new.
    Added,
    /// The content or the mode changed.
    Modified,
    /// The file is gone.
    Removed,
    /// The file had another path.
    Renamed {
        /// The other path.
        from: TreePath,
    },
}

impl Diff {
    /// The difference between equal trees.
    pub(crate) fn empty() -> Self {
        Self::new(Vec::new(), Vec::new(), LineCounts::default())
    }

    pub(crate) fn new(patch: Vec<u8>, files: Vec<FileChange>, lines: LineCounts) -> Self {
        Self {
            patch,
            summary: summarize(files.len(), lines),
            files,
            lines_added: lines.added,
            lines_removed: lines.removed,
            is_complete: true,
        }
    }

    /// Every path that the difference writes or removes; a rename has two.
    pub fn touched_paths(&self) -> Vec<TreePath> {
        let mut paths = Vec::with_capacity(self.files.len());
        for file in &self.files {
            paths.push(file.path.clone());
            if let ChangeKind::Renamed { from } = &file.kind {
                paths.push(from.clone());
            }
        }
        paths.sort();
        paths
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// How many lines a difference adds and removes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LineCounts {
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

fn summarize(files: usize, lines: LineCounts) -> String {
    let LineCounts { added, removed } = lines;
    match files {
        0 => "no changes".to_owned(),
        1 => format!("1 file changed, +{added} -{removed}"),
        _ => format!("{files} files changed, +{added} -{removed}"),
    }
}

/// Compares two trees of a repository.
pub(crate) fn diff_git_trees(
    repository: &Repository,
    base: &TreeName,
    head: &TreeName,
) -> Result<Diff, WorkspaceError> {
    if base == head {
        return Ok(Diff::empty());
    }
    let compare = |options: &[&str]| {
        repository
            .object_git()
            .args([
                "-c",
                "core.quotePath=false",
                "diff-tree",
                "-r",
                "-M",
                "-l1000",
            ])
            .args(["--no-ext-diff", "--no-textconv", "--full-index"])
            .args(options.iter().copied())
            .args([base.as_str(), head.as_str()])
            .limit_output(PATCH_BYTES_MAX)
            .run()
    };
    let list = compare(&["--raw", "--numstat", "-z"])?.stdout;
    let (files, lines) = parse_list(&list).ok_or(WorkspaceError::GitOutputUnexpected {
        command: "git diff-tree".to_owned(),
        what: "record",
    })?;
    let whole = Diff::new(Vec::new(), files, lines);
    // Binary contents are the first to go when the patch is too long.
    for options in [&["-p", "--binary"][..], &["-p"]] {
        match compare(options) {
            Ok(output) => {
                return Ok(Diff {
                    patch: output.stdout,
                    is_complete: options.contains(&"--binary"),
                    ..whole
                });
            }
            Err(WorkspaceError::GitOutputTooLarge { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(mention_files(whole))
}

/// A patch that only says which files differ.
pub(crate) fn mention_files(mut diff: Diff) -> Diff {
    let mut patch = Vec::new();
    for file in &diff.files {
        let path = crate::tree_path::quote_for_patch(file.path.as_bytes());
        patch.extend(
            [
                b"Files a/",
                path.as_slice(),
                b" and b/",
                &path,
                b" differ\n",
            ]
            .concat(),
        );
    }
    patch.truncate(PATCH_BYTES_MAX);
    diff.patch = patch;
    diff.is_complete = false;
    diff
}

/// Parses the output of `--raw --numstat -z`: first a record and one or two paths per file, then the
/// counts per file.
fn parse_list(output: &[u8]) -> Option<(Vec<FileChange>, LineCounts)> {
    let mut records = split_records(output).peekable();
    let files = parse_files(&mut records)?;
    let lines = parse_counts(&mut records)?;
    Some((files, lines))
}

fn parse_files<'a>(
    records: &mut Peekable<impl Iterator<Item = &'a [u8]>>,
) -> Option<Vec<FileChange>> {
    let mut files = Vec::new();
    while records
        .peek()
        .is_some_and(|record| record.starts_with(b":"))
    {
        let record = parse_raw_record(records.next()?)?;
        let first = TreePath::new(records.next()?).ok()?;
        files.push(match record.status {
            b'R' | b'C' => FileChange {
                path: TreePath::new(records.next()?).ok()?,
                kind: ChangeKind::Renamed { from: first },
            },
            b'A' => FileChange::new(first, ChangeKind::Added),
            b'D' => FileChange::new(first, ChangeKind::Removed),
            _ => FileChange::new(first, ChangeKind::Modified),
        });
    }
    Some(files)
}

fn parse_counts<'a>(records: &mut impl Iterator<Item = &'a [u8]>) -> Option<LineCounts> {
    let mut lines = LineCounts::default();
    while let Some(record) = records.next() {
        let mut fields = record.splitn(3, |byte| *byte == b'\t');
        // A binary file has `-` in both places.
        let mut count = || {
            std::str::from_utf8(fields.next()?)
                .ok()?
                .parse::<u64>()
                .ok()
        };
        lines.added += count().unwrap_or(0);
        lines.removed += count().unwrap_or(0);
        if fields.next()?.is_empty() {
            // Both paths of a rename follow as records of their own.
            records.nth(1)?;
        }
    }
    Some(lines)
}

impl FileChange {
    pub(crate) fn new(path: TreePath, kind: ChangeKind) -> Self {
        Self { path, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_git_is_parsed() {
        let output = b":100644 100644 a b M\0x y\0:100644 100644 a a R100\0old\0new\0\
            :000000 100644 0 a A\0b.bin\x002\t1\tx y\x000\t0\t\0old\0new\0-\t-\tb.bin\0";
        let (files, lines) = parse_list(output).unwrap();
        let path = |text: &str| TreePath::new(text).unwrap();
        let expect = [
            FileChange::new(path("x y"), ChangeKind::Modified),
            FileChange::new(path("new"), ChangeKind::Renamed { from: path("old") }),
            FileChange::new(path("b.bin"), ChangeKind::Added),
        ];
        assert_eq!(files, expect);
        let diff = Diff::new(Vec::new(), files, lines);
        assert_eq!(diff.summary, "3 files changed, +2 -1");
        assert_eq!(diff.touched_paths().len(), 4);
        assert_eq!(Diff::empty().summary, "no changes");
    }
}
