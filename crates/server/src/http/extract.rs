//! What handlers take: path segments, queries and bodies, refused in the one error form.

use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use turnkeep_types::{BlobHash, ContextId, TurnId};
use turnkeep_wire::ErrorCode;

use super::body::{self, BodyBounds};
use super::query::{FromQuery, Pairs};
use crate::error::ApiError;
use crate::shared::Shared;

/// A path segment, percent-decoded once, as the value that it names.
#[derive(Debug)]
pub(crate) struct At<T>(pub(crate) T);

/// A value that a path segment can name.
pub(crate) trait Segment: Sized {
    /// The value, or why there is none.
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
        text.parse().map_err(|error| ApiError::bad_request(format!("{error}")))
    }
}

impl Segment for String {
    fn parse(text: &str) -> Result<Self, ApiError> {
        Ok(text.to_owned())
    }
}

/// Nothing is ever called 0, so that is a name of nothing and not a mistake in writing.
pub(crate) fn parse_id<T: FromStr<Err: std::fmt::Display>>(text: &str, what: &str) -> Result<T, ApiError> {
    text.parse().map_err(|error| match text {
        "0" => ApiError::new(ErrorCode::NotFound, format!("{what} 0 does not exist")),
        _ => ApiError::bad_request(format!("{error}")),
    })
}

impl<T: Segment> FromRequestParts<Arc<Shared>> for At<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<Shared>) -> Result<Self, ApiError> {
        let Path(text) = Path::<String>::from_request_parts(parts, state).await.map_err(bad_path)?;
        T::parse(&text).map(Self)
    }
}

/// Two path segments: a type and its version.
#[derive(Debug)]
pub(crate) struct AtType(pub(crate) String, pub(crate) u32);

impl FromRequestParts<Arc<Shared>> for AtType {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<Shared>) -> Result<Self, ApiError> {
        let Path((id, version)) =
            Path::<(String, String)>::from_request_parts(parts, state).await.map_err(bad_path)?;
        let canonical = !version.starts_with('+') && (version == "0" || !version.starts_with('0'));
        match version.parse() {
            Ok(version) if canonical => Ok(Self(id, version)),
            _ => Err(ApiError::bad_request(format!("`{version}` is not a type version"))),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn bad_path(rejection: axum::extract::rejection::PathRejection) -> ApiError {
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
        let bounds = BodyBounds {
            bytes_max: shared.config.limits.http_body_bytes_max,
            stall: shared.config.timeouts.http_body_stall,
        };
        let (parts, body) = request.into_parts();
        body::read(&parts.headers, body, bounds).await.map(Self)
    }
}

/// Reads JSON, at most [`JSON_NESTING_MAX`] levels deep.
pub(crate) fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| match nesting(bytes) {
        deep if deep > JSON_NESTING_MAX => ApiError::too_large("nesting of the body", JSON_NESTING_MAX, deep),
        _ => ApiError::bad_request(format!("the body is not as expected: {error}")),
    })
}

/// The most levels that the JSON reader goes down.
const JSON_NESTING_MAX: u64 = 127;

/// How deep brackets nest outside of strings, in bytes that may be JSON.
fn nesting(bytes: &[u8]) -> u64 {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_u64, 0, false, false);
    for byte in bytes {
        match (byte, in_string) {
            (_, true) if escaped => escaped = false,
            (b'\\', true) => escaped = true,
            (b'"', _) => in_string = !in_string,
            (b'[' | b'{', false) => depth += 1,
            (b']' | b'}', false) => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_counts_brackets_outside_of_strings() {
        fn check(text: &str, expect: u64) {
            assert_eq!(nesting(text.as_bytes()), expect, "{text}");
        }
        check("", 0);
        check("[{}]", 2);
        check("[][][]", 1);
        check("\"[[[\"", 0);
        check("{\"a\\\"[\":[1]}", 2);
        check("]]][", 1);
    }

    #[test]
    fn json_is_read_down_to_the_limit_and_no_deeper() {
        let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        let limit = usize::try_from(JSON_NESTING_MAX).unwrap();
        assert!(parse_json::<serde_json::Value>(&nested(limit)).is_ok());
        let error = parse_json::<serde_json::Value>(&nested(limit + 1)).unwrap_err();
        assert_eq!(error.code, ErrorCode::TooLarge);
        let error = parse_json::<serde_json::Value>(&vec![b'['; 1 << 20]).unwrap_err();
        assert_eq!(error.code, ErrorCode::TooLarge);
        assert_eq!(parse_json::<serde_json::Value>(b"[").unwrap_err().code, ErrorCode::BadRequest);
    }
}
