//! Contexts: create, fork, show, label and list.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use turnkeep_store::{Command, Context, CreateContext, Labels};
use turnkeep_types::ContextId;
use turnkeep_wire::json;

use super::extract::{At, Query, Small, parse_json};
use super::query::{ContextQuery, ContextsQuery, NoQuery};
use crate::convert;
use crate::error::ApiError;
use crate::guarded_store::WriteTarget;
use crate::shared::Shared;

/// Contexts that one page may hold.
const PAGE_CONTEXTS_MAX: usize = 1000;
/// Contexts that one request may examine before it answers with what it has found.
const SCAN_CONTEXTS_MAX: usize = 100_000;
/// A page ends with the context whose labels bring it to this size.
const PAGE_LABEL_BYTES_MAX: usize = 512 << 10;

/// The header of an answer that repeats the first request's answer.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Creates a context, empty or from a base turn.
#[utoipa::path(post, path = "/v1/contexts", tag = "contexts", request_body = json::CreateContextBody,
    responses((status = 201, description = "Created, now or by the first request with this key", body = json::Context,
        headers(("Idempotency-Replayed" = String, description = "`true` when an earlier request did it")))))]
pub(crate) async fn create(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    Small(body): Small,
) -> Result<Response, ApiError> {
    create_context(&shared, read_creation(&shared, &body)?).await
}

/// Creates a context; an alias of `POST /v1/contexts`.
#[utoipa::path(post, path = "/v1/contexts/create", tag = "contexts", request_body = json::CreateContextBody,
    responses((status = 201, description = "Created, now or by the first request with this key", body = json::Context,
        headers(("Idempotency-Replayed" = String, description = "`true` when an earlier request did it")))))]
pub(crate) async fn create_alias(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    Small(body): Small,
) -> Result<Response, ApiError> {
    create_context(&shared, read_creation(&shared, &body)?).await
}

/// Creates a context whose head is a turn, without copying anything.
#[utoipa::path(post, path = "/v1/contexts/fork", tag = "contexts", request_body = json::ForkContext,
    responses((status = 201, description = "Created, now or by the first request with this key", body = json::Context,
        headers(("Idempotency-Replayed" = String, description = "`true` when an earlier request did it")))))]
pub(crate) async fn fork(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    Small(body): Small,
) -> Result<Response, ApiError> {
    let request: json::ForkContext = parse_json(&body, &shared.policy.limits)?;
    create_context(&shared, request.into()).await
}

/// Reads the request. An empty body creates an empty context.
fn read_creation(shared: &Shared, body: &[u8]) -> Result<json::CreateContextBody, ApiError> {
    if body.is_empty() {
        Ok(json::CreateContextBody::default())
    } else {
        parse_json(body, &shared.policy.limits)
    }
}

async fn create_context(
    shared: &Shared,
    request: json::CreateContextBody,
) -> Result<Response, ApiError> {
    let policy = &shared.policy;
    let labels = convert::labels(policy, request.labels.unwrap_or_default())?;
    let create = CreateContext {
        base: request.base_turn_id.and_then(json::Id::turn),
        key: convert::key(policy, request.idempotency_key.unwrap_or_default().into())?,
        labels: labels.clone(),
    };
    let created = shared.store.create_context(create).await?;
    let context = json::Context {
        context_id: created.context.into(),
        head_turn_id: created.head.into(),
        head_depth: created.head_depth,
        created_at: json::Time(created.created_at),
        labels,
        creation_lost: false,
        head_lost: false,
    };
    Ok(respond_replayed(
        StatusCode::CREATED,
        created.replayed,
        context,
    ))
}

/// A response with a header that says whether an earlier request did the work.
pub(crate) fn respond_replayed(
    status: StatusCode,
    replayed: bool,
    body: impl serde::Serialize,
) -> Response {
    let response = (status, Json(body));
    if replayed {
        ([(REPLAYED, "true")], response).into_response()
    } else {
        response.into_response()
    }
}

/// Shows a context.
#[utoipa::path(get, path = "/v1/contexts/{context_id}", tag = "contexts",
    params(
        ("context_id" = json::Id, Path),
        ("include_provenance" = Option<bool>, Query, description = "Accepted for clients of similar stores; has no effect"),
    ),
    responses((status = 200, description = "The context as it is now", body = json::Context)))]
pub(crate) async fn show(
    State(shared): State<Arc<Shared>>,
    At(id): At<ContextId>,
    Query(ContextQuery): Query<ContextQuery>,
) -> Result<Json<json::Context>, ApiError> {
    Ok(Json(context_shape(shared.store.context(id)?)))
}

