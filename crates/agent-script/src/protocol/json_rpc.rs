//! JSON-RPC messages, as both protocols that use them read them.

use serde_json::{Value, json};

use super::Outbox;

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL_ERROR: i64 = -32603;

/// A message from the other side.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Response {
        id: Value,
        result: Option<Value>,
    },
    Broken,
}

pub(super) fn read_message(line: &[u8]) -> Message {
    let Ok(mut message) = serde_json::from_slice::<Value>(line) else {
        return Message::Broken;
    };
    let params = message
        .get_mut("params")
        .map(Value::take)
        .unwrap_or_default();
    // A null id counts as none: nothing could be answered to it.
    let id = message
        .get("id")
        .cloned()
        .filter(|id| id.is_number() || id.is_string());
    let method = message
        .get("method")
        .and_then(Value::as_str)
        .map(str::to_owned);
    match (id, method) {
        (Some(id), Some(method)) => Message::Request { id, method, params },
        (None, Some(method)) => Message::Notification { method, params },
        (Some(id), None) => Message::Response {
            id,
            result: message.get("result").cloned(),
        },
        (None, None) => Message::Broken,
    }
}

/// Writes messages with or without the header `"jsonrpc": "2.0"`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writer {
    pub(super) has_header: bool,
}

/// What a failed request is answered with.
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
        }
    }
}

impl Writer {
    pub(super) fn respond(self, id: &Value, result: &Value, out: &mut Outbox) {
        self.push(json!({"id": id, "result": result}), out);
    }

    pub(super) fn fail(self, id: &Value, failure: &Failure, out: &mut Outbox) {
        let Failure { code, message } = failure;
        self.push(
            json!({"id": id, "error": {"code": code, "message": message}}),
            out,
        );
    }

    pub(super) fn request(self, id: u64, method: &str, params: &Value, out: &mut Outbox) {
        self.push(json!({"id": id, "method": method, "params": params}), out);
    }

    pub(super) fn notify(self, method: &str, params: &Value, out: &mut Outbox) {
        self.push(json!({"method": method, "params": params}), out);
    }

    fn push(self, message: Value, out: &mut Outbox) {
        let Value::Object(fields) = message else {
            return;
        };
        let mut whole = serde_json::Map::new();
        if self.has_header {
            whole.insert("jsonrpc".to_owned(), Value::from("2.0"));
        }
        whole.extend(fields);
        out.push_json(&Value::Object(whole));
    }
}
