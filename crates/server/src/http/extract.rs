//! Extractors: path segments, queries and bodies. Each rejects bad input with an [`ApiError`].

use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_ENCODING;
use axum::http::request::Parts;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use turnkeep_types::{BlobHash, ContextId, Limits, TurnId};
use turnkeep_wire::ErrorCode;

use super::body::{self, BodyBounds};
use super::query::{FromQuery, Pairs, percent_decode};
use crate::convert;
use crate::error::ApiError;
use crate::memory::{LARGE_FROM_BYTES, MemoryBudget, MemoryPermit};
use crate::nesting::{NESTING_MAX, nesting, parsed_bytes};
use crate::shared::Shared;

/// A path segment, percent-decoded once, as the value that it names.
#[derive(Debug)]
pub(crate) struct At<T>(pub(crate) T);

/// A value that a path segment can name.
pub(crate) trait Segment: Sized {
    /// Parses the segment.
    fn parse(text: &str) -> Result<Self, ApiError>;
}

impl Segment for ContextId {
    fn parse(text: &str) -> Result<Self, ApiError> {
        parse_id(text, "context")
    }
}

impl Segment for TurnId {
    fn parse(text: &str) -> Result<Self, ApiError> {
        parse_id(text, "turn")
    }
}

impl Segment for BlobHash {
    fn parse(text: &str) -> Result<Self, ApiError> {
        text.parse()
            .map_err(|error| ApiError::bad_request(format!("{error}")))
    }
}

impl Segment for String {
    fn parse(text: &str) -> Result<Self, ApiError> {
        Ok(text.to_owned())
    }
}

/// Parses an id. No object has the id 0, so 0 is not found rather than malformed.
pub(crate) fn parse_id<T: FromStr<Err: std::fmt::Display>>(
    text: &str,
    what: &str,
) -> Result<T, ApiError> {
    text.parse().map_err(|error| match text {
        "0" => ApiError::not_found(format!("{what} 0 does not exist")),
        _ => ApiError::bad_request(format!("{error}")),
    })
}

impl<T: Segment> FromRequestParts<Arc<Shared>> for At<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<Shared>) -> Result<Self, ApiError> {
        check_escapes(parts)?;
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(bad_path)?;
        T::parse(&text).map(Self)
    }
}

/// Two path segments: a type and its version.
#[derive(Debug)]
pub(crate) struct AtType(pub(crate) String, pub(crate) u32);

impl FromRequestParts<Arc<Shared>> for AtType {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<Shared>) -> Result<Self, ApiError> {
        check_escapes(parts)?;
        let Path((id, version)) = Path::<(String, String)>::from_request_parts(parts, state)
            .await
            .map_err(bad_path)?;
        // One path for each version: `+1` and `01` would be others.
        let canonical = !version.starts_with('+') && (version == "0" || !version.starts_with('0'));
        match version.parse() {
            Ok(version) if canonical => Ok(Self(id, version)),
            _ => Err(ApiError::bad_request(format!(
                "`{version}` is not a type version"
            ))),
        }
    }
}

/// Rejects a path with a `%` that is not followed by two hex digits.
pub(crate) fn check_escapes(parts: &Parts) -> Result<(), ApiError> {
    let path = parts.uri.path();
    if path.contains('%') && percent_decode(path, false).is_none() {
        return Err(ApiError::bad_request("the path is not percent-encoded"));
    }
    Ok(())
}

/// A path whose segments cannot be read.
#[expect(clippy::needless_pass_by_value, reason = "the shape of map_err")]
pub(crate) fn bad_path(rejection: axum::extract::rejection::PathRejection) -> ApiError {
    ApiError::bad_request(rejection.body_text())
}

/// The query, parsed strictly: unknown names, repeated names and illegal values are refused.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: FromQuery> FromRequestParts<Arc<Shared>> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Shared>) -> Result<Self, ApiError> {
        let pairs = Pairs::parse(parts.uri.query().unwrap_or_default())?;
        Ok(Self(T::from_query(pairs)?))
    }
}

/// The body's bytes, within the limit.
#[derive(Debug)]
pub(crate) struct Raw(pub(crate) Bytes);

impl FromRequest<Arc<Shared>> for Raw {
    type Rejection = ApiError;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        body_within(request, shared, usize::MAX).await.map(Self)
    }
}

/// The bytes of a body that is parsed where it was read, and therefore small. It takes no permit,
/// because its handler checks the limits of its values before it waits for anything.
#[derive(Debug)]
pub(crate) struct Small(pub(crate) Bytes);

/// The longest small body.
const SMALL_BYTES_MAX: usize = 256 << 10;

impl FromRequest<Arc<Shared>> for Small {
    type Rejection = ApiError;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        body_within(request, shared, SMALL_BYTES_MAX)
            .await
            .map(Self)
    }
}

/// The header with a request's idempotency key.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The longest key of a header.
const KEY_BYTES_MAX: usize = 256;

/// The idempotency key in a request's header.
pub(crate) fn read_idempotency_key(request: &Request) -> Result<Option<String>, ApiError> {
    let Some(value) = request.headers().get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    if text.is_empty() || text.len() > KEY_BYTES_MAX {
        let message =
            format!("`Idempotency-Key` must have 1 to {KEY_BYTES_MAX} visible ASCII characters");
        return Err(ApiError::bad_request(message));
    }
    Ok(Some(text.to_owned()))
}

