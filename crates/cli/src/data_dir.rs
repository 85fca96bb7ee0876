//! The data directory: its permissions, its token, and the note that a running server leaves there.
//!
//! A new directory gets mode 0700. An existing one keeps its mode. The token and the note get mode
//! 0600 in both cases. Both are written under another name and renamed, so a reader finds a whole
//! file or none.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use turnkeep_journal::{DataDirLock, LockError};

use crate::failure::Failure;
use crate::token_file;

/// The hint for a directory that this user may not use.
pub(crate) const DENIED_HINT: &str =
    "run the command as the user who owns it, or name another data directory with --data DIR";

/// A data directory, whether it exists or not.
#[derive(Debug, Clone)]
pub(crate) struct DataDir {
    path: PathBuf,
}

/// What a running server says about itself in `run/server.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerNote {
    /// Its process.
    pub(crate) pid: u32,
    /// Its HTTP address.
    pub(crate) http: String,
    /// Its binary address.
    pub(crate) tcp: String,
    /// The certificate that it shows, when it speaks TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Whether the server belongs to an agent and ends with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) passing: bool,
}

impl ServerNote {
    /// Whether the process that wrote it exists.
    pub(crate) fn is_of_living_process(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
    }
}

impl DataDir {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether anything is there.
    pub(crate) fn exists(&self) -> bool {
        self.path.is_dir()
    }

    /// Whether a store was ever started here, even if nothing was written to it.
    pub(crate) fn is_store(&self) -> bool {
        // A server makes the token before its first write makes the log.
        self.has_log() || self.path.join("token").is_file()
    }

    /// Whether a log is there.
    pub(crate) fn has_log(&self) -> bool {
        self.path.join("log").is_dir()
    }

    /// Whether the directory cannot be written: the file system is read-only, or this user lacks
    /// the permission.
    pub(crate) fn is_read_only(&self) -> bool {
        let parts = [
            self.path.clone(),
            self.path.join("log"),
            self.path.join("index"),
        ];
        // A part that does not exist yet will be made in one that does.
        let mut existing = parts.iter().filter(|path| path.is_dir());
        existing.any(|path| {
            matches!(
                access(path, Access::WRITE_OK),
                Err(Errno::ROFS | Errno::ACCESS | Errno::PERM)
            )
        })
    }

    /// Refuses a directory that must not be opened as a store: half-filled, or not readable.
    pub(crate) fn refuse_unusable(&self) -> Result<()> {
        self.refuse_unfinished()?;
        self.refuse_unreadable()
    }

    /// Whether another process holds the lock at the moment.
    pub(crate) fn is_held(&self) -> bool {
        let lock = DataDirLock::acquire(&self.path);
        matches!(lock, Err(LockError::Held { .. }))
    }

    /// Refuses a directory that an import or a repair began to fill and did not finish.
    pub(crate) fn refuse_unfinished(&self) -> Result<()> {
        if !self.path.join("log/UNFINISHED").exists() {
            return Ok(());
        }
        let path = self.path.display();
        let unfinished = turnkeep_store::OpenError::Unfinished;
        Failure::new(format!("{path}: {unfinished}"))
            .hint(format!("nothing in {path} is complete"))
            .fail()
    }

    /// Refuses a log that this user may not read. Without this check it would look damaged.
    fn refuse_unreadable(&self) -> Result<()> {
        let log = self.path.join("log");
        let entries = match fs::read_dir(&log) {
            Ok(entries) => entries,
            Err(error) => return refuse_denied(&log, &error),
        };
        let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        for file in paths.filter(|path| path.is_file()) {
            if let Err(error) = File::open(&file) {
                refuse_denied(&file, &error)?;
            }
        }
        Ok(())
    }

    /// Makes the directory with mode 0700. An existing directory keeps its mode, which its owner
    /// chose.
    pub(crate) fn create(&self) -> Result<()> {
        create_private_dir(&self.path)
            .with_context(|| format!("cannot create {}", self.path.display()))
    }

    /// The token, if there is one.
    pub(crate) fn token(&self) -> Result<Option<String>> {
        token_file::read_token(&self.path.join("token"))
    }

