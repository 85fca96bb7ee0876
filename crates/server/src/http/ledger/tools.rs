//! Questions to the ledger: the four tools, and a person's capsule.
//!
//! A tool writes nothing and moves no clock. A person asks with its own view or the public one; the
//! owner asks as the operator.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use turnkeep_ledger::capsule::Capsule;
use turnkeep_ledger::tools::{self, Caller, ToolRequest};
use turnkeep_ledger::{Fault, Principal};
use turnkeep_wire::json as wire;

use super::super::extract::Query;
use super::super::query::{ActingQuery, ReadingQuery};
use super::body;
use super::seat::{Named, Seat, known_person};
use crate::error::ApiError;
use crate::shared::Shared;
use crate::world_caller::WorldCaller;

/// Asks a tool: `LEDGER_SEARCH`, `LEDGER_GET`, `CAPSULE_GET` or `SCENE_PACK_BUILD`.
#[utoipa::path(post, path = "/v1/worlds/{world}/tools", tag = "ledger",
    params(("world" = String, Path), ("as" = Option<String>, Query, description = "Owner: as this person")),
    request_body = wire::ledger::ToolRequest,
    responses((status = 200, description = "A RetrievalResultPack, CapsulePack or SceneAnchorPack", body = wire::ledger::ToolAnswer)))]
pub(crate) async fn ask(
    State(shared): State<Arc<Shared>>,
    Query(ActingQuery): Query<ActingQuery>,
    seat: Seat,
    body: body::Json,
) -> Result<Json<Value>, ApiError> {
    let world_caller = WorldCaller {
        handle: seat.handle,
        who: seat.who,
        token: seat.token,
    };
    world_caller.count_call(&shared)?;
    let caller = Caller::from_principal(&world_caller.who);
    let work = move || {
        let request = ToolRequest::parse(&body.document)?;
        let answered: Result<Value, Fault> = world_caller
            .handle
            .read_long(|world| tools::answer(world, world.position(), &caller, &request, None));
        Ok(Json(answered?))
    };
    shared.blocking(work).await
}

/// What there is to read about a person, with the reader's eyes.
#[utoipa::path(get, path = "/v1/worlds/{world}/persons/{person}/capsule", tag = "ledger",
    params(
        ("world" = String, Path),
        ("person" = String, Path),
        ("as" = Option<String>, Query, description = "Owner: as this person"),
        ("audit" = Option<String>, Query, description = "Owner: `1` reads with the person's own eyes"),
    ),
    responses((status = 200, description = "The capsule", body = wire::ledger::CapsulePack)))]
pub(crate) async fn capsule(
    State(shared): State<Arc<Shared>>,
    Query(ReadingQuery): Query<ReadingQuery>,
    seat: Seat,
    Named(named): Named,
) -> Result<Json<Value>, ApiError> {
    let person = named.get("person").cloned().unwrap_or_default();
    let who = if seat.audit {
        Principal::Person {
            id: known_person(&seat.handle, &person)?,
            write: false,
        }
    } else {
        seat.who
    };
    let world_caller = WorldCaller {
        handle: seat.handle,
        who,
        token: seat.token,
    };
    world_caller.count_call(&shared)?;
    world_caller
        .read_view(&shared, move |view| {
            Ok(Json(Capsule::build(view, &person).pack()))
        })
        .await
}
