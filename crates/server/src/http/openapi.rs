//! The OpenAPI document: made of the route table, served, and checked in as `docs/openapi.json`.

use std::sync::{Arc, LazyLock};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use turnkeep_wire::json;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, ContentBuilder, Ref, ResponseBuilder};
use utoipa::{IntoParams, OpenApi};

use super::extract::Query;
use super::query::NoQuery;
use crate::shared::Shared;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Turnkeep",
        description = "The store's HTTP gateway: a durable, branchable, typed turn store. Every error has the form \
            of ErrorReply. Unknown query parameters, query values and body fields are refused with 400.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(
        json::ErrorReply, json::TurnAppended, json::ContextCreated, json::FsAttached, json::RegistryPut, json::FsSymlink
    )),
    tags(
        (name = "contexts", description = "Branch heads"),
        (name = "turns", description = "Immutable turns and their payloads"),
        (name = "filesystem", description = "The files of a turn"),
        (name = "blobs", description = "Bytes by their hash"),
        (name = "registry", description = "Types and their descriptors"),
        (name = "events", description = "What happened, as it happens"),
        (name = "server", description = "The server about itself"),
    )
)]
struct Preamble;

/// The document without its routes.
pub(crate) fn preamble() -> utoipa::openapi::OpenApi {
    Preamble::openapi()
}

/// How to show turns.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes what the query parser reads")]
pub(crate) struct ViewParams {
    /// `typed` unless given.
    #[param(inline, schema_with = || words(&["typed", "raw", "both"]))]
    view: Option<String>,
    /// Where the descriptor comes from; `inherit` unless given.
    #[param(inline, schema_with = || words(&["inherit", "explicit", "latest"]))]
    type_hint_mode: Option<String>,
    /// With `type_hint_mode=explicit`: the type.
    as_type_id: Option<String>,
    /// With `type_hint_mode=explicit`: its version.
    as_type_version: Option<u32>,
    /// Whether to show what the descriptor does not know; `0` unless given.
    #[param(inline, schema_with = || words(&["0", "1"]))]
    include_unknown: Option<String>,
    /// How to show bytes; `base64` unless given.
    #[param(inline, schema_with = || words(&["base64", "hex", "len_only"]))]
    bytes_render: Option<String>,
    /// Another name of `bytes_render`.
    #[param(inline, schema_with = || words(&["base64", "hex", "len_only"]))]
    bytes_format: Option<String>,
    /// How to show integers of 64 bits; `string` unless given.
    #[param(inline, schema_with = || words(&["string", "number"]))]
    u64_format: Option<String>,
    /// How to show enums; `label` unless given.
    #[param(inline, schema_with = || words(&["label", "number", "both"]))]
    enum_render: Option<String>,
    /// How to show times; `iso` unless given.
    #[param(inline, schema_with = || words(&["iso", "unix_ms"]))]
    time_render: Option<String>,
}

fn words(legal: &'static [&'static str]) -> utoipa::openapi::Object {
    utoipa::openapi::ObjectBuilder::new()
        .schema_type(utoipa::openapi::schema::Type::String)
        .enum_values(Some(legal.iter().copied()))
        .build()
}

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    let mut document = super::routes().into_openapi();
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_with(Components::new).add_security_scheme("token", bearer);
    let paths = std::mem::take(&mut document.paths.paths);
    for (path, mut item) in paths {
        for operation in operations(&mut item) {
            complete(operation, &path);
        }
        document.paths.paths.insert(path.replace("{*", "{"), item);
    }
    let mut text = document.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
});

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, head, post, put, patch, .. } = item;
    [get, head, post, put, patch].into_iter().flatten()
}

/// What holds for every operation: errors have one form, and all but `/healthz` needs the token.
fn complete(operation: &mut Operation, path: &str) {
    let body = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorReply"))).build();
    let error = ResponseBuilder::new().description("An error").content("application/json", body).build();
    operation.responses.responses.insert("default".to_owned(), error.into());
    if path != "/healthz" {
        operation.security = Some(vec![SecurityRequirement::new("token", Vec::<String>::new())]);
    }
}

/// The OpenAPI document of the gateway, as it is served.
pub fn openapi_json() -> &'static str {
    &DOCUMENT
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "server",
    responses((status = 200, description = "The OpenAPI document", body = Object)))]
pub(crate) async fn document(State(_): State<Arc<Shared>>, Query(NoQuery): Query<NoQuery>) -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi_json()).into_response()
}
