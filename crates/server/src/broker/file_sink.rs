//! The file sink: replaces a file completely or not at all.
//!
//! The content goes to a temporary file in the same directory, which is synced and then renamed. If
//! a step fails, the temporary file is removed and the old file is unchanged. Only regular files are
//! replaced: a symbolic link, a device or a socket at the path is refused.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use turnkeep_types::broker::{Reason, Refusal};

/// Makes the names of temporary files unique within this process.
static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);
/// A file name has at most 255 bytes. The temporary name adds a dot, two numbers and `.tmp`.
const NAME_BYTES_MAX: usize = 200;

/// Replaces the file at `path`, or creates it. An existing file keeps its mode.
pub(super) fn replace_file(path: &Path, content: &[u8]) -> Result<(), Refusal> {
    let permissions = check_replaceable(path)?;
    let temporary = temporary_path(path)?;
    let written = create_private(&temporary).and_then(|mut file| {
        file.write_all(content)?;
        file.set_permissions(permissions)?;
        // Before the rename: after a crash the name must not point to an empty file.
        file.sync_data()?;
        fs::rename(&temporary, path)
    });
    written.map_err(|error| {
        if let Err(error) = fs::remove_file(&temporary)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %temporary.display(), "a half-written file stays");
        }
        io_refusal(path, &error)
    })
}

/// Checks that the path may be written. Returns the mode that the file will have.
fn check_replaceable(path: &Path) -> Result<Permissions, Refusal> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(metadata.permissions()),
        Ok(_) => Err(bad_path(path, "is there and is no regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Permissions::from_mode(0o600)),
        Err(error) => Err(io_refusal(path, &error)),
    }
}

/// The path of the temporary file: hidden, in the same directory, so that a rename is possible.
fn temporary_path(path: &Path) -> Result<PathBuf, Refusal> {
    // `Path` ignores a slash at the end, but `name/` means a directory.
    let is_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let name = path.file_name().filter(|_| !is_directory);
    let name = name.ok_or_else(|| bad_path(path, "names no file"))?;
    let mut temporary = OsString::from(".");
    temporary.push(if name.len() > NAME_BYTES_MAX {
        OsStr::new("turnkeep")
    } else {
        name
    });
    let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
    temporary.push(format!(".{}-{number}.tmp", std::process::id()));
    Ok(path.with_file_name(temporary))
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn bad_path(path: &Path, what: &str) -> Refusal {
    Refusal::new(Reason::BadPath, format!("{} {what}", path.display()))
}

fn io_refusal(path: &Path, error: &io::Error) -> Refusal {
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

    fn refusal_reason(path: &Path) -> Reason {
        replace_file(path, b"new").unwrap_err().reason
    }

    #[test]
    fn a_file_is_created_or_replaced_and_no_temporary_file_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("turn.txt");
        let large = vec![0xff; 5 << 20];
        for content in [&b"one"[..], b"", &large] {
            replace_file(&path, content).unwrap();
            assert!(fs::read(&path).unwrap() == content);
        }
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        replace_file(&path, b"kept mode").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o644
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let long = dir.path().join("n".repeat(255));
        replace_file(&long, b"long").unwrap();
        assert_eq!(fs::read(&long).unwrap(), b"long");
    }

    #[test]
    fn only_a_regular_file_is_replaced() {
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
            assert_eq!(refusal_reason(&path), Reason::BadPath, "{}", path.display());
        }
        assert_eq!(
            refusal_reason(&dir.path().join("no/such/file")),
            Reason::BadPath
        );
        assert_eq!(
            refusal_reason(&dir.path().join("target/below")),
            Reason::BadPath
        );
        assert_eq!(refusal_reason(&dir.path().join("slash/")), Reason::BadPath);
        assert_eq!(
            refusal_reason(&dir.path().join("n".repeat(256))),
            Reason::BadPath
        );
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            3,
            "no temporary file is left"
        );
    }
}
