//! The assistant's messages in Claude's stream: whole, and in parts.
//!
//! A message is a list of blocks. Each block is sent whole as an `assistant` line of its own; the
//! lines of one message share its id. With partial messages, every step is an event before that:
//!
//! ```text
//! message_start
//!   content_block_start, content_block_delta…, [assistant], content_block_stop
//!   content_block_start, …
//! message_delta (why it ends), message_stop
//! ```

use serde_json::{Value, json};

use crate::protocol::{Outbox, add_fields};
use crate::script::Usage;

/// Writes messages, one at a time.
pub(super) struct MessageWriter {
    pub(super) session: String,
    pub(super) model: String,
    pub(super) streams_parts: bool,
    message: Option<Message>,
    /// The last message has had its `message_delta` and not its `message_stop`.
    awaits_stop: bool,
    /// The text of the last message that had any.
    last_text: String,
    messages: u64,
}

struct Message {
    id: String,
    /// How many blocks have ended, which is also the index of the open one.
    blocks: u64,
    open: Option<Block>,
    text: String,
}

struct Block {
    kind: BlockKind,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Text,
    Thinking,
}

/// A tool as a message shows it.
pub(super) struct ToolBlock {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
}

/// What a turn's messages came to.
pub(super) struct Summary {
    pub(super) last_text: String,
    pub(super) messages: u64,
}

impl MessageWriter {
    pub(super) fn new(session: String, model: String, streams_parts: bool) -> MessageWriter {
        MessageWriter {
            session,
            model,
            streams_parts,
            message: None,
            awaits_stop: false,
            last_text: String::new(),
            messages: 0,
        }
    }

    pub(super) fn has_open_message(&self) -> bool {
        self.message.is_some()
    }

    /// Forgets the turn's messages and says what they came to.
    pub(super) fn take_summary(&mut self) -> Summary {
        self.message = None;
        Summary {
            last_text: std::mem::take(&mut self.last_text),
            messages: std::mem::take(&mut self.messages),
        }
    }

    /// Adds a piece of text to a block of this kind.
    pub(super) fn add_text(&mut self, kind: BlockKind, text: &str, out: &mut Outbox) {
        self.open_block(kind, out);
        let Some(message) = &mut self.message else {
            return;
        };
        let index = message.blocks;
        if kind == BlockKind::Text {
            message.text.push_str(text);
        }
        if let Some(block) = &mut message.open {
            block.text.push_str(text);
        }
        let delta = match kind {
            BlockKind::Text => json!({"type": "text_delta", "text": text}),
            BlockKind::Thinking => json!({"type": "thinking_delta", "thinking": text}),
        };
        self.push_delta(index, &delta, out);
    }

    /// Adds a tool, which ends the message: its result begins another one. The message's last event
    /// is left to [`Self::stop_message`], because a permission request comes before it.
    pub(super) fn add_tool(&mut self, tool: &ToolBlock, usage: Usage, out: &mut Outbox) {
        self.open_message(out);
        self.close_block(out);
        let Some(message) = &mut self.message else {
            return;
        };
        let id = message.id.clone();
        let index = message.blocks;
        message.blocks += 1;
        let ToolBlock {
            id: tool_id,
            name,
            input,
        } = tool;
        // As the program streams a tool: it begins with empty arguments, one delta brings them as
        // text, and the whole block repeats them as JSON.
        let mut block = json!({"type": "tool_use", "id": tool_id, "name": name, "input": {}});
        self.push_block_start(index, &block, out);
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        self.push_delta(index, &delta, out);
        add_fields(&mut block, json!({"input": input}));
        self.push_block(&id, &block, out);
        self.push_block_stop(index, out);
        self.finish_message(Some("tool_use"), usage, out);
    }

    pub(super) fn close_message(&mut self, stop: Option<&str>, usage: Usage, out: &mut Outbox) {
        self.close_block(out);
        self.finish_message(stop, usage, out);
        self.stop_message(out);
    }

    /// Ends the message in the middle of a block. `note` comes before the block's end, as recorded.
    pub(super) fn cut_message(&mut self, note: &Value, usage: Usage, out: &mut Outbox) {
        let open = self.send_block(out);
        self.push_record("user", note, out);
        if let Some(index) = open {
            self.push_block_stop(index, out);
        }
        self.close_message(None, usage, out);
    }

