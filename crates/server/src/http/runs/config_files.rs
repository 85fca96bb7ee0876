//! Roles and teams: the built-in ones and those of the user.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use turnkeep_wire::ErrorCode;
use turnkeep_wire::runs as wire;

use super::super::extract::{At, Query};
use super::super::query::NoQuery;
use super::parts::RequestJson;
use crate::error::ApiError;
use crate::runs::config_files::{ConfigFileError, ConfigFileKind, role_view, team_view};
use crate::shared::Shared;

/// Lists the roles.
#[utoipa::path(get, path = "/api/roles", tag = "providers",
    responses((status = 200, description = "The roles", body = wire::RoleList)))]
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the bare method has one fixed lifetime, and an async caller needs any"
)]
pub(crate) async fn list_roles(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> Result<Json<wire::RoleList>, ApiError> {
    let list = shared
        .runs
        .use_config_files(ConfigFileKind::Role, |files| files.list());
    let roles = list.await?.into_iter().map(role_view).collect();
    Ok(Json(wire::RoleList { roles }))
}

/// Shows a role.
#[utoipa::path(get, path = "/api/roles/{name}", tag = "providers", params(("name" = String, Path)),
    responses((status = 200, description = "The role", body = wire::RoleFile)))]
pub(crate) async fn show_role(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    At(name): At<String>,
) -> Result<Json<wire::RoleFile>, ApiError> {
    let find = shared
        .runs
        .use_config_files(ConfigFileKind::Role, move |files| files.find(&name));
    Ok(Json(role_view(find.await?)))
}

/// Writes a role of the user. It stands before a built-in one of the same name.
#[utoipa::path(put, path = "/api/roles/{name}", tag = "providers", params(("name" = String, Path)),
    request_body = wire::PutFile,
    responses((status = 200, description = "The role", body = wire::RoleFile)))]
pub(crate) async fn put_role(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    At(name): At<String>,
    request: RequestJson,
) -> Result<Json<wire::RoleFile>, ApiError> {
    let wire::PutFile { text } = request.read()?;
    let put = shared
        .runs
        .use_config_files(ConfigFileKind::Role, move |files| files.put(&name, &text));
    Ok(Json(role_view(put.await?)))
}

/// Deletes a role of the user. A built-in one of the same name counts again.
#[utoipa::path(delete, path = "/api/roles/{name}", tag = "providers", params(("name" = String, Path)),
    responses((status = 200, description = "The role is gone", body = wire::FileGone)))]
pub(crate) async fn delete_role(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    At(name): At<String>,
) -> Result<Json<wire::FileGone>, ApiError> {
    delete(&shared, ConfigFileKind::Role, name).await
}

/// Lists the teams as graph files.
#[utoipa::path(get, path = "/api/teams", tag = "providers",
    responses((status = 200, description = "The teams", body = wire::TeamList)))]
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the bare method has one fixed lifetime, and an async caller needs any"
)]
pub(crate) async fn list_teams(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
) -> Result<Json<wire::TeamList>, ApiError> {
    let list = shared
        .runs
        .use_config_files(ConfigFileKind::Team, |files| files.list());
    let teams = list.await?.into_iter().map(team_view).collect();
    Ok(Json(wire::TeamList { teams }))
}

/// Shows a team.
#[utoipa::path(get, path = "/api/teams/{name}", tag = "providers", params(("name" = String, Path)),
    responses((status = 200, description = "The team", body = wire::TeamFile)))]
pub(crate) async fn show_team(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    At(name): At<String>,
) -> Result<Json<wire::TeamFile>, ApiError> {
    let find = shared
        .runs
        .use_config_files(ConfigFileKind::Team, move |files| files.find(&name));
    Ok(Json(team_view(find.await?)))
}

/// Writes a team of the user. It stands before a built-in one of the same name.
#[utoipa::path(put, path = "/api/teams/{name}", tag = "providers", params(("name" = String, Path)),
    request_body = wire::PutFile,
    responses((status = 200, description = "The team", body = wire::TeamFile)))]
pub(crate) async fn put_team(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    At(name): At<String>,
    request: RequestJson,
) -> Result<Json<wire::TeamFile>, ApiError> {
    let wire::PutFile { text } = request.read()?;
    let put = shared
        .runs
        .use_config_files(ConfigFileKind::Team, move |files| files.put(&name, &text));
    Ok(Json(team_view(put.await?)))
}

/// Deletes a team of the user. A built-in one of the same name counts again.
#[utoipa::path(delete, path = "/api/teams/{name}", tag = "providers", params(("name" = String, Path)),
    responses((status = 200, description = "The team is gone", body = wire::FileGone)))]
pub(crate) async fn delete_team(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    At(name): At<String>,
) -> Result<Json<wire::FileGone>, ApiError> {
    delete(&shared, ConfigFileKind::Team, name).await
}

async fn delete(
    shared: &Shared,
    kind: ConfigFileKind,
    name: String,
) -> Result<Json<wire::FileGone>, ApiError> {
    let deleted = name.clone();
    let remove = shared
        .runs
        .use_config_files(kind, move |files| files.remove(&deleted));
    remove.await?;
    Ok(Json(wire::FileGone { name }))
}

impl From<ConfigFileError> for ApiError {
    fn from(error: ConfigFileError) -> Self {
        let message = error.to_string();
        match error {
            ConfigFileError::BadName => Self::bad_request(message).with("path", "name"),
            ConfigFileError::Invalid(_) => Self::bad_request(message).with("path", "text"),
            ConfigFileError::Unknown(_) => Self::not_found(message),
            ConfigFileError::BuiltIn(_)
            | ConfigFileError::NoDirectory
            | ConfigFileError::Unusable(_) => Self::new(ErrorCode::Conflict, message),
            ConfigFileError::TooLong { bytes } => {
                Self::new(ErrorCode::TooLarge, message).with("actual", bytes)
            }
        }
    }
}
