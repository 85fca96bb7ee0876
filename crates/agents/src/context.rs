//! The sentence that a person reads before deciding about a tool: the command and its directory, or
//! the files with the numbers of added and removed lines.
//!
//! ```text
//! run `cargo test` in /work/demo
//! change src/lib.rs (+3 −1), src/main.rs (+0 −7)
//! use mcp__tracker__close_ticket
//! ```
//!
//! The sentence helps to decide quickly. The arguments beside it are complete.

use serde_json::Value;

use crate::event::ToolCall;
use crate::field::{first_text, list_at, shorten, text_at};

const COMMAND_CHARACTERS_MAX: usize = 300;
const PATH_CHARACTERS_MAX: usize = 200;
/// The files that a sentence names.
const FILES_NAMED_MAX: usize = 5;
/// Texts with more lines than this are not compared line by line.
const COMPARED_LINES_MAX: usize = 100_000;

/// A file with the numbers of lines that change in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileChange {
    pub(crate) path: String,
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

impl FileChange {
    /// The change from one text of a file to another. Equal lines at both ends do not count.
    pub(crate) fn between(path: &str, old: &str, new: &str) -> Self {
        let old: Vec<&str> = old.lines().take(COMPARED_LINES_MAX).collect();
        let new: Vec<&str> = new.lines().take(COMPARED_LINES_MAX).collect();
        let pairs = old.iter().zip(&new);
        let same_start = pairs.take_while(|(old, new)| old == new).count();
        // Without this limit a repeated line would count at both ends.
        let rest = old.len().min(new.len()) - same_start;
        let pairs = old.iter().rev().zip(new.iter().rev()).take(rest);
        let same_end = pairs.take_while(|(old, new)| old == new).count();
        Self {
            path: path.to_owned(),
            added: new.len() - same_start - same_end,
            removed: old.len() - same_start - same_end,
        }
    }

    /// The change that a unified diff of one file describes.
    pub(crate) fn from_diff(path: &str, diff: &str) -> Self {
        let count = |mark: char, header: &str| {
            let mut lines = 0;
            for line in diff.lines() {
                // A removed SQL comment, `-- x`, looks like a header and is not counted. The sentence
                // is a preview, so it need not be exact.
                let is_change = line.starts_with(mark) && !line.starts_with(header);
                lines += usize::from(is_change);
            }
            lines
        };
        Self {
            path: path.to_owned(),
            added: count('+', "+++ "),
            removed: count('-', "--- "),
        }
    }
}

/// The sentence for a call. `cwd` is where a command runs if its arguments do not say it.
pub(crate) fn describe_call(call: &ToolCall, cwd: &str) -> String {
    if let Some(command) = first_text(&call.args, &["/command", "/cmd"]) {
        return describe_command(command, text_at(&call.args, "/cwd").unwrap_or(cwd));
    }
    let files = find_file_changes(&call.args);
    if files.is_empty() {
        format!("use {}", shorten(&call.name, PATH_CHARACTERS_MAX))
    } else {
        describe_files(&files)
    }
}

pub(crate) fn describe_command(command: &str, cwd: &str) -> String {
    let command = shorten(command, COMMAND_CHARACTERS_MAX);
    match shorten(cwd, PATH_CHARACTERS_MAX) {
        cwd if cwd.is_empty() => format!("run `{command}`"),
        cwd => format!("run `{command}` in {cwd}"),
    }
}

pub(crate) fn describe_files(files: &[FileChange]) -> String {
    let named = files.iter().take(FILES_NAMED_MAX).map(|file| {
        let path = shorten(&file.path, PATH_CHARACTERS_MAX);
        format!("{path} (+{} −{})", file.added, file.removed)
    });
    let named = named.collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(FILES_NAMED_MAX) {
        0 => format!("change {named}"),
        more => format!("change {named} and {more} more"),
    }
}

/// The changes in the arguments of the usual editing tools: a file with its new content, with one
/// replacement, or with a list of replacements.
fn find_file_changes(args: &Value) -> Vec<FileChange> {
    let Some(path) = first_text(args, &["/file_path", "/notebook_path", "/path"]) else {
        return Vec::new();
    };
    // Reading a file has a path too, but no new text.
    let mut total = FileChange::between(path, "", "");
    let replacements = std::iter::once(args).chain(list_at(args, "/edits"));
    let mut writes = false;
    for replacement in replacements {
        let old = first_text(replacement, &["/old_string", "/oldText"]);
        let new_keys = ["/new_string", "/newText", "/content", "/new_source"];
        let new = first_text(replacement, &new_keys);
        if old.is_some() || new.is_some() {
            writes = true;
            let part = FileChange::between(path, old.unwrap_or_default(), new.unwrap_or_default());
            total.added += part.added;
            total.removed += part.removed;
        }
    }
    if writes { vec![total] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(name: &str, args: Value, expect: &str) {
        let call = ToolCall {
            provider_id: "1".to_owned(),
            name: name.to_owned(),
            args,
        };
        assert_eq!(describe_call(&call, "/work"), expect);
    }

    #[test]
    fn a_sentence_names_the_command_or_the_files() {
        check("Bash", json!({"command": "ls"}), "run `ls` in /work");
        check("run", json!({"cmd": "ls", "cwd": "/x"}), "run `ls` in /x");
        check("Bash", json!({"command": ["ls"]}), "use Bash");
        check(
            "Edit",
            json!({"file_path": "a", "old_string": "1\n2\n3", "new_string": "1\nx\ny\n3"}),
            "change a (+2 −1)",
        );
        check(
            "Write",
            json!({"file_path": "a", "content": "1\n2\n"}),
            "change a (+2 −0)",
        );
        check(
            "MultiEdit",
            json!({"file_path": "a", "edits": [
                {"old_string": "1", "new_string": "2"},
                {"old_string": "3", "new_string": ""},
            ]}),
            "change a (+1 −2)",
        );
        check("Read", json!({"file_path": "a"}), "use Read");
        check("Odd", json!([1, {"file_path": 2}]), "use Odd");
    }

    #[test]
    fn a_long_list_of_files_is_counted() {
        let files: Vec<_> = (0..8)
            .map(|n| FileChange::from_diff(&format!("f{n}"), "--- a\n+++ b\n@@\n-x\n+y\n+z\n"))
            .collect();
        let sentence = describe_files(&files);
        assert!(sentence.starts_with("change f0 (+2 −1), f1"), "{sentence}");
        assert!(sentence.ends_with("f4 (+2 −1) and 3 more"), "{sentence}");
    }

    #[test]
    fn equal_ends_never_overlap() {
        let change = FileChange::between("a", "x\nx", "x\nx\nx");
        assert_eq!((change.added, change.removed), (1, 0));
        let change = FileChange::between("a", "", "");
        assert_eq!((change.added, change.removed), (0, 0));
    }
}
