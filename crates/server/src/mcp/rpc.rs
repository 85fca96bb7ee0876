//! JSON-RPC 2.0 as far as MCP uses it: one message at a time, parsed strictly.
//!
//! Bytes that are no message get an error without an id and HTTP status 400. Failures of a method
//! keep the id and, up to revision 2025-11-25, status 200.

use axum::http::StatusCode;
use serde_json::{Value, json};
use turnkeep_ledger::json as strict;

/// The longest id of a request. The answer repeats it, and a call that waits for news keeps it
/// without a memory permit, so it must be short.
const ID_BYTES_MAX: usize = 1 << 10;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;
// JSON-RPC leaves -32000 to -32099 to the protocols above it. These two are MCP's.
const HEADER_MISMATCH: i32 = -32020;
const UNSUPPORTED_REVISION: i32 = -32022;

/// A parsed message.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// A message that expects an answer.
    Request(Request),
    /// A message without an answer: a notification, or a response, although this server sends no
    /// requests.
    Notification,
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    /// A text or a number, which the answer repeats.
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
}

/// A JSON-RPC error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    code: i32,
    message: String,
    data: Option<Value>,
    /// The HTTP status of the answer.
    pub(super) status: StatusCode,
}

impl Failure {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            status: StatusCode::OK,
        }
    }

    /// The bytes are not a message, so the answer cannot name a request.
    fn no_message(code: i32, message: impl Into<String>) -> Self {
        Self::new(code, message).with_status(StatusCode::BAD_REQUEST)
    }

    /// The bytes are JSON, but not a message.
    fn invalid_request(message: impl Into<String>) -> Self {
        Self::no_message(INVALID_REQUEST, message)
    }

    /// Changes the HTTP status.
    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The method is unknown.
    pub(super) fn no_such_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("there is no method `{method}`"))
    }

    /// The parameters do not fit the method.
    pub(super) fn bad_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// An internal error. The cause is in the server's log.
    pub(super) fn internal() -> Self {
        Self::new(INTERNAL_ERROR, "the server failed; its log says why")
    }

    /// The headers contradict the body.
    pub(super) fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(HEADER_MISMATCH, message).with_status(StatusCode::BAD_REQUEST)
    }

    /// The revision of the protocol is not supported.
    pub(super) fn unsupported_revision(requested: &str, supported: &[&str]) -> Self {
        let message = format!(
            "the protocol's revision must be one of {}",
            supported.join(", ")
        );
        let data = json!({ "supported": supported, "requested": requested });
        Self {
            data: Some(data),
            ..Self::new(UNSUPPORTED_REVISION, message).with_status(StatusCode::BAD_REQUEST)
        }
    }
}

/// Parses one message.
pub(super) fn parse_message(bytes: &[u8]) -> Result<Incoming, Failure> {
    let mut message = strict::parse(bytes).map_err(|fault| {
        Failure::no_message(PARSE_ERROR, format!("{} {}", fault.path, fault.message))
    })?;
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Failure::invalid_request(
            "a message is one JSON-RPC 2.0 object",
        ));
    }
    // Moved out, not copied: the memory permit of the message covers one copy of its values.
    let id = message.get_mut("id").map(Value::take);
    let params = message.get_mut("params").map(Value::take);
    let method = message.get("method").and_then(Value::as_str);
    match (id, method) {
        (Some(id), Some(method)) => {
            check_id(&id)?;
            Ok(Incoming::Request(Request {
                id,
                method: method.to_owned(),
                params: params.unwrap_or_default(),
            }))
        }
        // A response has an id and no method; this server sends no requests, so it is ignored.
        (None, Some(_)) | (Some(_), None) => Ok(Incoming::Notification),
        (None, None) => Err(Failure::invalid_request(
            "a message has a method, an id, or both",
        )),
    }
}

/// Rejects an id that the answer could not repeat.
fn check_id(id: &Value) -> Result<(), Failure> {
    match id {
        Value::String(text) if text.len() > ID_BYTES_MAX => Err(Failure::invalid_request(format!(
            "the id of a request has at most {ID_BYTES_MAX} bytes"
        ))),
        Value::String(_) | Value::Number(_) => Ok(()),
        _ => Err(Failure::invalid_request(
            "the id of a request is a text or a number",
        )),
    }
}

/// Encodes the answer to a request.
pub(super) fn encode_answer(id: &Value, answer: Result<Value, Failure>) -> Value {
    let Failure {
        code,
        message,
        data,
        ..
    } = match answer {
        Ok(result) => return json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(failure) => failure,
    };
    let mut error = json!({ "code": code, "message": message });
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_requests_notifications_or_refused() {
        let check = |text: &str, expect: Result<&str, i32>| {
            let read = parse_message(text.as_bytes());
            let got = read.as_ref().map(|incoming| match incoming {
                Incoming::Request(request) => request.method.as_str(),
                Incoming::Notification => "",
            });
            assert_eq!(got.map_err(|failure| failure.code), expect, "{text}");
        };
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Ok("ping"));
        check(
            r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}"#,
            Ok("ping"),
        );
        check(
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            Ok(""),
        );
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
        let with_id = |bytes| {
            let id = "7".repeat(bytes);
            format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}"#)
        };
        check(&with_id(ID_BYTES_MAX), Ok("ping"));
        check(&with_id(ID_BYTES_MAX + 1), Err(-32600));
        for garbage in [
            "",
            "{",
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        ] {
            check(garbage, Err(-32700));
        }
    }
}
