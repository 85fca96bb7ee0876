//! The revisions of the protocol that are spoken, and what tells them apart.
//!
//! Up to 2025-11-25 a client says `initialize` first. From 2026-07-28 on every request names its
//! revision in `_meta`, and over HTTP its headers repeat the revision, the method and the tool.
//! Nothing is remembered between two requests in either case, so both are served side by side: a
//! request is of the newer kind when its `_meta` or its header names that revision. A header that
//! contradicts the body is refused, because something between client and server may have trusted
//! it.

use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::rpc::{Failure, Request};

/// The revisions that are spoken, newest first.
pub(super) const SPOKEN: [&str; 3] = [PER_REQUEST, "2025-11-25", "2025-06-18"];
/// The revision whose requests describe themselves.
const PER_REQUEST: &str = "2026-07-28";
/// The newest revision that begins with `initialize`.
const NEWEST_WITH_HANDSHAKE: &str = "2025-11-25";

const REVISION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
/// How a header begins and ends that holds what no header may hold.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

const REVISION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// How a request is to be understood and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// As up to 2025-11-25: the client began with `initialize`.
    Handshake,
    /// As from 2026-07-28 on: the request describes itself.
    PerRequest,
}

/// How long a client may keep an answer before it asks again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Freshness {
    /// In milliseconds.
    pub(super) ttl_ms: u32,
}

/// The era of a request, unless it contradicts itself.
pub(super) fn era_of(headers: &HeaderMap, request: &Request) -> Result<Era, Failure> {
    let meta = request
        .params
        .get("_meta")
        .and_then(|meta| meta.get(REVISION_KEY));
    let in_body = meta.map(|named| named.as_str().unwrap_or_default());
    let in_header = header(headers, REVISION_HEADER);
    refuse_unspoken(in_body)?;
    refuse_unspoken(in_header)?;
    match (in_body, in_header) {
        (Some(PER_REQUEST), Some(PER_REQUEST)) => {
            check_headers(headers, request)?;
            check_capabilities(request)?;
            Ok(Era::PerRequest)
        }
        (None, Some(PER_REQUEST)) => Err(missing(REVISION_KEY)),
        (Some(body), header) if header != Some(body) => {
            let header = header.unwrap_or("missing");
            Err(Failure::header_mismatch(format!(
                "MCP-Protocol-Version is {header}, the body says {body}"
            )))
        }
        _ => Ok(Era::Handshake),
    }
}

/// Refuses a header that names a revision which is not spoken.
pub(super) fn check_notification(headers: &HeaderMap) -> Result<(), Failure> {
    refuse_unspoken(header(headers, REVISION_HEADER))
}

/// The revision in which `initialize` is answered: the one that is asked for, if it has a
/// handshake.
pub(super) fn with_handshake(asked: Option<&str>) -> &'static str {
    let mut spoken = SPOKEN
        .into_iter()
        .filter(|revision| *revision != PER_REQUEST);
    spoken
        .find(|revision| asked == Some(*revision))
        .unwrap_or(NEWEST_WITH_HANDSHAKE)
}

