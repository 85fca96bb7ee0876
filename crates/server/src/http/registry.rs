//! The type registry. A bundle comes back byte for byte as it was published. A type is read one
//! version at a time.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use turnkeep_types::{BlobHash, TypeRef};
use turnkeep_wire::json;

use super::blobs::etag;
use super::content::{Content, REVALIDATE};
use super::extract::{At, AtType, Query, Raw};
use super::query::NoQuery;
use crate::error::ApiError;
use crate::shared::Shared;

const JSON: &str = "application/json";

/// Publishes a bundle. Publishing the same content again changes nothing.
#[utoipa::path(put, path = "/v1/registry/bundles/{bundle_id}", tag = "registry", params(("bundle_id" = String, Path)),
    request_body(content = Object, content_type = "application/json"),
    responses(
        (status = 201, description = "New, durable and in use"),
        (status = 204, description = "The identical bundle was there already"),
    ))]
pub(crate) async fn put_bundle(
    State(shared): State<Arc<Shared>>,
    At(id): At<String>,
    Query(NoQuery): Query<NoQuery>,
    Raw(json): Raw,
) -> Result<StatusCode, ApiError> {
    let was_new = shared.publish_bundle(id, json).await?;
    Ok(if was_new {
        StatusCode::CREATED
    } else {
        StatusCode::NO_CONTENT
    })
}

/// A bundle, byte for byte as it was first published.
#[utoipa::path(get, path = "/v1/registry/bundles/{bundle_id}", tag = "registry", params(("bundle_id" = String, Path)),
    responses(
        (status = 200, description = "The bundle", body = Object),
        (status = 304, description = "The entity tag was known"),
    ))]
pub(crate) async fn get_bundle(
    State(shared): State<Arc<Shared>>,
    At(id): At<String>,
    Query(NoQuery): Query<NoQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let registry = shared.store.registry();
    let bundle = registry.bundle(&id).ok_or_else(|| {
        ApiError::not_found(format!("bundle `{id}` does not exist")).with("bundle_id", id.as_str())
    })?;
    let etag = format!("\"{}\"", bundle.etag);
    Ok(Content {
        etag,
        media_type: JSON,
        cache: REVALIDATE,
        bytes: bundle.bytes.clone(),
    }
    .respond_whole(&headers))
}

/// Every known type with its versions.
#[utoipa::path(get, path = "/v1/registry/types", tag = "registry",
    responses(
        (status = 200, description = "The types", body = json::TypeList),
        (status = 304, description = "The entity tag was known"),
    ))]
pub(crate) async fn types(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    headers: HeaderMap,
) -> Response {
    respond_tagged(&shared.store.registry().types_json(), &headers)
}

/// A type at one version.
#[utoipa::path(get, path = "/v1/registry/types/{type_id}/versions/{type_version}", tag = "registry",
    params(("type_id" = String, Path), ("type_version" = u32, Path)),
    responses(
        (status = 200, description = "Its descriptors", body = json::TypeVersion),
        (status = 304, description = "The entity tag was known"),
    ))]
pub(crate) async fn type_version(
    State(shared): State<Arc<Shared>>,
    AtType(id, version): AtType,
    Query(NoQuery): Query<NoQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let registry = shared.store.registry();
    let Some(descriptor) = registry.descriptor(&id, version) else {
        let name = TypeRef::new(id, version);
        let error = ApiError::not_found(format!("type {name} is not in the registry"));
        let error = error.with("type_id", &*name.id);
        return Err(error.with("type_version", version));
    };
    Ok(respond_tagged(
        &registry.descriptor_json(descriptor),
        &headers,
    ))
}

/// JSON whose entity tag is the hash of its text.
fn respond_tagged(value: &serde_json::Value, headers: &HeaderMap) -> Response {
    let bytes = Bytes::from(value.to_string());
    Content {
        etag: etag(BlobHash::of(&bytes)),
        media_type: JSON,
        cache: REVALIDATE,
        bytes,
    }
    .respond_whole(headers)
}
