//! Tool calls of an agent. Every proposed call is completed exactly once, also after a denial, an
//! interrupt or a crash.

use serde_json::Value;
use turnkeep_types::Timestamp;

use crate::ids::{ArtifactId, ToolId};

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: ToolId,
    pub name: String,
    pub args: Value,
    /// The program's own id of the call.
    pub provider_id: Option<String>,
}

/// A call that is not completed.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenTool {
    pub call: ToolCall,
    pub proposed_at: Timestamp,
    /// When it began to run; a proposed call may wait for approval.
    pub started_at: Option<Timestamp>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutcome {
    pub ok: bool,
    pub output: Option<String>,
    /// Whether `output` is only the beginning; the artifact has everything.
    pub truncated: bool,
    pub artifact: Option<ArtifactId>,
    pub error: Option<String>,
    pub duration_ms: u64,
}

impl ToolOutcome {
    /// The outcome of a call that never ran to its end.
    pub fn abandoned(reason: &str) -> Self {
        Self {
            ok: false,
            output: None,
            truncated: false,
            artifact: None,
            error: Some(reason.to_owned()),
            duration_ms: 0,
        }
    }
}
