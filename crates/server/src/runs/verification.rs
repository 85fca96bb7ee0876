//! Verification: the server itself runs a run's commands in the integration tree.
//!
//! The integration tree is the run's directory as it is now plus the work of every node that has a
//! worktree. A merge conflict is a failed verification that lists the files. The first failing command
//! ends it, and so does an interrupt of the node that claims completion.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use turnkeep_runtime::decide::{self, VerificationEnd};
use turnkeep_runtime::effect::VerifyPlace;
use turnkeep_runtime::ids::{NodeId, RunId};
use turnkeep_runtime::stall::mask_output;
use turnkeep_runtime::verification::VerificationTarget;
use turnkeep_runtime::words::WorkspaceKind;
use turnkeep_types::BlobHash;
use turnkeep_workspace::FileConflict;

use super::run_handle::RunHandle;
use super::shell_commands::{CommandResult, ShellCommand, run_command};
use super::workspaces::{MergedWork, Workspaces, WorktreeNode, WorktreesGuard};

/// How much of a failing command's output the claimer gets, in bytes.
const TAIL_BYTES_MAX: usize = 4 << 10;

/// What a verification needs to know about a run.
pub(super) struct RunWork {
    pub(super) run: RunId,
    pub(super) cwd: PathBuf,
    pub(super) commands: Vec<String>,
    pub(super) worktrees: Vec<WorktreeNode>,
}

/// Where the commands run.
pub(super) enum VerifiedPlace {
    /// A directory with this tree. A directory without a repository has no name for its tree.
    Ready {
        directory: PathBuf,
        tree: Option<String>,
    },
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
}

impl VerificationResult {
    fn into_end(self, target: VerificationTarget) -> VerificationEnd {
        VerificationEnd {
            target,
            ok: self.ok,
            report: self.report,
            tail: self.tail,
            signature: self.signature,
        }
    }
}

async fn verify_at(handle: &Arc<RunHandle>, place: VerifyPlace) -> VerificationResult {
    let Some(work) = collect_work(handle) else {
        return failed_end("the run has no directory", "no directory");
    };
    match place {
        VerifyPlace::IntegrationTree => verify_tree(handle, work).await,
        VerifyPlace::Workspace(node) => verify_node(handle, work, node).await,
    }
}

/// Runs the commands where a node works, as the gate of an edge wants it.
async fn verify_node(handle: &Arc<RunHandle>, work: RunWork, node: NodeId) -> VerificationResult {
    let workspaces = &handle.services.workspaces;
    match workspaces.find_directory(handle, node).await {
        Ok(directory) => {
            let results = run_commands(handle, &work.commands, &directory.path).await;
            end_of(&results, None)
        }
        Err(reason) => failed_end(&reason, &reason),
    }
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

/// Merges the work of the nodes. It blocks.
fn find_place(
    workspaces: &Workspaces,
    guard: &WorktreesGuard,
    work: &RunWork,
) -> Result<VerifiedPlace, String> {
    let merged = workspaces.merge_work(guard, work.run, &work.cwd, &work.worktrees);
    match merged.map_err(|error| error.to_string())? {
        MergedWork::NoWorktrees => Ok(VerifiedPlace::Ready {
            directory: work.cwd.clone(),
            tree: name_tree(workspaces, &work.cwd),
        }),
        MergedWork::Merged(merged) => Ok(VerifiedPlace::Ready {
            directory: merged.integrated.directory,
            tree: Some(merged.integrated.tree.to_string()),
        }),
        MergedWork::Conflicts(conflicts) => Ok(VerifiedPlace::Conflicts(conflicts)),
    }
}

fn name_tree(workspaces: &Workspaces, directory: &Path) -> Option<String> {
    let opened = workspaces.open(directory).ok()?;
    if !opened.has_repository() {
        return None;
    }
    let snapshot = opened.snapshot(workspaces.now(), None).ok()?;
    Some(snapshot.tree.to_string())
}

/// Runs the commands in the integration tree.
async fn verify_tree(handle: &Arc<RunHandle>, work: RunWork) -> VerificationResult {
    let services = Arc::clone(&handle.services);
    let commands = work.commands.clone();
    let guard = services.workspaces.lock_worktrees(work.run).await;
    let found = handle
        .services
        .run_file_work(move || find_place(&services.workspaces, &guard, &work))
        .await;
    match found {
        Ok(Ok(VerifiedPlace::Ready { directory, tree })) => {
            let results = run_commands(handle, &commands, &directory).await;
            end_of(&results, tree.as_deref())
        }
        Ok(Ok(VerifiedPlace::Conflicts(conflicts))) => {
            let files = describe_conflicts(&conflicts);
            failed_end(
                &format!("the work of the nodes conflicts in: {files}"),
                &files,
            )
        }
        Ok(Err(reason)) => failed_end(&reason, &reason),
        Err(error) => failed_end(&error.to_string(), "the server"),
    }
}

pub(super) fn describe_conflicts(conflicts: &[FileConflict]) -> String {
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

fn end_of(results: &[CommandResult], tree: Option<&str>) -> VerificationResult {
    let commands: Vec<_> = results
        .iter()
        .map(|result| {
            json!({
                "command": result.line,
                "exitCode": result.exit.code(),
                "output": result.output,
            })
        })
        .collect();
    let failed = results.iter().find(|result| !result.is_success());
    let report = json!({"ok": failed.is_none(), "tree": tree, "commands": commands});
    let describe = |result: &CommandResult| result.describe_failure(TAIL_BYTES_MAX);
    VerificationResult {
        ok: failed.is_none(),
        report: Bytes::from(report.to_string()),
        tail: failed.map_or_else(String::new, describe),
        signature: failed.map_or_else(String::new, failure_signature),
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

fn failed_end(tail: &str, signature: &str) -> VerificationResult {
    VerificationResult {
        ok: false,
        report: Bytes::from(json!({"ok": false, "reason": tail}).to_string()),
        tail: tail.to_owned(),
        signature: signature.to_owned(),
    }
}
