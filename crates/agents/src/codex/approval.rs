//! The questions of Codex and their answers. Each kind of question has its own words for yes and no.

use serde_json::{Value, json};

use crate::context::{describe_call, describe_files};
use crate::event::{PermissionRequest, ToolCall};
use crate::field::{list_at, object_at, text_at};
use crate::json_rpc::{id_text, response};
use crate::request::{Answer, RequestError};

use super::item::{command_args, files_of};

/// A question with what its answer needs.
#[derive(Debug)]
pub(super) struct AskedApproval {
    pub(super) request: PermissionRequest,
    pub(super) approval: Approval,
}

/// What must be remembered of a question until it is answered.
#[derive(Debug)]
pub(super) struct Approval {
    id: Value,
    kind: ApprovalKind,
}

#[derive(Debug)]
enum ApprovalKind {
    /// A command or a change of files.
    Decision,
    /// More rights for the rest of the turn; an answer repeats the granted ones.
    Rights(Value),
    /// A call of an MCP tool, asked as if its server did.
    McpTool,
}

impl Approval {
    /// The message that answers the question.
    pub(super) fn answer(&self, answer: &Answer) -> Result<Value, RequestError> {
        match answer {
            Answer::Allow => Ok(self.accept(false)),
            Answer::AllowAlways => Ok(self.accept(true)),
            Answer::Deny { .. } => Ok(self.decline()),
            Answer::AllowWith(_) => Err(RequestError::Unsupported(
                "change the arguments of a tool; deny it with instructions instead",
            )),
        }
    }

    fn accept(&self, for_session: bool) -> Value {
        let result = match &self.kind {
            ApprovalKind::Decision if for_session => json!({"decision": "acceptForSession"}),
            ApprovalKind::Decision => json!({"decision": "accept"}),
            ApprovalKind::Rights(rights) => {
                let scope = if for_session { "session" } else { "turn" };
                json!({"permissions": rights, "scope": scope})
            }
            ApprovalKind::McpTool if for_session => {
                json!({"action": "accept", "content": {}, "_meta": {"persist": "session"}})
            }
            ApprovalKind::McpTool => json!({"action": "accept", "content": {}}),
        };
        response(&self.id, &result)
    }

    /// The turn goes on after this answer.
    pub(super) fn decline(&self) -> Value {
        let result = match &self.kind {
            ApprovalKind::Decision => json!({"decision": "decline"}),
            ApprovalKind::Rights(_) => json!({"permissions": {}}),
            ApprovalKind::McpTool => json!({"action": "decline", "content": null}),
        };
        response(&self.id, &result)
    }
}

/// Reads a call of the program, if it is a question that a person can answer. `item` is the call of
/// the tool that the question names.
pub(super) fn read_approval(
    id: &Value,
    method: &str,
    params: &Value,
    item: Option<&ToolCall>,
    cwd: &str,
) -> Option<AskedApproval> {
    let (kind, call) = match method {
        "item/commandExecution/requestApproval" => {
            let args = command_args(params);
            (ApprovalKind::Decision, known_call(item, "command", args))
        }
        // The question does not repeat the changes: its item has them.
        "item/fileChange/requestApproval" => {
            let args = json!({"changes": []});
            (
                ApprovalKind::Decision,
                known_call(item, "file_change", args),
            )
        }
        "item/permissions/requestApproval" => {
            let rights = object_at(params, "/permissions");
            let args = json!({"permissions": rights, "reason": text_at(params, "/reason")});
            let call = known_call(item, "request_permissions", args);
            (ApprovalKind::Rights(rights), call)
        }
        "mcpServer/elicitation/request" if is_about_mcp_tool(params) => {
            (ApprovalKind::McpTool, mcp_call(params))
        }
        _ => return None,
    };
    let call = with_id(call, text_at(params, "/itemId"), id);
    let request = PermissionRequest {
        request_id: id_text(id),
        context: describe_question(&call, params, cwd),
        can_allow_always: true,
        call,
    };
    let approval = Approval {
        id: id.clone(),
        kind,
    };
    Some(AskedApproval { request, approval })
}

/// The call that the program announced before, or one that the question itself describes.
fn known_call(item: Option<&ToolCall>, name: &str, args: Value) -> ToolCall {
    item.cloned().unwrap_or_else(|| ToolCall {
        provider_id: String::new(),
        name: name.to_owned(),
        args,
    })
}

fn with_id(mut call: ToolCall, item: Option<&str>, id: &Value) -> ToolCall {
    if call.provider_id.is_empty() {
        let named = item.filter(|item| !item.is_empty());
        call.provider_id = named.map_or_else(|| id_text(id), str::to_owned);
    }
    call
}

fn is_about_mcp_tool(params: &Value) -> bool {
    text_at(params, "/_meta/codex_approval_kind") == Some("mcp_tool_call")
}

fn mcp_call(params: &Value) -> ToolCall {
    // The question names the server but not the tool.
    let server = text_at(params, "/serverName").unwrap_or("server");
    ToolCall {
        provider_id: String::new(),
        name: format!("mcp__{server}"),
        args: json!({
            "message": text_at(params, "/message"),
            "arguments": object_at(params, "/_meta/tool_params"),
        }),
    }
}

/// The sentence about a question. The program's own reason, if it gives one, follows in brackets.
fn describe_question(call: &ToolCall, params: &Value, cwd: &str) -> String {
    let files = files_of(&call.args);
    let sentence = if !files.is_empty() {
        describe_files(&files)
    } else if list_at(&call.args, "/changes").is_empty() && call.name == "file_change" {
        "change files".to_owned()
    } else {
        describe_call(call, cwd)
    };
    match text_at(params, "/reason").or_else(|| text_at(params, "/message")) {
        Some(reason) => {
            let reason = crate::field::shorten(reason, 200);
            format!("{sentence} ({reason})")
        }
        None => sentence,
    }
}
