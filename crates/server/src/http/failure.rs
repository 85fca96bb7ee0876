//! Errors as HTTP responses, also those that no handler sees: unknown routes and methods.

use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use turnkeep_ledger::Code;
use turnkeep_store::projection::{EncodeError, HintError, ProjectionError};
use turnkeep_wire::ErrorCode;
use turnkeep_wire::json::ErrorReply;

use super::query::QueryError;
use crate::error::ApiError;
use crate::write_rate::RETRY_AFTER_SECONDS;

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.log();
        let status =
            StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(ErrorReply { error: self.body() })).into_response();
        let headers = response.headers_mut();
        if self.code == ErrorCode::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.is_retryable() {
            let seconds = self
                .details
                .get(RETRY_AFTER_SECONDS)
                .and_then(Value::as_u64)
                .unwrap_or(1);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == ErrorCode::TooLarge {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl From<QueryError> for ApiError {
    fn from(query: QueryError) -> Self {
        let message = query.to_string();
        let bad = Self::bad_request(message.clone());
        match query {
            QueryError::Unknown { name, legal } => {
                bad.with("parameter", name).with("legal", legal.to_vec())
            }
            QueryError::Illegal(unknown) | QueryError::Hint(HintError::UnknownMode(unknown)) => bad
                .with("parameter", unknown.option)
                .with("value", unknown.given)
                .with("legal", unknown.legal.to_vec()),
            QueryError::Kind {
                name,
                value,
                expected,
            } => bad
                .with("parameter", name)
                .with("value", value)
                .with("legal", vec![expected]),
            QueryError::Limit(value) => bad
                .word(Code::BadLimit)
                .with("parameter", "limit")
                .with("value", value)
                .with("legal", vec!["a whole number from 1 on"]),
            QueryError::Twice(name) => bad.with("parameter", name),
            QueryError::Encoding(_) | QueryError::Hint(HintError::NotExplicit) => bad,
            QueryError::Hint(HintError::Incomplete) => {
                Self::new(ErrorCode::MissingTypeHint, message)
            }
        }
    }
}

impl From<ProjectionError> for ApiError {
    fn from(projection: ProjectionError) -> Self {
        let message = projection.to_string();
        let error = |code| Self::new(code, message);
        match projection {
            ProjectionError::Conflict {
                declared,
                requested,
            } => error(ErrorCode::Conflict)
                .with("declared", declared.to_string())
                .with("requested", requested.to_string()),
            ProjectionError::MissingTypeHint => error(ErrorCode::MissingTypeHint),
            ProjectionError::FailedDependency(wanted) => error(ErrorCode::FailedDependency)
                .with("type_id", &*wanted.id)
                .with("type_version", wanted.version),
            ProjectionError::Decode(_) => error(ErrorCode::Corrupt),
            ProjectionError::TooLarge { max } => error(ErrorCode::TooLarge).with("limit", max),
        }
    }
}

impl From<EncodeError> for ApiError {
    fn from(encode: EncodeError) -> Self {
        let message = encode.to_string();
        let error = |code| Self::new(code, message);
        match encode {
            EncodeError::MissingType => error(ErrorCode::MissingTypeHint),
            EncodeError::Unpublished(wanted) => error(ErrorCode::FailedDependency)
                .with("type_id", &*wanted.id)
                .with("type_version", wanted.version),
            EncodeError::UnknownField { path, .. }
            | EncodeError::MissingField { path, .. }
            | EncodeError::WrongValue { path, .. }
            | EncodeError::TooDeep { path } => error(ErrorCode::Unprocessable).with("path", path),
        }
    }
}

/// The answer to a path that no route has.
pub(crate) async fn unknown_route(uri: Uri) -> ApiError {
    ApiError::new(
        ErrorCode::NotFound,
        format!("there is nothing at {}", uri.path()),
    )
}

/// The answer to a method that the route does not have.
pub(crate) async fn unknown_method(method: Method, uri: Uri) -> ApiError {
    ApiError::new(
        ErrorCode::MethodNotAllowed,
        format!("{} has no method {method}", uri.path()),
    )
}
