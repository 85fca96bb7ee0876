//! The OpenAPI document. It is generated from the route table, served, and checked in as
//! `docs/openapi.json`.

use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use turnkeep_wire::json as wire;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{Components, ContentBuilder, Ref, RefOr, Required, ResponseBuilder};
use utoipa::{IntoParams, OpenApi};

use super::blobs;
use super::extract::Query;
use super::query::NoQuery;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Turnkeep",
        description = "The store's HTTP gateway: a durable, branchable, typed turn store. Every error has the form \
            of ErrorReply. Unknown query parameters, query values and body fields are refused with 400.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(
        wire::ErrorReply, wire::TurnAppended, wire::ContextCreated, wire::TurnLost, wire::ContextLost, wire::FsAttached, wire::RegistryPut, wire::FsSymlink, wire::WorldChanged,
        wire::SessionChanged, wire::RunChanged, wire::AttentionChanged
    )),
    tags(
        (name = "contexts", description = "Branch heads"),
        (name = "turns", description = "Immutable turns and their payloads"),
        (name = "filesystem", description = "The files of a turn"),
        (name = "blobs", description = "Bytes by their hash"),
        (name = "registry", description = "Types and their descriptors"),
        (name = "events", description = "What happened, as it happens"),
        (name = "sessions", description = "Wrapped terminals and their captured turns; the owner's, on loopback"),
        (name = "worlds", description = "Ledgers; the owner's"),
        (name = "persons", description = "Their people; the owner's"),
        (name = "tokens", description = "Their people's tokens; the owner's"),
        (name = "ledger", description = "Writing to a world and reading it, each with one's own eyes"),
        (name = "runs", description = "Graphs of agents; the owner's"),
        (name = "run_events", description = "Their history"),
        (name = "nodes", description = "Their agents"),
        (name = "edges", description = "Who hands work to whom"),
        (name = "approvals", description = "What waits for a decision, and the rules that decide"),
        (name = "artifacts", description = "The files that they make"),
        (name = "changes", description = "What becomes of the files that agents write"),
        (name = "providers", description = "Agent programs and teams"),
        (name = "schemas", description = "JSON Schemas of events and bodies"),
        (name = "refs", description = "Why something is as it is"),
        (name = "mcp", description = "The Model Context Protocol"),
        (name = "server", description = "The server about itself"),
    )
)]
struct Preamble;

/// The document without its routes.
pub(crate) fn preamble() -> utoipa::openapi::OpenApi {
    Preamble::openapi()
}

/// The parameters that say how to show turns.
pub(crate) struct ViewParams;

/// A parameter, its description, and its legal values; none if any text is legal.
type Row = (&'static str, &'static str, &'static [&'static str]);

const VIEW_PARAMS: [Row; 11] = [
    ("view", "`typed` unless given", &["typed", "raw", "both"]),
    (
        "type_hint_mode",
        "Where the descriptor comes from; `inherit` unless given",
        &["inherit", "explicit", "latest"],
    ),
    (
        "as_type_id",
        "With `type_hint_mode=explicit`: the type",
        &[],
    ),
    (
        "as_type_version",
        "With `type_hint_mode=explicit`: its version",
        &[],
    ),
    (
        "include_unknown",
        "Whether to show what the descriptor does not know; `0` unless given",
        FLAG,
    ),
    (
        "bytes_render",
        "How to show bytes; `base64` unless given",
        &["base64", "hex", "len_only"],
    ),
    (
        "bytes_format",
        "Another name of `bytes_render`",
        &["base64", "hex", "len_only"],
    ),
    (
        "u64_format",
        "How to show integers of 64 bits; `string` unless given",
        &["string", "number"],
    ),
    (
        "enum_render",
        "How to show enums; `label` unless given",
        &["label", "number", "both"],
    ),
    (
        "time_render",
        "How to show times; `iso` unless given",
        &["iso", "unix_ms"],
    ),
    (
        "include_provenance",
        "Accepted for clients of similar stores; has no effect",
        FLAG,
    ),
];

