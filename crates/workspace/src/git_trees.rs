//! Reads git trees and contents, and merges files.

use std::fs;

use crate::error::WorkspaceError;
use crate::git_index::{parse_raw_record, split_records};
use crate::repository::{Repository, check_object_id, unique_sibling};
use crate::tree::{TreeChange, TreeName, Trees};
use crate::tree_path::TreePath;

/// How many bytes of contents one command reads, unless a single file is larger.
const BATCH_BYTES_MAX: u64 = 32 << 20;

/// The largest content that is read.
const CONTENT_BYTES_MAX: u64 = 128 << 20;

impl Trees for Repository {
    fn list_changes(
        &self,
        base: &TreeName,
        head: &TreeName,
    ) -> Result<Vec<TreeChange>, WorkspaceError> {
        let call = self
            .object_git()
            .args([
                "diff-tree",
                "-r",
                "--raw",
                "-z",
                "--no-renames",
                "--full-index",
            ])
            .args([base.as_str(), head.as_str()]);
        let output = call.run()?.stdout;
        let mut records = split_records(&output);
        let mut changes = Vec::new();
        while let (Some(record), Some(path)) = (records.next(), records.next()) {
            let record = parse_raw_record(record).ok_or(WorkspaceError::GitOutputUnexpected {
                command: "git diff-tree".to_owned(),
                what: "record",
            })?;
            changes.push(TreeChange {
                path: TreePath::new(path)?,
                before: record.before,
                after: record.after,
            });
        }
        // Callers rely on the byte order of whole paths, as trees in the store have it. Git documents no
        // order: its trees sort a directory's name as if it ended with a slash.
        changes.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(changes)
    }

    fn read_contents(
        &self,
        contents: &[&str],
        visit: &mut dyn FnMut(Vec<u8>) -> Result<(), WorkspaceError>,
    ) -> Result<(), WorkspaceError> {
        let mut batch = Vec::new();
        let mut batch_bytes = 0;
        for (content, bytes) in contents.iter().zip(self.read_sizes(contents)?) {
            if bytes > CONTENT_BYTES_MAX {
                let max = CONTENT_BYTES_MAX;
                return Err(WorkspaceError::ObjectTooLarge { bytes, max });
            }
            if batch_bytes + bytes > BATCH_BYTES_MAX {
                self.read_batch(&batch, visit)?;
                batch.clear();
                batch_bytes = 0;
            }
            batch.push(*content);
            batch_bytes += bytes;
        }
        self.read_batch(&batch, visit)
    }
}

impl Repository {
    fn read_sizes(&self, contents: &[&str]) -> Result<Vec<u64>, WorkspaceError> {
        if contents.is_empty() {
            return Ok(Vec::new());
        }
        let call = self
            .object_git()
            .args(["cat-file", "--batch-check=%(objectsize)"]);
        let output = call.input(contents.join("\n").into_bytes()).run()?.stdout;
        // For a missing object git prints `<id> missing`, which is not a number.
        let sizes: Option<Vec<u64>> = output
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| std::str::from_utf8(line).ok()?.parse().ok())
            .collect();
        sizes
            .filter(|sizes| sizes.len() == contents.len())
            .ok_or_else(unexpected_object)
    }

    /// Reads one batch. The answer to each id is `<id> blob <size>`, a line break, the bytes, and
    /// another line break.
    fn read_batch(
        &self,
        contents: &[&str],
        visit: &mut dyn FnMut(Vec<u8>) -> Result<(), WorkspaceError>,
    ) -> Result<(), WorkspaceError> {
        if contents.is_empty() {
            return Ok(());
        }
        let call = self.object_git().args(["cat-file", "--batch"]);
        let output = call.input(contents.join("\n").into_bytes()).run()?.stdout;
        let mut rest = output.as_slice();
        for _ in contents {
            let (content, behind) = split_object(rest).ok_or_else(unexpected_object)?;
            visit(content.to_vec())?;
            rest = behind;
        }
        Ok(())
    }

    /// Reads one content.
    pub(crate) fn read_content(&self, content: &str) -> Result<Vec<u8>, WorkspaceError> {
        let mut bytes = Vec::new();
        self.read_contents(&[content], &mut |read| {
            bytes = read;
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Writes a content and returns its id.
    pub(crate) fn write_content(&self, bytes: Vec<u8>) -> Result<String, WorkspaceError> {
        // From the standard input there is no path, so no attribute can name a filter.
        let call = self.object_git().args(["hash-object", "-w", "--stdin"]);
        check_object_id(call.input(bytes).run_for_line()?, "git hash-object")
    }

    /// Merges three versions of a file by lines. Returns `None` if they conflict or are binary.
    pub(crate) fn merge_contents(
        &self,
        versions: &Versions<'_>,
    ) -> Result<Option<Vec<u8>>, WorkspaceError> {
        let scratch = unique_sibling(&self.private_dir.join("merge"));
        fs::create_dir_all(&scratch).map_err(WorkspaceError::file("create", &scratch))?;
        let merged = self.merge_in(&scratch, versions);
        fs::remove_dir_all(&scratch).map_err(WorkspaceError::file("remove", &scratch))?;
        merged
    }

    fn merge_in(
        &self,
        scratch: &std::path::Path,
        versions: &Versions<'_>,
    ) -> Result<Option<Vec<u8>>, WorkspaceError> {
        for (name, content) in [
            ("ours", versions.ours),
            ("base", versions.base),
            ("theirs", versions.theirs),
        ] {
            let file = scratch.join(name);
            let bytes = self.read_content(content)?;
            fs::write(&file, bytes).map_err(WorkspaceError::file("write", &file))?;
        }
        let call = self.private_git(scratch, &scratch.join("no-index"));
        let merged = call
            .args(["merge-file", "-p", "-q", "ours", "base", "theirs"])
            .run();
        match merged {
            Ok(output) => Ok(Some(output.stdout)),
            // The exit code is the number of conflicts, or 255 for binary files.
            Err(WorkspaceError::GitFailed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Three versions of a file, by the ids of their contents.
pub(crate) struct Versions<'a> {
    pub(crate) base: &'a str,
    pub(crate) ours: &'a str,
    pub(crate) theirs: &'a str,
}

fn split_object(output: &[u8]) -> Option<(&[u8], &[u8])> {
    let line_end = output.iter().position(|byte| *byte == b'\n')?;
    let header = std::str::from_utf8(output.get(..line_end)?).ok()?;
    let size: usize = header.rsplit(' ').next()?.parse().ok()?;
    let behind = output.get(line_end + 1..)?;
    let content = behind.get(..size)?;
    Some((content, behind.get(size + 1..)?))
}

fn unexpected_object() -> WorkspaceError {
    WorkspaceError::GitOutputUnexpected {
        command: "git cat-file".to_owned(),
        what: "object",
    }
}
