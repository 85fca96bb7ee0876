//! Compares the agent's messages with those that the real programs were recorded to print.
//!
//! The agent plays the recorded conversation: a short turn, a turn with a permission request, an
//! interrupted turn. Every field that it prints must have been recorded, with the same type. The
//! kinds of messages must come in the recorded order, less those that the agent never prints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::harness::{
    CLAUDE, CODEX, GEMINI, OPENCODE, Workplace, acp_prompt, codex_prompt, open_acp_session,
    open_codex_thread,
};

const SCRIPT: &str = "
[agent]
usage = { input = 100, output = 50, cost = 0.0014 }

[[turn]]
steps = [{ say = 'Red, yellow and blue.' }]

[[turn]]
steps = [
    { say = 'I will create it.' },
    { run = 'touch hello.txt && echo created', ask = 'Create hello.txt?' },
    { say = 'The file hello.txt now exists.' },
]

[[turn]]
steps = [{ say = '1. line 001 of the long answer' }, 'silence']
";

struct Recorded {
    order: Vec<String>,
    /// Kind and path to types.
    shapes: BTreeMap<(String, String), String>,
}

fn read_recorded(name: &str) -> Recorded {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/shapes");
    let text = std::fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap();
    let mut recorded = Recorded {
        order: Vec::new(),
        shapes: BTreeMap::new(),
    };
    for line in text.lines() {
        match line.split('\t').collect::<Vec<_>>().as_slice() {
            ["order", kind] => recorded.order.push((*kind).to_owned()),
            ["shape", kind, path, types] => {
                let key = ((*kind).to_owned(), (*path).to_owned());
                recorded.shapes.insert(key, (*types).to_owned());
            }
            other => panic!("{other:?}"),
        }
    }
    recorded
}

/// What the agent does differently, on purpose.
#[derive(Default)]
struct Differences<'d> {
    /// Kinds that only the real program prints.
    unsaid: &'d [&'d str],
    /// Paths that the agent adds.
    added: &'d [&'d str],
}

fn compare(name: &str, messages: &[Value], kind_of: fn(&Value) -> String, known: &Differences<'_>) {
    let recorded = read_recorded(name);
    let mut problems = BTreeSet::new();
    for message in messages {
        let kind = kind_of(message);
        visit(message, "", &mut |path, type_name| {
            if path.is_empty() || known.added.contains(&path) {
                return;
            }
            match recorded.shapes.get(&(kind.clone(), path.to_owned())) {
                None => drop(problems.insert(format!("{kind}: {path} was not recorded"))),
                // A field that was always null may have any type.
                Some(types) if types == "null" || types.split(',').any(|t| t == type_name) => {}
                Some(types) => {
                    problems.insert(format!("{kind}: {path} is {type_name}, recorded {types}"));
                }
            }
        });
    }
    assert!(problems.is_empty(), "{name}: {problems:#?}");
    let mut said: Vec<String> = messages.iter().map(kind_of).collect();
    let mut order = recorded.order;
    for kinds in [&mut said, &mut order] {
        kinds.retain(|kind| !known.unsaid.contains(&kind.as_str()));
        kinds.dedup();
    }
    assert_eq!(said, order, "{name}");
}

fn visit(value: &Value, path: &str, see: &mut dyn FnMut(&str, &str)) {
    let type_name = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    see(path, type_name);
    match value {
        Value::Array(items) => {
            for item in items {
                visit(item, &format!("{path}[]"), see);
            }
        }
        Value::Object(fields) => {
            let names_are_free = path.ends_with("modelUsage");
            for (key, field) in fields {
                let key = if names_are_free { "*" } else { key };
                visit(field, &format!("{path}.{key}"), see);
            }
        }
        _ => {}
    }
}

fn word<'v>(value: &'v Value, path: &str) -> &'v str {
    value
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn kind_of_claude(message: &Value) -> String {
    let detail = match word(message, "/type") {
        "stream_event" => {
            let block = word(message, "/event/content_block/type");
            let delta = word(message, "/event/delta/type");
            let parts = [word(message, "/event/type"), block, delta];
            return parts
                .into_iter()
                .filter(|p| !p.is_empty())
                .collect::<Vec<_>>()
                .join("/");
        }
        "assistant" | "user" => word(message, "/message/content/0/type"),
        "system" | "result" => word(message, "/subtype"),
        "control_request" => word(message, "/request/subtype"),
        other => return other.to_owned(),
    };
    format!("{}/{detail}", word(message, "/type"))
}

fn kind_of_rpc(message: &Value) -> String {
    if let Some(method) = message.get("method").and_then(Value::as_str) {
        let item = word(message, "/params/item/type");
        let update = word(message, "/params/update/sessionUpdate");
        return format!("{method} {item}{update}").trim_end().to_owned();
    }
    let known = [
        "protocolVersion",
        "userAgent",
        "sessionId",
        "thread",
        "turn",
        "stopReason",
    ];
    let key = known
        .iter()
        .find(|key| message["result"].get(**key).is_some());
    format!("response {}", key.unwrap_or(&"empty"))
}

