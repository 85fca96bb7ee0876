//! Verification: the server itself runs a run's commands in the integration tree.
//!
//! The integration tree is the run's directory as it is now plus the work of every node that has a
//! worktree. A merge conflict is a failed verification that lists the files. The first failing command
//! ends it, and so does an interrupt of the node that claims completion.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use turnkeep_runtime::decide::{self, DiffTaken, VerificationEnd};
use turnkeep_runtime::effect::VerifyPlace;
use turnkeep_runtime::ids::{NodeId, RunId};
use turnkeep_runtime::stall::mask_output;
use turnkeep_runtime::verification::VerificationTarget;
use turnkeep_runtime::words::WorkspaceKind;
use turnkeep_types::BlobHash;
use turnkeep_workspace::{FileConflict, TreeName, WorkspaceError};

use super::run_handle::RunHandle;
use super::shell_commands::{CommandResult, ShellCommand, run_command};
use super::verification_reports::ReportScope;
use super::workspaces::{MergedWork, Workspaces, WorktreeNode, WorktreesGuard};

/// How much of a failing command's output the claimer gets, in bytes.
const TAIL_BYTES_MAX: usize = 4 << 10;

/// A patch that is longer than this is not handed over. The worktrees and the directory have it all.
const CHANGES_BYTES_MAX: usize = 32 << 20;

/// What a verification needs to know about a run.
pub(super) struct RunWork {
    pub(super) run: RunId,
    pub(super) cwd: PathBuf,
    pub(super) commands: Vec<String>,
    pub(super) worktrees: Vec<WorktreeNode>,
}

/// What commands run on, as the report says it.
#[derive(Debug, Clone)]
struct Subject {
    scope: ReportScope,
    /// The tree of the directory when they began. Unknown if the directory cannot be read.
    tree: Option<TreeName>,
}

/// Where the commands run.
enum VerifiedPlace {
    /// A directory that has the tree of the run and keeps it until the commands have ended.
    Ready { directory: PathBuf, tree: TreeName },
    /// The work of the nodes does not fit together.
    Conflicts(Vec<FileConflict>),
}

/// Runs the verification commands and reports the result to the run.
pub(super) async fn verify(
    handle: Arc<RunHandle>,
    target: VerificationTarget,
    place: VerifyPlace,
    cancelled: CancellationToken,
) {
    let result = tokio::select! {
        biased;
        // Dropping the work kills its command. The run expects no result any more.
        () = cancelled.cancelled() => return,
        result = verify_at(&handle, place) => result,
    };
    let end = result.into_end(target);
    let ended = handle.decide(move |run, around| decide::end_verification(run, around, &end));
    if let Err(error) = ended.await {
        tracing::debug!(run = %handle.id(), %error, "the result of a verification was dropped");
    }
}

/// What the commands found.
struct VerificationResult {
    ok: bool,
    report: Bytes,
    tail: String,
    signature: String,
    changes: Option<DiffTaken>,
}

impl VerificationResult {
    fn into_end(self, target: VerificationTarget) -> VerificationEnd {
        VerificationEnd {
            target,
            ok: self.ok,
            report: self.report,
            tail: self.tail,
            signature: self.signature,
            changes: self.changes,
        }
    }
}

async fn verify_at(handle: &Arc<RunHandle>, place: VerifyPlace) -> VerificationResult {
    let scope = match place {
        VerifyPlace::IntegrationTree => ReportScope::Run,
        VerifyPlace::Workspace(_) => ReportScope::Node,
    };
    let Some(work) = collect_work(handle) else {
        return failed_end(scope, "the run has no directory", "no directory");
    };
    let result = match place {
        VerifyPlace::IntegrationTree => verify_tree(handle, work).await,
        VerifyPlace::Workspace(node) => verify_node(handle, work, node).await,
    };
    result.unwrap_or_else(|reason| failed_end(scope, &reason, &reason))
}

