//! The HTTP gateway. This file is the route table; each resource has a file with its handlers.
//!
//! A route is registered together with its description, so the OpenAPI document always matches the
//! routes. Three routes have no description: `/ws`, `/signin`, and the filesystem route with a trailing
//! slash. What no route matches is a file or a screen of the web UI, or an error.
//! Every request passes the gate first, and every error is an `ErrorReply`.

mod append;
mod blobs;
mod body;
pub(crate) mod content;
pub(crate) mod contexts;
mod demo;
mod error_response;
mod events;
mod export;
pub(crate) mod extract;
mod fs;
mod gate;
mod health;
pub(crate) mod ledger;
mod linger;
mod notices;
pub(crate) mod once;
mod openapi;
mod page;
pub mod query;
mod registry;
pub(crate) mod runs;
mod serve;
mod sessions;
mod settings;
pub(crate) mod sse;
mod stall;
mod stats;
mod terminal;
pub(crate) mod turns;
mod ui;
mod why;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use export::EXPORTS_MAX;
pub use openapi::openapi_json;
pub(crate) use serve::serve_http;

use crate::mcp;
use crate::shared::Shared;

/// Every route.
fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::with_openapi(openapi::preamble())
        .routes(routes!(contexts::list, contexts::create))
        .routes(routes!(contexts::create_alias))
        .routes(routes!(contexts::fork))
        .routes(routes!(contexts::show, contexts::patch))
        .routes(routes!(turns::page, append::append))
        .routes(routes!(append::append_alias))
        .routes(routes!(turns::show))
        .routes(routes!(fs::root))
        .routes(routes!(fs::path))
        // The path of the root is empty, and a router takes no empty segment for `{*path}`.
        .route("/v1/turns/{turn_id}/fs/", axum::routing::get(fs::root))
        .routes(routes!(blobs::named))
        .routes(routes!(blobs::get, blobs::head, blobs::put))
        .routes(routes!(registry::get_bundle, registry::put_bundle))
        .routes(routes!(registry::types))
        .routes(routes!(registry::type_version))
        .routes(routes!(events::all))
        .routes(routes!(events::of_context))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::turns))
        .routes(routes!(sessions::turn))
        .routes(routes!(sessions::capture))
        .routes(routes!(sessions::paste))
        .routes(routes!(sessions::deliver))
        .routes(routes!(sessions::keep))
        .routes(routes!(why::why))
        .routes(routes!(demo::demo))
        .routes(routes!(settings::settings))
        .routes(routes!(stats::stats))
        .routes(routes!(stats::metrics))
        .routes(routes!(stats::metrics_alias))
        .routes(routes!(export::export))
        .merge(ledger::routes())
        .merge(runs::routes())
        .routes(routes!(mcp::message))
        .routes(routes!(health::healthz))
        .routes(routes!(health::health_alias))
        .routes(routes!(openapi::document))
        .routes(routes!(ui::home))
        .route(
            ui::sign_in::PATH,
            axum::routing::get(ui::sign_in::skip).post(ui::sign_in::submit),
        )
        .route("/ws", axum::routing::get(runs::ws::open))
}

/// The whole gateway.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::from(routes())
        .fallback(ui::unrouted)
        .method_not_allowed_fallback(error_response::unknown_method)
        .layer(from_fn_with_state(Arc::clone(&shared), gate::guard_request))
        .with_state(shared)
}
