//! Worktrees: a directory and a branch for one node, and the integration directory of a run.
//!
//! A worktree of a node is `<worktrees>/<run>/<node>`, on the branch that the caller names. Its first
//! commit is the user's directory at that time, with uncommitted and untracked files. A worktree that
//! stays after its work was applied, because its node works in it, remembers what was applied
//! (`refs/turnkeep/<run>/worktree-<node>-applied`): only what is new since then counts as its work.
//!
//! Making one takes four steps, and each can be repeated after a crash:
//!
//! 1. The first commit, kept as `refs/turnkeep/<run>/worktree-<node>`.
//! 2. The branch. A branch of that name that points elsewhere is someone else's; ours gets a number.
//! 3. The worktree without files.
//! 4. The files, and the mark that the worktree is complete.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::WorkspaceError;
use crate::git::GitCall;
use crate::git_index::{PrivateIndex, check_out_tree};
use crate::git_snapshot::{
    FIXED_DATE, NewCommit, WORKTREE_REF, commit_tree, forget_snapshots, update_ref,
};
use crate::repository::{Search, check_object_id, find_repository};
use crate::tree::{Snapshot, TreeName, Trees, check_id};
use crate::workspace::GitWorkspace;
use crate::worktree_dir::WorktreeDir;

/// The name of the integration directory beside the nodes' worktrees.
const INTEGRATION: &str = "integration";

/// How many branch names are tried.
const BRANCH_NAMES_MAX: usize = 50;

/// Whose worktree to make.
#[derive(Debug, Clone, Copy)]
pub struct CreateWorktree<'a> {
    pub run: &'a str,
    pub node: &'a str,
    /// The wanted name of the branch. [`Worktree::branch`] has the one that was free.
    pub branch: &'a str,
}

/// Which worktree to remove.
#[derive(Debug, Clone, Copy)]
pub struct RemoveWorktree<'a> {
    pub run: &'a str,
    pub node: &'a str,
    /// The node's trees that were applied. The worktree goes if it has one of them.
    pub applied: &'a [TreeName],
}

/// What was applied of a worktree that stays.
#[derive(Debug, Clone, Copy)]
pub struct AppliedWorktree<'a> {
    pub run: &'a str,
    pub node: &'a str,
    pub tree: &'a TreeName,
}

/// The worktree of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Where the node works: the same place in the repository as the run's directory.
    pub directory: PathBuf,
    pub branch: String,
    /// The part of its tree that the user's directory has: the tree when it was made, or when it was last
    /// applied.
    pub base_tree: TreeName,
}

