//! The directory in which the nodes of a run work: checked when the run is created, and found
//! missing later.
//!
//! A run whose directory is gone fails: no node can go on before a person repairs it.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use turnkeep_runtime::decide::{self, RunChange};
use turnkeep_runtime::words::RunStatus;

use super::run_handle::RunHandle;

/// Checks the directory of a new run. The error says what is wrong with it.
pub(super) fn check(cwd: &str) -> Result<(), String> {
    let path = Path::new(cwd);
    if !path.is_absolute() {
        // The server's own directory means nothing to a client.
        return Err(format!("is `{cwd}`: give an absolute path"));
    }
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(format!("is `{cwd}`, which is not a directory")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(format!("is `{cwd}`, which does not exist"))
        }
        Err(error) => Err(format!("is `{cwd}`, which cannot be used: {error}")),
    }
}

/// Fails a run whose directory is missing.
pub(super) async fn fail_if_missing(handle: &Arc<RunHandle>) {
    let Some(cwd) = handle.read_live(|run| run.settings.cwd.clone()) else {
        return;
    };
    let checked = handle.services.run_blocking(move || check(&cwd)).await;
    let Ok(Err(reason)) = checked else {
        return;
    };
    let fail = |run: &_, around: decide::Surroundings<'_>| {
        let change = RunChange {
            status: Some(RunStatus::Failed),
            ..RunChange::default()
        };
        decide::change_run(run, around, change)
    };
    match handle.decide(fail).await {
        Ok(()) => tracing::warn!(run = %handle.id(), "the run failed: its directory {reason}"),
        // It has ended already.
        Err(error) => tracing::debug!(run = %handle.id(), %error, "the run did not fail"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &Path) -> String {
        check(path.to_str().unwrap()).unwrap_err()
    }

    #[test]
    fn only_a_directory_with_an_absolute_path_will_do() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        check(dir.path().to_str().unwrap()).unwrap();
        assert!(refused(Path::new("work")).contains("absolute"));
        assert!(refused(Path::new("")).contains("absolute"));
        assert!(refused(&file).contains("not a directory"));
        assert!(refused(&dir.path().join("gone")).contains("does not exist"));
    }
}
