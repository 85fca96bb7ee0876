//! The protocols: how each real program would say what the player does.
//!
//! A [`Protocol`] translates in both directions and decides nothing about the turn. It writes to an
//! [`Outbox`], which the runner empties onto standard output. It never panics on what the other side
//! sends: a request that it does not know gets the protocol's error.

mod acp;
mod app_server;
mod json_rpc;
mod jsonl;
mod raw;
mod servers;
mod stream_json;
mod terminal;

use std::path::Path;

use serde_json::Value;

use crate::arguments::{Arguments, ProtocolName};
use crate::mcp::McpServer;
use crate::player::{Decision, Ending, Show};
use crate::script::{LimitReset, Settings};
use crate::tool::{ToolAction, ToolOutcome, ToolUse};

/// How standard input is cut before [`Protocol::receive`] gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Lines,
    /// As it arrives, for a terminal.
    Bytes,
    /// All of it at once, when it has ended.
    Whole,
}

/// What the other side wants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    Prompt(String),
    /// A text for the turn in progress.
    Steer(String),
    Interrupt,
    Decision(Decision),
    /// The answer to [`Protocol::send_call`].
    CallAnswer(ToolOutcome),
    /// Leave the program.
    Exit,
}

/// What became of a permission request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Asked {
    /// It was sent; the decision will arrive.
    Sent,
    /// The settings of the session answer it.
    Decided(Decision),
}

/// One program's side of the conversation.
pub(crate) trait Protocol {
    fn framing(&self) -> Framing {
        Framing::Lines
    }

    /// Says what the program says before anything arrives.
    fn start(&mut self, _out: &mut Outbox) {}

    /// Takes one line or one read of the input.
    fn receive(&mut self, input: &[u8], out: &mut Outbox) -> Vec<Incoming>;

    fn begin_turn(&mut self, prompt: &str, out: &mut Outbox);

    fn show(&mut self, show: &Show, out: &mut Outbox);

    fn ask(&mut self, tool: &ToolUse, reason: &str, out: &mut Outbox) -> Asked;

    fn end_turn(&mut self, ending: &Ending, out: &mut Outbox);

    /// The server whose tools a `call` uses.
    fn mcp_server(&self) -> Option<&McpServer> {
        None
    }

    /// A `call` travels in the protocol itself, by [`Protocol::send_call`].
    fn carries_calls(&self) -> bool {
        false
    }

    fn send_call(&mut self, _name: &str, _args: &Value, _out: &mut Outbox) {}

    /// What the process exits with when nothing else decides it.
    fn exit_code(&self) -> u8 {
        0
    }

    /// The directory that the other side named.
    fn working_directory(&self) -> Option<&Path> {
        None
    }
}

/// Makes the protocol that the command line asks for.
pub(crate) fn open_protocol(
    arguments: &Arguments,
    settings: &Settings,
    out: &mut Outbox,
) -> Result<Box<dyn Protocol>, String> {
    Ok(match arguments.protocol {
        ProtocolName::StreamJson => Box::new(stream_json::StreamJson::open(
            &arguments.program,
            settings,
            out,
        )?),
        ProtocolName::AppServer => {
            Box::new(app_server::AppServer::open(&arguments.program, settings)?)
        }
        ProtocolName::Acp => Box::new(acp::Acp::open(&arguments.program, settings)),
        ProtocolName::Jsonl => Box::new(jsonl::Jsonl::open(&arguments.program, settings, out)),
        ProtocolName::Raw => Box::new(raw::Raw::default()),
        ProtocolName::Pty => Box::new(terminal::Terminal::default()),
    })
}

/// What waits to be written, and what every message needs: the time and fresh ids.
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    /// Milliseconds since 1970.
    pub(crate) now_ms: u64,
    seed: u64,
    ids_made: u64,
}

impl Outbox {
    /// `seed` must differ between processes: it makes their ids differ.
    pub(crate) fn new(seed: u64) -> Outbox {
        Outbox {
            bytes: Vec::new(),
            now_ms: 0,
            seed,
            ids_made: 0,
        }
    }

    pub(crate) fn push_json(&mut self, message: &Value) {
        self.bytes.extend_from_slice(message.to_string().as_bytes());
        self.bytes.push(b'\n');
    }

    pub(crate) fn push_text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn now_seconds(&self) -> u64 {
        self.now_ms / 1000
    }

    /// An id in the form of a UUID.
    pub(crate) fn new_id(&mut self) -> String {
        self.ids_made += 1;
        let mut material = self.seed.to_le_bytes().to_vec();
        material.extend_from_slice(&self.ids_made.to_le_bytes());
        let hex = blake3::hash(&material).to_hex();
        let part = |range: std::ops::Range<usize>| hex.as_str().get(range).unwrap_or_default();
        // The 4 is the version of a random UUID, the 8 its variant: some readers check them.
        format!(
            "{}-{}-4{}-8{}-{}",
            part(0..8),
            part(8..12),
            part(12..15),
            part(15..18),
            part(18..30)
        )
    }
}

