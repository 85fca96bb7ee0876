//! What somebody could see at a time: one's own, or anybody's for the audit.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use turnkeep_ledger::ids::{Name, OPERATOR};
use turnkeep_ledger::{Code, Fault, Viewer, World, as_of};
use turnkeep_wire::json as wire;

use super::super::extract::Query;
use super::super::query::ViewsQuery;
use super::seat::{Named, Seat, known_person};
use crate::error::ApiError;
use crate::shared::Shared;

/// What a person could see, now or at a time; and what two people did not both see.
#[utoipa::path(get, path = "/v1/worlds/{world}/views/{person}", tag = "ledger",
    params(
        ("world" = String, Path),
        ("person" = String, Path, description = "A person, or GEORGE"),
        ("as_of" = Option<String>, Query, description = "A time, or a cursor of that view; now unless given"),
        ("vs" = Option<String>, Query, description = "With `audit`: another person, and the answer is the difference"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "At most so many entries, the newest; clamped to 500"),
        ("as" = Option<String>, Query, description = "Owner: as this person"),
        ("audit" = Option<String>, Query, description = "Owner: `1` shows anybody's view"),
    ),
    responses((status = 200, description = "The view, or the difference of two", body = wire::ledger::ViewAnswer)))]
pub(crate) async fn view(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<ViewsQuery>,
    seat: Seat,
    Named(named): Named,
) -> Result<Json<Value>, ApiError> {
    let person = named.get("person").map(String::as_str).unwrap_or_default();
    let own = seat.viewer().as_str() == person;
    if !seat.audit && (!own || query.vs.is_some()) {
        let (path, message) = if own {
            ("vs", "needs audit=1, which is the owner's")
        } else {
            (
                "",
                "this view is not yours: the owner may read it with audit=1",
            )
        };
        return Err(Fault::new(Code::ViewForbidden, path, message).into());
    }
    let viewer = viewer(&seat, person)?;
    let vs = query
        .vs
        .as_deref()
        .map(|other| self::viewer(&seat, other))
        .transpose()?;
    let work = move || {
        Ok(Json(
            seat.handle
                .read_long(|world| compare(world, &viewer, vs, &query))?,
        ))
    };
    shared.blocking(work).await
}

fn viewer(seat: &Seat, person: &str) -> Result<Viewer, ApiError> {
    if person == OPERATOR {
        return Ok(Viewer::operator());
    }
    known_person(&seat.handle, person).map(|name: Name| Viewer::Reader(name))
}

fn compare(
    world: &World,
    viewer: &Viewer,
    vs: Option<Viewer>,
    query: &ViewsQuery,
) -> Result<Value, Fault> {
    let at = match &query.as_of {
        None => world.position(),
        Some(as_of) => as_of::position(world, viewer, as_of, "as_of")?,
    };
    let view = world.view_at(viewer.clone(), at);
    Ok(match vs {
        None => as_of::seen(&view, query.limit),
        Some(other) => as_of::difference(&view, &world.view_at(other, at), query.limit),
    })
}
