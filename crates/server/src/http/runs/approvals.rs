//! Approvals and the rules that answer some of them, over all runs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use turnkeep_runtime::Run;
use turnkeep_runtime::decide::{self, Surroundings};
use turnkeep_runtime::ids::{ApprovalId, RuleId, RunId};
use turnkeep_runtime::rejection::Rejection;
use turnkeep_wire::runs as wire;

use super::super::extract::{At, Query};
use super::super::query::{NoQuery, RunFilterQuery};
use super::parts::{AnsweredFrom, RequestJson, parse_uuid};
use crate::error::ApiError;
use crate::runs::RunHandle;
use crate::runs::json;
use crate::shared::Shared;

/// Lists the open approvals of all runs, oldest first.
#[utoipa::path(get, path = "/api/approvals", tag = "approvals",
    params(("runId" = Option<String>, Query, description = "Only those of this run")),
    responses((status = 200, description = "Open approvals", body = wire::ApprovalList)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<RunFilterQuery>,
) -> Result<Json<wire::ApprovalList>, ApiError> {
    let mut approvals = Vec::new();
    for handle in filtered(&shared, &query)? {
        let run_id = wire::UuidText::of(handle.id());
        let fixed_programs = handle.programs_with_fixed_args();
        handle.read_live(|run| {
            approvals.extend(run.approvals.values().map(|approval| {
                let row = wire::ApprovalOfRun {
                    run_id: run_id.clone(),
                    approval: json::approval_view(approval),
                    can_edit: Some(decide::takes_changed_args(run, approval, &fixed_programs)),
                    scopes: Some(json::scopes_of(approval)),
                };
                (approval.created_at, row)
            }));
        });
    }
    // Over all runs, the one that has waited longest first.
    approvals.sort_by_key(|(created_at, _)| *created_at);
    let approvals = approvals.into_iter().map(|(_, row)| row).collect();
    Ok(Json(wire::ApprovalList { approvals }))
}

/// The runs that a list is about.
fn filtered(shared: &Shared, query: &RunFilterQuery) -> Result<Vec<Arc<RunHandle>>, ApiError> {
    match &query.run_id {
        Some(text) => {
            let id: RunId = parse_uuid(text, "run")?;
            Ok(vec![shared.runs.get(id)?])
        }
        None => Ok(shared.runs.list()),
    }
}

/// Answers an approval. The first answer counts.
#[utoipa::path(post, path = "/api/approvals/{id}/resolve", tag = "approvals", params(("id" = String, Path)),
    request_body = wire::ResolveApproval,
    responses((status = 200, description = "The answer", body = wire::ApprovalResolvedAnswer)))]
pub(crate) async fn resolve(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    At(id): At<String>,
    AnsweredFrom(by): AnsweredFrom,
    request: RequestJson,
) -> Result<Json<wire::ApprovalResolvedAnswer>, ApiError> {
    let id: ApprovalId = parse_uuid(&id, "approval")?;
    let body: wire::ResolveApproval = request.read()?;
    let interrupt = body.interrupt;
    let resolution = json::resolution_of(body, by);
    let handle = find_by_approval(&shared, id)?;
    let answer = resolution.clone();
    let fixed_programs = handle.programs_with_fixed_args();
    let resolve = move |run: &Run, around: Surroundings<'_>| {
        let answer = answer.clone();
        decide::check_changed_args(run, id, &answer, &fixed_programs)?;
        if interrupt {
            decide::resolve_and_interrupt(run, around, id, answer)
        } else {
            decide::resolve(run, around, id, answer)
        }
    };
    handle.decide_once(request.key(), resolve).await?;
    Ok(Json(wire::ApprovalResolvedAnswer {
        approval_id: wire::UuidText::of(id),
        resolution: json::resolution_view(&resolution),
    }))
}

/// The run in which an approval is open, else one in which it was. A fork has the approvals of its
/// origin, but none of them is open there.
fn find_by_approval(shared: &Shared, id: ApprovalId) -> Result<Arc<RunHandle>, ApiError> {
    let has = |handle: &&Arc<RunHandle>| handle.read_live(|run| run.approvals.contains_key(&id));
    let had = |handle: &&Arc<RunHandle>| handle.read(|run| run.archive.resolution(id).is_some());
    let handles = shared.runs.list();
    let found = handles.iter().find(has);
    let found = found.or_else(|| handles.iter().find(had)).cloned();
    found.ok_or_else(|| Rejection::UnknownApproval(id).into())
}

/// Lists the rules of all runs.
#[utoipa::path(get, path = "/api/rules", tag = "approvals",
    params(("runId" = Option<String>, Query, description = "Only those of this run")),
    responses((status = 200, description = "Rules", body = wire::RuleList)))]
pub(crate) async fn list_rules(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<RunFilterQuery>,
) -> Result<Json<wire::RuleList>, ApiError> {
    let mut rules = Vec::new();
    for handle in filtered(&shared, &query)? {
        let run_id = wire::UuidText::of(handle.id());
        handle.read_live(|run| {
            rules.extend(run.rules.iter().map(|rule| wire::RuleOfRun {
                run_id: run_id.clone(),
                rule: json::rule_view(rule),
            }));
        });
    }
    Ok(Json(wire::RuleList { rules }))
}

/// Deletes a rule.
#[utoipa::path(delete, path = "/api/rules/{id}", tag = "approvals", params(("id" = String, Path)),
    responses((status = 200, description = "The rule is gone", body = wire::RuleGone)))]
pub(crate) async fn delete_rule(
    State(shared): State<Arc<Shared>>,
    Query(NoQuery): Query<NoQuery>,
    At(id): At<String>,
) -> Result<Json<wire::RuleGone>, ApiError> {
    let id: RuleId = parse_uuid(&id, "rule")?;
    let has = |handle: &&Arc<RunHandle>| {
        handle.read_live(|run| run.rules.iter().any(|rule| rule.id == id))
    };
    let handles = shared.runs.list();
    let handle = handles.iter().find(has).cloned();
    let handle = handle.ok_or(Rejection::UnknownRule(id))?;
    handle
        .decide(move |run, around| decide::delete_rule(run, around, id))
        .await?;
    let rule_id = wire::UuidText::of(id);
    Ok(Json(wire::RuleGone { rule_id }))
}