/// The bytes of a body, at most so many.
pub(crate) async fn body_within(
    request: Request,
    shared: &Shared,
    bytes_max: usize,
) -> Result<Bytes, ApiError> {
    let timeouts = &shared.config.timeouts;
    let bounds = BodyBounds {
        bytes_max: bytes_max.min(shared.config.limits.http_body_bytes_max),
        stall: timeouts.http_body_stall,
        whole: timeouts.http_body,
    };
    let (parts, body) = request.into_parts();
    check_coding(&parts)?;
    body::read_body(&parts.headers, body, bounds, &shared.memory).await
}

/// Waits for memory for the parsed values of a JSON body and for `more_bytes` that are made of them.
/// Returns none if both are small. Short values take far more memory than their text, so the number
/// of values counts, not the length of the body.
pub(crate) async fn permit_for_values(
    memory: &MemoryBudget,
    body: &[u8],
    more_bytes: usize,
) -> Result<Option<MemoryPermit>, ApiError> {
    let parsed = parsed_bytes(body);
    let is_large_body = body.len() >= LARGE_FROM_BYTES;
    if !is_large_body && parsed < LARGE_FROM_BYTES {
        return Ok(None);
    }
    convert::within(
        "memory for the values of the body",
        memory.total_bytes(),
        parsed as u64,
    )?;
    // A large body has a permit of its own already.
    let held = if is_large_body { body.len() } else { 0 };
    let permit = memory.acquire_beside(held, parsed + more_bytes);
    permit.await.map(Some)
}

/// Rejects a compressed body: it could unpack to far more than the limit.
fn check_coding(parts: &Parts) -> Result<(), ApiError> {
    match parts
        .headers
        .get(CONTENT_ENCODING)
        .map(HeaderValue::as_bytes)
    {
        Some(coding) if !coding.eq_ignore_ascii_case(b"identity") => {
            let message = "a body is read as it is sent: leave out Content-Encoding";
            Err(ApiError::new(ErrorCode::UnsupportedMediaType, message))
        }
        _ => Ok(()),
    }
}

/// The depth at which the JSON parser stops by itself.
const UNCHECKED_NESTING: usize = 127;

/// Parses a request's JSON. Its values may nest as deep as `limits` allow; the request's object is
/// one level more.
pub(crate) fn parse_json<T: DeserializeOwned>(
    bytes: &[u8],
    limits: &Limits,
) -> Result<T, ApiError> {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::bad_request("the body is not a JSON object"));
    }
    let limit = limits.nesting_max.min(NESTING_MAX) + 1;
    // A limit below the parser's own is checked first. A higher one is checked only when the parser
    // stops, because the check scans all bytes.
    if limit < UNCHECKED_NESTING {
        check_nesting(bytes, limit)?;
    }
    serde_json::from_slice(bytes).or_else(|error| {
        check_nesting(bytes, limit)?;
        let deep = nesting(bytes) > UNCHECKED_NESTING as u64;
        let read = if deep { parse_deep(bytes) } else { Err(error) };
        read.map_err(|error| ApiError::bad_request(format!("the body is not as expected: {error}")))
    })
}

/// Reads JSON whose nesting has been checked.
fn parse_deep<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end().map(|()| value)
}

fn check_nesting(bytes: &[u8], limit: usize) -> Result<(), ApiError> {
    convert::within("nesting of the body", limit, nesting(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_down_to_the_limit_and_no_deeper() {
        fn check(nesting_max: usize, depth: usize, expect: Result<(), ErrorCode>) {
            let limits = Limits {
                nesting_max,
                ..Limits::default()
            };
            let inner = ["[".repeat(depth - 1), "]".repeat(depth - 1)].concat();
            let nested =
                format!("{{\"a\":{}}}", if depth == 1 { "0" } else { &inner }).into_bytes();
            let read = parse_json::<serde_json::Value>(&nested, &limits);
            assert_eq!(
                read.map(drop).map_err(|error| error.code),
                expect,
                "{depth} of {nesting_max}"
            );
        }
        for (limit, effective) in [(128, 128), (usize::MAX, 128), (125, 125), (3, 3), (0, 0)] {
            check(limit, effective + 1, Ok(()));
            check(limit, effective + 2, Err(ErrorCode::TooLarge));
        }
        check(128, 1 << 20, Err(ErrorCode::TooLarge));
    }

    #[test]
    fn what_is_no_json_is_a_bad_request_at_any_depth() {
        for depth in [1, 127, 128, 129] {
            let cut = format!(" {{\"a\":{}", "[".repeat(depth - 1));
            let error =
                parse_json::<serde_json::Value>(cut.as_bytes(), &Limits::default()).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadRequest, "{depth}");
        }
    }

    #[test]
    fn a_request_is_an_object() {
        for bad in [
            "",
            " ",
            "[]",
            "[null,null,null]",
            "null",
            "1",
            "\"{}\"",
            "{}{}",
            "{",
        ] {
            let error =
                parse_json::<serde_json::Value>(bad.as_bytes(), &Limits::default()).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadRequest, "{bad}");
        }
        assert!(parse_json::<serde_json::Value>(b"\r\n\t {} ", &Limits::default()).is_ok());
    }
}
