//! Questions to the ledger: the four tools, and a person's capsule.
//!
//! A tool writes nothing and moves no clock. A person asks with its own view or the public one; the
//! owner asks as the operator.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use turnkeep_ledger::capsule::Capsule;
use turnkeep_ledger::ids;
use turnkeep_ledger::known_persons::known_persons;
use turnkeep_ledger::tools::{self, Caller, Tool, ToolRequest};
use turnkeep_ledger::{Principal, View, World};
use turnkeep_wire::json as wire;

use super::super::extract::Query;
use super::super::query::{ActingQuery, ReadingQuery};
use super::acting_caller::{ActingCaller, Named, known_person, no_person};
use super::body;
use crate::error::ApiError;
use crate::shared::Shared;

/// Asks a tool: `LEDGER_SEARCH`, `LEDGER_GET`, `CAPSULE_GET` or `SCENE_PACK_BUILD`.
#[utoipa::path(post, path = "/v1/worlds/{world}/tools", tag = "ledger",
    params(("world" = String, Path), ("as" = Option<String>, Query, description = "Owner: as this person")),
    request_body = wire::ledger::ToolRequest,
    responses((status = 200, description = "A RetrievalResultPack, CapsulePack or SceneAnchorPack", body = wire::ledger::ToolAnswer)))]
pub(crate) async fn ask(
    State(shared): State<Arc<Shared>>,
    Query(ActingQuery): Query<ActingQuery>,
    acting: ActingCaller,
    body: body::Json,
) -> Result<Json<Value>, ApiError> {
    let world_caller = acting.into_world_caller();
    world_caller.count_call(&shared)?;
    let caller = Caller::from_principal(&world_caller.who);
    let work = move || {
        let request = ToolRequest::parse(&body.document)?;
        let answer = |world: &World| answer_tool(world, &caller, &request);
        world_caller.handle.read_long(answer).map(Json)
    };
    shared.blocking(work).await
}

/// Answers a tool request from the world as it is now.
fn answer_tool(world: &World, caller: &Caller, request: &ToolRequest) -> Result<Value, ApiError> {
    let answer = tools::answer(world, world.position(), caller, request, None)?;
    // The author is checked after everything else, so that a request with another's name or view
    // learns nothing about persons. The ledger itself does not check it: it makes recorded answers
    // again, and those must not change.
    if let (Tool::LedgerSearch, Some(author)) = (request.tool, &request.person_id) {
        let viewer = tools::knowledge_view(&request.knowledge_view, caller, world)?;
        check_author(&world.view(viewer), caller, author)?;
    }
    Ok(answer)
}

/// Rejects a search for entries of somebody whom the view does not know, which is probably a
/// misspelt name. The error lists only persons that the view may show.
fn check_author(view: &View<'_>, caller: &Caller, author: &str) -> Result<(), ApiError> {
    let is_voice = [ids::WORLD, ids::SYSTEM].contains(&author);
    let is_known = || {
        let known = known_persons(view);
        known.iter().any(|person| person.id.as_str() == author)
    };
    if is_voice || author == caller.identity || is_known() {
        Ok(())
    } else {
        Err(no_person(view, author))
    }
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
    acting: ActingCaller,
    named: Named,
) -> Result<Json<Value>, ApiError> {
    let person = named.segment("person").to_owned();
    let is_audit = acting.audit;
    let mut world_caller = acting.into_world_caller();
    if is_audit {
        world_caller.who = Principal::Person {
            id: known_person(&world_caller.handle, &person)?,
            write: false,
        };
    }
    world_caller.count_call(&shared)?;
    world_caller
        .read_view(&shared, move |view| {
            Ok(Json(Capsule::build(view, &person).pack()))
        })
        .await
}
