//! Lets a person edit a JSON value in their editor.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::config::process_environment;
use crate::data_dir::random_bytes;
use crate::failure::Failure;

/// Arguments may hold secrets: only their owner may read the file.
const PRIVATE_MODE: u32 = 0o600;
const EDITOR: &str = "vi";

/// Opens `$VISUAL` or `$EDITOR` on a value. `None`: the person changed nothing.
pub(crate) fn edit_json(value: &Value) -> Result<Option<Value>> {
    let before = format!("{}\n", serde_json::to_string_pretty(value)?);
    let file = EditedFile::create(&before)?;
    run_editor(&file.path)?;
    let after = fs::read_to_string(&file.path).context("cannot read what was edited")?;
    // Editors add or remove the last line break without being asked.
    if after.trim() == before.trim() {
        return Ok(None);
    }
    let edited = serde_json::from_str(&after).map_err(|error| {
        Failure::new(format!("what was edited is not JSON: {error}"))
            .hint("nothing was sent: edit it again")
    })?;
    Ok(Some(edited))
}

fn run_editor(file: &Path) -> Result<()> {
    let set = |name| process_environment(name).filter(|editor| !editor.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR"));
    let editor = editor.unwrap_or_else(|| EDITOR.to_owned());
    // By the shell, because the variable may hold options too, such as `code --wait`.
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(file)
        .status()
        .with_context(|| format!("cannot start the editor `{editor}`"))?;
    if status.success() {
        return Ok(());
    }
    Failure::new(format!("the editor `{editor}` failed: {status}"))
        .hint("nothing was sent; set EDITOR to another program")
        .fail()
}

/// A private file that is removed in the end.
struct EditedFile {
    path: PathBuf,
}

impl EditedFile {
    fn create(text: &str) -> Result<Self> {
        let name = format!("turnkeep-{}.json", hex::encode(random_bytes::<8>()?));
        let path = std::env::temp_dir().join(name);
        // `create_new` never opens a file or a link that somebody else put there.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(PRIVATE_MODE)
            .open(&path);
        let mut file = file.with_context(|| format!("cannot write {}", path.display()))?;
        let created = Self { path };
        file.write_all(text.as_bytes())
            .context("cannot write the file to edit")?;
        Ok(created)
    }
}

impl Drop for EditedFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(file = %self.path.display(), %error, "the edited file could not be removed");
        }
    }
}
