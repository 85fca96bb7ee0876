//! The audit of a world, the records derived from it, and its verification; for the owner only.
//!
//! The handlers read the world's contexts in the store, oldest record first. A token is shown
//! without the hash of its secret. Derived records may quote entries that the operator may not see,
//! so reading them adds an audit line.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use turnkeep_ledger::as_of::ENTRIES_MAX;
use turnkeep_ledger::fact::{AuditLine, Fact};
use turnkeep_ledger::log::WorldContexts;
use turnkeep_ledger::verify::Report;
use turnkeep_ledger::{Principal, log, record, verify};
use turnkeep_store::{Store, Turn};
use turnkeep_types::{ContextId, Timestamp};
use turnkeep_wire::json as wire;

use super::super::extract::Query;
use super::super::query::{LinesQuery, VerifyQuery};
use super::acting_caller::{ActingCaller, Named, add_audit_line};
use super::shapes::{time_text, token_shape, verification_shape};
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
    acting: ActingCaller,
) -> Result<Json<wire::ledger::AuditPage>, ApiError> {
    let contexts = acting.handle.contexts().await;
    read_lines(&shared, contexts.map(|contexts| contexts.audit), query).await
}

/// Everything derived from the world: scenes, notes, and the packs that its attached writer received.
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
    acting: ActingCaller,
) -> Result<Json<wire::ledger::AuditPage>, ApiError> {
    add_audit_line(&acting.handle, "audit-read", &json!({ "what": "derived" })).await?;
    let contexts = acting.handle.contexts().await;
    read_lines(&shared, contexts.map(|contexts| contexts.derived), query).await
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
    named: Named,
    acting: Result<ActingCaller, ApiError>,
) -> Result<Json<wire::ledger::Verification>, ApiError> {
    let unreadable = shared.worlds.unreadable_contexts(named.segment("world"));
    let contexts = match (acting, unreadable) {
        (Ok(acting), _) => {
            let details = json!({ "what": "verify", "leaks": query.leaks });
            add_audit_line(&acting.handle, "audit-read", &details).await?;
            acting.handle.contexts().await
        }
        // An unreadable world is verified too, so that its owner learns what is damaged. It cannot
        // get an audit line.
        (Err(_), Some(contexts)) => Some(contexts),
        (Err(error), None) => return Err(error),
    };
    let reader = Arc::clone(&shared);
    shared
        .blocking(move || verify_world(reader.store.ledger_store(), contexts, query).map(Json))
        .await
}

fn verify_world(
    store: &Store,
    contexts: Option<WorldContexts>,
    query: VerifyQuery,
) -> Result<wire::ledger::Verification, ApiError> {
    let Some(contexts) = contexts else {
        return Ok(verification_shape(Report::default(), None));
    };
    let found = verify::verify(store, contexts).map_err(LedgerError::from)?;
    let leaks = query.leaks.then(|| {
        // Loads a second copy of the world, so that no other request waits for the search. A world
        // that cannot be read has faults instead of leaks.
        let loaded = log::load(store, contexts).ok().flatten();
        loaded
            .map(|loaded| verify::leaks(&loaded.world))
            .unwrap_or_default()
    });
    Ok(verification_shape(found.unwrap_or_default(), leaks))
}

async fn read_lines(
    shared: &Arc<Shared>,
    context: Option<ContextId>,
    query: LinesQuery,
) -> Result<Json<wire::ledger::AuditPage>, ApiError> {
    let Some(context) = context else {
        return Ok(Json(wire::ledger::AuditPage {
            lines: Vec::new(),
            next_cursor: None,
        }));
    };
    let reader = Arc::clone(shared);
    let read = move || read_page(reader.store.ledger_store(), context, query).map(Json);
    shared.blocking(read).await
}

fn read_page(
    store: &Store,
    context: ContextId,
    query: LinesQuery,
) -> Result<wire::ledger::AuditPage, ApiError> {
    let limit = query.limit.min(ENTRIES_MAX);
    let from = u32::try_from(query.cursor).unwrap_or(u32::MAX);
    // One more than the page holds, to know whether another page follows.
    let turns = store.range(context, from, limit + 1)?;
    let shown = turns.iter().take(limit);
    let lines: Result<_, ApiError> = shown.map(|turn| read_line(store, turn)).collect();
    Ok(wire::ledger::AuditPage {
        lines: lines?,
        next_cursor: (turns.len() > limit).then(|| (query.cursor + limit).to_string()),
    })
}

/// A record as a line.
fn read_line(store: &Store, turn: &Turn) -> Result<wire::ledger::AuditLine, ApiError> {
    let payload = store.payload(turn)?;
    let fact = record::decode(&turn.declared, &payload.raw()?).map_err(ApiError::internal)?;
    Ok(fact_line(fact, turn.created_at))
}

fn fact_line(fact: Fact, at: Timestamp) -> wire::ledger::AuditLine {
    let line = |what: &str, details: Value| wire::ledger::AuditLine {
        at: Some(time_text(at)),
        principal: Principal::Owner.key(),
        what: what.to_owned(),
        request_id: None,
        details,
    };
    match fact {
        Fact::AuditLine(recorded) => recorded_line(recorded),
        Fact::Config(config) => line("configured", config.to_record()),
        Fact::Forked(fork) => line("forked", json!({ "world_id": fork.from.as_str() })),
        Fact::Person(person) => line("person", person.to_record()),
        Fact::Token(token) => line("token-minted", json!(token_shape(&token))),
        Fact::Revoked(token) => line("token-revoked", json!({ "token_id": token.to_string() })),
        Fact::Outcome(outcome) => wire::ledger::AuditLine {
            principal: outcome.principal,
            request_id: Some(outcome.request.to_string()),
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

/// A line that was recorded as such. Its details are JSON in a text.
fn recorded_line(recorded: AuditLine) -> wire::ledger::AuditLine {
    let AuditLine {
        at,
        principal,
        what,
        request,
        details,
    } = recorded;
    wire::ledger::AuditLine {
        at: Some(time_text(at)),
        principal,
        what,
        request_id: request.map(|request| request.to_string()),
        details: serde_json::from_str(&details).unwrap_or_else(|_| details.into()),
    }
}
