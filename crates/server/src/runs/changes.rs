//! What a person does with the changes of a run: brings them into the run's directory, takes those of
//! a turn back, or keeps files that a node was not allowed to write.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use turnkeep_runtime::Run;
use turnkeep_runtime::artifact::{DiffSummary, REVERT_NAME};
use turnkeep_runtime::decide::{self, Surroundings};
use turnkeep_runtime::fact::RequestKey;
use turnkeep_runtime::ids::{AgentTurnId, NodeId};
use turnkeep_runtime::rejection::Rejection;
use turnkeep_runtime::words::WorkspaceKind;
use turnkeep_wire::ErrorCode;
use turnkeep_wire::runs as wire;
use turnkeep_workspace::{ApplyOutcome, ApplyTree, LandOutcome, TreePath, WorkspaceError};

use super::error::RunError;
use super::kept_answers::{encode_answer, find_answer, keep_answer, read_answer};
use super::run_handle::{Decided, RunHandle};
use super::verification::{self, RunWork};
use super::verification_reports;
use super::workspaces::{MergedWork, NodeHead, Workspaces, WorktreeNode, WorktreesGuard};
use crate::error::ApiError;

/// How often an apply begins again because the user changed files meanwhile.
const APPLY_TRIES_MAX: usize = 3;

/// Why changes could not be landed.
enum LandError {
    /// These files were changed by somebody else. Nothing was written.
    Conflicts(Vec<String>),
    /// Something else; nothing was written.
    Failed(String),
}