    /// The token. Makes one if the directory has none.
    pub(crate) fn ensure_token(&self) -> Result<String> {
        if let Some(token) = self.token()? {
            return Ok(token);
        }
        let token = hex::encode(random_bytes::<32>()?);
        let path = self.path.join("token");
        write_private(&path, format!("{token}\n").as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(token)
    }

    /// The note of the server that runs here, or that ran here and was killed.
    pub(crate) fn server_note(&self) -> Option<ServerNote> {
        let bytes = fs::read(self.note_path()).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The note, if the process that wrote it holds the directory's lock. A killed server leaves its
    /// note behind, and another store's server may listen at that address by now.
    pub(crate) fn holders_note(&self) -> Option<ServerNote> {
        let note = self.server_note()?;
        match DataDirLock::acquire(&self.path) {
            // The lock file names its holder. A free lock means that the writer of the note is
            // gone.
            Err(LockError::Held { pid, .. }) if pid == note.pid.to_string() => Some(note),
            _ => None,
        }
    }

    /// Writes the note.
    pub(crate) fn leave_note(&self, note: &ServerNote) -> Result<()> {
        let path = self.note_path();
        let write = || -> Result<()> {
            create_private_dir(&self.path.join("run"))?;
            write_private(&path, &serde_json::to_vec(note)?)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// Removes the note, if there is one.
    pub(crate) fn remove_note(&self) {
        match fs::remove_file(self.note_path()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%error, "the note of a server cannot be removed");
            }
            _ => {}
        }
    }

    /// The failure of a command that needs a store in this directory and finds none.
    pub(crate) fn missing_store_error(&self) -> anyhow::Error {
        if let Err(error) = fs::read_dir(&self.path)
            && let Err(denied) = refuse_denied(&self.path, &error)
        {
            return denied;
        }
        Failure::new(format!("there is no store in {}", self.path.display()))
            .hint("`turnkeep up` or `turnkeep ctx new` starts one; --data DIR names another directory, --server ADDR a running server")
            .into()
    }

    fn note_path(&self) -> PathBuf {
        self.path.join("run/server.json")
    }
}

/// Fails if an error means that this user lacks the permission.
fn refuse_denied(path: &Path, error: &io::Error) -> Result<()> {
    if error.kind() != ErrorKind::PermissionDenied {
        return Ok(());
    }
    Failure::new(format!("cannot read {}: {error}", path.display()))
        .hint(DENIED_HINT)
        .fail()
}

fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a file that only its owner can read. It is first written under a random name: an attacker
/// who can write to the directory could put a link or a file under a predictable one.
fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", hex::encode(random_bytes::<8>()?)));
    let beside = path.with_file_name(name);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    let written = fill_private(file, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The first error counts; a rest that stays is only untidy.
        fs::remove_file(&beside).ok();
    }
    Ok(written?)
}

fn fill_private(mut file: File, bytes: &[u8]) -> io::Result<()> {
    // The umask may have removed bits from the mode of the new file.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    // Without the sync, a power loss after the rename could leave an empty file under the name.
    file.sync_all()
}

/// Random bytes that cannot be guessed.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut random = [0; N];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut random));
    read.context("cannot read random bytes from /dev/urandom")?;
    Ok(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn directory_token_and_note_are_the_owners_alone() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::new(temp.path().join("a/b"));
        dir.create().unwrap();
        let token = dir.ensure_token().unwrap();
        assert_eq!(token.len(), 64);
        assert_eq!(dir.ensure_token().unwrap(), token, "a token stays");
        let note = ServerNote {
            pid: 1,
            http: "127.0.0.1:2".into(),
            tcp: "127.0.0.1:3".into(),
            tls_cert: None,
            passing: false,
        };
        dir.leave_note(&note).unwrap();
        assert_eq!(dir.server_note(), Some(note));
        assert_eq!(mode(dir.path()), 0o700);
        assert_eq!(mode(&dir.path().join("token")), 0o600);
        assert_eq!(mode(&dir.path().join("run")), 0o700);
        assert_eq!(mode(&dir.path().join("run/server.json")), 0o600);
        dir.remove_note();
        assert_eq!(dir.server_note(), None);
    }

    #[test]
    fn a_file_that_somebody_put_there_is_not_written_to() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::new(temp.path());
        fs::write(temp.path().join("mine"), "mine").unwrap();
        // What the file was called while it was being written.
        std::os::unix::fs::symlink("mine", temp.path().join("token.new")).unwrap();
        dir.ensure_token().unwrap();
        assert_eq!(fs::read(temp.path().join("mine")).unwrap(), b"mine");
        assert!(!temp.path().join("token").is_symlink());
        assert_eq!(mode(&temp.path().join("token")), 0o600);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_directory_that_was_there_keeps_its_mode_and_what_is_made_in_it_is_private() {
        let temp = tempfile::tempdir().unwrap();
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let dir = DataDir::new(temp.path());
        dir.create().unwrap();
        dir.ensure_token().unwrap();
        assert_eq!(mode(dir.path()), 0o755);
        assert_eq!(mode(&dir.path().join("token")), 0o600);
    }

    #[test]
    fn only_the_note_of_the_locks_holder_is_believed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = DataDir::new(temp.path());
        let here = std::process::id();
        let note = |pid| ServerNote {
            pid,
            http: "127.0.0.1:2".into(),
            tcp: "127.0.0.1:3".into(),
            tls_cert: None,
            passing: false,
        };
        dir.leave_note(&note(here)).unwrap();
        assert_eq!(dir.holders_note(), None, "nobody holds the lock");
        let _lock = DataDirLock::acquire(dir.path()).unwrap();
        assert_eq!(dir.holders_note(), Some(note(here)));
        dir.leave_note(&note(here + 1)).unwrap();
        assert_eq!(dir.holders_note(), None, "another process wrote the note");
    }
}