#[test]
fn claude() {
    let workplace = Workplace::new(SCRIPT);
    let mut agent = workplace.start(CLAUDE);
    let request = json!({"subtype": "initialize", "hooks": null});
    agent.send(&json!({"type": "control_request", "request_id": "i", "request": request}));
    let mut messages = vec![agent.read()];
    messages.extend(agent.claude_turn("Name the three primary colours."));
    agent.send_claude_prompt("Create the file hello.txt with a shell command.");
    messages.extend(agent.read_until(|message| message["type"] == "control_request"));
    let question = messages.last().unwrap();
    let allow = json!({"behavior": "allow", "updatedInput": question["request"]["input"]});
    let response = json!({"subtype": "success", "request_id": question["request_id"],
        "response": allow});
    agent.send(&json!({"type": "control_response", "response": response}));
    messages.extend(agent.read_until(|message| message["type"] == "result"));
    agent.send_claude_prompt("Please count to two hundred.");
    let is_delta = |message: &Value| word(message, "/event/delta/type") == "text_delta";
    messages.extend(agent.read_until(is_delta));
    let request = json!({"subtype": "interrupt"});
    agent.send(&json!({"type": "control_request", "request_id": "s", "request": request}));
    messages.extend(agent.read_until(|message| message["type"] == "result"));
    compare("claude", &messages, kind_of_claude, &Differences::default());
}

#[test]
fn codex() {
    let workplace = Workplace::new(SCRIPT);
    let mut agent = workplace.start(CODEX);
    let params = json!({"cwd": workplace.path(), "approvalPolicy": "on-request"});
    let thread = open_codex_thread(&mut agent, &params);
    let mut messages = Vec::new();
    let completes = |message: &Value| message["method"] == "turn/completed";
    agent.send_request(
        "turn/start",
        &codex_prompt(&thread, "Name the three primary colours."),
    );
    messages.extend(agent.read_until(completes));
    agent.send_request(
        "turn/start",
        &codex_prompt(&thread, "Create the file hello.txt."),
    );
    messages.extend(agent.read_until(|m| word(m, "/method").ends_with("requestApproval")));
    let id = &messages.last().unwrap()["id"];
    agent.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"decision": "accept"}}));
    messages.extend(agent.read_until(completes));
    agent.send_request("turn/start", &codex_prompt(&thread, "Please count."));
    messages.extend(agent.read_until(|m| m["method"] == "item/agentMessage/delta"));
    let turn = word(messages.last().unwrap(), "/params/turnId").to_owned();
    agent.send_request(
        "turn/interrupt",
        &json!({"threadId": thread, "turnId": turn}),
    );
    messages.extend(agent.read_until(completes));
    // The harness has read these three.
    let unsaid = [
        "response userAgent",
        "response thread",
        "thread/started",
        "configWarning",
        "warning",
        "remoteControl/status/changed",
        "account/rateLimits/updated",
        "thread/tokenUsage/updated",
        "thread/status/changed",
    ];
    compare(
        "codex",
        &messages,
        kind_of_rpc,
        &Differences {
            unsaid: &unsaid,
            added: &[],
        },
    );
}

/// Plays the conversation as a client of ACP.
fn play_acp(program: &[&str], asks: bool) -> Vec<Value> {
    let workplace = Workplace::new(SCRIPT);
    let mut agent = workplace.start(program);
    let session = open_acp_session(&mut agent, &workplace, &json!([]));
    let mut messages = Vec::new();
    let ends = |message: &Value| message["result"].get("stopReason").is_some();
    agent.send_request("session/prompt", &acp_prompt(&session, "Name the colours."));
    messages.extend(agent.read_until(ends));
    agent.send_request(
        "session/prompt",
        &acp_prompt(&session, "Create the file hello.txt."),
    );
    if asks {
        let is_question = |m: &Value| m["method"] == "session/request_permission";
        messages.extend(agent.read_until(is_question));
        let id = &messages.last().unwrap()["id"];
        let outcome = json!({"outcome": "selected", "optionId": "proceed_once"});
        agent.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}));
    }
    messages.extend(agent.read_until(ends));
    agent.send_request("session/prompt", &acp_prompt(&session, "Please count."));
    messages.extend(agent.read_until(|message| message["method"] == "session/update"));
    let params = json!({"sessionId": session});
    agent.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}));
    messages.extend(agent.read_until(ends));
    messages
}

#[test]
fn gemini() {
    let unsaid = [
        "response protocolVersion",
        "response sessionId",
        "session/update available_commands_update",
    ];
    // The recorded command printed its text, but the recorded update is empty.
    let content = ".params.update.content[]";
    let added = [
        content,
        ".params.update.content[].type",
        ".params.update.content[].content",
        ".params.update.content[].content.type",
        ".params.update.content[].content.text",
    ];
    let messages = play_acp(GEMINI, true);
    compare(
        "gemini",
        &messages,
        kind_of_rpc,
        &Differences {
            unsaid: &unsaid,
            added: &added,
        },
    );
}

#[test]
fn opencode() {
    let unsaid = [
        "response protocolVersion",
        "response sessionId",
        "session/update available_commands_update",
    ];
    // The recorded program was not set up to ask, and its model had no cache.
    let added = [".result.usage.cachedReadTokens", ".params.update.content"];
    let messages = play_acp(&[OPENCODE, &["--yolo"]].concat(), false);
    compare(
        "opencode",
        &messages,
        kind_of_rpc,
        &Differences {
            unsaid: &unsaid,
            added: &added,
        },
    );
}