/// The spellings of no and yes.
const FLAG: &[&str] = &["0", "1", "false", "true"];

impl IntoParams for ViewParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let parameter = |(name, description, legal): Row| {
            let legal = (!legal.is_empty()).then(|| legal.iter().copied());
            let schema = ObjectBuilder::new()
                .schema_type(Type::String)
                .enum_values(legal)
                .build();
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Query)
                .required(Required::False)
                .description(Some(description))
                .schema(Some(schema))
                .build()
        };
        VIEW_PARAMS.map(parameter).into()
    }
}

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    let mut document = super::routes().into_openapi();
    env!("CARGO_PKG_VERSION").clone_into(&mut document.info.version);
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let cookie = "Set by `/?token=…` for browsers; the name ends in the server's port. Without an Origin it only reads.";
    let cookie = ApiKey::Cookie(ApiKeyValue::with_description("turnkeep-PORT", cookie));
    let components = document.components.get_or_insert_with(Components::new);
    components.add_security_scheme("token", bearer);
    components.add_security_scheme("cookie", SecurityScheme::ApiKey(cookie));
    let paths = std::mem::take(&mut document.paths.paths);
    for (path, mut item) in paths {
        for operation in operations_of(&mut item) {
            complete_operation(operation, &path);
        }
        document.paths.paths.insert(path.replace("{*", "{"), item);
    }
    let mut document = serde_json::to_value(document).unwrap_or_default();
    correct_schemas(&mut document);
    format!("{document:#}\n")
});

/// Corrects what the derives get wrong. Our integers are unsigned, but get the formats of signed ones.
/// Bytes are described as a list of numbers.
fn correct_schemas(part: &mut Value) {
    match part {
        Value::Object(map) => {
            let is_unsigned = matches!(map.get("minimum").and_then(Value::as_u64), Some(0 | 1));
            if is_unsigned && map.remove("format") == Some("int32".into()) {
                map.insert("maximum".to_owned(), u32::MAX.into());
            }
            if let Some(bytes) = map.get_mut(blobs::BYTES) {
                *bytes = json!({"schema": {"type": "string", "format": "binary"}});
            }
            map.values_mut().for_each(correct_schemas);
        }
        Value::Array(list) => list.iter_mut().for_each(correct_schemas),
        _ => {}
    }
}

fn operations_of(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem {
        get,
        head,
        post,
        put,
        patch,
        delete,
        ..
    } = item;
    [get, head, post, put, patch, delete].into_iter().flatten()
}

/// Adds what every operation has: the form of errors, a unique id, and, except for the two health
/// routes, the token.
fn complete_operation(operation: &mut Operation, path: &str) {
    let body = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("ErrorReply")))
        .build();
    let error = ResponseBuilder::new()
        .description("An error")
        .content("application/json", body)
        .build();
    operation
        .responses
        .responses
        .insert("default".to_owned(), error.into());
    if let (Some(id), Some([tag])) = (&mut operation.operation_id, operation.tags.as_deref()) {
        // Handlers in different files share names such as `list`; the tag makes the id unique.
        *id = format!("{tag}_{id}");
    }
    // The derive cannot say that an empty body creates an empty context.
    if matches!(path, "/v1/contexts" | "/v1/contexts/create")
        && let Some(RefOr::T(body)) = &mut operation.request_body
    {
        body.required = Some(Required::False);
    }
    if !matches!(path, "/healthz" | "/health") {
        let with = |scheme: &str| SecurityRequirement::new(scheme, Vec::<String>::new());
        operation.security = Some(vec![with("token"), with("cookie")]);
    }
}

/// The OpenAPI document of the gateway, as it is served.
pub fn openapi_json() -> &'static str {
    &DOCUMENT
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "server",
    responses((status = 200, description = "The OpenAPI document", body = Object)))]
pub(crate) async fn document(Query(NoQuery): Query<NoQuery>) -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi_json()).into_response()
}
