//! Text files that a person keeps by name: roles (`roles/NAME.md`) and teams (`teams/NAME.toml`) in
//! the configuration directory.
//!
//! A name becomes part of a path, so it has small letters, digits, `-` and `_` only. A file is
//! replaced as a whole: a reader sees the old text or the new one.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest text, in bytes.
pub(super) const TEXT_BYTES_MAX: u64 = 64 << 10;
/// How many files of a directory are listed.
const FILES_MAX: usize = 256;
/// The longest name.
const NAME_CHARACTERS_MAX: usize = 64;

/// Counts the writes of this process.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// The files of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedFiles<'a> {
    pub(super) dir: &'a Path,
    /// Without the dot.
    pub(super) extension: &'static str,
}

/// Whether a text can name a file.
pub(super) fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    (1..=NAME_CHARACTERS_MAX).contains(&name.len()) && name.chars().all(is_plain)
}

impl NamedFiles<'_> {
    /// The names, sorted. A directory that does not exist has none.
    pub(super) fn list(self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries.take(FILES_MAX) {
            let path = PathBuf::from(entry?.file_name());
            let has_extension = path
                .extension()
                .is_some_and(|found| found == self.extension);
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            names.extend(
                stem.filter(|name| has_extension && is_file_name(name))
                    .map(str::to_owned),
            );
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The text of a file, if there is one.
    pub(super) fn read(self, name: &str) -> Result<Option<String>, String> {
        read_text(&self.path(name))
    }

    /// Replaces a file, or makes it.
    pub(super) fn write(self, name: &str, text: &str) -> io::Result<()> {
        fs::create_dir_all(self.dir)?;
        // Two writers at once must not write into one file.
        let number = WRITES.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let unfinished = self.dir.join(format!(".{name}.{process}.{number}.part"));
        let mut file = File::create(&unfinished)?;
        file.write_all(text.as_bytes())?;
        // Before the rename: after a power failure the name must not stand for an empty file.
        file.sync_all()?;
        fs::rename(&unfinished, self.path(name))
    }

    /// Removes a file. Returns whether there was one.
    pub(super) fn remove(self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.path(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn path(self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.{}", self.extension))
    }
}

/// Reads a file of bounded length, if there is one.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, String> {
    let cannot = |error: io::Error| format!("cannot read {}: {error}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(error)),
    };
    let mut text = String::new();
    // One byte more tells a file that is too long from one that just fits.
    let read = file.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text);
    if read.map_err(cannot)? as u64 > TEXT_BYTES_MAX {
        let path = path.display();
        return Err(format!("{path} has more than {TEXT_BYTES_MAX} bytes"));
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_out_of_the_directory() {
        for (name, expect) in [
            ("reviewer", true),
            ("my-role_2", true),
            ("", false),
            ("..", false),
            ("../x", false),
            ("a/b", false),
            ("a.b", false),
            ("Big", false),
            ("ü", false),
            (&"a".repeat(65), false),
        ] {
            assert_eq!(is_file_name(name), expect, "{name:?}");
        }
    }

    #[test]
    fn a_file_is_written_listed_read_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("roles");
        let files = NamedFiles {
            dir: &missing,
            extension: "md",
        };
        assert_eq!(files.list().unwrap(), [""; 0]);
        files.write("pilot", "first").unwrap();
        files.write("pilot", "second").unwrap();
        fs::write(missing.join("note.txt"), "no role").unwrap();
        fs::write(missing.join("Odd Name.md"), "no role").unwrap();
        assert_eq!(files.list().unwrap(), ["pilot"]);
        assert_eq!(files.read("pilot").unwrap().as_deref(), Some("second"));
        assert!(files.remove("pilot").unwrap());
        assert!(!files.remove("pilot").unwrap());
        assert_eq!(files.read("pilot").unwrap(), None);
        let long = "x".repeat(usize::try_from(TEXT_BYTES_MAX).unwrap() + 1);
        files.write("long", &long).unwrap();
        assert!(files.read("long").unwrap_err().contains("more than"));
    }
}
