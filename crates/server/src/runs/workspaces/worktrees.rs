//! The worktrees of nodes: makes them, merges their work, and removes those that hold nothing new.
//!
//! A worktree goes when its work was applied, when its run is completed, and when its run is deleted,
//! but only if it holds nothing that is not in the run's directory. Otherwise it stays, and the log says
//! where: that of the run after an apply, which a person asked for, else that of the server, because
//! nothing is recorded in a run that has ended. A node whose worktree went gets a new one, at the same
//! place, for its next turn.
//!
//! The worktree of a node that is deleted goes at once if it holds nothing new. One that stays is part
//! of no verification and no apply, because it belongs to no node. It is looked at again whenever
//! worktrees are removed: its directory says that it is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;
use turnkeep_runtime::decide;
use turnkeep_runtime::ids::{NodeId, RunId};
use turnkeep_runtime::node::Node;
use turnkeep_runtime::words::WorkspaceKind;
use turnkeep_workspace::{
    AppliedWorktree, CreateWorktree, FileConflict, Integrated, IntegrationOutcome, NodeChanges,
    RemoveWorktree, TreeName, WorkspaceError, Worktree,
};

use super::{TurnPlace, WorkDirectory, Workspaces};
use crate::runs::run_handle::RunHandle;
use crate::runs::shell_commands::{ShellCommand, run_command};

/// How much of a failing setup command's output its node shows, in bytes.
const SETUP_TAIL_BYTES_MAX: usize = 2 << 10;

/// A node that works in a worktree of its own.
#[derive(Debug, Clone)]
pub(in crate::runs) struct WorktreeNode {
    pub(in crate::runs) node: NodeId,
    /// For messages.
    pub(in crate::runs) name: String,
}

impl WorktreeNode {
    pub(in crate::runs) fn of(node: &Node) -> Self {
        let alias = node.settings.alias.clone();
        Self {
            node: node.id,
            name: alias.unwrap_or_else(|| node.id.to_string()),
        }
    }
}

/// The work of all nodes that have worktrees.
pub(in crate::runs) enum MergedWork {
    /// Every node works in the run's directory itself.
    NoWorktrees,
    /// It fits together.
    Merged(Merged),
    /// It does not.
    Conflicts(Vec<FileConflict>),
}

/// Work that fits together.
pub(in crate::runs) struct Merged {
    pub(in crate::runs) integrated: Integrated,
    /// The tree of each node that is part of it.
    pub(in crate::runs) heads: Vec<NodeHead>,
}

/// The tree of a node's worktree.
#[derive(Debug, Clone)]
pub(in crate::runs) struct NodeHead {
    pub(in crate::runs) node: NodeId,
    pub(in crate::runs) tree: TreeName,
}

/// The right to make, read as a whole, or remove the worktrees of a run: one must not vanish while
/// another thread looks at it. The thread that does the work holds it, because it goes on when its
/// caller is dropped.
pub(in crate::runs) struct WorktreesGuard(
    #[expect(dead_code, reason = "dropping it unlocks")] OwnedMutexGuard<()>,
);

/// A node that was deleted and had a worktree.
#[derive(Debug)]
pub(in crate::runs) struct DeletedNode {
    pub(in crate::runs) node: NodeId,
    /// For messages.
    pub(in crate::runs) name: String,
    pub(in crate::runs) branch: Option<String>,
}

/// The outcome of removing a worktree.
enum Removal {
    /// It is gone, or was never there.
    Gone,
    /// It stays, with the reason.
    Stays(String),
}

impl Workspaces {
    /// Waits for the right to work on the worktrees of a run.
    pub(in crate::runs) async fn lock_worktrees(&self, run: RunId) -> WorktreesGuard {
        let lock = Arc::clone(self.lock().worktree_locks.entry(run).or_default());
        WorktreesGuard(lock.lock_owned().await)
    }

    /// Where a node works. The worktree of a node that had one before a restart is found again.
    pub(in crate::runs) async fn find_directory(
        &self,
        handle: &Arc<RunHandle>,
        id: NodeId,
    ) -> Result<WorkDirectory, String> {
        let run = handle.id();
        let generation = self.lock().removals.get(&(run, id)).copied();
        let place = move |path| WorkDirectory {
            path,
            generation: generation.unwrap_or_default(),
        };
        if let Some(directory) = self.lock().directories.get(&(run, id)) {
            return Ok(place(directory.clone()));
        }
        let cwd = handle.read_live(|run| run.settings.cwd.clone());
        let cwd = cwd.map(PathBuf::from).ok_or_else(super::no_directory)?;
        if !has_worktree(handle, id) {
            return Ok(place(cwd));
        }
        let services = Arc::clone(&handle.services);
        let guard = self.lock_worktrees(run).await;
        let find = move || services.workspaces.find_worktree(&guard, run, &cwd, id);
        let found = handle.services.run_file_work(find).await;
        let found = found.map_err(|error| error.to_string())?;
        match found.map_err(|error| error.to_string())? {
            Some(worktree) => Ok(place(worktree.directory)),
            None => Err("its worktree is made for its next turn".to_owned()),
        }
    }

