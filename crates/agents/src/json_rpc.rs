//! JSON-RPC on lines, as Codex and the Agent Client Protocol use it: both sides call each other.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::field::{parse_object, text_at};

/// JSON-RPC's code for a method that the other side does not have.
const METHOD_NOT_FOUND: i32 = -32601;
/// Our unanswered calls. Beyond this number the oldest are forgotten.
const OPEN_CALLS_MAX: usize = 256;

/// A message of the program.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// The program calls us and waits.
    Call {
        id: Value,
        method: String,
        params: Value,
    },
    /// The program tells us something.
    Notification { method: String, params: Value },
    /// The program answers one of our calls.
    Response {
        id: Value,
        outcome: Result<Value, Value>,
    },
}

/// Parses a line. A line that is no message is absent.
pub(crate) fn parse_message(line: &[u8]) -> Option<Message> {
    let mut value = parse_object(line)?;
    let id = value.pointer("/id").filter(|id| !id.is_null()).cloned();
    let method = text_at(&value, "/method").map(str::to_owned);
    let mut take = |key: &str| value.get_mut(key).map(Value::take);
    match (id, method) {
        (Some(id), Some(method)) => Some(Message::Call {
            id,
            method,
            params: take("params").unwrap_or_default(),
        }),
        (None, Some(method)) => Some(Message::Notification {
            method,
            params: take("params").unwrap_or_default(),
        }),
        (Some(id), None) => {
            // Some programs send both fields, one of them null.
            let error = take("error").filter(|error| !error.is_null());
            let outcome = match error {
                Some(error) => Err(error),
                None => Ok(take("result").unwrap_or_default()),
            };
            Some(Message::Response { id, outcome })
        }
        (None, None) => None,
    }
}

/// Our calls that the program has not answered. `K` says what a call was for.
#[derive(Debug)]
pub(crate) struct OpenCalls<K> {
    last_id: u64,
    open: BTreeMap<u64, K>,
}

impl<K> OpenCalls<K> {
    pub(crate) fn new() -> Self {
        Self {
            last_id: 0,
            open: BTreeMap::new(),
        }
    }

    /// Makes the message of a call.
    pub(crate) fn call(&mut self, purpose: K, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        // A program that never answers must not make us remember everything.
        if self.open.len() >= OPEN_CALLS_MAX {
            self.open.pop_first();
        }
        self.open.insert(self.last_id, purpose);
        json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
    }

    /// The purpose of the call that a response answers. A second response to it is unknown.
    pub(crate) fn take(&mut self, id: &Value) -> Option<K> {
        self.open.remove(&id.as_u64()?)
    }
}

pub(crate) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

pub(crate) fn response(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(crate) fn unknown_method(id: &Value, method: &str) -> Value {
    let message = format!("this client has no method {method}");
    let error = json!({"code": METHOD_NOT_FOUND, "message": message});
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

/// The text by which the caller names a question: JSON-RPC ids are numbers or strings, and `1` and
/// `"1"` differ.
pub(crate) fn id_text(id: &Value) -> String {
    id.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_by_their_fields() {
        let rows = [
            (r#"{"id":1,"method":"m"}"#, "call"),
            (r#"{"id":"a","method":"m","params":[]}"#, "call"),
            (r#"{"method":"m"}"#, "notification"),
            (r#"{"id":null,"method":"m"}"#, "notification"),
            (r#"{"id":1,"result":null}"#, "ok"),
            (r#"{"id":1,"error":null}"#, "ok"),
            (r#"{"id":1,"error":{"code":1}}"#, "error"),
            (r#"{"id":1,"method":5}"#, "ok"),
            (r#"{"result":1}"#, "none"),
            ("[]", "none"),
            ("{", "none"),
            ("", "none"),
        ];
        for (line, expect) in rows {
            let kind = match parse_message(line.as_bytes()) {
                Some(Message::Call { .. }) => "call",
                Some(Message::Notification { .. }) => "notification",
                Some(Message::Response { outcome: Ok(_), .. }) => "ok",
                Some(Message::Response {
                    outcome: Err(_), ..
                }) => "error",
                None => "none",
            };
            assert_eq!(kind, expect, "{line}");
        }
    }

    #[test]
    fn a_response_is_taken_once() {
        let mut calls = OpenCalls::new();
        let message = calls.call("greet", "initialize", &json!({}));
        let id = message.pointer("/id").unwrap().clone();
        assert_eq!(calls.take(&json!("1")), None);
        assert_eq!(calls.take(&json!(-1)), None);
        assert_eq!(calls.take(&id), Some("greet"));
        assert_eq!(calls.take(&id), None);
    }

    #[test]
    fn unanswered_calls_are_bounded() {
        let mut calls = OpenCalls::new();
        for n in 0..OPEN_CALLS_MAX + 10 {
            calls.call(n, "m", &json!({}));
        }
        assert_eq!(calls.open.len(), OPEN_CALLS_MAX);
        assert_eq!(calls.take(&json!(1)), None);
    }
}
