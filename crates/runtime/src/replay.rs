//! Calls that an agent makes again because it reads the same inputs again.
//!
//! Worked example: a turn reads a message, spawns a node and is lost with the server. The message
//! waits again. The next turn reads it, and its agent spawns the node once more. The call is answered
//! with the answer of the first one, and nothing is made.
//!
//! The n-th call of a tool with certain arguments repeats the n-th call of that tool with those
//! arguments in the earlier turns. A turn that completes ends the memory, and so does one that reads
//! none of the inputs. An agent that is asked to continue repeats nothing: its session remembers
//! what it has done.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use turnkeep_types::BlobHash;

use crate::ids::{EnvelopeId, ToolId};
use crate::input::{Input, InputId};
use crate::tool::{ToolCall, ToolOutcome};

/// The tools whose calls make something. `complete_run` is not among them: its answer depends on what
/// the run is now.
const TOOLS: [&str; 4] = ["spawn_node", "create_edge", "send_handoff", "ask_user"];
/// The argument by which a client recognizes its request. It differs from attempt to attempt.
const REQUEST_ID: &str = "request_id";
/// So many calls are remembered. Those behind them would be made again.
const CALLS_MAX: usize = 256;

/// What the turns that read some inputs did before they were cut off.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallMemory {
    inputs: BTreeSet<InputId>,
    calls: Vec<RememberedCall>,
}

/// A call of a tool of the server.
#[derive(Debug, Clone, PartialEq)]
struct RememberedCall {
    tool: ToolId,
    signature: BlobHash,
    /// The result as text, once the call has succeeded.
    answer: Option<String>,
    /// The envelope that waits at a gate, or waited when the turn ended.
    held: Option<EnvelopeId>,
    /// Whether the open turn has made the call.
    is_made: bool,
}

impl RememberedCall {
    /// What a repeated call is answered with; `None` if the call made nothing.
    fn answer(&self) -> Option<Value> {
        let held = self.held;
        let pending = held.map(|id| json!({"payloadId": id.to_string(), "pending": true}));
        let text = self.answer.as_ref();
        text.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())))
            .or(pending)
    }
}

impl CallMemory {
    /// Begins a turn that reads these inputs. Returns whether it repeats or continues an earlier turn.
    pub(crate) fn begin_turn(&mut self, read: &[Input]) -> bool {
        let continues = read.iter().any(Input::asks_to_continue);
        let is_task = |input: &&Input| !input.asks_to_continue();
        let ids: BTreeSet<InputId> = read.iter().filter(is_task).map(Input::id).collect();
        let repeats = !self.inputs.is_disjoint(&ids);
        // The agent begins its work anew, so each remembered call may be repeated once more.
        if repeats {
            for call in &mut self.calls {
                call.is_made = false;
            }
        } else if !continues {
            *self = Self::default();
        }
        self.inputs.extend(ids);
        repeats || continues
    }

    /// Forgets everything: the inputs are done.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }

    /// The answer of the earlier call that this one would repeat.
    pub(crate) fn find_answer(&self, name: &str, args: &Value) -> Option<Value> {
        self.calls.get(self.find_repeated(name, args)?)?.answer()
    }

    fn find_repeated(&self, name: &str, args: &Value) -> Option<usize> {
        let signature = sign(name, args)?;
        let mut calls = self.calls.iter();
        calls.position(|call| {
            !call.is_made && call.signature == signature && call.answer().is_some()
        })
    }

    /// Notes a call of the open turn.
    pub(crate) fn note_call(&mut self, call: &ToolCall) {
        // A tool of the program may have the same name.
        if call.provider_id.is_some() {
            return;
        }
        if let Some(repeated) = self.find_repeated(&call.name, &call.args) {
            if let Some(repeated) = self.calls.get_mut(repeated) {
                repeated.is_made = true;
            }
            return;
        }
        let Some(signature) = sign(&call.name, &call.args) else {
            return;
        };
        if self.calls.len() < CALLS_MAX {
            self.calls.push(RememberedCall {
                tool: call.id,
                signature,
                answer: None,
                held: None,
                is_made: true,
            });
        }
    }

    /// Notes that an envelope of a call waits at a gate.
    pub(crate) fn note_held(&mut self, tool: ToolId, envelope: EnvelopeId) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.tool == tool) {
            call.held = Some(envelope);
        }
    }

    /// Notes that an envelope did not pass its gate, so that nothing was sent.
    pub(crate) fn note_refused(&mut self, envelope: EnvelopeId) {
        self.calls.retain(|call| call.held != Some(envelope));
    }

    /// Notes the result of a call. One that failed made nothing, unless its envelope still waits.
    pub(crate) fn note_result(&mut self, tool: ToolId, outcome: &ToolOutcome) {
        if outcome.ok {
            if let Some(call) = self.calls.iter_mut().find(|call| call.tool == tool) {
                call.answer.clone_from(&outcome.output);
            }
        } else {
            self.calls
                .retain(|call| call.tool != tool || call.held.is_some());
        }
    }
}

/// The hash of a call that makes something. The order of the arguments does not count.
fn sign(name: &str, args: &Value) -> Option<BlobHash> {
    if !TOOLS.contains(&name) {
        return None;
    }
    let mut text = String::from(name);
    match args {
        Value::Object(fields) => {
            // An agent that repeats its work makes up another request id.
            let kept = fields.iter().filter(|(name, _)| *name != REQUEST_ID);
            let kept: Value = Value::Object(kept.map(|(k, v)| (k.clone(), v.clone())).collect());
            push_sorted(&kept, &mut text);
        }
        other => push_sorted(other, &mut text),
    }
    Some(BlobHash::of(text.as_bytes()))
}

/// Writes JSON with the fields of each object in the order of their names.
fn push_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in fields {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                push_sorted(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                push_sorted(item, text);
                text.push(',');
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}
