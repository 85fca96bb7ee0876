//! The reports of verifications: `verification.json`, an artifact of the kind `report`.
//!
//! | field | meaning |
//! |---|---|
//! | `ok` | whether all commands succeeded |
//! | `scope` | `run`: the integration tree; `node`: the workspace of one node, for a gate |
//! | `tree` | the tree that the commands ran on; null if there was none |
//! | `commands` | `{command, exitCode, output}` of each that ran; `failure` in words if it failed |
//! | `reason` | why no command ran |
//! | `conflicts` | `{path, nodes}` of each file that several changed, if that is the reason |

use std::sync::Arc;

use serde_json::Value;
use turnkeep_runtime::artifact::Artifact;
use turnkeep_runtime::words::ArtifactKind;

use super::error::RunError;
use super::run_handle::RunHandle;

/// The name of a report.
const REPORT_NAME: &str = "verification.json";

/// What was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportScope {
    /// The work of the whole run.
    Run,
    /// The workspace of one node.
    Node,
}

impl ReportScope {
    /// The value of `scope`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Node => "node",
        }
    }
}

/// Whether an artifact is a report of a verification.
pub(crate) fn is_report(artifact: &Artifact) -> bool {
    artifact.kind == ArtifactKind::Report && artifact.name == REPORT_NAME
}

/// Whether the run passed its newest verification on exactly this tree. Later verifications of other
/// trees, and those of gates, say nothing about it. Nor does one without commands: it checked nothing.
pub(super) async fn was_verified(handle: &Arc<RunHandle>, tree: &str) -> Result<bool, RunError> {
    let mut reports = handle.read(|run| {
        let artifacts = run
            .archive
            .artifacts()
            .filter(|artifact| is_report(artifact));
        artifacts.map(Arc::clone).collect::<Vec<_>>()
    });
    reports.sort_by_key(|artifact| std::cmp::Reverse(artifact.created_at));
    for artifact in reports {
        let bytes = handle.read_blob(artifact.content).await?;
        let report: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if report["scope"] != ReportScope::Node.word() && report["tree"] == tree {
            let ran = report["commands"].as_array().map_or(0, Vec::len);
            return Ok(report["ok"] == true && ran > 0);
        }
    }
    Ok(false)
}
