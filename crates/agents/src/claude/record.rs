//! Reads the records of `claude` that have several shapes.

use serde_json::Value;

use crate::event::{ToolCall, ToolResult};
use crate::field::{flag_at, list_at, text_at};

/// The results of tools in a record. Tools that the provider itself runs, such as the search of the
/// web, have results of their own type inside the assistant's record.
pub(super) fn read_tool_results(record: &Value) -> Vec<ToolResult> {
    list_at(record, "/message/content")
        .iter()
        .filter_map(read_tool_result)
        .collect()
}

fn read_tool_result(block: &Value) -> Option<ToolResult> {
    let kind = text_at(block, "/type")?;
    if !kind.ends_with("tool_result") {
        return None;
    }
    let ok = !flag_at(block, "/is_error");
    let text = text_of_content(block.pointer("/content"));
    // The model reads both in the same place; people look for an error elsewhere.
    let (output, error) = if ok { (text, None) } else { (None, text) };
    Some(ToolResult {
        provider_id: text_at(block, "/tool_use_id")?.to_owned(),
        ok,
        output,
        error,
    })
}

/// Whether a call only looked at a command in the background that still runs. The tool has had two
/// names, and its result begins with the state of the command.
pub(super) fn polls_command(call: &ToolCall, result: &ToolResult) -> bool {
    let output = result.output.as_deref().unwrap_or_default();
    matches!(call.name.as_str(), "BashOutput" | "TaskOutput")
        && head_of(output).contains("<status>running</status>")
}

/// The part of a result before the output of the command, which may contain anything.
fn head_of(output: &str) -> &str {
    let ends = ["<stdout>", "<stderr>", "<output>"].map(|tag| output.find(tag));
    let end = ends.into_iter().flatten().min();
    output.get(..end.unwrap_or(output.len())).unwrap_or(output)
}

/// The text of a content that is a string or a list of blocks.
fn text_of_content(content: Option<&Value>) -> Option<String> {
    match content? {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| text_at(block, "/text"));
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// Whether a result reports a failure. Errors of the provider have the subtype `success` and a flag.
pub(super) fn is_error(result: &Value) -> bool {
    let subtype = text_at(result, "/subtype");
    flag_at(result, "/is_error") || subtype.is_some_and(|subtype| subtype != "success")
}

/// Whether a result says that its turn was stopped from outside.
pub(super) fn was_aborted(result: &Value) -> bool {
    let reason = text_at(result, "/terminal_reason");
    reason.is_some_and(|reason| reason.starts_with("aborted"))
}

/// Why a result is an error: its list of errors, its text, or at least its subtype.
pub(super) fn reason_of_result(result: &Value) -> String {
    let errors: Vec<&str> = list_at(result, "/errors")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    if !errors.is_empty() {
        return errors.join("; ");
    }
    let text = text_at(result, "/result").or_else(|| text_at(result, "/subtype"));
    text.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_poll_is_a_look_at_a_command_that_still_runs() {
        let check = |name: &str, output: &str, expect: bool| {
            let call = ToolCall {
                provider_id: "t".to_owned(),
                name: name.to_owned(),
                args: json!({"bash_id": "b1"}),
            };
            let result = ToolResult {
                provider_id: "t".to_owned(),
                ok: true,
                output: Some(output.to_owned()),
                error: None,
            };
            assert_eq!(polls_command(&call, &result), expect, "{name} {output}");
        };
        let running = "<status>running</status>\n\n<stdout>\nhalf\n</stdout>";
        check("BashOutput", running, true);
        let timeout = "<retrieval_status>timeout</retrieval_status>\n\n<status>running</status>";
        check("TaskOutput", timeout, true);
        check("Bash", running, false);
        let done = "<status>completed</status>\n\n<exit_code>0</exit_code>";
        check("BashOutput", done, false);
        let says_so = "<status>completed</status>\n<stdout><status>running</status></stdout>";
        check("BashOutput", says_so, false);
        check("BashOutput", "", false);
    }
}
