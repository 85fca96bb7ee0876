//! Refusals of the runtime as failed requests: 404 for an unknown id, 409 for a state that does not
//! allow the command, 400 for an invalid one, 413 for too much, 422 for what a program cannot do.
//!
//! The match has no catch-all arm: a new refusal does not compile until it has a code here.

use serde_json::Value;
use turnkeep_runtime::rejection::Rejection;
use turnkeep_wire::{ErrorCode, ErrorReason};

use super::resolution_view;
use crate::error::ApiError;

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        let message = rejection.to_string();
        let error = |code| Self::new(code, message);
        match rejection {
            Rejection::UnknownNode(name) => error(ErrorCode::NotFound).with("node", name),
            Rejection::NodeGone(id) => error(ErrorCode::NotFound).with("nodeId", id.to_string()),
            Rejection::UnknownEdge(id) => error(ErrorCode::NotFound).with("edgeId", id.to_string()),
            Rejection::UnknownApproval(id) => {
                error(ErrorCode::NotFound).with("approvalId", id.to_string())
            }
            Rejection::UnknownRule(id) => error(ErrorCode::NotFound).with("ruleId", id.to_string()),
            Rejection::UnknownArtifact(id) => {
                error(ErrorCode::NotFound).with("artifactId", id.to_string())
            }
            Rejection::AlreadyResolved(resolution) => {
                let earlier = serde_json::to_value(resolution_view(&resolution));
                error(ErrorCode::Conflict).with("resolution", earlier.unwrap_or_default())
            }
            Rejection::NoModifiedArgs | Rejection::UnusedModifiedArgs => {
                error(ErrorCode::BadRequest).with("path", "modifiedArgs")
            }
            Rejection::NoAnswer => error(ErrorCode::BadRequest).with("path", "modifiedArgs.answer"),
            Rejection::CannotModify(program) => {
                error(ErrorCode::Unprocessable).with("program", program)
            }
            Rejection::NoRulePossible { .. } => {
                error(ErrorCode::Unprocessable).with("path", "scope")
            }
            Rejection::IllegalMove { from, to } => error(ErrorCode::Conflict)
                .with("from", from.word())
                .with("to", to.word()),
            Rejection::NoNodes => error(ErrorCode::BadRequest)
                .with("path", "nodeId")
                .with_reason(ErrorReason::NoNodes),
            Rejection::AmbiguousNode(names) => error(ErrorCode::BadRequest)
                .with("path", "nodeId")
                .with("nodes", names),
            Rejection::AliasTaken(_) => error(ErrorCode::Conflict).with("path", "alias"),
            Rejection::BadName { field, .. } | Rejection::Empty(field) => {
                error(ErrorCode::BadRequest).with("path", field)
            }
            Rejection::BadAlias(_) => error(ErrorCode::BadRequest).with("path", "alias"),
            Rejection::TooManyNodes(limit) | Rejection::TooDeep(limit) => {
                error(ErrorCode::Conflict).with("limit", limit)
            }
            Rejection::MayNotSpawn | Rejection::NotOrchestrator => error(ErrorCode::Forbidden),
            Rejection::RightNotHeld(right) => error(ErrorCode::Forbidden).with("right", right),
            Rejection::EdgeToItself => error(ErrorCode::BadRequest).with("path", "to"),
            Rejection::NoEdge { reachable, .. } => {
                error(ErrorCode::Conflict).with("reachable", reachable)
            }
            Rejection::TooLarge { bytes, max, .. } => error(ErrorCode::TooLarge)
                .with("limit", max as u64)
                .with("actual", bytes as u64),
            Rejection::NoSuchQuestion(id) => {
                error(ErrorCode::Conflict).with("replyTo", id.to_string())
            }
            Rejection::NoViolation(turn) => {
                error(ErrorCode::Conflict).with("turnId", turn.to_string())
            }
            Rejection::NotComplete(reasons) => {
                error(ErrorCode::Conflict).with("reasons", Value::from(reasons))
            }
            Rejection::TurnOver
            | Rejection::TurnStopping
            | Rejection::PromptSent
            | Rejection::NothingToRetry
            | Rejection::NotVerifying
            | Rejection::NotEnded
            | Rejection::NoPermissionAsked
            | Rejection::CannotVerify(_) => error(ErrorCode::Conflict),
        }
    }
}