/// Where the new worktree's HEAD points.
enum NewHead<'a> {
    Branch(&'a str),
    Commit(&'a str),
}

impl GitWorkspace {
    /// Makes the worktree of a node, or finds the one that exists.
    pub fn create_worktree(&self, create: CreateWorktree<'_>) -> Result<Worktree, WorkspaceError> {
        let worktree = self.locate_node(create.run, create.node)?;
        let reference = first_commit_ref(create.run, create.node);
        let commit = match self.repository.read_ref(&reference)? {
            Some(commit) => commit,
            None => self.record_first_commit(&reference, create.node)?,
        };
        let branch = if let Some(admin) = worktree.find_complete()? {
            self.read_branch(&admin)?
        } else {
            let branch = self.choose_branch(create, &commit)?;
            let admin = self.add_worktree(&worktree, &NewHead::Branch(&branch), &commit)?;
            worktree.mark_complete(&admin)?;
            branch
        };
        Ok(Worktree {
            directory: self.open_place_in(&worktree.root)?,
            branch,
            base_tree: self.read_base_tree(create.run, create.node, &commit)?,
        })
    }

    /// Finds the worktree of a node; `None` if it has none, or had one that was removed.
    pub fn find_worktree(&self, run: &str, node: &str) -> Result<Option<Worktree>, WorkspaceError> {
        let worktree = self.locate_node(run, node)?;
        let reference = first_commit_ref(run, node);
        let commit = self.repository.read_ref(&reference)?;
        let (Some(commit), Some(admin)) = (commit, worktree.find_complete()?) else {
            return Ok(None);
        };
        Ok(Some(Worktree {
            directory: self.open_place_in(&worktree.root)?,
            branch: self.read_branch(&admin)?,
            base_tree: self.read_base_tree(run, node, &commit)?,
        }))
    }

    /// Remembers that this tree of a node's worktree was applied.
    pub fn note_applied(&self, applied: AppliedWorktree<'_>) -> Result<(), WorkspaceError> {
        let reference = applied_ref(
            check_id(applied.run, "run")?,
            check_id(applied.node, "node")?,
        );
        let head = self.repository.read_head()?;
        let commit = NewCommit {
            tree: &self.root_tree_with(&head, applied.tree)?,
            parent: None,
            message: "Applied work of a node",
            date: Some(FIXED_DATE),
        };
        let commit = commit_tree(&self.repository, &commit)?;
        // The old value makes git reject the update if another process was faster. The zero id means
        // that the reference must not exist.
        let known = self.repository.read_ref(&reference)?;
        let old = known.unwrap_or_else(|| self.repository.zero_id());
        update_ref(&self.repository, &reference, &commit, &old)
    }

    /// The tree from which the node's work counts.
    fn read_base_tree(
        &self,
        run: &str,
        node: &str,
        first_commit: &str,
    ) -> Result<TreeName, WorkspaceError> {
        let applied = self.repository.read_ref(&applied_ref(run, node))?;
        self.workspace_tree_of(applied.as_deref().unwrap_or(first_commit))
    }

    /// Removes the worktree of a node. Refuses while it holds changes that are nowhere else. The
    /// branch stays if the node committed to it.
    pub fn remove_worktree(&self, remove: RemoveWorktree<'_>) -> Result<(), WorkspaceError> {
        let worktree = self.locate_node(remove.run, remove.node)?;
        let reference = first_commit_ref(remove.run, remove.node);
        let Some(commit) = self.repository.read_ref(&reference)? else {
            return Ok(());
        };
        let admin = worktree.find_complete()?;
        let branch = admin.map(|admin| self.read_branch(&admin)).transpose()?;
        if branch.is_some() {
            let base = self.read_base_tree(remove.run, remove.node, &commit)?;
            self.check_all_applied(&worktree.root, &base, remove.applied)?;
        }
        worktree.delete()?;
        if let Some(branch) = branch.filter(|branch| !branch.is_empty()) {
            let branch = format!("refs/heads/{branch}");
            // A branch that moved has commits of the node, which may be nowhere else.
            if self.repository.read_ref(&branch)?.as_ref() == Some(&commit) {
                self.delete_ref(&branch, &commit)?;
            }
        }
        let applied = applied_ref(remove.run, remove.node);
        if let Some(noted) = self.repository.read_ref(&applied)? {
            self.delete_ref(&applied, &noted)?;
        }
        self.delete_ref(&reference, &commit)
    }

    /// Deletes the snapshots and the integration directory of a run. The worktrees of its nodes stay:
    /// they may hold changes, and [`Self::remove_worktree`] looks at each.
    pub fn forget_run(&self, run: &str) -> Result<(), WorkspaceError> {
        forget_snapshots(&self.repository, run)?;
        let integration = WorktreeDir::locate(&self.repository, run, INTEGRATION)?;
        integration.delete()?;
        integration.remove_empty_parent();
        Ok(())
    }

    /// Brings the run's integration directory to a tree. Files that verification left there and git
    /// ignores stay, so that builds are fast.
    pub fn check_out_integration(
        &self,
        run: &str,
        tree: &TreeName,
    ) -> Result<PathBuf, WorkspaceError> {
        let worktree = WorktreeDir::locate(&self.repository, run, INTEGRATION)?;
        let head = self.repository.read_head()?;
        let root_tree = self.root_tree_with(&head, tree)?;
        let commit = NewCommit {
            tree: &root_tree,
            parent: Some(&head),
            message: "Integration of a run",
            date: Some(FIXED_DATE),
        };
        let commit = commit_tree(&self.repository, &commit)?;
        // Without an index the checkout never came to its end.
        let admin = worktree.find_admin_dir();
        let Some(admin) = admin.filter(|admin| admin.join("index").is_file()) else {
            self.add_worktree(&worktree, &NewHead::Commit(&commit), &commit)?;
            return self.open_place_in(&worktree.root);
        };
        let index = admin.join("index");
        check_out_tree(&self.repository, &worktree.root, &index, &root_tree)?;
        // Files that the last verification made could change the result of the next one.
        let clean = self.repository.private_git(&worktree.root, &index);
        clean.args(["clean", "-f", "-d", "-q"]).run()?;
        self.git_in(&admin)
            .args(["update-ref", "--no-deref", "HEAD", &commit])
            .run()?;
        self.open_place_in(&worktree.root)
    }

    fn locate_node(&self, run: &str, node: &str) -> Result<WorktreeDir<'_>, WorkspaceError> {
        // One name in each run's directory is taken.
        if node == INTEGRATION {
            return Err(WorkspaceError::BadName(node.to_owned(), "node"));
        }
        WorktreeDir::locate(&self.repository, run, check_id(node, "node")?)
    }

    fn record_first_commit(&self, reference: &str, node: &str) -> Result<String, WorkspaceError> {
        let head = self.repository.read_head()?;
        let tree = self.snapshot(None)?.tree;
        let commit = NewCommit {
            tree: &self.root_tree_with(&head, &tree)?,
            parent: Some(&head),
            // With the node, so that two worktrees never begin with the same commit.
            message: &format!("Workspace of node {node} when it began"),
            date: None,
        };
        let commit = commit_tree(&self.repository, &commit)?;
        update_ref(
            &self.repository,
            reference,
            &commit,
            &self.repository.zero_id(),
        )?;
        Ok(commit)
    }

    /// The tree of the whole repository: the commit's, with the workspace in its place.
    fn root_tree_with(&self, head: &str, tree: &TreeName) -> Result<TreeName, WorkspaceError> {
        if self.repository.prefix.is_empty() {
            return Ok(tree.clone());
        }
        let index = PrivateIndex::from_tree(&self.repository, head)?;
        index.replace_subtree(&self.repository.prefix, tree)?;
        index.write_tree()
    }

    /// The workspace's tree in a commit of the whole repository.
    fn workspace_tree_of(&self, commit: &str) -> Result<TreeName, WorkspaceError> {
        let index = PrivateIndex::from_tree(&self.repository, commit)?;
        index.write_subtree(&self.repository.prefix)
    }

    /// Finds or makes a branch that points to the first commit.
    fn choose_branch(
        &self,
        create: CreateWorktree<'_>,
        commit: &str,
    ) -> Result<String, WorkspaceError> {
        let wanted = create.branch;
        for number in 1..=BRANCH_NAMES_MAX {
            let branch = match number {
                1 => wanted.to_owned(),
                _ => format!("{wanted}-{number}"),
            };
            let reference = format!("refs/heads/{branch}");
            match self.repository.read_ref(&reference)? {
                // An earlier call made it and was then interrupted.
                Some(existing) if existing == commit => return Ok(branch),
                Some(_) => {}
                None => {
                    let zero = self.repository.zero_id();
                    update_ref(&self.repository, &reference, commit, &zero)?;
                    return Ok(branch);
                }
            }
        }
        Err(WorkspaceError::BadName(wanted.to_owned(), "new branch"))
    }

    /// Makes a worktree with the files of a commit and returns git's directory about it. A directory
    /// that is in its place goes: the caller has found that no program worked in it.
    fn add_worktree(
        &self,
        worktree: &WorktreeDir<'_>,
        head: &NewHead<'_>,
        commit: &str,
    ) -> Result<PathBuf, WorkspaceError> {
        worktree.delete()?;
        let mut call = self
            .repository
            .user_git()
            .args(["worktree", "add", "--quiet", "--no-checkout"])
            // Twice: the directory may still be registered and locked from an interrupted attempt.
            .args(["--force", "--force"]);
        if matches!(head, NewHead::Commit(_)) {
            call = call.arg("--detach");
        }
        let (NewHead::Branch(head) | NewHead::Commit(head)) = head;
        call.arg(&worktree.root).arg(head).run()?;
        let admin = worktree.find_admin_dir();
        let admin = admin.ok_or_else(|| WorkspaceError::NotOurs(worktree.root.clone()))?;
        // Not by `git worktree add` itself: it would run the filters of the user's configuration.
        let tree = self.tree_of(commit)?;
        let index = admin.join("index");
        check_out_tree(&self.repository, &worktree.root, &index, &tree)?;
        Ok(admin)
    }

    fn tree_of(&self, commit: &str) -> Result<TreeName, WorkspaceError> {
        let call = self.repository.user_git();
        let call = call.args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]);
        check_object_id(call.run_for_line()?, "git rev-parse")?.parse()
    }

    /// The workspace's place in a worktree. Git has no empty directories, so it may be missing.
    fn open_place_in(&self, root: &Path) -> Result<PathBuf, WorkspaceError> {
        let place = self.repository.workspace_in(root);
        fs::create_dir_all(&place).map_err(WorkspaceError::file("create", &place))?;
        Ok(place)
    }

    /// The branch that is checked out; empty if none is.
    fn read_branch(&self, admin: &Path) -> Result<String, WorkspaceError> {
        let call = self
            .git_in(admin)
            .args(["symbolic-ref", "--quiet", "--short", "HEAD"]);
        call.accept_code(1).run_for_line()
    }

    /// A command on the user's repository from a worktree of ours.
    fn git_in(&self, admin: &Path) -> GitCall {
        self.repository.user_git().env("GIT_DIR", admin)
    }

    fn check_all_applied(
        &self,
        root: &Path,
        base_tree: &TreeName,
        applied: &[TreeName],
    ) -> Result<(), WorkspaceError> {
        let place = self.open_place_in(root)?;
        let Search::Found(worktree) = find_repository(&self.repository.settings, &place)? else {
            return Err(WorkspaceError::NotOurs(place));
        };
        let Snapshot { tree, skipped } = crate::git_snapshot::take_snapshot(&worktree)?;
        let is_known = tree == *base_tree || applied.contains(&tree);
        if is_known && skipped.is_empty() {
            return Ok(());
        }
        let last_known = applied.last().unwrap_or(base_tree);
        let changes = worktree.list_changes(last_known, &tree)?;
        let changed = changes.into_iter().map(|change| change.path.to_string());
        // A file that a snapshot cannot hold was never applied.
        let files = changed.chain(skipped.into_iter().map(|skipped| skipped.path));
        Err(WorkspaceError::HoldsChanges {
            path: place,
            files: files.collect(),
        })
    }

    fn delete_ref(&self, name: &str, old: &str) -> Result<(), WorkspaceError> {
        let call = self.repository.user_git();
        let call = call.args(["update-ref", "--no-deref", "-d", name, old]);
        call.run().map(drop)
    }
}

fn first_commit_ref(run: &str, node: &str) -> String {
    format!("refs/turnkeep/{run}/{WORKTREE_REF}{node}")
}

fn applied_ref(run: &str, node: &str) -> String {
    format!("refs/turnkeep/{run}/{WORKTREE_REF}{node}-applied")
}
