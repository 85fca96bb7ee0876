//! The responses of `OpenAI`, as `codex` uses them.

use serde_json::{Value, json};

use crate::model::{
    AnswerEvents, Asked, COMPLETION_TOKENS, Entry, ModelCall, PROMPT_TOKENS, Reply, list, pieces,
    text_in,
};

pub(crate) fn read(body: &Value) -> Asked {
    let mut asked = Asked::default();
    for tool in list(body, "tools") {
        asked.tools.extend(tool["name"].as_str().map(str::to_owned));
        // The tools of a server are in a namespace. A call names both.
        let namespace = tool["name"].as_str().unwrap_or_default();
        for inner in list(tool, "tools") {
            let name = inner["name"].as_str().unwrap_or_default();
            asked.tools.push(format!("{namespace}/{name}"));
        }
    }
    for item in list(body, "input") {
        let text = text_in(item);
        let kind = item["type"].as_str().unwrap_or_default();
        if kind.ends_with("_output") {
            asked.entries.push(Entry::ToolResult(text));
        } else if item["role"] == "user" {
            asked.entries.push(Entry::Prompt(text));
        }
    }
    asked
}

fn call_of(asked: &Asked, reply: &Reply) -> Option<ModelCall> {
    match reply {
        Reply::Run(command) => {
            let name = asked.first_tool(&["exec_command", "shell_command"]);
            // A command that takes longer would go on in the background.
            let args = json!({"cmd": command, "command": command, "yield_time_ms": 30_000});
            Some(ModelCall { name, args })
        }
        Reply::Call { tool, args } => Some(ModelCall {
            name: asked.find_tool(tool),
            args: args.clone(),
        }),
        _ => None,
    }
}

pub(crate) fn stream(asked: &Asked, reply: &Reply, number: u64) -> AnswerEvents {
    let id = format!("resp_{number}");
    let begun = json!({"id": id, "object": "response", "status": "in_progress", "output": []});
    let mut events = vec![json!({"type": "response.created", "response": begun})];
    let item = match call_of(asked, reply) {
        Some(call) => call_item(&call, number),
        None => stream_text(reply, number, &mut events),
    };
    let usage = json!({
        "input_tokens": PROMPT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": COMPLETION_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
    });
    let done = json!({"id": id, "object": "response", "status": "completed",
        "output": [item], "usage": usage});
    AnswerEvents {
        before_end: events,
        end: vec![
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": done}),
        ],
    }
}

fn call_item(call: &ModelCall, number: u64) -> Value {
    let mut item = json!({
        "id": format!("item_{number}"),
        "type": "function_call",
        "call_id": format!("call_{number}"),
        "name": call.name,
        "arguments": call.args.to_string(),
        "status": "completed",
    });
    if let Some((namespace, name)) = call.name.split_once('/') {
        item["namespace"] = json!(namespace);
        item["name"] = json!(name);
    }
    item
}

/// Adds the events of a text and returns the finished item.
fn stream_text(reply: &Reply, number: u64, events: &mut Vec<Value>) -> Value {
    let Reply::Say(text) = reply else {
        panic!("{reply:?} is not a text");
    };
    let id = format!("item_{number}");
    let mut item = json!({"id": id, "type": "message", "role": "assistant",
        "status": "in_progress", "content": []});
    events.push(json!({"type": "response.output_item.added", "output_index": 0, "item": item}));
    for piece in pieces(text) {
        events.push(json!({"type": "response.output_text.delta", "item_id": id,
            "output_index": 0, "content_index": 0, "delta": piece}));
    }
    item["status"] = json!("completed");
    item["content"] = json!([{"type": "output_text", "text": text, "annotations": []}]);
    item
}