/// Runs the commands where a node works, as the gate of an edge wants it.
async fn verify_node(
    handle: &Arc<RunHandle>,
    work: RunWork,
    node: NodeId,
) -> Result<VerificationResult, String> {
    let services = Arc::clone(&handle.services);
    let directory = services.workspaces.find_directory(handle, node).await?.path;
    let looked_at = directory.clone();
    // Before the commands, which may change files.
    let tree = handle
        .services
        .run_file_work(move || services.workspaces.name_tree(&looked_at))
        .await
        .map_err(|error| error.to_string())?;
    let results = run_commands(handle, &work.commands, &directory).await;
    let subject = Subject {
        scope: ReportScope::Node,
        tree: tree.ok(),
    };
    Ok(end_of(&results, &subject))
}

/// What the state says about the work to verify.
pub(super) fn collect_work(handle: &RunHandle) -> Option<RunWork> {
    handle.read_live(|run| {
        let has_worktree = |node: &&turnkeep_runtime::node::Node| {
            let workspace = node.workspace.as_ref();
            workspace.is_some_and(|workspace| workspace.kind == WorkspaceKind::Worktree)
        };
        let worktrees = run.nodes().filter(has_worktree).map(WorktreeNode::of);
        Some(RunWork {
            run: run.id,
            cwd: PathBuf::from(run.settings.cwd.as_ref()?),
            commands: run.settings.verify.clone(),
            worktrees: worktrees.collect(),
        })
    })
}

/// Merges the work of the nodes and checks the result out. It blocks.
fn find_place(
    workspaces: &Workspaces,
    guard: &WorktreesGuard,
    work: &RunWork,
) -> Result<VerifiedPlace, WorkspaceError> {
    let RunWork { run, cwd, .. } = work;
    Ok(
        match workspaces.merge_work(guard, *run, cwd, &work.worktrees)? {
            MergedWork::NoWorktrees => VerifiedPlace::Ready {
                tree: workspaces.name_tree(cwd)?,
                directory: cwd.clone(),
            },
            MergedWork::Merged(merged) => {
                let tree = merged.integrated.tree;
                VerifiedPlace::Ready {
                    directory: workspaces.check_out_integration(guard, *run, cwd, &tree)?,
                    tree,
                }
            }
            MergedWork::Conflicts(conflicts) => VerifiedPlace::Conflicts(conflicts),
        },
    )
}

/// Runs the commands in the integration tree.
///
/// Nothing else uses the directory with that tree meanwhile: an apply merges without a directory, and
/// at most one verification of a run is under way. So the nodes need not wait for the commands.
async fn verify_tree(handle: &Arc<RunHandle>, work: RunWork) -> Result<VerificationResult, String> {
    let services = Arc::clone(&handle.services);
    let (commands, cwd) = (work.commands.clone(), work.cwd.clone());
    let guard = services.workspaces.lock_worktrees(work.run).await;
    let found = handle
        .services
        .run_file_work(move || find_place(&services.workspaces, &guard, &work))
        .await
        .map_err(|error| error.to_string())?;
    let (directory, tree) = match found.map_err(|error| error.to_string())? {
        VerifiedPlace::Ready { directory, tree } => (directory, tree),
        VerifiedPlace::Conflicts(conflicts) => return Ok(conflict_end(&conflicts)),
    };
    let results = run_commands(handle, &commands, &directory).await;
    let subject = Subject {
        scope: ReportScope::Run,
        tree: Some(tree.clone()),
    };
    let mut result = end_of(&results, &subject);
    if result.ok && handle.read_live(decide::hands_over_changes) {
        result.changes = collect_changes(handle, cwd, tree).await;
    }
    Ok(result)
}

