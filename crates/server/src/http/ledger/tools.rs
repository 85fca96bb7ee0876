//! Questions to the ledger: the four tools, and a person's capsule.
//!
//! A tool writes nothing and moves no clock. A person asks with its own eyes or the public's; the
//! owner asks as the operator.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use turnkeep_ledger::ids::TokenId;
use turnkeep_ledger::tools::{Caller, ToolRequest, answer};
use turnkeep_ledger::{Fault, Principal};
use turnkeep_wire::{ErrorCode, json as wire};

use super::super::extract::Query;
use super::super::query::{ActingQuery, ReadingQuery};
use super::body;
use super::seat::{Named, Seat, known_person};
use crate::error::ApiError;
use crate::ledger::WorldHandle;
use crate::shared::Shared;

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
    world_caller
        .ask_tool(&shared, body.document)
        .await
        .map(Json)
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
    let person = named.get("person").map(String::as_str).unwrap_or_default();
    let who = if seat.audit {
        Principal::Person {
            id: known_person(&seat.handle, person)?,
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
    let constraints = json!({ "person_id": person });
    let mut pack = world_caller
        .ask_tool(
            &shared,
            world_caller.tool_request("CAPSULE_GET", "", &constraints),
        )
        .await?;
    if let Some(pack) = pack.as_object_mut() {
        // The caller sent no tool request, so the answer repeats no ids.
        pack.shift_remove("tool_request_id");
        pack.shift_remove("request_id");
    }
    Ok(Json(pack))
}

/// A caller of tools in one world.
pub(crate) struct WorldCaller {
    /// The world.
    pub(crate) handle: Arc<WorldHandle>,
    /// The caller's identity in the world.
    pub(crate) who: Principal,
    /// A person's token. Its calls are counted.
    pub(crate) token: Option<TokenId>,
}

impl WorldCaller {
    /// Counts a call of a person's token. Rejects the call if there were too many.
    pub(crate) fn count_call(&self, shared: &Shared) -> Result<(), ApiError> {
        self.token
            .map_or(Ok(()), |token| shared.tool_rate.admit(token))
    }

    /// Rejects a token that was revoked or has expired meanwhile.
    pub(crate) fn check_token(&self) -> Result<(), ApiError> {
        let Some(token) = self.token else {
            return Ok(());
        };
        let now = self.handle.now();
        let counts = self.handle.read(|world| {
            world
                .token(token)
                .is_some_and(|token| token.expires_at.is_none_or(|end| now < end))
        });
        if counts {
            Ok(())
        } else {
            Err(ApiError::new(
                ErrorCode::Unauthorized,
                "the token counts no more",
            ))
        }
    }

    /// Parses a tool request and returns the tool's answer.
    pub(crate) async fn ask_tool(
        &self,
        shared: &Arc<Shared>,
        request: Value,
    ) -> Result<Value, ApiError> {
        self.count_call(shared)?;
        let (handle, caller) = (Arc::clone(&self.handle), Caller::from_principal(&self.who));
        let work = move || {
            let request = ToolRequest::parse(&request)?;
            let answered: Result<Value, Fault> =
                handle.read_long(|world| answer(world, world.position(), &caller, &request, None));
            answered.map_err(ApiError::from)
        };
        shared.blocking(work).await
    }

    /// Builds a tool request for the caller.
    pub(crate) fn tool_request(&self, tool: &str, query_text: &str, constraints: &Value) -> Value {
        let caller = Caller::from_principal(&self.who);
        json!({
            "tool_request_id": tool,
            "request_id": tool,
            "requested_by": {
                "engine": "turnkeep", "actor": caller.identity, "knowledge_view": self.who.viewer().as_str(),
            },
            "tool": { "name": tool, "query_text": query_text, "constraints": constraints },
        })
    }
}
