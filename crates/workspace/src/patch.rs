//! Writes patches in git's format, for trees that git does not know.
//!
//! `git apply` accepts the patches: object ids are whole, binary contents are included up to a limit,
//! a file that becomes a symbolic link is a removal and an addition. A file that only moved is a
//! rename; a file that moved and changed is a removal and an addition.

use std::collections::{BTreeMap, BTreeSet};

use crate::binary_patch::{git_blob_id, write_binary_patch};
use crate::diff::{ChangeKind, Diff, FileChange, LineCounts, PATCH_BYTES_MAX, mention_files};
use crate::error::WorkspaceError;
use crate::line_diff::{Replacement, find_replacements};
use crate::tree::{FileContent, FileMode, TreeChange, TreeFile, Trees, read_changes};
use crate::tree_path::{TreePath, quote_for_patch};

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// The largest binary content in a patch.
const BINARY_BYTES_MAX: usize = 1 << 20;

/// How far git looks for a NUL byte to tell binary files.
const BINARY_PROBE_BYTES: usize = 8000;

/// Writes the changes as a patch: first the renames, then the others.
pub(crate) fn write_patch(
    trees: &dyn Trees,
    changes: &[TreeChange],
) -> Result<Diff, WorkspaceError> {
    let mut writer = PatchWriter::default();
    let renames = find_renames(changes);
    for (to, from) in &renames {
        writer.write_rename(from, to);
    }
    let moved: BTreeSet<&TreePath> = renames
        .into_iter()
        .flat_map(|(to, from)| [to, from])
        .collect();
    let is_changed = |change: &&TreeChange| !moved.contains(&change.path);
    let changed: Vec<TreeChange> = changes.iter().filter(is_changed).cloned().collect();
    read_changes(trees, &changed, &mut |contents| {
        let path = &contents.change.path;
        writer.write_change(path, contents.before.as_ref(), contents.after.as_ref());
        Ok(())
    })?;
    Ok(writer.finish())
}

/// Pairs removed files with added files of the same mode and content. The result maps the new path to
/// the old.
fn find_renames(changes: &[TreeChange]) -> BTreeMap<&TreePath, &TreePath> {
    // Last path first, because `pop` below takes from the end: with several equal files the first
    // removed one pairs with the first added one.
    let mut removed: BTreeMap<FileKey<'_>, Vec<&TreePath>> = BTreeMap::new();
    for change in changes.iter().rev().filter(|change| change.after.is_none()) {
        if let Some(key) = change.before.as_ref().and_then(FileKey::of) {
            removed.entry(key).or_default().push(&change.path);
        }
    }
    let added = changes.iter().filter(|change| change.before.is_none());
    added
        .filter_map(|change| {
            let key = change.after.as_ref().and_then(FileKey::of)?;
            let from = removed.get_mut(&key)?.pop()?;
            Some((&change.path, from))
        })
        .collect()
}

/// What a renamed file keeps.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct FileKey<'a> {
    mode: &'static str,
    content: &'a str,
}

impl<'a> FileKey<'a> {
    /// `None` for a link: links to the same target need not be related.
    fn of(file: &'a TreeFile) -> Option<Self> {
        let is_file = matches!(file.mode, FileMode::Regular | FileMode::Executable);
        is_file.then(|| Self {
            mode: file.mode.as_git_text(),
            content: &file.content,
        })
    }
}

#[derive(Default)]
struct PatchWriter {
    patch: Vec<u8>,
    files: Vec<FileChange>,
    lines: LineCounts,
    has_gaps: bool,
}

impl PatchWriter {
    fn finish(mut self) -> Diff {
        self.files.sort_by(|left, right| left.path.cmp(&right.path));
        let is_complete = !self.has_gaps;
        let diff = Diff::new(self.patch, self.files, self.lines);
        if diff.patch.len() > PATCH_BYTES_MAX {
            return mention_files(diff);
        }
        Diff {
            is_complete,
            ..diff
        }
    }

    fn write_rename(&mut self, from: &TreePath, to: &TreePath) {
        self.write_first_line(from, to);
        let old_path = quote_for_patch(from.as_bytes());
        let new_path = quote_for_patch(to.as_bytes());
        self.write_parts(&[b"similarity index 100%\nrename from ", &old_path]);
        self.write_parts(&[b"\nrename to ", &new_path, b"\n"]);
        let kind = ChangeKind::Renamed { from: from.clone() };
        self.files.push(FileChange::new(to.clone(), kind));
    }

    fn write_change(
        &mut self,
        path: &TreePath,
        before: Option<&FileContent>,
        after: Option<&FileContent>,
    ) {
        let kind = match (before, after) {
            (None, None) => return,
            (None, Some(_)) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Removed,
            (Some(_), Some(_)) => ChangeKind::Modified,
        };
        self.files.push(FileChange::new(path.clone(), kind));
        let is_link = |file: &FileContent| file.mode == FileMode::Symlink;
        // `git apply` rejects a patch in which a file becomes a link.
        if before.map(is_link) != after.map(is_link) && before.is_some() && after.is_some() {
            self.write_file(path, before, None);
            self.write_file(path, None, after);
        } else {
            self.write_file(path, before, after);
        }
    }