/// Everything that changed since the first turn of the run began, up to the verified tree.
async fn collect_changes(
    handle: &Arc<RunHandle>,
    cwd: PathBuf,
    tree: TreeName,
) -> Option<DiffTaken> {
    let base = handle.read(|run| run.archive.first_tree().map(str::to_owned))?;
    let services = Arc::clone(&handle.services);
    let compare = move || {
        let base: TreeName = base.parse()?;
        services.workspaces.compare_trees(&cwd, &base, &tree)
    };
    let compared = handle.services.run_file_work(compare).await;
    let mut changes = match compared {
        Ok(Ok(changes)) => changes,
        // Of a run from another machine the first tree is not here.
        Ok(Err(error)) => {
            tracing::warn!(run = %handle.id(), %error, "the changes of the run are not known");
            return None;
        }
        Err(error) => {
            tracing::warn!(run = %handle.id(), %error, "the changes of the run are not known");
            return None;
        }
    };
    if changes.patch.len() > CHANGES_BYTES_MAX {
        let bytes = changes.patch.len();
        changes.patch = Bytes::new();
        changes.summary.summary = format!("the changes are too long to record: {bytes} bytes");
    }
    Some(changes)
}

fn describe_conflicts(conflicts: &[FileConflict]) -> String {
    let describe =
        |conflict: &FileConflict| format!("{} ({})", conflict.path, conflict.nodes.join(", "));
    let files: Vec<String> = conflicts.iter().map(describe).collect();
    files.join(", ")
}

/// Runs commands until one fails.
async fn run_commands(
    handle: &Arc<RunHandle>,
    commands: &[String],
    directory: &Path,
) -> Vec<CommandResult> {
    let services = &handle.services;
    let mut results = Vec::new();
    for line in commands {
        let command = ShellCommand {
            line,
            directory,
            time_limit: services.settings.verify_time_limit,
        };
        let result = run_command(services, command).await;
        let is_last = !result.is_success();
        results.push(result);
        if is_last {
            break;
        }
    }
    results
}

fn end_of(results: &[CommandResult], subject: &Subject) -> VerificationResult {
    let commands = results.iter().map(|result| {
        let mut command = json!({
            "command": result.line,
            "exitCode": result.exit.code(),
            "output": result.output,
        });
        // A command that was ended has no exit status that says so.
        if !result.is_success() {
            command["failure"] = result.exit.describe().into();
        }
        command
    });
    let failed = results.iter().find(|result| !result.is_success());
    let report = json!({
        "ok": failed.is_none(),
        "scope": subject.scope.word(),
        "tree": subject.tree.as_ref().map(TreeName::as_str),
        "commands": commands.collect::<Vec<_>>(),
    });
    let describe = |result: &CommandResult| result.describe_failure(TAIL_BYTES_MAX);
    VerificationResult {
        ok: failed.is_none(),
        report: Bytes::from(report.to_string()),
        tail: failed.map_or_else(String::new, describe),
        signature: failed.map_or_else(String::new, failure_signature),
        changes: None,
    }
}

/// The same failure has the same signature, whatever times and numbers its output has.
fn failure_signature(result: &CommandResult) -> String {
    let masked = mask_output(&result.output);
    let output = BlobHash::of(masked.as_bytes());
    let exit = match result.exit.code() {
        Some(code) => format!("exit status {code}"),
        None => "no exit status".to_owned(),
    };
    format!("`{}`: {exit}, output {output}", result.line)
}

/// The end without a command: there is no tree that one could run on.
fn failed_end(scope: ReportScope, tail: &str, signature: &str) -> VerificationResult {
    end_without_command(&empty_report(scope, tail), tail, signature)
}

fn empty_report(scope: ReportScope, reason: &str) -> Value {
    json!({ "ok": false, "scope": scope.word(), "tree": null, "commands": [], "reason": reason })
}

fn end_without_command(report: &Value, tail: &str, signature: &str) -> VerificationResult {
    VerificationResult {
        ok: false,
        report: Bytes::from(report.to_string()),
        tail: tail.to_owned(),
        signature: signature.to_owned(),
        changes: None,
    }
}

fn conflict_end(conflicts: &[FileConflict]) -> VerificationResult {
    let files = describe_conflicts(conflicts);
    let tail = format!("the work of the nodes conflicts in: {files}");
    let mut report = empty_report(ReportScope::Run, &tail);
    let conflicts = conflicts.iter();
    report["conflicts"] = conflicts
        .map(|conflict| json!({ "path": conflict.path.to_string(), "nodes": conflict.nodes }))
        .collect();
    end_without_command(&report, &tail, &files)
}
