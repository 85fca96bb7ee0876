//! Gemini's content, as `gemini` uses it.

use serde_json::{Value, json};

use crate::model::{
    AnswerEvents, Asked, COMPLETION_TOKENS, Entry, ModelCall, PROMPT_TOKENS, Reply, list, pieces,
    text_in,
};

pub(crate) fn read(body: &Value) -> Asked {
    let mut asked = Asked::default();
    for group in list(body, "tools") {
        for tool in list(group, "functionDeclarations") {
            asked.tools.extend(tool["name"].as_str().map(str::to_owned));
        }
    }
    let contents = list(body, "contents").iter();
    for content in contents.filter(|content| content["role"] == "user") {
        for part in list(content, "parts") {
            asked.entries.push(match part.get("functionResponse") {
                Some(response) => Entry::ToolResult(response["response"].to_string()),
                None => Entry::Prompt(text_in(part)),
            });
        }
    }
    asked
}

fn call_of(asked: &Asked, reply: &Reply) -> Option<ModelCall> {
    match reply {
        Reply::Run(command) => Some(ModelCall {
            name: "run_shell_command".to_owned(),
            args: json!({"command": command, "description": "Runs it"}),
        }),
        Reply::Call { tool, args } => Some(ModelCall {
            name: asked.find_tool(tool),
            args: args.clone(),
        }),
        _ => None,
    }
}

fn candidate(part: &Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": [part]}, "index": 0});
    if let Some(reason) = finish {
        candidate["finishReason"] = json!(reason);
    }
    let usage = json!({
        "promptTokenCount": PROMPT_TOKENS,
        "candidatesTokenCount": COMPLETION_TOKENS,
        "totalTokenCount": PROMPT_TOKENS + COMPLETION_TOKENS,
    });
    json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"})
}

/// The program asks which model suits a task, and whether the agent goes on by itself.
pub(crate) fn whole_answer() -> Value {
    let text = json!({
        "reasoning": "scripted",
        "model_choice": "flash",
        "complexity_reasoning": "scripted",
        "complexity_score": 10,
        "next_speaker": "user",
    });
    candidate(&json!({"text": text.to_string()}), Some("STOP"))
}

pub(crate) fn stream(asked: &Asked, reply: &Reply) -> AnswerEvents {
    if let Some(call) = call_of(asked, reply) {
        let part = json!({"functionCall": {"name": call.name, "args": call.args}});
        return AnswerEvents {
            before_end: Vec::new(),
            end: vec![candidate(&part, Some("STOP"))],
        };
    }
    let Reply::Say(text) = reply else {
        panic!("{reply:?} is not a text");
    };
    let parts = pieces(text).map(|piece| candidate(&json!({"text": piece}), None));
    AnswerEvents {
        before_end: parts.collect(),
        end: vec![candidate(&json!({"text": ""}), Some("STOP"))],
    }
}
