//! What the bridge must know about a message before it sends it.
//!
//! A write without a `request_id` gets one here. The ledger executes an id once, so a message whose
//! answer was lost can be sent again. Nothing else in a message is changed. A message that is not
//! strict JSON is sent as it is, and the server refuses it.

use anyhow::Result;
use serde_json::{Map, Value, json};
use turnkeep_ledger::json as strict;

use crate::data_dir::random_bytes;
use crate::http::Call;

/// The tools that change nothing.
const READING_TOOLS: &[&str] = &[
    "whoami",
    "ledger_search",
    "ledger_get",
    "capsule_get",
    "scene_pack_build",
    "ledger_read",
    "ledger_pocket",
    "store_contexts",
    "store_turns",
    "store_turn",
];
const WRITING_TOOL: &str = "ledger_write";
/// Where a message of the revision 2026-07-28 names its revision.
const REVISION_POINTER: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
/// Letters that a header may hold without being encoded.
const PLAIN_HEADER: std::ops::RangeInclusive<u8> = 0x21..=0x7e;

/// A message on its way to the server.
#[derive(Debug, Clone)]
pub(super) struct Message {
    bytes: Vec<u8>,
    /// None where the bytes are no JSON.
    value: Option<Value>,
}

impl Message {
    /// A line as a message; a write has an id of its own afterwards.
    pub(super) fn from_line(line: Vec<u8>) -> Result<Self> {
        let mut message = Self {
            value: strict::parse(&line).ok(),
            bytes: line,
        };
        if message.tool_name() == Some(WRITING_TOOL) && message.write_id().is_none() {
            message.give_write_id()?;
        }
        Ok(message)
    }

    fn give_write_id(&mut self) -> Result<()> {
        let Some(value) = &mut self.value else {
            return Ok(());
        };
        let Some(arguments) = arguments_of(value) else {
            return Ok(());
        };
        // The server refuses an id that is not a text, so it is left as it is.
        if arguments.get("request_id").is_none_or(Value::is_null) {
            let id = format!("bridge-{}", hex::encode(random_bytes::<32>()?));
            arguments.insert("request_id".to_owned(), id.into());
            self.bytes = value.to_string().into_bytes();
        }
        Ok(())
    }

    fn text_at(&self, pointer: &str) -> Option<&str> {
        self.value.as_ref()?.pointer(pointer)?.as_str()
    }

    /// The id of the request; none for a notification.
    pub(super) fn id(&self) -> Option<&Value> {
        self.value.as_ref()?.get("id")
    }

    /// The request that a notification cancels.
    pub(super) fn cancelled_request(&self) -> Option<&Value> {
        let is_cancellation = self.method() == Some("notifications/cancelled");
        self.value
            .as_ref()
            .filter(|_| is_cancellation)?
            .pointer("/params/requestId")
    }

    pub(super) fn method(&self) -> Option<&str> {
        self.text_at("/method")
    }

    fn tool_name(&self) -> Option<&str> {
        self.method().filter(|method| *method == "tools/call")?;
        self.text_at("/params/name")
    }

    /// The id by which a write is carried out once.
    pub(super) fn write_id(&self) -> Option<&str> {
        self.text_at("/params/arguments/request_id")
    }

    /// Whether it is answered by a stream that lasts.
    pub(super) fn opens_a_stream(&self) -> bool {
        self.method() == Some("subscriptions/listen")
    }

    /// Whether its answer may take long, so that other messages must not wait for it.
    pub(super) fn may_take_long(&self) -> bool {
        if self.opens_a_stream() {
            return true;
        }
        let value = self.value.as_ref();
        let wait = value.and_then(|value| value.pointer("/params/arguments/wait_seconds"));
        self.tool_name() == Some("ledger_read") && wait.is_some_and(|wait| *wait != 0)
    }

    /// Whether it may be sent again though it may have been carried out.
    pub(super) fn may_be_repeated(&self) -> bool {
        match (self.method(), self.tool_name()) {
            // A message without a method is a response, which changes nothing.
            (None, _) => self.value.is_some(),
            (Some("tools/call"), Some(WRITING_TOOL)) => self.write_id().is_some(),
            // A tool that this version does not know may write, so it is sent once.
            (Some("tools/call"), tool) => tool.is_some_and(|tool| READING_TOOLS.contains(&tool)),
            (Some(_), _) => true,
        }
    }

