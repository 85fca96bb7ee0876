//! Checks of the data directory itself.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use turnkeep_journal::{DataDirLock, LockError};

use super::Finding;
use crate::data_dir::{DENIED_HINT, DataDir};

/// Checks that only the owner may enter the directory.
pub(super) fn check_permissions(dir: &DataDir) -> Finding {
    const CHECK: &str = "directory";
    let path = dir.path().display();
    match file_mode(dir.path()) {
        // A wider mode is only a warning: the person may want to share the directory.
        Ok(mode) if is_private(mode) => Finding::ok(CHECK, format!("{path}, mode {mode:o}")),
        Ok(mode) => {
            let advice = format!("others may read it: chmod 700 {path}");
            Finding::warn(CHECK, format!("{path} has mode {mode:o}"), advice)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Finding::warn(
            CHECK,
            format!("{path} is not there yet"),
            "`turnkeep up` makes it",
        ),
        Err(error) => Finding::fail(
            CHECK,
            format!("{path}: {error}"),
            "check who owns it, or name another with --data DIR",
        ),
    }
}

/// Checks that only the owner may read the token.
pub(super) fn check_token_file(dir: &DataDir) -> Finding {
    const CHECK: &str = "token";
    let file = dir.path().join("token");
    let path = file.display();
    match file_mode(&file) {
        Ok(mode) if is_private(mode) => Finding::ok(CHECK, format!("{path}, mode {mode:o}")),
        // Unlike a wide mode of the directory, this is a failure: commands refuse such a file.
        Ok(mode) => {
            let advice = format!(
                "others may read it: delete it and start the server again, or chmod 600 {path}"
            );
            Finding::fail(CHECK, format!("{path} has mode {mode:o}"), advice)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Finding::ok(CHECK, "none yet; the first start makes one")
        }
        Err(error) => Finding::fail(CHECK, format!("{path}: {error}"), "check who owns it"),
    }
}

/// Checks that the lock is free, or held by a server that answers.
pub(super) fn check_lock(dir: &DataDir, server_runs: bool) -> Finding {
    const CHECK: &str = "lock";
    if !dir.exists() {
        return Finding::ok(CHECK, "free");
    }
    match DataDirLock::acquire(dir.path()) {
        Ok(_lock) => Finding::ok(CHECK, "free"),
        Err(error @ LockError::ReadOnly { .. }) => Finding::warn(
            CHECK,
            error.to_string(),
            "it can be read: verify, repair, export, log and stats work; a server cannot start there",
        ),
        Err(error @ LockError::Io { .. }) => Finding::fail(CHECK, error.to_string(), DENIED_HINT),
        // A held lock is what a running server looks like.
        Err(_) if server_runs => Finding::ok(CHECK, "held by the running server"),
        Err(error) => Finding::warn(
            CHECK,
            error.to_string(),
            "another command may be at work; if it hangs, end it",
        ),
    }
}

/// Checks that the log can be read. `turnkeep verify` checks its content.
pub(super) fn check_log(dir: &DataDir) -> Finding {
    const CHECK: &str = "log";
    match dir.refuse_unusable() {
        Ok(()) => Finding::ok(
            CHECK,
            "not read here: `turnkeep verify` checks every frame of it",
        ),
        Err(error) => Finding::fail(CHECK, error.to_string(), DENIED_HINT),
    }
}

/// Checks that recovery has not cut off unfinished writes.
pub(super) fn check_torn_writes(dir: &DataDir) -> Finding {
    const CHECK: &str = "torn writes";
    let torn = dir.path().join("log/torn");
    let files = fs::read_dir(&torn).map_or(0, Iterator::count);
    if files == 0 {
        return Finding::ok(CHECK, "none");
    }
    let advice = "they were never acknowledged: keep them if you want to look into the crash, else delete them";
    Finding::warn(CHECK, format!("{files} in {}", torn.display()), advice)
}

fn is_private(mode: u32) -> bool {
    const OTHERS: u32 = 0o077;
    mode & OTHERS == 0
}

fn file_mode(path: &Path) -> std::io::Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o7777)
}
