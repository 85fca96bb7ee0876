//! The status of each refusal.

use serde_json::{Value, json};
use turnkeep_runtime::approval::Resolution;
use turnkeep_runtime::rejection::Rejection;
use turnkeep_runtime::words::RunStatus;

use super::*;
use crate::error::ApiError;

#[test]
fn a_refusal_has_the_status_of_its_kind_and_what_a_program_needs() {
    let check = |rejection: Rejection, status: u16, details: Value| {
        let message = rejection.to_string();
        let error = ApiError::from(rejection);
        assert_eq!(error.code.status(), status, "{message}");
        assert_eq!(error.message, message);
        assert_eq!(Value::Object(error.details), details, "{message}");
    };
    check(
        Rejection::UnknownNode("a".to_owned()),
        404,
        json!({"node": "a"}),
    );
    check(
        Rejection::UnknownApproval(id(9)),
        404,
        json!({"approvalId": id_text(9)}),
    );
    let earlier = Resolution::denied("no");
    check(
        Rejection::AlreadyResolved(Box::new(earlier)),
        409,
        json!({"resolution": {"status": "denied", "scope": "once", "reason": "no", "by": "daemon"}}),
    );
    check(
        Rejection::NoModifiedArgs,
        400,
        json!({"path": "modifiedArgs"}),
    );
    check(
        Rejection::CannotModify("codex".to_owned()),
        422,
        json!({"program": "codex"}),
    );
    check(
        Rejection::IllegalMove {
            from: RunStatus::Completed,
            to: RunStatus::Paused,
        },
        409,
        json!({"from": "completed", "to": "paused"}),
    );
    check(
        Rejection::AmbiguousNode(vec!["a".to_owned(), "b".to_owned()]),
        400,
        json!({"path": "nodeId", "nodes": ["a", "b"]}),
    );
    check(
        Rejection::AliasTaken("a".to_owned()),
        409,
        json!({"path": "alias"}),
    );
    check(Rejection::TooManyNodes(24), 409, json!({"limit": 24}));
    check(
        Rejection::TooLarge {
            what: "the message",
            bytes: 5,
            max: 4,
            hint: "shorten it",
        },
        413,
        json!({"limit": 4, "actual": 5}),
    );
    check(Rejection::MayNotSpawn, 403, json!({}));
    check(Rejection::TurnOver, 409, json!({}));
    check(Rejection::Empty("content"), 400, json!({"path": "content"}));
    check(
        Rejection::NoNodes,
        400,
        json!({"path": "nodeId", "reason": "no_nodes"}),
    );
    // The detail `reason` has only words of the dictionary.
    check(
        Rejection::CannotVerify("the run is completed"),
        409,
        json!({}),
    );
}
