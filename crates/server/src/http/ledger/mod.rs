//! The ledger's routes. This file is their table; the handlers have a file per resource.
//!
//! The gate identifies the caller by its token. [`acting_caller::ActingCaller`] adds the world and the person as whom
//! the request acts. Readers get answers from their own view; only the owner's routes read a world
//! or its records directly.

pub(crate) mod access;
pub(crate) mod acting_caller;
mod audit;
mod beats;
mod body;
pub(crate) mod persons;
mod schemas;
mod shapes;
pub(crate) mod stream;
mod subscribe;
mod tokens;
mod tools;
mod views;
mod worlds;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::shared::Shared;

/// Every route of the ledger.
pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new()
        .routes(routes!(worlds::list, worlds::create))
        .routes(routes!(worlds::show, worlds::change))
        .routes(routes!(worlds::fork))
        .routes(routes!(acting_caller::show))
        .routes(routes!(beats::invoke))
        .routes(routes!(beats::invoke_default))
        .routes(routes!(beats::beat))
        .routes(routes!(beats::check))
        .routes(routes!(stream::page))
        .routes(routes!(subscribe::subscribe))
        .routes(routes!(stream::entry))
        .routes(routes!(tools::ask))
        .routes(routes!(tools::capsule))
        .routes(routes!(views::view))
        .routes(routes!(persons::list, persons::add))
        .routes(routes!(tokens::list, tokens::mint))
        .routes(routes!(tokens::revoke))
        .routes(routes!(audit::lines))
        .routes(routes!(audit::derived))
        .routes(routes!(audit::verify))
        .routes(routes!(schemas::schema))
}
