//! Checks that a socket belongs to the user's own broker.
//!
//! Captured and pasted text goes through the socket, so the client must not connect to a socket
//! that another user made. The socket and its directory must belong to this user. No other user may
//! write to the directory, because a writer could replace the socket.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::error::BrokerError;

/// The mode bits that let other users write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Returns an error if the socket may belong to another user. A missing socket is not an error
/// here: `connect` reports it.
pub(super) fn check_owner(socket: &Path) -> Result<(), BrokerError> {
    check_owned_by(socket, rustix::process::geteuid().as_raw())
}

fn check_owned_by(socket: &Path, uid: u32) -> Result<(), BrokerError> {
    let directory = socket.parent().unwrap_or(Path::new("/"));
    let untrusted = |path: &Path, why| BrokerError::Untrusted {
        path: path.to_owned(),
        why,
    };
    // `connect` follows links in the directory, so the check follows them too.
    let Some(found) = metadata_if_exists(directory, fs::metadata(directory))? else {
        return Ok(());
    };
    if found.uid() != uid {
        return Err(untrusted(directory, "belongs to another user"));
    }
    if found.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(untrusted(directory, "can be written to by others"));
    }
    // The socket itself must not be a link: it could lead to another user's socket.
    let Some(found) = metadata_if_exists(socket, fs::symlink_metadata(socket))? else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return Err(untrusted(socket, "is no socket"));
    }
    if found.uid() != uid {
        return Err(untrusted(socket, "belongs to another user"));
    }
    Ok(())
}

fn metadata_if_exists(
    path: &Path,
    found: io::Result<fs::Metadata>,
) -> Result<Option<fs::Metadata>, BrokerError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BrokerError::Unreachable {
            path: path.to_owned(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn refusal(socket: &Path, uid: u32) -> String {
        check_owned_by(socket, uid).unwrap_err().to_string()
    }

    #[test]
    fn only_the_users_own_socket_in_a_directory_of_their_own_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("broker.sock");
        let uid = fs::metadata(dir.path()).unwrap().uid();
        assert!(
            check_owned_by(&socket, uid).is_ok(),
            "`connect` says that it is missing"
        );
        let listener = UnixListener::bind(&socket).unwrap();
        assert!(check_owned_by(&socket, uid).is_ok() && check_owner(&socket).is_ok());
        assert!(refusal(&socket, uid + 1).contains("belongs to another user"));
        for mode in [0o770, 0o702, 0o1777] {
            set_mode(dir.path(), mode);
            assert!(
                refusal(&socket, uid).contains("can be written to by others"),
                "{mode:o}"
            );
        }
        set_mode(dir.path(), 0o755);
        assert!(check_owned_by(&socket, uid).is_ok());
        drop(listener);
    }

    #[test]
    fn a_link_or_a_file_in_the_sockets_place_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (real, socket) = (dir.path().join("real.sock"), dir.path().join("broker.sock"));
        let uid = fs::metadata(dir.path()).unwrap().uid();
        let listener = UnixListener::bind(&real).unwrap();
        symlink(&real, &socket).unwrap();
        assert!(refusal(&socket, uid).contains("is no socket"));
        fs::remove_file(&socket).unwrap();
        fs::write(&socket, "").unwrap();
        assert!(refusal(&socket, uid).contains("is no socket"));
        drop(listener);
    }
}
