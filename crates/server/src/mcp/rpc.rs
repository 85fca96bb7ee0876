//! JSON-RPC 2.0, as far as the protocol uses it: one message at a time, parsed strictly.

use serde_json::{Value, json};
use turnkeep_ledger::json as strict;

/// What came.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// Something that wants an answer.
    Request {
        /// A text or a number, echoed.
        id: Value,
        /// What is asked.
        method: String,
        /// With what.
        params: Value,
    },
    /// Something that wants none: a notification, or an answer to a question that was never asked.
    Notification,
}

/// A failed request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    code: i32,
    message: String,
}

impl Failure {
    fn unreadable(message: String) -> Self {
        Self { code: -32700, message }
    }

    fn no_message(message: &str) -> Self {
        Self { code: -32600, message: message.to_owned() }
    }

    /// There is no such method.
    pub(super) fn no_such_method(method: &str) -> Self {
        Self { code: -32601, message: format!("there is no method `{method}`") }
    }

    /// The parameters are not what the method takes.
    pub(super) fn bad_params(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into() }
    }
}

/// Reads one message.
pub(super) fn read(bytes: &[u8]) -> Result<Incoming, Failure> {
    let mut message = strict::parse(bytes)
        .map_err(|fault| Failure::unreadable(format!("{} {}", fault.path, fault.message)))?;
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Failure::no_message("a message is one JSON-RPC 2.0 object"));
    }
    let id = message.get_mut("id").map(Value::take);
    let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
    let params = message.get_mut("params").map(Value::take).unwrap_or_default();
    match (id, method) {
        (Some(id @ (Value::String(_) | Value::Number(_))), Some(method)) => {
            Ok(Incoming::Request { id, method, params })
        }
        (Some(_), Some(_)) => Err(Failure::no_message("the id of a request is a text or a number")),
        (None, Some(_)) | (Some(_), None) => Ok(Incoming::Notification),
        (None, None) => Err(Failure::no_message("a message has a method, an id, or both")),
    }
}

/// The answer to a request.
pub(super) fn write(id: &Value, answer: Result<Value, Failure>) -> Value {
    match answer {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(Failure { code, message }) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_requests_notifications_or_refused() {
        let check = |text: &str, expect: Result<&str, i32>| {
            let read = read(text.as_bytes());
            let got = read.as_ref().map(|incoming| match incoming {
                Incoming::Request { method, .. } => method.as_str(),
                Incoming::Notification => "",
            });
            assert_eq!(got.map_err(|failure| failure.code), expect, "{text}");
        };
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Ok("ping"));
        check(r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}"#, Ok("ping"));
        check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Ok(""));
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Ok(""));
        for bad in [
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
            r#"{"jsonrpc":"2.0"}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            "null",
        ] {
            check(bad, Err(-32600));
        }
        for garbage in ["", "{", r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#] {
            check(garbage, Err(-32700));
        }
    }
}
