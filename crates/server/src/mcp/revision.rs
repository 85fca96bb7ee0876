//! The supported revisions of the protocol, and how a request's revision is found.
//!
//! Up to 2025-11-25 a client sends `initialize` first. From 2026-07-28 on, every request names its
//! revision in `_meta`, and over HTTP its headers repeat the revision, the method and the tool. The
//! server keeps nothing between two requests in either case, so both kinds are served side by side:
//! a request is of the newer kind when its `_meta` or its header names that revision. A header that
//! contradicts the body is rejected, because a proxy may have trusted it.

use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::rpc::{Failure, Request};

/// The supported revisions, newest first.
pub(super) const SUPPORTED: [&str; 3] = [PER_REQUEST, "2025-11-25", "2025-06-18"];
/// The first revision in which every request names its revision.
const PER_REQUEST: &str = "2026-07-28";
/// The newest revision that begins with `initialize`.
const NEWEST_WITH_HANDSHAKE: &str = "2025-11-25";

const REVISION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
/// The marks around a header value in base64, for text that headers do not allow.
const ENCODED_PREFIX: &str = "=?base64?";
const ENCODED_SUFFIX: &str = "?=";

const REVISION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// How a request is interpreted and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Up to 2025-11-25: the client began with `initialize`.
    Handshake,
    /// From 2026-07-28 on: the request names its revision.
    PerRequest,
}

/// How long a client may cache an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Freshness {
    pub(super) ttl_ms: u32,
}

/// Finds the era of a request, or rejects a request that contradicts itself.
pub(super) fn find_era(headers: &HeaderMap, request: &Request) -> Result<Era, Failure> {
    let named = request_meta(request, REVISION_KEY);
    // A revision that is no text counts as the empty one, which is not supported.
    let in_body = named.map(|named| named.as_str().unwrap_or_default());
    let in_header = header(headers, REVISION_HEADER);
    check_supported(in_body)?;
    check_supported(in_header)?;
    match (in_body, in_header) {
        (Some(PER_REQUEST), Some(PER_REQUEST)) => {
            check_headers(headers, request)?;
            check_capabilities(request)?;
            Ok(Era::PerRequest)
        }
        // The newer revision requires the body to name it as well.
        (None, Some(PER_REQUEST)) => Err(missing_meta(REVISION_KEY)),
        // A missing header counts as a contradiction, because the newer revision requires it.
        (Some(body), header) if header != Some(body) => {
            let header = header.unwrap_or("missing");
            Err(Failure::header_mismatch(format!(
                "MCP-Protocol-Version is {header}, the body says {body}"
            )))
        }
        _ => Ok(Era::Handshake),
    }
}

/// Rejects a header that names an unsupported revision.
pub(super) fn check_notification(headers: &HeaderMap) -> Result<(), Failure> {
    check_supported(header(headers, REVISION_HEADER))
}

/// The revision for the answer to `initialize`: the requested one, if it is supported and has a
/// handshake.
pub(super) fn choose_handshake_revision(asked: Option<&str>) -> &'static str {
    let mut supported = SUPPORTED
        .into_iter()
        .filter(|revision| *revision != PER_REQUEST);
    supported
        .find(|revision| asked == Some(*revision))
        .unwrap_or(NEWEST_WITH_HANDSHAKE)
}

fn check_supported(named: Option<&str>) -> Result<(), Failure> {
    match named {
        Some(revision) if !SUPPORTED.contains(&revision) => {
            Err(Failure::unsupported_revision(revision, &SUPPORTED))
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
        // This server has no prompts, but the rule holds for every method that names something.
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let in_body = request.params.get(source).and_then(Value::as_str);
    let in_header = header(headers, NAME_HEADER).and_then(decode_header);
    if in_body.is_some() && in_header.as_deref() != in_body {
        let message = format!("Mcp-Name must be the `{source}` of the body");
        return Err(Failure::header_mismatch(message));
    }
    Ok(())
}

/// Decodes a header that may be in base64; `None` if the base64 is not valid.
fn decode_header(text: &str) -> Option<String> {
    let encoded = text
        .strip_prefix(ENCODED_PREFIX)
        .and_then(|text| text.strip_suffix(ENCODED_SUFFIX));
    match encoded {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

fn check_capabilities(request: &Request) -> Result<(), Failure> {
    match request_meta(request, CAPABILITIES_KEY) {
        Some(Value::Object(_)) => Ok(()),
        _ => Err(missing_meta(CAPABILITIES_KEY)),
    }
}

fn request_meta<'a>(request: &'a Request, key: &str) -> Option<&'a Value> {
    request.params.get("_meta")?.get(key)
}

fn missing_meta(key: &str) -> Failure {
    let message = format!("params._meta must have `{key}`");
    Failure::bad_params(message).with_status(StatusCode::BAD_REQUEST)
}

/// The name and version of this server.
pub(super) fn server_info() -> Value {
    json!({ "name": "turnkeep", "title": "Turnkeep", "version": env!("CARGO_PKG_VERSION") })
}

impl Era {
    /// Completes a result for the era. The newer one has a result type, the server's name and a
    /// cache time.
    pub(super) fn complete_result(self, mut result: Value, freshness: Option<Freshness>) -> Value {
        if self == Self::Handshake {
            return result;
        }
        result["resultType"] = "complete".into();
        result["_meta"] = json!({ SERVER_KEY: server_info() });
        if let Some(Freshness { ttl_ms }) = freshness {
            result["ttlMs"] = ttl_ms.into();
            // Every answer depends on the token, so no shared cache may keep it.
            result["cacheScope"] = "private".into();
        }
        result
    }

    /// The failure for an unknown method, with the status of the era.
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
            let got = find_era(&headers(pairs), &request(method, params.clone()));
            let code = |failure| {
                super::super::rpc::encode_answer(&Value::Null, Err(failure))["error"]["code"]
                    .clone()
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
            let got = find_era(&headers(&pairs), &request("tools/call", call.clone()));
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
            assert_eq!(choose_handshake_revision(asked), spoken);
        }
    }
}
