//! Anthropic's messages, as `claude` uses them.

use serde_json::{Value, json};

use crate::model::{
    AnswerEvents, Asked, COMPLETION_TOKENS, Entry, ModelCall, PROMPT_TOKENS, Reply, list, pieces,
    text_in,
};

pub(crate) fn read(body: &Value) -> Asked {
    let mut asked = Asked::default();
    for tool in list(body, "tools") {
        asked.tools.extend(tool["name"].as_str().map(str::to_owned));
    }
    let messages = list(body, "messages").iter();
    for message in messages.filter(|message| message["role"] == "user") {
        if let Some(text) = message["content"].as_str() {
            asked.entries.push(Entry::Prompt(text.to_owned()));
        }
        for part in list(message, "content") {
            let text = text_in(part);
            asked.entries.push(match part["type"].as_str() {
                Some("tool_result") => Entry::ToolResult(text),
                _ => Entry::Prompt(text),
            });
        }
    }
    asked
}

fn call_of(asked: &Asked, reply: &Reply) -> Option<ModelCall> {
    match reply {
        Reply::Run(command) => Some(ModelCall {
            name: "Bash".to_owned(),
            args: json!({"command": command, "description": "Runs it"}),
        }),
        Reply::Call { tool, args } => Some(ModelCall {
            name: asked.find_tool(tool),
            args: args.clone(),
        }),
        _ => None,
    }
}

fn usage() -> Value {
    json!({
        "input_tokens": PROMPT_TOKENS,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": COMPLETION_TOKENS,
    })
}

fn message(number: u64) -> Value {
    json!({
        // The program merges messages with the same id.
        "id": format!("msg_{number}"),
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(),
    })
}

pub(crate) fn whole_answer(number: u64) -> Value {
    let mut answer = message(number);
    answer["content"] = json!([{"type": "text", "text": "A title"}]);
    answer["stop_reason"] = json!("end_turn");
    answer
}

pub(crate) fn stream(asked: &Asked, reply: &Reply, number: u64) -> AnswerEvents {
    let mut events = vec![json!({"type": "message_start", "message": message(number)})];
    let call = call_of(asked, reply);
    let stop_reason = if call.is_some() {
        "tool_use"
    } else {
        "end_turn"
    };
    let (start, deltas) = match &call {
        Some(call) => stream_call(call, number),
        None => stream_text(reply),
    };
    events.push(json!({"type": "content_block_start", "index": 0, "content_block": start}));
    for delta in deltas {
        events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    }
    let stop = json!({"stop_reason": stop_reason, "stop_sequence": null});
    AnswerEvents {
        before_end: events,
        end: vec![
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": stop, "usage": usage()}),
            json!({"type": "message_stop"}),
        ],
    }
}

fn stream_call(call: &ModelCall, number: u64) -> (Value, Vec<Value>) {
    let id = format!("toolu_{number}");
    let start = json!({"type": "tool_use", "id": id, "name": call.name, "input": {}});
    let args = call.args.to_string();
    let delta = json!({"type": "input_json_delta", "partial_json": args});
    (start, vec![delta])
}

fn stream_text(reply: &Reply) -> (Value, Vec<Value>) {
    let Reply::Say(text) = reply else {
        panic!("{reply:?} is not a text");
    };
    let deltas = pieces(text).map(|piece| json!({"type": "text_delta", "text": piece}));
    (json!({"type": "text", "text": ""}), deltas.collect())
}