/// The text of a prompt: a string, or the text blocks of a list.
fn read_prompt_text(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts = blocks
                .iter()
                .filter_map(|block| block.get("text")?.as_str());
            let texts: Vec<&str> = texts.collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        _ => None,
    }
}

fn text_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// Adds the fields of one JSON object to another.
fn add_fields(object: &mut Value, more: Value) {
    if let (Value::Object(fields), Value::Object(more)) = (object, more) {
        fields.extend(more);
    }
}

/// One line that says what a tool does.
fn describe(action: &ToolAction) -> String {
    match action {
        ToolAction::Run { command } => command.clone(),
        ToolAction::Write { path, .. } => format!("Write {path}"),
        ToolAction::Append { path, .. } => format!("Append to {path}"),
        ToolAction::Delete { path } => format!("Delete {path}"),
        ToolAction::Call { name, .. } | ToolAction::Show { name, .. } => name.clone(),
    }
}

/// When a rate limit ends, in seconds since 1970.
fn reset_time(reset: LimitReset, out: &Outbox) -> Option<u64> {
    match reset {
        LimitReset::Unknown => None,
        LimitReset::InSeconds(seconds) => Some(out.now_seconds().saturating_add(seconds)),
        LimitReset::At(at) => Some(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ids_have_the_form_of_a_uuid_and_differ() {
        let mut one = Outbox::new(1);
        let mut other = Outbox::new(2);
        let ids = [one.new_id(), one.new_id(), other.new_id()];
        for id in &ids {
            let lengths: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
        }
        assert!(ids[0] != ids[1] && ids[0] != ids[2]);
    }

    /// Every message that is like `message`, but has a value of another type somewhere.
    fn spoil(message: &Value) -> Vec<Value> {
        let strange = [
            json!(null),
            json!(-1),
            json!(""),
            json!([]),
            json!({}),
            json!([[{}]]),
        ];
        let mut spoiled = strange.to_vec();
        let keys: Vec<String> = match message {
            Value::Object(fields) => fields.keys().cloned().collect(),
            _ => Vec::new(),
        };
        for key in keys {
            for part in spoil(&message[&key]) {
                let mut copy = message.clone();
                copy[&key] = part;
                spoiled.push(copy);
            }
        }
        spoiled
    }

    fn open_named(name: ProtocolName, out: &mut Outbox) -> Box<dyn Protocol> {
        let arguments = Arguments {
            protocol: name,
            script: "s".into(),
            log: None,
            state: None,
            program: crate::arguments::ProgramArguments::default(),
        };
        let script = crate::script::parse_script("[[turn]]").unwrap();
        open_protocol(&arguments, &script.settings, out).unwrap()
    }

    #[test]
    fn strange_messages_are_survived() {
        let rpc =
            |method: &str, params: Value| json!({"id": 1, "method": method, "params": params});
        let input = json!([{"type": "text", "text": "p"}]);
        let messages = [
            json!({"type": "user", "message": {"role": "user", "content": input}}),
            json!({"type": "control_request", "request_id": "r", "request": {"subtype": "x"}}),
            json!({"type": "control_response", "response": {"request_id": "r", "response": {}}}),
            json!({"type": "start", "cwd": "/", "sessionId": "s", "permissions": "skip"}),
            json!({"type": "approval.resolved", "approvalId": "a", "resolution": {}}),
            json!({"type": "tool.results", "results": [], "malformed": []}),
            rpc("initialize", json!({"clientInfo": {"name": "n"}})),
            rpc(
                "thread/start",
                json!({"cwd": "/", "config": {"mcp_servers": {"s": {"url": "u"}}}}),
            ),
            rpc("turn/start", json!({"threadId": "t", "input": input})),
            rpc(
                "session/new",
                json!({"cwd": "/", "mcpServers": [{"name": "n", "url": "u"}]}),
            ),
            rpc("session/prompt", json!({"sessionId": "s", "prompt": input})),
            json!({"id": 0, "result": {"decision": "accept", "outcome": {"outcome": "selected"}}}),
        ];
        let names = [
            ProtocolName::StreamJson,
            ProtocolName::AppServer,
            ProtocolName::Acp,
            ProtocolName::Jsonl,
        ];
        for name in names {
            let mut out = Outbox::new(1);
            let mut protocol = open_named(name, &mut out);
            for message in messages.iter().flat_map(spoil) {
                protocol.receive(message.to_string().as_bytes(), &mut out);
            }
            // Whatever it said is still a sequence of JSON lines.
            for line in out.take_bytes().split(|byte| *byte == b'\n') {
                assert!(line.is_empty() || serde_json::from_slice::<Value>(line).is_ok());
            }
        }
    }

    #[test]
    fn prompts_are_texts_or_blocks() {
        let blocks = json!([{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}]);
        assert_eq!(read_prompt_text(&blocks).as_deref(), Some("a\nb"));
        assert_eq!(read_prompt_text(&json!("a")).as_deref(), Some("a"));
        assert_eq!(read_prompt_text(&json!([{"type": "image"}])), None);
        assert_eq!(read_prompt_text(&json!(7)), None);
    }
}