    fn write_file(
        &mut self,
        path: &TreePath,
        before: Option<&FileContent>,
        after: Option<&FileContent>,
    ) {
        self.write_first_line(path, path);
        self.write_modes(before, after);
        let bytes = |file: Option<&FileContent>| file.map(|file| file.bytes.clone());
        let (old, new) = (
            bytes(before).unwrap_or_default(),
            bytes(after).unwrap_or_default(),
        );
        // Only the mode changed: the lines above say it all.
        if before.is_some() && after.is_some() && old == new {
            return;
        }
        self.write_index_line(before, after);
        if is_binary(&old) || is_binary(&new) {
            self.write_binary(path, &old, &new);
        } else if !(old.is_empty() && new.is_empty()) {
            self.write_name_lines(path, before.is_some(), after.is_some());
            self.write_hunks(&old, &new);
        }
    }

    fn write_first_line(&mut self, old: &TreePath, new: &TreePath) {
        let old = quote_for_patch(&[b"a/", old.as_bytes()].concat());
        let new = quote_for_patch(&[b"b/", new.as_bytes()].concat());
        self.write_parts(&[b"diff --git ", &old, b" ", &new, b"\n"]);
    }

    fn write_modes(&mut self, before: Option<&FileContent>, after: Option<&FileContent>) {
        let mode = |file: &FileContent| file.mode.as_git_text();
        let text = match (before.map(mode), after.map(mode)) {
            (Some(old), Some(new)) if old != new => format!("old mode {old}\nnew mode {new}\n"),
            (Some(old), None) => format!("deleted file mode {old}\n"),
            (None, Some(new)) => format!("new file mode {new}\n"),
            _ => String::new(),
        };
        self.patch.extend(text.bytes());
    }

    fn write_index_line(&mut self, before: Option<&FileContent>, after: Option<&FileContent>) {
        let id = |file: Option<&FileContent>| {
            file.map_or_else(|| "0".repeat(40), |file| git_blob_id(&file.bytes))
        };
        let mode = match (before, after) {
            (Some(old), Some(new)) if old.mode == new.mode => {
                format!(" {}", old.mode.as_git_text())
            }
            _ => String::new(),
        };
        let line = format!("index {}..{}{mode}\n", id(before), id(after));
        self.patch.extend(line.bytes());
    }

    fn write_name_lines(&mut self, path: &TreePath, has_old: bool, has_new: bool) {
        for (mark, side, exists) in [(b"---", b"a/", has_old), (b"+++", b"b/", has_new)] {
            let name = quote_for_patch(&[side, path.as_bytes()].concat());
            let name = if exists { name } else { b"/dev/null".to_vec() };
            // Without the tab, a reader could take the part after a space for a time.
            let tab: &[u8] = if name.contains(&b' ') { b"\t" } else { b"" };
            self.write_parts(&[mark, b" ", &name, tab, b"\n"]);
        }
    }

    fn write_binary(&mut self, path: &TreePath, old: &[u8], new: &[u8]) {
        if old.len().max(new.len()) <= BINARY_BYTES_MAX {
            write_binary_patch(&mut self.patch, old, new);
            return;
        }
        self.has_gaps = true;
        let path = path.as_bytes();
        let (old, new) = ([b"a/", path].concat(), [b"b/", path].concat());
        let (old, new) = (quote_for_patch(&old), quote_for_patch(&new));
        self.write_parts(&[b"Binary files ", &old, b" and ", &new, b" differ\n"]);
    }

    fn write_hunks(&mut self, old: &[u8], new: &[u8]) {
        let old: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
        let new: Vec<&[u8]> = new.split_inclusive(|byte| *byte == b'\n').collect();
        let replacements = find_replacements(&old, &new);
        for replacement in &replacements {
            self.lines.removed += replacement.old.len() as u64;
            self.lines.added += replacement.new.len() as u64;
        }
        // Two changes share a hunk if their context lines would touch.
        let is_near = |left: &Replacement, right: &Replacement| {
            right.old.start - left.old.end <= 2 * CONTEXT_LINES
        };
        for group in replacements.chunk_by(is_near) {
            self.write_hunk(&old, &new, group);
        }
    }

    fn write_hunk(&mut self, old: &[&[u8]], new: &[&[u8]], group: &[Replacement]) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            return;
        };
        let context_before = first.old.start.min(CONTEXT_LINES);
        let context_after = (old.len() - last.old.end).min(CONTEXT_LINES);
        let old_range = first.old.start - context_before..last.old.end + context_after;
        let new_range = first.new.start - context_before..last.new.end + context_after;
        let header = format!("@@ -{} +{} @@\n", span(&old_range), span(&new_range));
        self.patch.extend(header.bytes());
        // Between two replacements of a hunk lie unchanged lines, which both files have.
        let mut at = old_range.start;
        for replacement in group {
            self.write_lines(b' ', old.get(at..replacement.old.start));
            self.write_lines(b'-', old.get(replacement.old.clone()));
            self.write_lines(b'+', new.get(replacement.new.clone()));
            at = replacement.old.end;
        }
        self.write_lines(b' ', old.get(at..old_range.end));
    }

    fn write_lines(&mut self, mark: u8, lines: Option<&[&[u8]]>) {
        for line in lines.unwrap_or_default() {
            self.write_parts(&[&[mark], line]);
            if !line.ends_with(b"\n") {
                self.patch.extend(b"\n\\ No newline at end of file\n");
            }
        }
    }

    fn write_parts(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.patch.extend(*part);
        }
    }
}

/// Lines as `first,count`. Lines count from one; an empty range names the line before it.
fn span(range: &std::ops::Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        count => format!("{},{count}", range.start + 1),
    }
}

fn is_binary(content: &[u8]) -> bool {
    let probe = content.get(..BINARY_PROBE_BYTES).unwrap_or(content);
    probe.contains(&0)
}