fn refuse_unspoken(named: Option<&str>) -> Result<(), Failure> {
    match named {
        Some(revision) if !SPOKEN.contains(&revision) => {
            Err(Failure::unsupported_revision(revision, &SPOKEN))
        }
        _ => Ok(()),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get(name)
        .map(|value| value.to_str().unwrap_or_default().trim())
}

fn check_headers(headers: &HeaderMap, request: &Request) -> Result<(), Failure> {
    let named = header(headers, METHOD_HEADER);
    if named != Some(&request.method) {
        let message = format!("Mcp-Method must be `{}`, as in the body", request.method);
        return Err(Failure::header_mismatch(message));
    }
    let source = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let in_body = request.params.get(source).and_then(Value::as_str);
    let in_header = header(headers, NAME_HEADER).and_then(decoded);
    if in_body.is_some() && in_header.as_deref() != in_body {
        let message = format!("Mcp-Name must be the `{source}` of the body");
        return Err(Failure::header_mismatch(message));
    }
    Ok(())
}

/// The text of a header that may be encoded; none where it is not what it says.
fn decoded(text: &str) -> Option<String> {
    let (begin, end) = ENCODED;
    match text
        .strip_prefix(begin)
        .and_then(|text| text.strip_suffix(end))
    {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

fn check_capabilities(request: &Request) -> Result<(), Failure> {
    let declared = request
        .params
        .get("_meta")
        .and_then(|meta| meta.get(CAPABILITIES_KEY));
    if declared.is_some_and(Value::is_object) {
        Ok(())
    } else {
        Err(missing(CAPABILITIES_KEY))
    }
}

fn missing(key: &str) -> Failure {
    let message = format!("params._meta must have `{key}`");
    Failure::bad_params(message).with_status(StatusCode::BAD_REQUEST)
}

/// Who answers.
pub(super) fn server_info() -> Value {
    json!({ "name": "turnkeep", "title": "Turnkeep", "version": env!("CARGO_PKG_VERSION") })
}

impl Era {
    /// A result as the era has it: the newer one says that it is whole, who made it, and how long
    /// it stays true.
    pub(super) fn result(self, mut result: Value, freshness: Option<Freshness>) -> Value {
        if self == Self::Handshake {
            return result;
        }
        result["resultType"] = "complete".into();
        result["_meta"] = json!({ SERVER_KEY: server_info() });
        if let Some(Freshness { ttl_ms }) = freshness {
            result["ttlMs"] = ttl_ms.into();
            // Every answer here depends on the token.
            result["cacheScope"] = "private".into();
        }
        result
    }

    /// A failure as the era has it.
    pub(super) fn no_such_method(self, method: &str) -> Failure {
        let failure = Failure::no_such_method(method);
        match self {
            Self::Handshake => failure,
            Self::PerRequest => failure.with_status(StatusCode::NOT_FOUND),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    fn request(method: &str, params: Value) -> Request {
        Request {
            id: json!(1),
            method: method.to_owned(),
            params,
        }
    }

    fn meta(revision: &str) -> Value {
        json!({ REVISION_KEY: revision, CAPABILITIES_KEY: {} })
    }

    #[test]
    fn a_request_is_of_the_era_that_it_names_and_contradictions_are_refused() {
        let check = |pairs: &[(&'static str, &str)],
                     method: &str,
                     params: Value,
                     expect: Result<Era, i32>| {
            let got = era_of(&headers(pairs), &request(method, params.clone()));
            let code = |failure| {
                super::super::rpc::write(&Value::Null, Err(failure))["error"]["code"].clone()
            };
            assert_eq!(
                got.map_err(code),
                expect.map_err(Value::from),
                "{pairs:?} {method} {params}"
            );
        };
        let modern = [
            (REVISION_HEADER, "2026-07-28"),
            (METHOD_HEADER, "tools/list"),
        ];
        let list = json!({ "_meta": meta("2026-07-28") });
        check(&[], "tools/list", json!({}), Ok(Era::Handshake));
        check(
            &[(REVISION_HEADER, "2025-06-18")],
            "tools/list",
            json!({}),
            Ok(Era::Handshake),
        );
        check(&modern, "tools/list", list.clone(), Ok(Era::PerRequest));
        check(&modern, "tools/call", list.clone(), Err(-32020));
        check(&modern[..1], "tools/list", list.clone(), Err(-32020));
        check(&[], "tools/list", list.clone(), Err(-32020));
        check(
            &[(REVISION_HEADER, "2025-11-25")],
            "tools/list",
            list.clone(),
            Err(-32020),
        );
        check(&modern, "tools/list", json!({}), Err(-32602));
        check(
            &modern,
            "tools/list",
            json!({ "_meta": { REVISION_KEY: "2026-07-28" } }),
            Err(-32602),
        );
        check(
            &modern,
            "tools/list",
            json!({ "_meta": meta("1900-01-01") }),
            Err(-32022),
        );
        check(
            &[(REVISION_HEADER, "1900-01-01")],
            "tools/list",
            json!({}),
            Err(-32022),
        );
    }

    #[test]
    fn the_name_of_a_call_is_compared_decoded() {
        let call = json!({ "_meta": meta("2026-07-28"), "name": "wörld", "arguments": {} });
        for (name, is_same) in [
            ("=?base64?d8O2cmxk?=", true),
            ("world", false),
            ("=?base64?!?=", false),
        ] {
            let pairs = [
                (REVISION_HEADER, "2026-07-28"),
                (METHOD_HEADER, "tools/call"),
                (NAME_HEADER, name),
            ];
            let got = era_of(&headers(&pairs), &request("tools/call", call.clone()));
            assert_eq!(got.is_ok(), is_same, "{name}");
        }
    }

    #[test]
    fn initialize_is_answered_in_a_revision_that_has_it() {
        for (asked, spoken) in [
            (Some("2025-06-18"), "2025-06-18"),
            (Some("2025-11-25"), "2025-11-25"),
            (Some("2026-07-28"), "2025-11-25"),
            (Some("2024-11-05"), "2025-11-25"),
            (None, "2025-11-25"),
        ] {
            assert_eq!(with_handshake(asked), spoken);
        }
    }
}