    /// Makes the worktree of a turn, or finds the one that exists, and sets it up. Returns its
    /// directory.
    pub(super) async fn prepare_worktree(
        &self,
        handle: &Arc<RunHandle>,
        place: &Arc<TurnPlace>,
    ) -> Result<PathBuf, String> {
        let guard = self.lock_worktrees(place.run).await;
        let (services, wanted) = (Arc::clone(&handle.services), Arc::clone(place));
        let make = move || services.workspaces.make_worktree(&guard, &wanted);
        let made = handle.services.run_file_work(make).await;
        let worktree = made
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        // The wanted name may be taken. An agent may also be on no branch, or on one of its own.
        if !worktree.branch.is_empty() && worktree.branch != place.branch {
            note_branch(handle, place.node, Some(worktree.branch)).await;
        }
        self.set_up(handle, place, &worktree.directory).await?;
        Ok(worktree.directory)
    }

    fn make_worktree(
        &self,
        _guard: &WorktreesGuard,
        place: &TurnPlace,
    ) -> Result<Worktree, WorkspaceError> {
        let opened = self.open(&place.cwd)?;
        opened.as_git()?.create_worktree(CreateWorktree {
            run: &place.run.to_string(),
            node: &place.node.to_string(),
            branch: &place.branch,
        })
    }

    /// The file that remembers that the setup commands of a worktree ran.
    fn setup_mark(&self, run: RunId, node: NodeId) -> PathBuf {
        self.settings.state_dir.join(format!("{run}-{node}.setup"))
    }

    /// Runs the setup commands of a run in a new worktree, once.
    async fn set_up(
        &self,
        handle: &Arc<RunHandle>,
        place: &TurnPlace,
        directory: &Path,
    ) -> Result<(), String> {
        let services = &handle.services;
        let mark = self.setup_mark(place.run, place.node);
        let looked_at = mark.clone();
        let is_done = services.run_file_work(move || looked_at.exists()).await;
        if place.setup.is_empty() || is_done.map_err(|error| error.to_string())? {
            return Ok(());
        }
        for line in &place.setup {
            let command = ShellCommand {
                line,
                directory,
                time_limit: services.settings.setup_time_limit,
            };
            let result = run_command(services, command).await;
            if !result.is_success() {
                let failure = result.describe_failure(SETUP_TAIL_BYTES_MAX);
                return Err(format!("the setup command {failure}"));
            }
        }
        // The mark comes after all commands: a setup that was cut off runs again.
        let write = move || {
            let parent = mark.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(parent)?;
            std::fs::write(&mark, b"")
        };
        let written = services.run_file_work(write).await;
        let written = written.map_err(|error| error.to_string())?;
        written.map_err(|error| format!("the setup of a worktree cannot be recorded: {error}"))
    }

    /// The worktree of a node; `None` if it has none now. It blocks.
    pub(in crate::runs) fn find_worktree(
        &self,
        _guard: &WorktreesGuard,
        run: RunId,
        cwd: &Path,
        node: NodeId,
    ) -> Result<Option<Worktree>, WorkspaceError> {
        let opened = self.open(cwd)?;
        opened
            .as_git()?
            .find_worktree(&run.to_string(), &node.to_string())
    }

    /// Merges the work of all nodes with worktrees into the run's directory as it is now. No file
    /// changes. It blocks.
    pub(in crate::runs) fn merge_work(
        &self,
        guard: &WorktreesGuard,
        run: RunId,
        cwd: &Path,
        nodes: &[WorktreeNode],
    ) -> Result<MergedWork, WorkspaceError> {
        let mut changes = Vec::with_capacity(nodes.len());
        let mut heads = Vec::with_capacity(nodes.len());
        for node in nodes {
            // One that was removed held nothing that the directory does not have.
            let Some(worktree) = self.find_worktree(guard, run, cwd, node.node)? else {
                continue;
            };
            let opened = self.open(&worktree.directory)?;
            let head = opened.snapshot(self.clock.now(), None)?.tree;
            heads.push(NodeHead {
                node: node.node,
                tree: head.clone(),
            });
            changes.push(NodeChanges {
                name: node.name.clone(),
                base_tree: worktree.base_tree,
                head_tree: head,
            });
        }
        if changes.is_empty() {
            return Ok(MergedWork::NoWorktrees);
        }
        let opened = self.open(cwd)?;
        let outcome = opened.as_git()?.integrate(&changes)?;
        Ok(match outcome {
            IntegrationOutcome::Integrated(integrated) => {
                MergedWork::Merged(Merged { integrated, heads })
            }
            IntegrationOutcome::Conflicts(conflicts) => MergedWork::Conflicts(conflicts),
        })
    }