/// Replaces a context's labels.
#[utoipa::path(patch, path = "/v1/contexts/{context_id}", tag = "contexts", params(("context_id" = json::Id, Path)),
    request_body = json::PatchContext,
    responses((status = 200, description = "The context with its new labels", body = json::Context)))]
pub(crate) async fn patch(
    State(shared): State<Arc<Shared>>,
    At(id): At<ContextId>,
    Query(NoQuery): Query<NoQuery>,
    Small(body): Small,
) -> Result<Json<json::Context>, ApiError> {
    // As in an append: a request that a world refuses costs no parsing.
    let grant = shared.store.grant_write(WriteTarget::Context(id))?;
    let patch: json::PatchContext = parse_json(&body, &shared.policy.limits)?;
    let labels = convert::labels(&shared.policy, patch.labels)?;
    let command = Command::SetLabels {
        context: id,
        labels,
    };
    shared.store.run(grant, command).await?;
    Ok(Json(context_shape(shared.store.context(id)?)))
}

/// Lists contexts, newest created first. A page may be short although more follow: go on until
/// `next_cursor` is null.
#[utoipa::path(get, path = "/v1/contexts", tag = "contexts",
    params(
        ("limit" = Option<u64>, Query, description = "At most so many, 64 unless given; clamped to 1000"),
        ("cursor" = Option<String>, Query, description = "A page's `next_cursor`"),
        ("label" = Option<Vec<String>>, Query, description = "`key` or `key=value`; may come more than once, then all must hold"),
        ("worlds" = Option<bool>, Query, description = "`0` leaves out the contexts of worlds; `1` unless given"),
        ("include_provenance" = Option<bool>, Query, description = "Accepted for clients of similar stores; has no effect"),
    ),
    responses((status = 200, description = "A page of contexts", body = json::ContextPage)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<ContextsQuery>,
) -> Result<Json<json::ContextPage>, ApiError> {
    read_page(&shared, query).await.map(Json)
}

/// Reads a page of contexts. A page that may pass over many contexts is made on a thread of its
/// own.
pub(crate) async fn read_page(
    shared: &Arc<Shared>,
    query: ContextsQuery,
) -> Result<json::ContextPage, ApiError> {
    // Without a filter every context that is examined is listed, so the page is short work.
    if query.labels.is_empty() && query.worlds {
        return Ok(make_page(shared, &query));
    }
    let reader = Arc::clone(shared);
    shared
        .blocking(move || Ok(make_page(&reader, &query)))
        .await
}

/// A page of contexts.
pub(crate) fn make_page(shared: &Shared, query: &ContextsQuery) -> json::ContextPage {
    let limit = query.limit.min(PAGE_CONTEXTS_MAX);
    let (mut contexts, mut label_bytes) = (Vec::new(), 0);
    let mut last = query.before;
    for (looked_at, context) in shared.store.contexts(query.before).enumerate() {
        // Checked when one more context is known, so a page that ends exactly here has no cursor.
        let is_full = contexts.len() == limit || label_bytes >= PAGE_LABEL_BYTES_MAX;
        if is_full || looked_at == SCAN_CONTEXTS_MAX {
            let next_cursor = last.map(|id| id.to_string());
            return json::ContextPage {
                contexts,
                next_cursor,
            };
        }
        last = Some(context.id);
        let is_listed = query.worlds || !shared.store.is_owned_by_world(context.id);
        if is_listed && has_labels(&context.labels, &query.labels) {
            label_bytes += text_bytes(&context.labels);
            contexts.push(context_shape(context));
        }
    }
    json::ContextPage {
        contexts,
        next_cursor: None,
    }
}

fn text_bytes(labels: &Labels) -> usize {
    let pairs = labels.iter();
    pairs.map(|(key, value)| key.len() + value.len()).sum()
}

fn has_labels(labels: &Labels, wanted: &[(String, Option<String>)]) -> bool {
    wanted.iter().all(|(key, value)| match value {
        Some(value) => labels.get(key) == Some(value),
        None => labels.contains_key(key),
    })
}

/// A context as JSON.
pub(crate) fn context_shape(context: Context) -> json::Context {
    json::Context {
        context_id: context.id.into(),
        head_turn_id: context.head.into(),
        head_depth: context.head_depth,
        created_at: json::Time(context.created_at),
        labels: Arc::unwrap_or_clone(context.labels),
        creation_lost: context.creation_lost,
        head_lost: context.head_lost,
    }
}
