//! Files beside the conversation: the prompt log, the state, and what steps write.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::player::Progress;

/// A directory with one file a prompt: `0001.txt`, `0002.txt`, …
///
/// Several agents may share it. Each file is created exclusively, so the numbers are the order in
/// which the prompts arrived.
pub(super) struct PromptLog {
    directory: PathBuf,
    next: u64,
}

impl PromptLog {
    pub(super) fn open(directory: PathBuf) -> Result<PromptLog, String> {
        fs::create_dir_all(&directory).map_err(|error| explain(&directory, &error))?;
        Ok(PromptLog { directory, next: 1 })
    }

    pub(super) fn write(&mut self, prompt: &str) -> Result<(), String> {
        loop {
            // Other processes may log into the same directory, so a taken number is skipped.
            let path = self.directory.join(format!("{:04}.txt", self.next));
            self.next += 1;
            let created = OpenOptions::new().write(true).create_new(true).open(&path);
            match created {
                Ok(mut file) => {
                    let written = file.write_all(prompt.as_bytes());
                    return written.map_err(|error| explain(&path, &error));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(explain(&path, &error)),
            }
        }
    }
}

/// Reads what [`write_state`] wrote. A missing file means that nothing was played.
pub(super) fn read_state(path: &Path) -> Result<Progress, String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Progress::default()),
        Err(error) => return Err(explain(path, &error)),
    };
    let json = serde_json::from_str(&text).ok();
    let progress = json.as_ref().and_then(Progress::from_json);
    progress.ok_or_else(|| {
        format!(
            "{}: this is no state file of a scripted agent",
            path.display()
        )
    })
}

/// Replaces the file in one step, so that a process that is killed leaves the old or the new one.
pub(super) fn write_state(path: &Path, progress: &Progress) -> Result<(), String> {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    write_file(&new, progress.to_json().to_string().as_bytes())?;
    fs::rename(&new, path).map_err(|error| explain(path, &error))
}

/// Writes a file whole, with its directories.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), String> {
    create_parent(path)?;
    fs::write(path, bytes).map_err(|error| explain(path, &error))
}

pub(super) fn append_file(path: &Path, bytes: &[u8]) -> Result<(), String> {
    create_parent(path)?;
    let opened = OpenOptions::new().append(true).create(true).open(path);
    let written = opened.and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| explain(path, &error))
}

pub(super) fn delete_file(path: &Path) -> Result<(), String> {
    fs::remove_file(path).map_err(|error| explain(path, &error))
}

fn create_parent(path: &Path) -> Result<(), String> {
    match path.parent() {
        Some(parent) => fs::create_dir_all(parent).map_err(|error| explain(parent, &error)),
        None => Ok(()),
    }
}

fn explain(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
