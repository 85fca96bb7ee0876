//! Writes a file whole or not at all: beside its place, synced, then renamed into it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use turnkeep_types::broker::{Reason, Refusal};

/// Tells apart what is written beside its place at the same time.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Replaces the file at `path`, which is made if it is not there. A file that is there keeps its
/// mode.
pub(super) fn write(path: &Path, content: &[u8]) -> Result<(), Refusal> {
    let permissions = replaceable(path)?;
    let beside = beside(path)?;
    let failed = |error: io::Error| failure(path, &error);
    let written = create(&beside).and_then(|mut file| {
        file.write_all(content)?;
        file.set_permissions(permissions)?;
        file.sync_data()?;
        fs::rename(&beside, path)
    });
    written.map_err(|error| {
        if let Err(error) = fs::remove_file(&beside)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %beside.display(), "a half-written file stays");
        }
        failed(error)
    })
}

/// The mode that the file will have, if what is at the path may be replaced.
fn replaceable(path: &Path) -> Result<Permissions, Refusal> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(found.permissions()),
        Ok(_) => Err(bad_path(path, "is there and is no regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Permissions::from_mode(0o600)),
        Err(error) => Err(failure(path, &error)),
    }
}

fn beside(path: &Path) -> Result<PathBuf, Refusal> {
    let ends_in_name = !path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let name = path
        .file_name()
        .filter(|_| ends_in_name)
        .ok_or_else(|| bad_path(path, "names no file"))?;
    let mut hidden = std::ffi::OsString::from(".");
    // A name may have 255 bytes; the file beside it needs some for itself.
    hidden.push(if name.len() > 200 {
        std::ffi::OsStr::new("turnkeep")
    } else {
        name
    });
    hidden.push(format!(
        ".{}-{}.tmp",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    Ok(path.with_file_name(hidden))
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn bad_path(path: &Path, what: &str) -> Refusal {
    Refusal::new(Reason::BadPath, format!("{} {what}", path.display()))
}

fn failure(path: &Path, error: &io::Error) -> Refusal {
    let reason = match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::InvalidFilename => Reason::BadPath,
        _ => Reason::SinkFailed,
    };
    Refusal::new(reason, format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(path: &Path) -> Reason {
        write(path, b"new").unwrap_err().reason
    }

    #[test]
    fn a_file_is_made_or_replaced_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("turn.txt");
        let large = vec![0xff; 5 << 20];
        for content in [&b"one"[..], b"", &large] {
            write(&path, content).unwrap();
            assert!(fs::read(&path).unwrap() == content);
        }
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        write(&path, b"kept mode").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o644
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let long = dir.path().join("n".repeat(255));
        write(&long, b"long").unwrap();
        assert_eq!(fs::read(&long).unwrap(), b"long");
    }

    #[test]
    fn anything_but_a_regular_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, b"old").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [
            dir.path().to_owned(),
            link,
            socket,
            "/dev/null".into(),
            "/".into(),
        ] {
            assert_eq!(reason(&path), Reason::BadPath, "{}", path.display());
        }
        assert_eq!(reason(&dir.path().join("no/such/file")), Reason::BadPath);
        assert_eq!(reason(&dir.path().join("target/below")), Reason::BadPath);
        assert_eq!(reason(&dir.path().join("slash/")), Reason::BadPath);
        assert_eq!(reason(&dir.path().join("n".repeat(256))), Reason::BadPath);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            3,
            "nothing half written is left"
        );
    }
}