    /// Checks a merged tree out into the directory in which verification commands run. It blocks.
    pub(in crate::runs) fn check_out_integration(
        &self,
        _guard: &WorktreesGuard,
        run: RunId,
        cwd: &Path,
        tree: &TreeName,
    ) -> Result<PathBuf, WorkspaceError> {
        let opened = self.open(cwd)?;
        opened
            .as_git()?
            .check_out_integration(&run.to_string(), tree)
    }

    /// Removes the worktrees whose work was applied. `applied` has their trees.
    pub(in crate::runs) async fn remove_applied(
        &self,
        handle: &Arc<RunHandle>,
        applied: &[NodeHead],
    ) {
        for head in applied {
            let trees = vec![head.tree.clone()];
            match self.remove_worktree(handle, head.node, trees).await {
                Removal::Gone => note_branch(handle, head.node, None).await,
                Removal::Stays(reason) => {
                    self.note_applied(handle, head).await;
                    note_kept(handle, head.node, &reason).await;
                }
            }
        }
    }

    /// Remembers what was applied of a worktree that stays. Without that, its old work would conflict
    /// with what the user makes of it.
    async fn note_applied(&self, handle: &Arc<RunHandle>, head: &NodeHead) {
        let guard = self.lock_worktrees(handle.id()).await;
        let Some(cwd) = handle.read_live(|run| run.settings.cwd.clone()) else {
            return;
        };
        let (services, run) = (Arc::clone(&handle.services), handle.id());
        let (node, tree) = (head.node, head.tree.clone());
        let note = move || {
            let _guard = guard;
            let opened = services.workspaces.open(Path::new(&cwd))?;
            opened.as_git()?.note_applied(AppliedWorktree {
                run: &run.to_string(),
                node: &node.to_string(),
                tree: &tree,
            })
        };
        let noted = handle.services.run_file_work(note).await;
        let error = match noted {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(%run, %node, %error, "what was applied of a worktree is not remembered");
    }

    /// Removes the worktrees of a run that hold nothing new.
    pub(in crate::runs) async fn remove_unchanged(&self, handle: &Arc<RunHandle>) {
        let nodes = handle.read_live(|run| run.nodes().map(|node| node.id).collect::<Vec<_>>());
        let of_nodes = nodes.into_iter().filter(|node| has_worktree(handle, *node));
        let mut worktrees: BTreeSet<NodeId> = of_nodes.collect();
        worktrees.extend(self.list_worktrees_of_deleted(handle).await);
        for node in worktrees {
            self.remove_if_unchanged(handle, node).await;
        }
    }

    /// Removes the worktrees of deleted nodes that hold nothing new any more.
    pub(in crate::runs) async fn remove_of_deleted(&self, handle: &Arc<RunHandle>) {
        for node in self.list_worktrees_of_deleted(handle).await {
            self.remove_if_unchanged(handle, node).await;
        }
    }

    async fn remove_if_unchanged(&self, handle: &Arc<RunHandle>, node: NodeId) {
        if let Removal::Stays(reason) = self.remove_worktree(handle, node, Vec::new()).await {
            tracing::info!(run = %handle.id(), %node, %reason, "a worktree of the run stays");
        }
    }

    /// Removes the worktree of a node that was deleted just now. If it stays, the run's log says where.
    pub(in crate::runs) async fn remove_deleted(
        &self,
        handle: &Arc<RunHandle>,
        deleted: &DeletedNode,
    ) {
        let DeletedNode { node, name, branch } = deleted;
        if let Removal::Stays(reason) = self.remove_worktree(handle, *node, Vec::new()).await {
            let branch = branch.as_deref().unwrap_or("no branch");
            let text = format!(
                "{name} was deleted, and its worktree on {branch} stays: {reason}. Take over what you \
                 need: no verification and no apply looks at it any more"
            );
            note(handle, *node, text).await;
        }
    }

    /// The deleted nodes of a run that have worktrees. Their directories are the only record: the run
    /// has forgotten the nodes.
    async fn list_worktrees_of_deleted(&self, handle: &Arc<RunHandle>) -> Vec<NodeId> {
        let of_run = self.settings.worktrees_dir.join(handle.id().to_string());
        let list = move || -> Vec<NodeId> {
            let entries = std::fs::read_dir(of_run).into_iter().flatten().flatten();
            let directories = entries.filter(|entry| entry.path().is_dir());
            let names = directories.filter_map(|entry| entry.file_name().into_string().ok());
            // The directory for verifications is no node's.
            names.filter_map(|name| name.parse().ok()).collect()
        };
        let found = handle.services.run_file_work(list).await;
        let found = found.unwrap_or_default().into_iter();
        handle.read_live(|run| found.filter(|node| run.node(*node).is_none()).collect())
    }

    async fn remove_worktree(
        &self,
        handle: &Arc<RunHandle>,
        node: NodeId,
        applied: Vec<TreeName>,
    ) -> Removal {
        let guard = self.lock_worktrees(handle.id()).await;
        let Some(cwd) = handle.read_live(|run| run.settings.cwd.clone()) else {
            return Removal::Gone;
        };
        // Looked at behind the lock: a turn that begins from here on finds no worktree, and makes
        // one.
        let is_used = handle.read_live(|run| {
            let node = run.node(node);
            node.is_some_and(|node| node.turn.is_some()) && !run.is_deleted
        });
        if is_used {
            return Removal::Stays("its node works in it".to_owned());
        }
        let (services, run) = (Arc::clone(&handle.services), handle.id());
        let remove = move || {
            let workspaces = &services.workspaces;
            workspaces.remove_now(&guard, run, Path::new(&cwd), node, &applied)
        };
        match handle.services.run_file_work(remove).await {
            Ok(Ok(())) => Removal::Gone,
            Ok(Err(error)) => Removal::Stays(error.to_string()),
            Err(error) => Removal::Stays(error.to_string()),
        }
    }

    fn remove_now(
        &self,
        _guard: &WorktreesGuard,
        run: RunId,
        cwd: &Path,
        node: NodeId,
        applied: &[TreeName],
    ) -> Result<(), WorkspaceError> {
        let opened = self.open(cwd)?;
        let Ok(git) = opened.as_git() else {
            // Without a repository there are no worktrees.
            return Ok(());
        };
        git.remove_worktree(RemoveWorktree {
            run: &run.to_string(),
            node: &node.to_string(),
            applied,
        })?;
        let mut state = self.lock();
        state.directories.remove(&(run, node));
        *state.removals.entry((run, node)).or_default() += 1;
        drop(state);
        // A new worktree is set up again.
        match std::fs::remove_file(self.setup_mark(run, node)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%run, %node, %error, "the mark of a worktree's setup is still there");
            }
            _ => {}
        }
        Ok(())
    }

    /// Removes what a deleted run has in its repository. Worktrees with work that is nowhere else
    /// stay, and the server's log says where.
    pub(in crate::runs) async fn remove_run(&self, handle: &Arc<RunHandle>) {
        let run = handle.id();
        self.remove_unchanged(handle).await;
        let Some(cwd) = handle.read_live(|run| run.settings.cwd.clone()) else {
            return;
        };
        let services = Arc::clone(&handle.services);
        let forget = move || services.workspaces.forget_run(run, Path::new(&cwd));
        match handle.services.run_file_work(forget).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%run, %error, "snapshots of a deleted run stay"),
            Err(error) => tracing::warn!(%run, %error, "snapshots of a deleted run stay"),
        }
    }

    fn forget_run(&self, run: RunId, cwd: &Path) -> Result<(), WorkspaceError> {
        let mut state = self.lock();
        state.worktree_locks.remove(&run);
        state.directories.retain(|(of, _), _| *of != run);
        state.removals.retain(|(of, _), _| *of != run);
        drop(state);
        match self.open(cwd)?.as_git() {
            Ok(git) => git.forget_run(&run.to_string()),
            Err(_) => Ok(()),
        }
    }
}

fn has_worktree(handle: &RunHandle, node: NodeId) -> bool {
    handle.read_live(|run| {
        let workspace = run.node(node).and_then(|node| node.workspace.as_ref());
        workspace.is_some_and(|workspace| workspace.kind == WorkspaceKind::Worktree)
    })
}

/// Records the branch of a node's worktree; `None` when the worktree is gone.
async fn note_branch(handle: &Arc<RunHandle>, node: NodeId, branch: Option<String>) {
    let noted =
        handle.decide(move |run, around| decide::set_branch(run, around, node, branch.as_deref()));
    if let Err(error) = noted.await {
        tracing::debug!(run = %handle.id(), %error, "the branch of a worktree was not recorded");
    }
}

/// Says in the log of a run that a worktree stays, and why. The reason names the place.
async fn note_kept(handle: &Arc<RunHandle>, node: NodeId, reason: &str) {
    note(handle, node, format!("the node's worktree stays: {reason}")).await;
}

async fn note(handle: &Arc<RunHandle>, node: NodeId, text: String) {
    let noted = handle.decide(move |run, around| decide::note_node(run, around, node, &text));
    if let Err(error) = noted.await {
        tracing::debug!(run = %handle.id(), %error, "a note was dropped");
    }
}