    pub(super) fn stop_message(&mut self, out: &mut Outbox) {
        if std::mem::take(&mut self.awaits_stop) {
            self.push_event(&json!({"type": "message_stop"}), out);
        }
    }

    /// A line of the transcript: a message of the assistant, or a result that it reads.
    pub(super) fn push_record(&self, kind: &str, message: &Value, out: &mut Outbox) {
        self.push_line(
            &json!({"type": kind, "message": message, "parent_tool_use_id": null}),
            out,
        );
    }

    /// Any line, with the session and an id of its own.
    pub(super) fn push_line(&self, line: &Value, out: &mut Outbox) {
        let mut line = line.clone();
        add_fields(
            &mut line,
            json!({"session_id": self.session, "uuid": out.new_id()}),
        );
        out.push_json(&line);
    }

    pub(super) fn message_json(&self, id: &str, content: &Value) -> Value {
        json!({
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage_json(Usage::default()),
        })
    }

    /// Begins a message unless one is open.
    fn open_message(&mut self, out: &mut Outbox) {
        if self.message.is_some() {
            return;
        }
        self.messages += 1;
        let id = format!("msg_{}", out.new_id());
        if self.streams_parts {
            let status = json!({"type": "system", "subtype": "status", "status": "requesting"});
            self.push_line(&status, out);
        }
        let message = self.message_json(&id, &json!([]));
        self.push_event(&json!({"type": "message_start", "message": message}), out);
        self.message = Some(Message {
            id,
            blocks: 0,
            open: None,
            text: String::new(),
        });
    }

    fn open_block(&mut self, kind: BlockKind, out: &mut Outbox) {
        self.open_message(out);
        let open = self
            .message
            .as_ref()
            .and_then(|message| message.open.as_ref());
        if open.is_some_and(|block| block.kind == kind) {
            return;
        }
        self.close_block(out);
        let Some(message) = &mut self.message else {
            return;
        };
        message.open = Some(Block {
            kind,
            text: String::new(),
        });
        let index = message.blocks;
        self.push_block_start(index, &block_json(kind, ""), out);
    }

    /// Sends the open block whole, and ends it.
    fn close_block(&mut self, out: &mut Outbox) {
        if let Some(index) = self.send_block(out) {
            self.push_block_stop(index, out);
        }
    }

    /// Sends the open block whole. Returns its index.
    fn send_block(&mut self, out: &mut Outbox) -> Option<u64> {
        let message = self.message.as_mut()?;
        let block = message.open.take()?;
        let id = message.id.clone();
        let index = message.blocks;
        message.blocks += 1;
        self.push_block(&id, &block_json(block.kind, &block.text), out);
        Some(index)
    }

    /// Says why the message ends.
    fn finish_message(&mut self, stop: Option<&str>, usage: Usage, out: &mut Outbox) {
        let Some(message) = self.message.take() else {
            return;
        };
        if !message.text.is_empty() {
            self.last_text = message.text;
        }
        self.awaits_stop = true;
        let delta = json!({"stop_reason": stop, "stop_sequence": null});
        let usage = usage_json(usage);
        self.push_event(
            &json!({"type": "message_delta", "delta": delta, "usage": usage}),
            out,
        );
    }

    fn push_block(&self, message_id: &str, block: &Value, out: &mut Outbox) {
        let message = self.message_json(message_id, &json!([block]));
        self.push_record("assistant", &message, out);
    }

    fn push_block_start(&self, index: u64, block: &Value, out: &mut Outbox) {
        let event = json!({"type": "content_block_start", "index": index, "content_block": block});
        self.push_event(&event, out);
    }

    fn push_delta(&self, index: u64, delta: &Value, out: &mut Outbox) {
        let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
        self.push_event(&event, out);
    }

    fn push_block_stop(&self, index: u64, out: &mut Outbox) {
        self.push_event(&json!({"type": "content_block_stop", "index": index}), out);
    }

    fn push_event(&self, event: &Value, out: &mut Outbox) {
        if self.streams_parts {
            let line = json!({"type": "stream_event", "event": event, "parent_tool_use_id": null});
            self.push_line(&line, out);
        }
    }
}

fn block_json(kind: BlockKind, text: &str) -> Value {
    match kind {
        BlockKind::Text => json!({"type": "text", "text": text}),
        BlockKind::Thinking => json!({"type": "thinking", "thinking": text, "signature": ""}),
    }
}

/// `input_tokens` does not count cached tokens.
pub(super) fn usage_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    })
}
