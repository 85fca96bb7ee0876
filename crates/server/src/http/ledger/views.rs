//! What a reader could see at a time: the caller's own view, or anybody's for the audit.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use turnkeep_ledger::ids::{Name, OPERATOR};
use turnkeep_ledger::{Code, Fault, Viewer, World, as_of};
use turnkeep_wire::json as wire;

use super::super::extract::Query;
use super::super::query::ViewsQuery;
use super::acting_caller::{ActingCaller, Named, known_person};
use super::shapes::{difference_shape, seen_shape};
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
    acting: ActingCaller,
    named: Named,
) -> Result<Json<wire::ledger::ViewAnswer>, ApiError> {
    let person = named.segment("person");
    let own = acting.viewer().as_str() == person;
    // Before a name is looked up: the answer must not show whether such a person exists.
    if !acting.audit && (!own || query.vs.is_some()) {
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
    let viewer = viewer_named(&acting, person)?;
    let vs = query
        .vs
        .as_deref()
        .map(|other| viewer_named(&acting, other))
        .transpose()?;
    let work = move || {
        Ok(Json(acting.handle.read_long(|world| {
            read_views(world, &viewer, vs, &query)
        })?))
    };
    shared.blocking(work).await
}

fn viewer_named(acting: &ActingCaller, person: &str) -> Result<Viewer, ApiError> {
    if person == OPERATOR {
        return Ok(Viewer::operator());
    }
    known_person(&acting.handle, person).map(|name: Name| Viewer::Reader(name))
}

/// The view at the requested time, or its difference to the other reader's view.
fn read_views(
    world: &World,
    viewer: &Viewer,
    vs: Option<Viewer>,
    query: &ViewsQuery,
) -> Result<wire::ledger::ViewAnswer, Fault> {
    let at = match &query.as_of {
        None => world.position(),
        Some(as_of) => as_of::position(world, viewer, as_of, "as_of")?,
    };
    let view = world.view_at(viewer.clone(), at);
    Ok(match vs {
        None => seen_shape(&view, &as_of::seen(&view, query.limit)),
        Some(other) => {
            let other = world.view_at(other, at);
            difference_shape(
                &view,
                &other,
                &as_of::difference(&view, &other, query.limit),
            )
        }
    })
}
