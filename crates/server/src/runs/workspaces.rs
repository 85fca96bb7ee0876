//! Where the nodes of all runs work, and what their turns changed there.
//!
//! Before a turn the workspace is recorded as a tree, and after it again; the difference is the
//! turn's diff. Only its own node writes to a worktree, so the server restores forbidden files there
//! at once. In a shared directory it restores nothing without a request: a changed file may be the
//! user's or another node's.
//!
//! All work on files runs on threads that may block. What is kept in memory can be lost: after a
//! restart no turn is open.

mod forbidden_files;
mod lost_turns;
mod store_blobs;
mod windows;
mod worktrees;
mod written_files;

pub(super) use windows::PersonWrites;
pub(super) use worktrees::{DeletedNode, MergedWork, NodeHead, WorktreeNode, WorktreesGuard};

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use turnkeep_runtime::artifact::{DiffSummary, Workspace, WriteConflict};
use turnkeep_runtime::decide::DiffTaken;
use turnkeep_runtime::ids::{AgentTurnId, NodeId, RunId};
use turnkeep_runtime::words::WorkspaceKind;
use turnkeep_runtime::write_scope::WriteScope;
use turnkeep_store::Store;
use turnkeep_types::Clock;
use turnkeep_workspace::{
    BlobStore, ConflictingWrite, Diff, OverlapReport, Settings, SnapshotLimits, SnapshotName,
    TreeName, TreePath, TurnWindow, Workspace as Directory, WorkspaceError, recover_interrupted,
    report_overlaps,
};

use super::run_handle::RunHandle;
use forbidden_files::{EndTree, ScopedWorktree};
use store_blobs::StoreBlobs;
use windows::{ClosingWindow, DirectoryWindow, NewWindow, OtherTurn, TurnWindows};
use written_files::WrittenFiles;

/// How long one command of git may take.
const GIT_TIME_LIMIT: Duration = Duration::from_mins(2);
/// How many paths a diff lists. The patch has all of them.
const LISTED_PATHS_MAX: usize = 5_000;

/// The workspaces of all runs.
pub(super) struct Workspaces {
    settings: Settings,
    blobs: Arc<StoreBlobs>,
    clock: Arc<dyn Clock>,
    state: Mutex<WorkspaceState>,
}

#[derive(Default)]
struct WorkspaceState {
    /// Where each node works. A fork of a run has nodes of the same ids.
    directories: HashMap<(RunId, NodeId), PathBuf>,
    /// How often the worktree of a node was removed.
    removals: HashMap<(RunId, NodeId), u64>,
    /// Whether a run's directory is in a repository.
    repositories: HashMap<String, bool>,
    /// Where the last turn of a node began, if it could not be compared with its end.
    unchecked_bases: HashMap<(RunId, NodeId), TreeName>,
    /// Held while a worktree of the run is made or removed.
    worktree_locks: HashMap<RunId, Arc<tokio::sync::Mutex<()>>>,
    windows: TurnWindows,
}

/// Where a program works. A worktree that was removed and made again is another directory at the same
/// path: a process that began in the first one cannot work in the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkDirectory {
    pub(super) path: PathBuf,
    generation: u64,
}

/// What a turn needs to know about its place.
struct TurnPlace {
    run: RunId,
    node: NodeId,
    turn: AgentTurnId,
    cwd: PathBuf,
    workspace: Workspace,
    /// The branch that a worktree should be on.
    branch: String,
    scope: WriteScope,
    setup: Vec<String>,
}

/// The names under which the snapshots of a turn are kept.
struct SnapshotNames {
    run: String,
    turn: String,
}

impl SnapshotNames {
    fn of(run: RunId, turn: AgentTurnId) -> Self {
        Self {
            run: run.to_string(),
            turn: turn.to_string(),
        }
    }
}

