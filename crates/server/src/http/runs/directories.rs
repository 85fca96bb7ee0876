//! The directories of this machine, for a person who chooses where a run works.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use turnkeep_wire::ErrorCode;
use turnkeep_wire::runs as wire;

use super::super::extract::Query;
use super::super::query::DirectoryQuery;
use crate::error::ApiError;
use crate::runs::directory_listing::ListingError;
use crate::shared::Shared;

/// Lists a directory under the user's home or a configured root.
#[utoipa::path(get, path = "/api/fs", tag = "providers",
    params(("path" = Option<String>, Query, description = "An absolute path; the home directory unless given")),
    responses((status = 200, description = "Its directories and files", body = wire::DirectoryListing)))]
pub(crate) async fn list_directory(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<DirectoryQuery>,
) -> Result<Json<wire::DirectoryListing>, ApiError> {
    Ok(Json(shared.runs.list_directory(query.path).await?))
}

impl From<ListingError> for ApiError {
    fn from(error: ListingError) -> Self {
        let message = error.to_string();
        let code = match error {
            ListingError::NotAbsolute | ListingError::NotADirectory(_) => ErrorCode::BadRequest,
            ListingError::Outside(_) | ListingError::NoRoots | ListingError::Unreadable { .. } => {
                ErrorCode::Forbidden
            }
            ListingError::Missing(_) => ErrorCode::NotFound,
        };
        Self::new(code, message).with("path", "path")
    }
}
