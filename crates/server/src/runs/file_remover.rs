//! Removes files that belong to something which is dropped.
//!
//! A destructor may run on a thread that must not block, so the removal goes to one that may. A file
//! that stays because the server ends at this moment is removed at the next start.

use std::io;
use std::path::{Path, PathBuf};

use tokio_util::task::TaskTracker;

/// Removes files and directories in the background.
#[derive(Debug, Clone, Default)]
pub(super) struct FileRemover(TaskTracker);

impl FileRemover {
    /// Counts the removals among these tasks, so that a shutdown waits for them.
    pub(super) fn new(tasks: TaskTracker) -> Self {
        Self(tasks)
    }

    /// Removes a file, or a directory with all that it contains.
    pub(super) fn remove(&self, path: PathBuf) {
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let removal = self
                    .0
                    .spawn_blocking_on(move || remove_now(&path), &runtime);
                drop(removal);
            }
            // A thread without a runtime may block.
            Err(_) => remove_now(&path),
        }
    }
}

fn remove_now(path: &Path) {
    let is_dir = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let removed = if is_dir {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "a file of a process is still there");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn files_and_directories_are_gone_when_the_tasks_have_ended() {
        let dir = tempfile::tempdir().unwrap();
        let tasks = TaskTracker::new();
        let remover = FileRemover::new(tasks.clone());
        fs::write(dir.path().join("file"), "").unwrap();
        fs::create_dir(dir.path().join("directory")).unwrap();
        fs::write(dir.path().join("directory/inside"), "").unwrap();
        for name in ["file", "directory", "missing"] {
            remover.remove(dir.path().join(name));
        }
        tasks.close();
        tasks.wait().await;
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
