//! What was done with a world, what was made from it, and whether it is sound. It is the owner's.
//!
//! Both are read from the world's own contexts in the store, oldest first. A token is shown without
//! its secret's hash. What was made from a world may quote what the operator may not see, so
//! reading it leaves a line.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use turnkeep_ledger::as_of::ENTRIES_MAX;
use turnkeep_ledger::fact::{AuditLine, Fact};
use turnkeep_ledger::log::WorldContexts;
use turnkeep_ledger::time::WorldTime;
use turnkeep_ledger::{log, record, verify};
use turnkeep_store::{Store, Turn};
use turnkeep_types::{ContextId, Timestamp};
use turnkeep_wire::json as wire;

use super::super::extract::Query;
use super::super::query::{LinesQuery, VerifyQuery};
use super::seat::{Named, Seat, leave_line};
use super::tokens;
use crate::error::ApiError;
use crate::ledger::LedgerError;
use crate::shared::Shared;

/// The lines of the audit: rejections, changes of configuration, people and tokens, acting as a
/// person, audit reads.
#[utoipa::path(get, path = "/v1/worlds/{world}/audit/lines", tag = "ledger",
    params(
        ("world" = String, Path),
        ("cursor" = Option<u64>, Query, description = "A page's `next_cursor`"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "At most so many; clamped to 500"),
    ),
    responses((status = 200, description = "Oldest first", body = wire::ledger::AuditPage)))]
pub(crate) async fn lines(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<LinesQuery>,
    seat: Seat,
) -> Result<Json<Value>, ApiError> {
    let context = seat.handle.contexts().await.map(|contexts| contexts.audit);
    page(&shared, context, query).await
}

/// What was made from the world: scenes, notes, and what its attached writer was told.
#[utoipa::path(get, path = "/v1/worlds/{world}/audit/derived", tag = "ledger",
    params(
        ("world" = String, Path),
        ("cursor" = Option<u64>, Query, description = "A page's `next_cursor`"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "At most so many; clamped to 500"),
    ),
    responses((status = 200, description = "Oldest first", body = wire::ledger::AuditPage)))]
pub(crate) async fn derived(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<LinesQuery>,
    seat: Seat,
) -> Result<Json<Value>, ApiError> {
    leave_line(&seat.handle, "audit-read", &json!({ "what": "derived" })).await?;
    let context = seat
        .handle
        .contexts()
        .await
        .map(|contexts| contexts.derived);
    page(&shared, context, query).await
}

/// Checks everything that a world recorded against itself.
#[utoipa::path(get, path = "/v1/worlds/{world}/verify", tag = "ledger",
    params(
        ("world" = String, Path),
        ("leaks" = Option<String>, Query, description = "`1` also lists verbatim runs that an author could not have seen"),
    ),
    responses((status = 200, description = "What was checked, and what is wrong", body = wire::ledger::Verification)))]
pub(crate) async fn verify(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<VerifyQuery>,
    Named(named): Named,
    seat: Result<Seat, ApiError>,
) -> Result<Json<Value>, ApiError> {
    let unreadable = named
        .get("world")
        .and_then(|world| shared.worlds.unreadable_contexts(world));
    let contexts = match (seat, unreadable) {
        (Ok(seat), _) => {
            leave_line(
                &seat.handle,
                "audit-read",
                &json!({ "what": "verify", "leaks": query.leaks }),
            )
            .await?;
            seat.handle.contexts().await
        }
        // This is how its owner learns what is damaged; no line can be left there.
        (Err(_), Some(contexts)) => Some(contexts),
        (Err(error), None) => return Err(error),
    };
    let reader = Arc::clone(&shared);
    shared
        .blocking(move || report(reader.store.ledger_store(), contexts, query).map(Json))
        .await
}

