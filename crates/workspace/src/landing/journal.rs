//! The journal of a landing: which steps it takes, so that a later process can undo them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;

use serde_json::{Value, json};

use super::{Fingerprint, Staging, Step};
use crate::error::WorkspaceError;
use crate::tree::FileMode;
use crate::tree_path::TreePath;

const NAME: &str = "journal.json";

/// The content of a journal.
pub(super) struct Journal {
    pub(super) steps: Vec<Step>,
    pub(super) new_directories: BTreeSet<TreePath>,
}

/// What a staging directory says about its landing.
pub(super) enum Found {
    /// No file was moved, or all were.
    Nothing,
    Journal(Journal),
    /// The file is there and cannot be read.
    Damaged,
}

/// Writes the journal and waits until it is on disk. It appears with its whole content or not at all.
pub(super) fn write(
    staging: &Staging,
    steps: &[Step],
    new_directories: &BTreeSet<TreePath>,
) -> Result<(), WorkspaceError> {
    let path = staging.path.join(NAME);
    let steps: Vec<Value> = steps.iter().map(step_to_json).collect();
    let directories: Vec<String> = new_directories.iter().map(TreePath::to_string).collect();
    let journal = json!({ "version": 1, "steps": steps, "newDirectories": directories });
    let temporary = staging.path.join("journal.tmp");
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(journal.to_string().as_bytes())?;
        // The content before the name, and the name before the caller moves a file.
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        File::open(&staging.path)?.sync_all()
    });
    written.map_err(WorkspaceError::file("write", &path))
}

/// Removes the journal: the landing is complete, or undone.
pub(super) fn remove(staging: &Staging) -> Result<(), WorkspaceError> {
    let path = staging.path.join(NAME);
    let removed = fs::remove_file(&path).and_then(|()| File::open(&staging.path)?.sync_all());
    removed.map_err(WorkspaceError::file("remove", &path))
}

/// Reads the journal of a staging directory.
pub(super) fn read(staging: &Staging) -> Found {
    let Ok(bytes) = fs::read(staging.path.join(NAME)) else {
        return Found::Nothing;
    };
    let journal = serde_json::from_slice::<Value>(&bytes).ok();
    match journal.as_ref().and_then(parse) {
        Some(journal) => Found::Journal(journal),
        None => Found::Damaged,
    }
}

fn parse(journal: &Value) -> Option<Journal> {
    if journal.get("version")? != 1 {
        return None;
    }
    let steps = journal.get("steps")?.as_array()?;
    let directories = journal.get("newDirectories")?.as_array()?;
    let path = |text: &Value| text.as_str()?.parse().ok();
    Some(Journal {
        steps: steps.iter().map(step_from_json).collect::<Option<_>>()?,
        new_directories: directories.iter().map(path).collect::<Option<_>>()?,
    })
}

fn step_to_json(step: &Step) -> Value {
    let side = |print: Option<Fingerprint>| {
        print.map(|print| json!([print.mode.as_git_text(), print.hash.to_string()]))
    };
    json!({
        "path": step.path.to_string(),
        "before": side(step.before),
        "after": side(step.after),
    })
}

fn step_from_json(step: &Value) -> Option<Step> {
    Some(Step {
        path: step.get("path")?.as_str()?.parse().ok()?,
        before: side_from_json(step.get("before")?)?,
        after: side_from_json(step.get("after")?)?,
    })
}

/// The outer `None` means that the value is damaged, the inner one that there is no file.
fn side_from_json(side: &Value) -> Option<Option<Fingerprint>> {
    if side.is_null() {
        return Some(None);
    }
    let mode = FileMode::from_git_text(side.get(0)?.as_str()?.as_bytes())?;
    let hash = side.get(1)?.as_str()?.parse().ok()?;
    Some(Some(Fingerprint { mode, hash }))
}
