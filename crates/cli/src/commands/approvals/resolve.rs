//! Sends a person's decision about an approval.

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_wire::percent_encode;
use turnkeep_wire::runs::{ResolveApproval, Scope, Verdict};

use crate::commands::run::client::RunsClient;
use crate::http::Call;

/// What a person decided.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Decision {
    Approve,
    /// This call, and later ones like it.
    ApproveFor(Scope),
    Deny {
        reason: Option<String>,
        /// Whether the node's turn is interrupted too.
        stop: bool,
    },
    /// The call goes on with other arguments.
    Edit(Value),
    /// The answer to a question.
    Answer(String),
}

impl Decision {
    fn into_body(self) -> ResolveApproval {
        let body = |status| ResolveApproval {
            status,
            interrupt: false,
            modified_args: None,
            reason: None,
            scope: None,
        };
        match self {
            Self::Approve => body(Verdict::Approved),
            Self::ApproveFor(scope) => ResolveApproval {
                scope: Some(scope),
                ..body(Verdict::Approved)
            },
            Self::Deny { reason, stop } => ResolveApproval {
                reason,
                interrupt: stop,
                ..body(Verdict::Denied)
            },
            Self::Edit(args) => ResolveApproval {
                modified_args: Some(args),
                ..body(Verdict::Modified)
            },
            Self::Answer(answer) => ResolveApproval {
                modified_args: Some(json!({ "answer": answer })),
                ..body(Verdict::Modified)
            },
        }
    }
}

/// Decides about an approval. The answer is the resolution that counts.
pub(crate) async fn resolve_approval(
    client: &mut RunsClient,
    approval: &str,
    decision: Decision,
) -> Result<Value> {
    let body = serde_json::to_value(decision.into_body())?;
    let path = format!("/api/approvals/{}/resolve", percent_encode(approval));
    client.send(Call::post(path, &body)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_becomes_a_request() {
        fn check(decision: Decision, expect: &Value) {
            assert_eq!(serde_json::to_value(decision.into_body()).unwrap(), *expect);
        }
        check(
            Decision::ApproveFor(Scope::Run),
            &json!({ "status": "approved", "interrupt": false, "scope": "run" }),
        );
        check(
            Decision::Deny {
                reason: Some("no".to_owned()),
                stop: true,
            },
            &json!({ "status": "denied", "interrupt": true, "reason": "no" }),
        );
        check(
            Decision::Answer("blue".to_owned()),
            &json!({ "status": "modified", "interrupt": false, "modifiedArgs": { "answer": "blue" } }),
        );
    }
}
