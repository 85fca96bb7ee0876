//! Files that a node wrote in its worktree and may not write: restored from the tree before the turn.
//!
//! A revert refuses a file that changed after the snapshot: a process that the turn left behind may
//! still write. So the worktree is recorded and compared again until it has no such file. If that does
//! not help, the result is an error, because an apply would land the files.

use std::collections::BTreeSet;

use turnkeep_runtime::write_scope::WriteScope;
use turnkeep_workspace::{
    Diff, LandOutcome, TreeName, TreePath, Workspace as Directory, WorkspaceError,
};

use super::forbidden_paths;

/// How often files are restored that change again meanwhile.
const RESTORES_MAX: u32 = 3;

/// A worktree with the part of it that its node may write.
pub(super) struct ScopedWorktree<'a> {
    pub(super) directory: &'a Directory,
    /// The tree before the turn.
    pub(super) base: &'a TreeName,
    pub(super) scope: WriteScope,
    /// The files that requests of a person wrote during the turn. They are not the node's.
    pub(super) person_writes: &'a dyn Fn() -> BTreeSet<TreePath>,
}

/// The tree after a turn, and how it differs from the tree before.
#[derive(Debug)]
pub(super) struct EndTree {
    pub(super) head: TreeName,
    pub(super) diff: Diff,
}

/// A turn's changes after its forbidden files were restored.
#[derive(Debug)]
pub(super) struct RestoredTurn {
    pub(super) end: EndTree,
    /// The files that were restored.
    pub(super) violations: BTreeSet<TreePath>,
}

impl ScopedWorktree<'_> {
    /// Restores what the node may not write. `snapshot` records the worktree again.
    pub(super) fn restore_forbidden(
        &self,
        mut end: EndTree,
        snapshot: impl Fn() -> Result<TreeName, WorkspaceError>,
    ) -> Result<RestoredTurn, String> {
        let mut violations = BTreeSet::new();
        for _ in 0..RESTORES_MAX {
            let forbidden = self.forbidden_paths(&end.diff);
            if forbidden.is_empty() {
                return Ok(RestoredTurn { end, violations });
            }
            violations.extend(forbidden.iter().cloned());
            end = self
                .restore(&end.head, forbidden, &snapshot)
                .map_err(|error| error.to_string())?;
        }
        let left = self.forbidden_paths(&end.diff);
        if left.is_empty() {
            return Ok(RestoredTurn { end, violations });
        }
        let left: Vec<String> = left.iter().map(ToString::to_string).collect();
        Err(format!(
            "files that the agent may not write change while they are restored: {}",
            left.join(", ")
        ))
    }

    /// The files that the node changed and may not write.
    fn forbidden_paths(&self, diff: &Diff) -> BTreeSet<TreePath> {
        let by_person = (self.person_writes)();
        let forbidden = forbidden_paths(self.scope, diff).into_iter();
        forbidden.filter(|path| !by_person.contains(path)).collect()
    }

    fn restore(
        &self,
        head: &TreeName,
        forbidden: BTreeSet<TreePath>,
        snapshot: impl Fn() -> Result<TreeName, WorkspaceError>,
    ) -> Result<EndTree, WorkspaceError> {
        let only: Vec<TreePath> = forbidden.into_iter().collect();
        match self.directory.revert(self.base, head, Some(&only))? {
            LandOutcome::Landed { .. } => {}
            // Seen again in the new snapshot.
            LandOutcome::Conflicts { paths } => {
                tracing::debug!(?paths, "files changed while they were restored");
            }
        }
        let head = snapshot()?;
        let diff = self.directory.diff(self.base, &head)?;
        Ok(EndTree { head, diff })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use turnkeep_store::{Options, Store};
    use turnkeep_types::{ManualClock, Timestamp};

    use super::*;
    use crate::runs::workspaces::Workspaces;

    const NOW: Timestamp = Timestamp(1);

    /// A directory with a source file that a node may not write.
    struct Scene {
        files: tempfile::TempDir,
        _state: tempfile::TempDir,
        directory: Directory,
        base: TreeName,
    }

    impl Scene {
        fn new() -> Self {
            let files = tempfile::tempdir().unwrap();
            let state = tempfile::tempdir().unwrap();
            let clock = Arc::new(ManualClock::new(NOW));
            let storage = Arc::new(turnkeep_journal::MemoryStorage::new());
            let options = Options::default();
            let store = Store::open(storage, &options, Arc::<ManualClock>::clone(&clock)).unwrap();
            let workspaces = Workspaces::new(state.path(), store, clock);
            write(files.path(), "as it was");
            let directory = workspaces.open(files.path()).unwrap();
            let base = directory.snapshot(NOW, None).unwrap().tree;
            Self {
                files,
                _state: state,
                directory,
                base,
            }
        }

        fn snapshot(&self) -> TreeName {
            self.directory.snapshot(NOW, None).unwrap().tree
        }

        fn end(&self) -> EndTree {
            let head = self.snapshot();
            let diff = self.directory.diff(&self.base, &head).unwrap();
            EndTree { head, diff }
        }

        fn worktree(&self) -> ScopedWorktree<'_> {
            ScopedWorktree {
                directory: &self.directory,
                base: &self.base,
                scope: WriteScope::DocumentsOnly,
                person_writes: &BTreeSet::new,
            }
        }

        fn source(&self) -> String {
            fs::read_to_string(self.files.path().join("main.c")).unwrap()
        }
    }

    fn write(directory: &Path, text: &str) {
        fs::write(directory.join("main.c"), text).unwrap();
    }

    #[test]
    fn a_file_that_changes_before_it_is_restored_is_restored_the_second_time() {
        let scene = Scene::new();
        write(scene.files.path(), "written in the turn");
        let end = scene.end();
        // A process that the turn left behind.
        write(scene.files.path(), "written after the turn");
        let restored = scene
            .worktree()
            .restore_forbidden(end, || Ok(scene.snapshot()))
            .unwrap();
        assert_eq!(scene.source(), "as it was");
        assert_eq!(restored.end.head, scene.base);
        assert_eq!(restored.violations.len(), 1);
    }

    #[test]
    fn a_file_that_a_person_took_back_meanwhile_stays_as_it_is() {
        let scene = Scene::new();
        write(scene.files.path(), "taken back");
        let by_person = || [TreePath::new("main.c").unwrap()].into();
        let worktree = ScopedWorktree {
            person_writes: &by_person,
            ..scene.worktree()
        };
        let restored = worktree
            .restore_forbidden(scene.end(), || Ok(scene.snapshot()))
            .unwrap();
        assert_eq!(scene.source(), "taken back");
        assert_eq!(restored.violations, BTreeSet::new());
    }

    #[test]
    fn a_file_that_never_rests_is_an_error_that_names_it() {
        let scene = Scene::new();
        write(scene.files.path(), "written in the turn");
        let end = scene.end();
        write(scene.files.path(), "again");
        let snapshot = || {
            let tree = scene.snapshot();
            write(scene.files.path(), &format!("{} and again", scene.source()));
            Ok(tree)
        };
        let error = scene.worktree().restore_forbidden(end, snapshot);
        assert!(error.unwrap_err().ends_with("restored: main.c"));
    }
}