    /// The request that hands it over. The newest revision wants headers that say what is in the
    /// body.
    pub(super) fn to_call(&self) -> Call {
        let mut call = Call::post_bytes("/mcp", self.bytes.clone())
            .header("accept", "application/json, text/event-stream");
        let revision = self.text_at(REVISION_POINTER);
        let Some(revision) = revision.filter(|text| is_plain_header(text)) else {
            return call;
        };
        call = call.header("mcp-protocol-version", revision);
        if let Some(method) = self.method().filter(|method| is_plain_header(method)) {
            call = call.header("mcp-method", method);
        }
        // A tool and a prompt have a name, a resource has an address.
        let name = self.text_at("/params/name");
        match name.or_else(|| self.text_at("/params/uri")) {
            Some(name) => call.header("mcp-name", header_text(name)),
            None => call,
        }
    }
}

/// The arguments of a tool call, added if it has none.
fn arguments_of(message: &mut Value) -> Option<&mut Map<String, Value>> {
    let params = message.get_mut("params")?.as_object_mut()?;
    let arguments = params.entry("arguments").or_insert_with(|| json!({}));
    arguments.as_object_mut()
}

fn is_plain_header(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| PLAIN_HEADER.contains(&byte))
}

/// A text as the protocol puts it into a header.
fn header_text(text: &str) -> String {
    use base64::Engine as _;
    let is_marked = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_plain_header(text) && !is_marked {
        return text.to_owned();
    }
    format!(
        "=?base64?{}?=",
        base64::prelude::BASE64_STANDARD.encode(text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &Value) -> Message {
        let params = json!({ "name": name, "arguments": arguments });
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        Message::from_line(message.to_string().into_bytes()).unwrap()
    }

    #[test]
    fn every_write_has_an_id_of_its_own() {
        let given = call("ledger_write", &json!({ "text": "x", "request_id": "r-1" }));
        assert_eq!(given.write_id(), Some("r-1"));
        for arguments in [
            json!({ "text": "x" }),
            json!({ "text": "x", "request_id": null }),
        ] {
            let (one, other) = (
                call("ledger_write", &arguments),
                call("ledger_write", &arguments),
            );
            let sent: Value = serde_json::from_slice(&one.bytes).unwrap();
            assert_eq!(
                sent.pointer("/params/arguments/request_id")
                    .and_then(Value::as_str),
                one.write_id()
            );
            assert_eq!(sent.pointer("/params/arguments/text"), Some(&json!("x")));
            assert!(one.write_id().is_some() && one.write_id() != other.write_id());
        }
        assert_eq!(call("ledger_read", &json!({})).write_id(), None);
        // What the server will refuse is not touched.
        assert_eq!(
            call("ledger_write", &json!({ "request_id": 7 })).write_id(),
            None
        );
        let twice =
            br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"ledger_write"}}"#;
        assert_eq!(Message::from_line(twice.to_vec()).unwrap().bytes, twice);
    }

    #[test]
    fn only_a_tool_that_is_not_known_to_read_is_never_sent_twice() {
        let read = |value: &Value| Message::from_line(value.to_string().into_bytes()).unwrap();
        for (message, expect) in [
            (
                read(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" })),
                true,
            ),
            (
                read(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })),
                true,
            ),
            (
                read(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })),
                true,
            ),
            (call("ledger_search", &json!({ "query": "x" })), true),
            (
                call("ledger_write", &json!({ "text": "x", "request_id": "r-1" })),
                true,
            ),
            (call("ledger_write", &json!({ "text": "x" })), true),
            (
                call("ledger_write", &json!({ "text": "x", "request_id": 7 })),
                false,
            ),
            (call("some_other_tool", &json!({})), false),
            (read(&json!({ "method": "tools/call" })), false),
            (Message::from_line(b"{".to_vec()).unwrap(), false),
        ] {
            assert_eq!(message.may_be_repeated(), expect, "{message:?}");
        }
    }

    #[test]
    fn only_what_waits_by_itself_may_take_long() {
        assert!(call("ledger_read", &json!({ "wait_seconds": 5 })).may_take_long());
        for arguments in [json!({}), json!({ "wait_seconds": 0 })] {
            assert!(
                !call("ledger_read", &arguments).may_take_long(),
                "{arguments}"
            );
        }
        assert!(!call("ledger_write", &json!({ "text": "x", "wait_seconds": 5 })).may_take_long());
    }

    #[test]
    fn names_travel_in_headers_as_the_protocol_writes_them() {
        for (text, header) in [
            ("ledger_read", "ledger_read"),
            ("wörld", "=?base64?d8O2cmxk?="),
            (" padded", "=?base64?IHBhZGRlZA==?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            assert_eq!(header_text(text), header);
        }
    }
}
