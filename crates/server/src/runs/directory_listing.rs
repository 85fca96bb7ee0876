//! Lists directories, so that a person can choose where a run works.
//!
//! Only what lies under one of the configured roots is shown. The path is resolved first, symbolic
//! links included, and must then lie under a resolved root. An entry that is a link is shown only if
//! it leads to a place under a root. Everything here blocks.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use turnkeep_wire::runs::{DirectoryEntry, DirectoryEntryKind, DirectoryListing};

/// How many entries an answer has.
const ENTRIES_MAX: usize = 1_000;
/// How many entries of a directory are looked at.
const SCANNED_MAX: usize = 20_000;

/// Why a directory is not listed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListingError {
    #[error("a path begins with `/`")]
    NotAbsolute,
    #[error("{0} is not under a directory that may be listed: set runs.fs_roots")]
    Outside(String),
    #[error("{0} does not exist")]
    Missing(String),
    #[error("{0} is not a directory")]
    NotADirectory(String),
    #[error("no directory may be listed: set runs.fs_roots")]
    NoRoots,
    #[error("{path} cannot be listed: {error}")]
    Unreadable {
        /// The directory.
        path: String,
        /// Why.
        error: io::Error,
    },
}

/// Lists a directory; the first root without a path.
pub(crate) fn list(
    path: Option<&str>,
    roots: &[PathBuf],
) -> Result<DirectoryListing, ListingError> {
    let roots = ResolvedRoots::of(roots);
    let path = match path {
        Some(path) => roots.resolve(Path::new(path))?,
        None => roots.0.first().cloned().ok_or(ListingError::NoRoots)?,
    };
    let shown = path.display().to_string();
    if !path.is_dir() {
        return Err(ListingError::NotADirectory(shown));
    }
    let unreadable = |error| ListingError::Unreadable {
        path: shown.clone(),
        error,
    };
    // Limited while it is read: a directory may have millions of entries.
    let mut entries = Vec::new();
    for entry in fs::read_dir(&path).map_err(unreadable)?.take(SCANNED_MAX) {
        let entry = entry.map_err(unreadable)?;
        entries.extend(roots.describe(&entry));
    }
    entries.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    let truncated = entries.len() > ENTRIES_MAX;
    entries.truncate(ENTRIES_MAX);
    let parent = path.parent().filter(|parent| roots.contain(parent));
    Ok(DirectoryListing {
        parent: parent.map(|parent| parent.display().to_string()),
        path: shown,
        entries,
        truncated,
    })
}

/// Directories first, then by name ignoring case.
fn sort_key(entry: &DirectoryEntry) -> (bool, String, &str) {
    let is_file = entry.kind == DirectoryEntryKind::File;
    (is_file, entry.name.to_lowercase(), &entry.name)
}

/// The roots without symbolic links. One that does not exist counts for nothing.
struct ResolvedRoots(Vec<PathBuf>);

impl ResolvedRoots {
    fn of(roots: &[PathBuf]) -> Self {
        let resolved = roots.iter().filter_map(|root| root.canonicalize().ok());
        Self(resolved.collect())
    }

    fn contain(&self, resolved: &Path) -> bool {
        self.0.iter().any(|root| resolved.starts_with(root))
    }

    /// The path without symbolic links, if it lies under a root.
    fn resolve(&self, path: &Path) -> Result<PathBuf, ListingError> {
        if !path.is_absolute() {
            return Err(ListingError::NotAbsolute);
        }
        let shown = path.display().to_string();
        match path.canonicalize() {
            Ok(resolved) if self.contain(&resolved) => Ok(resolved),
            Ok(_) => Err(ListingError::Outside(shown)),
            // Whether something exists outside is not told either.
            Err(_) if !self.contain_nearest(path) => Err(ListingError::Outside(shown)),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(ListingError::Missing(shown)),
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                Err(ListingError::NotADirectory(shown))
            }
            Err(error) => Err(ListingError::Unreadable { path: shown, error }),
        }
    }

    /// Whether the nearest directory above a path that exists lies under a root.
    fn contain_nearest(&self, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1);
        let nearest = above.find_map(|dir| dir.canonicalize().ok());
        nearest.is_some_and(|nearest| self.contain(&nearest))
    }

    /// A file or directory that may be shown. Names that are not UTF-8 cannot be.
    fn describe(&self, entry: &fs::DirEntry) -> Option<DirectoryEntry> {
        let kind = entry.file_type().ok()?;
        let resolved = if kind.is_symlink() {
            let target = entry.path().canonicalize().ok()?;
            let target = Some(target).filter(|target| self.contain(target))?;
            fs::metadata(target).ok()?.file_type()
        } else {
            kind
        };
        let kind = if resolved.is_dir() {
            DirectoryEntryKind::Directory
        } else if resolved.is_file() {
            DirectoryEntryKind::File
        } else {
            return None;
        };
        let name = entry.file_name().into_string().ok()?;
        Some(DirectoryEntry { name, kind })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_what_lies_under_a_root_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let (home, secret) = (dir.path().join("home"), dir.path().join("secret"));
        for made in [&home, &secret, &home.join("work"), &home.join("Archive")] {
            fs::create_dir(made).unwrap();
        }
        fs::write(home.join("a.txt"), "").unwrap();
        symlink(&secret, home.join("way-out")).unwrap();
        symlink(home.join("work"), home.join("way-in")).unwrap();
        symlink(home.join("gone"), home.join("broken")).unwrap();
        let roots = [home.clone(), dir.path().join("no such root")];

        let listing = list(None, &roots).unwrap();
        let names: Vec<&str> = listing
            .entries
            .iter()
            .map(|entry| entry.name.as_str())
            .collect();
        assert_eq!(names, ["Archive", "way-in", "work", "a.txt"]);
        assert_eq!(listing.parent, None, "it is a root");
        let below = list(home.join("work").to_str(), &roots).unwrap();
        let home_text = home.canonicalize().unwrap().display().to_string();
        assert_eq!(below.parent, Some(home_text));

        let refused = |path: &Path| list(path.to_str(), &roots).unwrap_err();
        for outside in [
            secret.clone(),
            home.join("../secret"),
            home.join("way-out"),
            home.join("way-out/x"),
            secret.join("no such file"),
            dir.path().to_owned(),
        ] {
            let error = refused(&outside);
            assert!(matches!(error, ListingError::Outside(_)), "{error}");
        }
        assert!(matches!(
            refused(&home.join("gone")),
            ListingError::Missing(_)
        ));
        assert!(matches!(
            refused(&home.join("a.txt")),
            ListingError::NotADirectory(_)
        ));
        assert!(matches!(
            refused(Path::new("work")),
            ListingError::NotAbsolute
        ));
        assert!(matches!(list(None, &[]), Err(ListingError::NoRoots)));
    }

    #[test]
    fn a_long_directory_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..=ENTRIES_MAX {
            fs::write(dir.path().join(format!("{number:05}")), "").unwrap();
        }
        let listing = list(None, &[dir.path().to_owned()]).unwrap();
        assert_eq!(listing.entries.len(), ENTRIES_MAX);
        assert!(listing.truncated);
    }
}
