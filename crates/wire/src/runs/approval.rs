//! Tool calls, the decisions that they wait for, and the rules that answer some of them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{ApprovalKind, ResolvedBy, Scope, UuidText, Verdict};
use crate::json::Time;

shapes! {
    /// A call of a tool.
    struct ToolView {
        id: UuidText,
        name: String,
        #[schema(value_type = Value)]
        args: Value,
    }
    optional {
        /// The program's own id of the call.
        provider_tool_id: String,
    }

    /// The result of a call.
    struct ToolResult {
        ok: bool,
    }
    optional {
        output: String,
        /// Whether `output` is only the beginning; the artifact has everything.
        truncated: bool,
        artifact_id: UuidText,
    }

    /// Why a call failed.
    struct ToolError {
        message: String,
    }

    /// A decision that waits for a person.
    struct ApprovalView {
        approval_id: UuidText,
        node_id: UuidText,
        turn_id: UuidText,
        kind: ApprovalKind,
        tool: ToolView,
        /// One sentence: the command and its directory, the files, or the question.
        context: String,
        created_at: Time,
        /// Answers to choose from, for a question.
        options: Vec<String>,
    }
    optional {
        /// When it is denied by itself.
        expires_at: Time,
    }

    /// A decision.
    struct ResolutionView {
        status: Verdict,
        scope: Scope,
    }
    optional {
        #[schema(value_type = Value)]
        modified_args: Value,
        /// Goes to the model.
        reason: String,
        /// Who decided; unknown for decisions of older versions.
        by: ResolvedBy,
    }

    /// A rule that answers later calls, because a person gave an approval a wider scope.
    struct RuleView {
        id: UuidText,
        tool: String,
        created_at: Time,
    }
    optional {
        /// The node whose calls it answers; all nodes of the run without one.
        node_id: UuidText,
        /// It answers commands that begin with these words.
        command_prefix: String,
        /// It answers calls about this file.
        path: String,
    }
}