impl From<WorkspaceError> for LandError {
    fn from(error: WorkspaceError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<LandError> for ApiError {
    fn from(error: LandError) -> Self {
        match error {
            LandError::Conflicts(paths) => {
                let message = format!("these files conflict: {}", paths.join(", "));
                Self::new(ErrorCode::Conflict, message).with("paths", paths)
            }
            LandError::Failed(message) => Self::new(ErrorCode::Conflict, message),
        }
    }
}

/// What an apply did.
struct Landed {
    paths: Vec<String>,
    tree: String,
    /// The trees of nodes that the directory has now.
    heads: Vec<NodeHead>,
}

/// Brings the work of all worktrees into the run's directory: all of it, or nothing. It is carried
/// out even if the caller disconnects.
pub(crate) async fn apply(
    handle: &Arc<RunHandle>,
    key: Option<RequestKey>,
) -> Result<wire::AppliedChanges, ApiError> {
    if let Some(answer) = find_answer(handle, key.as_ref()).await? {
        return Ok(answer);
    }
    let applying = Arc::clone(handle);
    let work = async move {
        let applied = apply_now(&applying).await?;
        Ok(keep_answer(&applying, key, "apply.json", applied).await?)
    };
    handle.services.run_to_end(work).await?
}

async fn apply_now(handle: &Arc<RunHandle>) -> Result<wire::AppliedChanges, ApiError> {
    let Some(work) = verification::collect_work(handle) else {
        return Err(ApiError::bad_request("the run has no directory"));
    };
    let services = Arc::clone(&handle.services);
    let guard = services.workspaces.lock_worktrees(work.run).await;
    let landed = handle
        .services
        .run_file_work(move || apply_blocking(&services.workspaces, &guard, &work))
        .await??;
    see_end(handle).await?;
    let verified = verification_reports::was_verified(handle, &landed.tree).await?;
    // Last: only now is the work of the worktrees in the run's directory, too.
    let workspaces = &handle.services.workspaces;
    workspaces.remove_applied(handle, &landed.heads).await;
    workspaces.remove_of_deleted(handle).await;
    Ok(wire::AppliedChanges {
        applied: landed.paths,
        tree: landed.tree,
        verified,
    })
}

/// Whoever applies the work of a run that has ended knows that it has.
async fn see_end(handle: &Arc<RunHandle>) -> Result<(), RunError> {
    match handle.decide(decide::dismiss_end).await {
        Ok(()) | Err(RunError::Rejected(Rejection::NotEnded)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn apply_blocking(
    workspaces: &Workspaces,
    guard: &WorktreesGuard,
    work: &RunWork,
) -> Result<Landed, LandError> {
    let opened = workspaces.open(&work.cwd)?;
    for _ in 0..APPLY_TRIES_MAX {
        let merged = match workspaces.merge_work(guard, work.run, &work.cwd, &work.worktrees)? {
            MergedWork::Merged(merged) => merged,
            MergedWork::NoWorktrees => {
                // Every node works in the directory itself, so there is nothing to bring there.
                return Ok(Landed {
                    paths: Vec::new(),
                    tree: workspaces.name_tree(&work.cwd)?.to_string(),
                    heads: Vec::new(),
                });
            }
            MergedWork::Conflicts(conflicts) => {
                let files = conflicts.iter().map(|conflict| conflict.path.to_string());
                return Err(LandError::Conflicts(files.collect()));
            }
        };
        let (base, tree) = (&merged.integrated.base_tree, &merged.integrated.tree);
        let writes = opened.diff(base, tree)?.touched_paths().into_iter();
        let noted = workspaces.note_person_writes(&work.cwd, &writes.collect());
        let applied = opened.as_git()?.apply(ApplyTree { base, tree });
        if !matches!(applied, Ok(ApplyOutcome::Applied { .. })) {
            workspaces.forget_person_writes(noted);
        }
        match applied? {
            ApplyOutcome::Applied { paths } => {
                return Ok(Landed {
                    paths: texts(&paths),
                    tree: merged.integrated.tree.to_string(),
                    heads: merged.heads,
                });
            }
            ApplyOutcome::Conflicts { paths } => return Err(LandError::Conflicts(texts(&paths))),
            // The user was faster. Their files become part of the next merge.
            ApplyOutcome::MovedOn { .. } => {}
        }
    }
    let message = "the directory changes all the time: try again when it rests";
    Err(LandError::Failed(message.to_owned()))
}

fn texts(paths: &[TreePath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

/// A turn whose changes are meant.
struct TurnChanges {
    node: NodeId,
    diff: DiffSummary,
}

fn find_changes(handle: &RunHandle, turn: AgentTurnId) -> Result<TurnChanges, ApiError> {
    let found = handle.read(|run| {
        let artifact = run.archive.diff_of_turn(turn)?;
        Some(TurnChanges {
            node: artifact.node?,
            diff: artifact.diff.clone()?,
        })
    });
    found.ok_or_else(|| ApiError::not_found(format!("no turn with changes has the id {turn}")))
}

/// Restores the files of a turn as they were before it, unless they were changed since. The work goes
/// on even if the caller disconnects.
pub(crate) async fn revert(
    handle: &Arc<RunHandle>,
    key: Option<RequestKey>,
    turn: AgentTurnId,
    only: Option<Vec<String>>,
) -> Result<wire::TurnFilesAnswer, ApiError> {
    if let Some(answer) = find_answer(handle, key.as_ref()).await? {
        return Ok(answer);
    }
    let reverting = Arc::clone(handle);
    let work = async move {
        let changes = find_changes(&reverting, turn)?;
        let node = changes.node;
        let reverted = revert_now(&reverting, changes, only).await?;
        settle(&reverting, turn, &reverted.all()).await?;
        Ok(note_revert(&reverting, key, RevertedTurn { node, turn }, reverted).await?)
    };
    handle.services.run_to_end(work).await?
}

/// A turn of which files were taken back.
struct RevertedTurn {
    node: NodeId,
    turn: AgentTurnId,
}

/// What a revert did.
struct Reverted {
    restored: Vec<String>,
    /// The files that were so already.
    already: Vec<String>,
}

impl Reverted {
    fn all(&self) -> Vec<String> {
        [self.restored.as_slice(), &self.already].concat()
    }
}

/// Records the files that a person took back, unless an earlier request has recorded them. If the server
/// ended before it could, a repeated request records them.
async fn note_revert(
    handle: &Arc<RunHandle>,
    key: Option<RequestKey>,
    of: RevertedTurn,
    reverted: Reverted,
) -> Result<wire::TurnFilesAnswer, RunError> {
    let RevertedTurn { node, turn } = of;
    let mut files = reverted.all();
    handle.read(|run| files.retain(|file| !run.archive.was_reverted(turn, file)));
    let Reverted { restored, already } = reverted;
    let answer = wire::TurnFilesAnswer {
        paths: restored,
        already: (!already.is_empty()).then_some(already),
    };
    if files.is_empty() {
        return keep_answer(handle, key, REVERT_NAME, answer).await;
    }
    let noted = decide::TurnReverted {
        node,
        turn,
        files,
        answer: encode_answer(&answer)?,
    };
    let note =
        move |run: &Run, around: Surroundings<'_>| Ok(decide::note_revert(run, around, &noted));
    match handle.decide_once(key, note).await? {
        Decided::Now(()) => Ok(answer),
        Decided::Before { made, .. } => read_answer(handle, made).await,
    }
}

async fn revert_now(
    handle: &Arc<RunHandle>,
    changes: TurnChanges,
    only: Option<Vec<String>>,
) -> Result<Reverted, ApiError> {
    // Without a choice, files that another node may have written stay as they are.
    let only = only.or_else(|| list_unshared(&changes.diff));
    let worktree = find_worktree(handle, changes.node);
    let Some(work) = verification::collect_work(handle) else {
        return Err(ApiError::bad_request("the run has no directory"));
    };
    let services = Arc::clone(&handle.services);
    let guard = services.workspaces.lock_worktrees(work.run).await;
    let reverted = handle.services.run_file_work(move || {
        let place = directory_of(&services.workspaces, &guard, &work, worktree.as_ref())?;
        revert_blocking(&services.workspaces, &place, &changes.diff, only.as_deref())
    });
    Ok(reverted.await??)
}

/// The files of a turn that no other turn may have changed, if some may. Whose the others are is not
/// known, so they are taken back only if a person names them.
fn list_unshared(diff: &DiffSummary) -> Option<Vec<String>> {
    if diff.shared.is_empty() {
        return None;
    }
    let files = diff.files_changed.iter();
    let unshared = files.filter(|file| !diff.shared.contains(file));
    Some(unshared.cloned().collect())
}

/// The worktree of a node, if it has one.
fn find_worktree(handle: &RunHandle, id: NodeId) -> Option<WorktreeNode> {
    handle.read_live(|run| {
        let node = run.node(id)?;
        let workspace = node.workspace.as_ref()?;
        (workspace.kind == WorkspaceKind::Worktree).then(|| WorktreeNode::of(node))
    })
}

/// Where the changes of a turn are: in the worktree of its node, or in the run's directory once the
/// worktree was applied and removed.
fn directory_of(
    workspaces: &Workspaces,
    guard: &WorktreesGuard,
    work: &RunWork,
    worktree: Option<&WorktreeNode>,
) -> Result<PathBuf, LandError> {
    let Some(node) = worktree else {
        return Ok(work.cwd.clone());
    };
    let found = workspaces.find_worktree(guard, work.run, &work.cwd, node.node)?;
    Ok(found.map_or_else(|| work.cwd.clone(), |worktree| worktree.directory))
}

fn revert_blocking(
    workspaces: &Workspaces,
    directory: &std::path::Path,
    diff: &DiffSummary,
    only: Option<&[String]>,
) -> Result<Reverted, LandError> {
    let bad_name = |name: &str| LandError::Failed(format!("`{name}` does not name a tree"));
    let base = diff
        .base_tree
        .parse()
        .map_err(|_| bad_name(&diff.base_tree))?;
    let head = diff
        .head_tree
        .parse()
        .map_err(|_| bad_name(&diff.head_tree))?;
    let mut paths = Vec::new();
    for path in only.unwrap_or_default() {
        let path = TreePath::new(path.as_bytes());
        paths.push(path.map_err(|error| LandError::Failed(error.to_string()))?);
    }
    let opened = workspaces.open(directory)?;
    let only = only.is_some().then_some(paths.as_slice());
    let writes: BTreeSet<TreePath> = match only {
        Some(named) => named.iter().cloned().collect(),
        None => opened
            .diff(&base, &head)?
            .touched_paths()
            .into_iter()
            .collect(),
    };
    let noted = workspaces.note_person_writes(directory, &writes);
    let outcome = opened.revert(&base, &head, only);
    if !matches!(outcome, Ok(LandOutcome::Landed { .. })) {
        workspaces.forget_person_writes(noted);
    }
    match outcome? {
        LandOutcome::Landed { paths, unchanged } => Ok(Reverted {
            restored: texts(&paths),
            already: texts(&unchanged),
        }),
        LandOutcome::Conflicts { paths } => Err(LandError::Conflicts(texts(&paths))),
    }
}

/// Keeps files that a node was not allowed to write.
pub(crate) async fn keep(
    handle: &Arc<RunHandle>,
    key: Option<RequestKey>,
    turn: AgentTurnId,
    only: Option<Vec<String>>,
) -> Result<wire::TurnFilesAnswer, ApiError> {
    let changes = find_changes(handle, turn)?;
    // The diff of a turn never changes, so a repeat has the same answer.
    let violations = changes.diff.violations;
    check_violations(only.as_deref().unwrap_or_default(), &violations)?;
    let kept = only.unwrap_or(violations);
    let paths = kept.clone();
    let settle = move |run: &Run, around: Surroundings<'_>| {
        decide::settle_violation(run, around, turn, &paths)
    };
    handle.decide_once(key, settle).await?;
    Ok(wire::TurnFilesAnswer {
        paths: kept,
        already: None,
    })
}

/// Rejects a file that the turn was allowed to write, or did not write: there is nothing to decide.
fn check_violations(paths: &[String], violations: &[String]) -> Result<(), ApiError> {
    let mut others = paths.iter().filter(|path| !violations.contains(path));
    let Some(other) = others.next() else {
        return Ok(());
    };
    let message = match violations {
        [] => format!("`{other}` needs no decision: the turn wrote no file that it may not write"),
        listed => format!(
            "`{other}` is no file that the turn may not write; those are: {}",
            listed.join(", ")
        ),
    };
    let rejected = ApiError::bad_request(message).with("path", "paths");
    Err(rejected.with("violations", violations.to_vec()))
}

/// Takes reverted files off the list of a blocked node. Most turns have no such list.
async fn settle(
    handle: &Arc<RunHandle>,
    turn: AgentTurnId,
    paths: &[String],
) -> Result<(), RunError> {
    let paths = paths.to_vec();
    let settled =
        handle.decide(move |run, around| decide::settle_violation(run, around, turn, &paths));
    match settled.await {
        Ok(()) | Err(RunError::Rejected(Rejection::NoViolation(_))) => Ok(()),
        Err(error) => Err(error),
    }
}