fn report(
    store: &Store,
    contexts: Option<WorldContexts>,
    query: VerifyQuery,
) -> Result<Value, ApiError> {
    let Some(contexts) = contexts else {
        return Ok(verify::Report::default().to_json());
    };
    let found = verify::verify(store, contexts).map_err(LedgerError::from)?;
    let mut report = found.unwrap_or_default().to_json();
    if query.leaks {
        // A world of its own, so that nobody waits for the search. One that cannot be read has no
        // leaks but faults.
        let world = log::load(store, contexts).ok().flatten();
        let leaks = world
            .map(|loaded| verify::leaks(&loaded.world))
            .unwrap_or_default();
        let shown = leaks.iter().map(|leak| {
            json!({
                "entry_id": leak.entry.to_string(),
                "source_entry_id": leak.source.to_string(),
                "text": leak.text,
            })
        });
        report["leaks"] = shown.collect();
    }
    Ok(report)
}

async fn page(
    shared: &Arc<Shared>,
    context: Option<ContextId>,
    query: LinesQuery,
) -> Result<Json<Value>, ApiError> {
    let Some(context) = context else {
        return Ok(Json(json!({ "lines": [], "next_cursor": null })));
    };
    let reader = Arc::clone(shared);
    let read = move || {
        let limit = query.limit.min(ENTRIES_MAX);
        let from = u32::try_from(query.cursor).unwrap_or(u32::MAX);
        let turns = reader
            .store
            .ledger_store()
            .range(context, from, limit + 1)?;
        let shown = turns.iter().take(limit).map(|turn| line(&reader, turn));
        let lines = shown.collect::<Result<Vec<_>, _>>()?;
        let next_cursor = (turns.len() > limit).then(|| (query.cursor + limit).to_string());
        Ok(Json(json!({ "lines": lines, "next_cursor": next_cursor })))
    };
    shared.blocking(read).await
}

/// A record as a line.
fn line(shared: &Shared, turn: &Turn) -> Result<Value, ApiError> {
    let payload = shared.store.ledger_store().payload(turn)?;
    let fact = record::decode(&turn.declared, &payload.raw()?).map_err(ApiError::internal)?;
    let AuditLine {
        at,
        principal,
        what,
        request,
        details,
    } = as_line(fact, turn.created_at);
    let details: Value = serde_json::from_str(&details).unwrap_or_else(|_| details.into());
    Ok(json!({
        "at": WorldTime::from_timestamp(at).as_str(),
        "principal": principal,
        "what": what,
        "request_id": request.as_deref(),
        "details": details,
    }))
}

fn as_line(fact: Fact, at: Timestamp) -> AuditLine {
    let line = |what: &str, details: Value| AuditLine {
        at,
        principal: "owner".to_owned(),
        what: what.to_owned(),
        request: None,
        details: details.to_string(),
    };
    match fact {
        Fact::AuditLine(line) => line,
        Fact::Config(config) => line("configured", config.to_json()),
        Fact::Forked(fork) => line("forked", json!({ "world_id": fork.from.as_str() })),
        Fact::Person(person) => line("person", person.to_json()),
        Fact::Token(token) => line("token-minted", tokens::shape(&token)),
        Fact::Revoked(token) => line("token-revoked", json!({ "token_id": token.to_string() })),
        Fact::Outcome(outcome) => AuditLine {
            principal: outcome.principal,
            request: Some(outcome.request),
            ..line("outcome", json!({ "rejection": outcome.rejection }))
        },
        Fact::Scene(scene) => line("scene", json!({ "text": scene.text })),
        Fact::Note(note) => line(
            "note",
            json!({ "person_id": note.person.as_str(), "text": note.text }),
        ),
        Fact::Epoch(epoch) => line(
            "epoch",
            json!({ "number": epoch.number, "anchor": epoch.anchor, "rehydration": epoch.rehydration }),
        ),
        Fact::Entry(_) | Fact::Time(_) | Fact::Item(_) | Fact::Bundle(_) => {
            line("reality", Value::Null)
        }
    }
}