impl Workspaces {
    /// Keeps worktrees and private indexes in `data_dir`.
    pub(super) fn new(data_dir: &Path, store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings: Settings {
                state_dir: data_dir.join("run").join("snapshots"),
                worktrees_dir: data_dir.join("worktrees"),
                // A store in memory has no directory.
                private_dirs: if data_dir.as_os_str().is_empty() {
                    Vec::new()
                } else {
                    vec![data_dir.to_owned()]
                },
                git_program: "git".into(),
                git_time_limit: GIT_TIME_LIMIT,
                limits: SnapshotLimits::default(),
            },
            blobs: Arc::new(StoreBlobs(store)),
            clock,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, WorkspaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(&self, directory: &Path) -> Result<Directory, WorkspaceError> {
        let blobs: Arc<dyn BlobStore> = Arc::<StoreBlobs>::clone(&self.blobs);
        Directory::open(&self.settings, blobs, directory)
    }

    /// Whether a run's directory was in a repository when it was last looked at.
    pub(super) fn has_repository(&self, cwd: &str) -> bool {
        self.lock().repositories.get(cwd).copied().unwrap_or(false)
    }

    /// Looks whether a run's directory is in a repository. It blocks.
    pub(super) fn detect_repository(&self, cwd: &str) {
        let is_repository = self
            .open(Path::new(cwd))
            .is_ok_and(|directory| directory.has_repository());
        self.lock()
            .repositories
            .insert(cwd.to_owned(), is_repository);
    }

    /// The name of a directory's tree as it is now. It blocks.
    pub(super) fn name_tree(&self, directory: &Path) -> Result<TreeName, WorkspaceError> {
        let opened = self.open(directory)?;
        Ok(opened.snapshot(self.clock.now(), None)?.tree)
    }

    /// The changes between two trees of a run. It blocks.
    pub(super) fn compare_trees(
        &self,
        cwd: &Path,
        base: &TreeName,
        head: &TreeName,
    ) -> Result<DiffTaken, WorkspaceError> {
        let diff = self.open(cwd)?.diff(base, head)?;
        Ok(diff_taken(&diff, base, head, &TurnOverlaps::default()))
    }

    /// Undoes what a crash left halfway in the directories of a run: an apply or a revert that had
    /// not come to its end. It blocks.
    pub(super) fn recover(&self, run: RunId, cwd: &Path) {
        let mut directories = vec![cwd.to_owned()];
        let worktrees = self.settings.worktrees_dir.join(run.to_string());
        let entries = std::fs::read_dir(worktrees).into_iter().flatten();
        directories.extend(entries.flatten().map(|entry| entry.path()));
        for directory in directories.iter().filter(|directory| directory.is_dir()) {
            let shown = directory.display();
            match recover_interrupted(directory) {
                Ok(recovery) if recovery.undone.is_empty() => {}
                Ok(recovery) => {
                    let files = recovery.undone.len();
                    tracing::warn!(%run, directory = %shown, files, "an interrupted change was undone");
                }
                Err(error) => {
                    tracing::error!(%run, directory = %shown, %error, "an interrupted change stays");
                }
            }
        }
    }

    /// Makes the workspace of a turn ready and records its state as a tree.
    pub(super) async fn begin_turn(
        &self,
        handle: &Arc<RunHandle>,
        node: NodeId,
        turn: AgentTurnId,
        workspace: Workspace,
    ) -> Result<TreeName, String> {
        let place = Arc::new(find_place(handle, node, turn, workspace)?);
        let (services, cwd) = (Arc::clone(&handle.services), place.cwd.clone());
        let detect = move || {
            services
                .workspaces
                .detect_repository(&cwd.to_string_lossy());
        };
        let detected = handle.services.run_file_work(detect).await;
        detected.map_err(|error| error.to_string())?;
        let directory = match place.workspace.kind {
            WorkspaceKind::Shared => place.cwd.clone(),
            WorkspaceKind::Worktree => self.prepare_worktree(handle, &place).await?,
        };
        let services = Arc::clone(&handle.services);
        let open = move || services.workspaces.open_window(&place, directory);
        let opened = handle.services.run_file_work(open).await;
        opened.map_err(|error| error.to_string())?
    }

    /// Takes the snapshot before a turn. It blocks.
    fn open_window(&self, place: &TurnPlace, directory: PathBuf) -> Result<TreeName, String> {
        let new = NewWindow {
            node: place.node,
            directory: directory.clone(),
            kind: place.workspace.kind,
            scope: place.scope,
        };
        self.lock().windows.open(place.turn, new);
        let names = SnapshotNames::of(place.run, place.turn);
        let opened = self.open(&directory);
        // Kept from now on: a revert needs it as long as the turn is known.
        let snapshot = opened.and_then(|opened| self.take_snapshot(&opened, &names));
        let mut state = self.lock();
        match snapshot {
            Ok(tree) => {
                let node = (place.run, place.node);
                let base = state.unchecked_bases.remove(&node).unwrap_or(tree);
                // A turn that was given up meanwhile has no window any more, and needs none.
                state.windows.set_base(place.turn, base.clone());
                state.directories.insert(node, directory);
                Ok(base)
            }
            Err(error) => {
                state.windows.remove(place.turn);
                Err(error.to_string())
            }
        }
    }

    /// Forgets a turn whose changes will not be recorded.
    pub(super) fn abandon_turn(&self, turn: AgentTurnId) {
        self.lock().windows.remove(turn);
    }

    /// Notes that a request of a person is about to write files of a directory, so that the open turns
    /// there do not take them for their own.
    pub(super) fn note_person_writes(
        &self,
        directory: &Path,
        paths: &BTreeSet<TreePath>,
    ) -> PersonWrites {
        self.lock().windows.note_person_writes(directory, paths)
    }

    /// Takes a note back, because the request wrote nothing.
    pub(super) fn forget_person_writes(&self, noted: PersonWrites) {
        self.lock().windows.forget_person_writes(noted);
    }

    /// Forgets a turn whose changes could not be found. In a worktree the node's next turn begins
    /// where this one did, so that files which the node may not write are still found and restored.
    fn give_up_on_turn(&self, run: RunId, turn: AgentTurnId) {
        let mut state = self.lock();
        if let Some(window) = state.windows.find(turn)
            && window.kind == WorkspaceKind::Worktree
            && let Some(base) = window.base
        {
            state.unchecked_bases.insert((run, window.node), base);
        }
        state.windows.remove(turn);
    }

    /// What a turn changed. A workspace that cannot be read gives an empty diff that says why.
    pub(super) async fn finish_turn(
        &self,
        handle: &Arc<RunHandle>,
        node: NodeId,
        turn: AgentTurnId,
    ) -> DiffTaken {
        let services = Arc::clone(&handle.services);
        let run = handle.id();
        let written = WrittenFiles::of_open_turns(handle);
        let finished = handle
            .services
            .run_file_work(move || services.workspaces.finish_blocking(run, turn, &written));
        let finished = finished.await;
        let error = match finished {
            Ok(Ok(diff)) => return diff,
            Ok(Err(error)) => error,
            Err(error) => error.to_string(),
        };
        self.give_up_on_turn(run, turn);
        tracing::warn!(%run, %node, %error, "the changes of a turn are not known");
        DiffTaken {
            patch: Bytes::new(),
            summary: DiffSummary {
                summary: format!("the changes are not known: {error}"),
                ..DiffSummary::default()
            },
        }
    }

    fn finish_blocking(
        &self,
        run: RunId,
        turn: AgentTurnId,
        written: &WrittenFiles,
    ) -> Result<DiffTaken, String> {
        let window = self.lock().windows.find(turn);
        let Some(DirectoryWindow {
            directory,
            base: Some(base),
            kind,
            scope,
            ..
        }) = window
        else {
            // The turn failed before its workspace was ready.
            self.abandon_turn(turn);
            return Ok(DiffTaken::default());
        };
        let text = |error: WorkspaceError| error.to_string();
        let opened = self.open(&directory).map_err(text)?;
        let names = SnapshotNames::of(run, turn);
        let head = self.take_snapshot(&opened, &names).map_err(text)?;
        let diff = opened.diff(&base, &head).map_err(text)?;
        // Behind the snapshot: whatever a person's request wrote before it is noted by now.
        let person_writes = || self.lock().windows.person_writes(turn);
        if kind == WorkspaceKind::Shared {
            let closing = ClosingWindow {
                changed: diff.touched_paths().into_iter().collect(),
                forbidden: forbidden_paths(scope, &diff),
                reported: written.in_directory(turn, &directory),
            };
            let others = self.other_windows(&opened, turn, &head, written);
            let by_person = person_writes();
            let overlaps = self.close_window(turn, closing, &others, by_person);
            return Ok(diff_taken(&diff, &base, &head, &overlaps));
        }
        let worktree = ScopedWorktree {
            directory: &opened,
            base: &base,
            scope,
            person_writes: &person_writes,
        };
        let snapshot = || self.take_snapshot(&opened, &names);
        let restored = worktree.restore_forbidden(EndTree { head, diff }, snapshot)?;
        let by_person = person_writes();
        self.abandon_turn(turn);
        let EndTree { head, diff } = restored.end;
        let touched = diff.touched_paths().into_iter();
        let overlaps = TurnOverlaps {
            violations: restored.violations,
            shared: touched.filter(|path| by_person.contains(path)).collect(),
            ..TurnOverlaps::default()
        };
        Ok(diff_taken(&diff, &base, &head, &overlaps))
    }

    /// Records a directory as a tree of a turn. The trees of a turn are kept together: each snapshot
    /// is the parent of the next one.
    fn take_snapshot(
        &self,
        directory: &Directory,
        names: &SnapshotNames,
    ) -> Result<TreeName, WorkspaceError> {
        let keep = SnapshotName {
            run: &names.run,
            turn: &names.turn,
        };
        let snapshot = directory.snapshot(self.clock.now(), Some(keep))?;
        Ok(snapshot.tree)
    }

    /// Ends the window of a turn in a shared directory and compares it with the others there, and with
    /// what requests of a person wrote.
    fn close_window(
        &self,
        turn: AgentTurnId,
        closing: ClosingWindow,
        others: &[OtherTurn],
        by_person: BTreeSet<TreePath>,
    ) -> TurnOverlaps {
        let closed = self.lock().windows.close(turn, closing);
        closed.map_or_else(TurnOverlaps::default, |own| {
            TurnOverlaps::of(&own, others, by_person)
        })
    }

    /// The other turns in the same directory. What an open one has changed so far is the difference
    /// between its beginning and now. What an open turn of another run has written is not known here;
    /// the end of that turn finds the files that both wrote.
    fn other_windows(
        &self,
        opened: &Directory,
        turn: AgentTurnId,
        now: &TreeName,
        written: &WrittenFiles,
    ) -> Vec<OtherTurn> {
        let mut others = self.lock().windows.others(turn);
        for OtherTurn {
            turn: other,
            directory,
        } in &mut others
        {
            let window = &mut directory.window;
            if window.closed.is_none()
                && let Some(base) = &directory.base
                && let Ok(diff) = opened.diff(base, now)
            {
                window.forbidden = forbidden_paths(directory.scope, &diff);
                window.changed = diff.touched_paths().into_iter().collect();
                window.reported = written.in_directory(*other, &directory.directory);
            }
        }
        others
    }
}

/// What a turn and the turns beside it did to the same files.
#[derive(Default)]
struct TurnOverlaps {
    violations: BTreeSet<TreePath>,
    shared: BTreeSet<TreePath>,
    conflicts: Vec<WriteConflict>,
}

impl TurnOverlaps {
    fn of(own: &TurnWindow, others: &[OtherTurn], by_person: BTreeSet<TreePath>) -> Self {
        let mut windows: Vec<TurnWindow> = others
            .iter()
            .map(|other| other.directory.window.clone())
            .collect();
        // The person counts as one more writer, who may write everything.
        windows.push(TurnWindow {
            opened: own.opened,
            changed: by_person,
            ..TurnWindow::default()
        });
        let OverlapReport {
            shared,
            violations,
            conflicts,
        } = report_overlaps(own, &windows);
        let conflicts = conflicts.into_iter().take(LISTED_PATHS_MAX);
        let conflicts = conflicts.filter_map(|ConflictingWrite { path, other }| {
            let other = others.get(other)?;
            Some(WriteConflict {
                path: path.to_string(),
                node: other.directory.node,
                turn: other.turn,
            })
        });
        Self {
            violations,
            shared,
            conflicts: conflicts.collect(),
        }
    }
}

fn no_directory() -> String {
    "the run has no directory: create it with `cwd`".to_owned()
}

fn find_place(
    handle: &RunHandle,
    id: NodeId,
    turn: AgentTurnId,
    workspace: Workspace,
) -> Result<TurnPlace, String> {
    handle.read_live(|run| {
        let node = run.node(id).ok_or("the node is gone")?;
        // The mode in which the turn began, also if the run's mode has changed since.
        let mode = node
            .turn
            .as_ref()
            .map_or(run.global_mode, |turn| turn.global_mode);
        let cwd = run.settings.cwd.as_ref().ok_or_else(no_directory)?;
        Ok(TurnPlace {
            run: run.id,
            node: id,
            turn,
            cwd: PathBuf::from(cwd),
            branch: workspace.branch.clone().unwrap_or_default(),
            workspace,
            scope: WriteScope::of(node.settings.capabilities, mode),
            setup: run.settings.setup.clone(),
        })
    })
}

/// The changed files that a node may not write.
fn forbidden_paths(scope: WriteScope, diff: &Diff) -> BTreeSet<TreePath> {
    let touched = diff.touched_paths().into_iter();
    touched
        .filter(|path| !scope.allows(&path.to_string()))
        .collect()
}

fn diff_taken(diff: &Diff, base: &TreeName, head: &TreeName, overlaps: &TurnOverlaps) -> DiffTaken {
    let texts = |paths: &BTreeSet<TreePath>| -> Vec<String> {
        let listed = paths.iter().take(LISTED_PATHS_MAX);
        listed.map(ToString::to_string).collect()
    };
    DiffTaken {
        patch: Bytes::from(diff.patch.clone()),
        summary: DiffSummary {
            turn: None,
            files_changed: diff
                .touched_paths()
                .iter()
                .take(LISTED_PATHS_MAX)
                .map(ToString::to_string)
                .collect(),
            summary: diff.summary.clone(),
            lines_added: diff.lines_added,
            lines_removed: diff.lines_removed,
            base_tree: base.as_str().to_owned(),
            head_tree: head.as_str().to_owned(),
            violations: texts(&overlaps.violations),
            shared: texts(&overlaps.shared),
            conflicts: overlaps.conflicts.clone(),
        },
    }
}
