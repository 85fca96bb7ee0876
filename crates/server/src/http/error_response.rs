//! Errors as HTTP responses, and the answers to unknown methods.

use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use turnkeep_wire::ErrorCode;
use turnkeep_wire::json::ErrorReply;

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
        if self.code.is_retryable() {
            let seconds = self
                .details
                .get(RETRY_AFTER_SECONDS)
                .and_then(Value::as_u64)
                .unwrap_or(1);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        // The server did not read the rest of the body, so the connection cannot be used again.
        if self.code == ErrorCode::TooLarge {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// The answer to a method that the route does not have.
pub(crate) async fn unknown_method(method: Method, uri: Uri) -> ApiError {
    ApiError::new(
        ErrorCode::MethodNotAllowed,
        format!("{} does not support {method}", uri.path()),
    )
}
